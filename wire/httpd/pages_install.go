package httpd

import (
	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/web"
)

// offlinePages is the page that the client's service worker stores. It is the same for every user.
var offlinePages = []pageRoute{{path: web.OfflinePath, anywhere: true, handle: (*Server).offlinePage}}

func (s *Server) offlinePage(*pageRequest) (web.View, error) { return web.Offline(), nil }

// workerPolicy allows the service worker requests to this server only.
const workerPolicy = "default-src 'none'; connect-src 'self'"

// addInstallRoutes adds the addresses with which browsers install the client: its manifest and its service worker.
func (s *Server) addInstallRoutes() {
	worker := whenAsked(web.ServiceWorker, newConstantAnswer)
	if s.options.WebApp != nil {
		worker = whenAsked(web.RetiredWorker, newConstantAnswer)
	} else {
		s.router.ANY(manifestRoute.path, func(ctx *fasthttp.RequestCtx) { s.servePage(ctx, &manifestRoute) })
	}
	s.router.ANY(web.WorkerPath, s.readOnly(func(ctx *fasthttp.RequestCtx) {
		if !s.writeConstant(ctx, worker()) {
			return
		}
		ctx.SetContentType("text/javascript; charset=utf-8")
		ctx.Response.Header.Set("Cache-Control", "no-cache")
		ctx.Response.Header.Set("Content-Security-Policy", workerPolicy)
		ctx.Response.Header.Set("X-Content-Type-Options", "nosniff")
	}))
}

// manifestRoute is the route of the manifest. Browsers ask for it without cookies.
var manifestRoute = pageRoute{path: web.ManifestPath, handle: (*Server).manifest}

// manifest answers with the manifest, which has the name of the organization. The login page shows that name, too.
func (s *Server) manifest(p *pageRequest) (web.View, error) {
	name, err := wire.Read(p.call, func(v realm.View) (string, error) { return v.Org().Name, nil })
	if err != nil {
		return web.View{}, err
	}
	p.answered = true
	setPageHeaders(p.ctx)
	p.ctx.Response.Header.Set("Cache-Control", "no-cache")
	p.ctx.Response.SkipBody = p.ctx.IsHead()
	p.ctx.SetContentType("application/manifest+json; charset=utf-8")
	p.ctx.SetBody(web.InstallManifest(name))
	return web.View{}, nil
}

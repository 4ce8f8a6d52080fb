package httpd

import (
	"sync"

	"parley/wire"
	"parley/wire/web"
)

// apiPages show the OpenAPI description to people. They are the same for every organization.
var apiPages = []pageRoute{
	{path: web.APIPath, handle: (*Server).apiIndexPage, anywhere: true},
	{path: web.APIPath + "/{token}", handle: (*Server).apiPage, anywhere: true},
}

var apiDescription = sync.OnceValue(func() *web.API {
	a, err := web.NewAPI(wire.OpenAPI())
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return a
})

func (s *Server) apiIndexPage(*pageRequest) (web.View, error) { return apiDescription().Index(), nil }

// apiPage shows an operation or an object.
func (s *Server) apiPage(p *pageRequest) (web.View, error) {
	if view, ok := apiDescription().Page(p.token()); ok {
		return view, nil
	}
	return pageNotFound()
}

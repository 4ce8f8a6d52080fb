package main

import (
	"strings"
	"testing"

	"parley/wire/web"
)

// The addresses with which browsers install the client need no login, say how long they may be kept, and set no
// cookies.
func TestInstallAddresses(t *testing.T) {
	_, at, _ := browserDemo(t)
	b := newBrowser(t, at)
	for _, x := range []struct{ path, kind, policy, has string }{
		{web.ManifestPath, "application/manifest+json; charset=utf-8", "default-src 'none'", `"display":"standalone"`},
		{web.WorkerPath, "text/javascript; charset=utf-8", "connect-src 'self'", "/static/parley/client/app-"},
	} {
		a := b.send("GET", x.path, nil)
		if a.status != 200 || a.header.Get("Content-Type") != x.kind || a.header.Get("Cache-Control") != "no-cache" ||
			!strings.Contains(a.header.Get("Content-Security-Policy"), x.policy) || !strings.Contains(a.body, x.has) ||
			len(a.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: %d %v %.200s", x.path, a.status, a.header, a.body)
		}
	}
	if a := b.send("GET", web.OfflinePath, nil); a.status != 200 || !strings.Contains(a.body, "cannot be reached") {
		t.Errorf("the page for times without a connection: %d %.300s", a.status, a.body)
	}
}

// A server with the official web app has no manifest, and its worker removes that of this server's own client.
func TestInstallAddressesWithWebApp(t *testing.T) {
	at, _ := webAppDemo(t)
	b := newBrowser(t, at)
	if a := b.send("GET", web.ManifestPath, nil); a.status != 404 {
		t.Errorf("the manifest: %d", a.status)
	}
	if a := b.send("GET", web.WorkerPath, nil); a.status != 200 || !strings.Contains(a.body, "unregister()") {
		t.Errorf("the service worker: %d %.300s", a.status, a.body)
	}
}

package preview

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"parley/wire/markdown"
)

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "127.0.0.1": false, "127.9.9.9": false, "::1": false,
		"10.1.2.3":   false,
		"172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "fe80::1": false, "fc00::1": false,
		"0.0.0.0": false, "::": false,
		"100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "::ffff:127.0.0.1": false,
		"::ffff:10.0.0.1": false,
		"64:ff9b::7f00:1": false, "::7f00:1": false, "::ffff:0:7f00:1": false, "2002:7f00:1::": false,
		"198.18.0.1": false, "240.0.0.1": false,
		"3fff::1": false, "5f00::1": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// pages starts a site with all kinds of page.
func pages(t *testing.T) (site string, asked *int) {
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/og":
			fmt.Fprint(w, `<html><head><title>Plain</title><meta property="og:title" content="A &amp; B">`+
				`<meta property="og:description" content=" two
				lines "><meta property="og:image" content="/p.png"></head>`)
		case "/plain":
			fmt.Fprint(w, `<title> The  title </title><meta name="description" content="Words"><meta `+
				`property="og:image" content="javascript:x">`)
		case "/long":
			fmt.Fprint(w, "<title>"+strings.Repeat("é", 5000)+"</title>", strings.Repeat("x", 2<<20))
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{}`)
		case "/none":
			fmt.Fprint(w, `<p>nothing`)
		case "/away":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func TestFetch(t *testing.T) {
	site, _ := pages(t)
	own := netip.MustParseAddrPort(strings.TrimPrefix(site, "http://"))
	f := newFetcher(func(at netip.AddrPort) bool { return at == own })
	for path, want := range map[string]markdown.Preview{
		"/og":    {Title: "A & B", Description: "two lines", Image: site + "/p.png"},
		"/plain": {Title: "The title", Description: "Words"},
		"/long":  {Title: strings.Repeat("é", 150)},
	} {
		got, err := f.Fetch(context.Background(), site+path)
		if err != nil || got != want {
			t.Errorf("%s: %+v %v", path, got, err)
		}
	}
	for path, want := range map[string]error{"/json": ErrNoPreview, "/none": ErrNoPreview, "/missing": ErrNoPreview,
		"/away": ErrRefused,
		"/file": ErrRefused, "/loop": ErrRefused} {
		if _, err := f.Fetch(context.Background(), site+path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestFetchRefusesOwnNetwork(t *testing.T) {
	site, asked := pages(t)
	port := site[strings.LastIndexByte(site, ':'):]
	f := New(netip.MustParsePrefix("10.0.0.0/8"))
	for _, address := range []string{site + "/og", "http://localhost" + port + "/og", "http://[::1]" + port + "/",
		"http://0.0.0.0" + port + "/",
		"http://[::ffff:127.0.0.1]" + port + "/", "ftp://example.org/", "http://user:pass@example.org/", "/og",
		"http://"} {
		if _, err := f.Fetch(context.Background(), address); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if *asked != 0 {
		t.Errorf("%d requests were sent", *asked)
	}
	if p, err := New(netip.MustParsePrefix("127.0.0.0/8")).Fetch(context.Background(), site+"/og"); err != nil ||
		p.Title != "A & B" {
		t.Errorf("from a network that is allowed: %+v %v", p, err)
	}
}

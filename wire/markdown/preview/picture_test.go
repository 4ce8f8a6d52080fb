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
	"time"
)

const tinyGIF = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff" +
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

// A picture is fetched through the guard of previews. Hostile sites get no further: those that redirect to this
// machine, send without end or slowly, or call a page a picture.
func TestFetchPicture(t *testing.T) {
	stopped := make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		switch r.URL.Path {
		case "/gif":
			w.Header().Set("Content-Type", "text/html") // the bytes decide
			fmt.Fprint(w, tinyGIF)
		case "/page":
			fmt.Fprint(w, "<html><script>alert(1)</script>")
		case "/svg":
			w.Header().Set("Content-Type", "image/svg+xml")
			fmt.Fprint(w, `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script/></svg>`)
		case "/endless":
			fmt.Fprint(w, tinyGIF)
			for block := strings.Repeat("x", 1<<16); ; {
				if _, err := fmt.Fprint(w, block); err != nil {
					return
				}
			}
		case "/large":
			w.Header().Set("Content-Length", fmt.Sprint(MaxPicture+1))
			fmt.Fprint(w, tinyGIF)
		case "/slow":
			fmt.Fprint(w, tinyGIF[:9])
			w.(http.Flusher).Flush()
			<-stopped
		case "/loopback":
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	defer close(stopped)
	own := netip.MustParseAddrPort(strings.TrimPrefix(site.URL, "http://"))
	f := newFetcher(func(at netip.AddrPort) bool { return at == own })
	kind, data, err := f.FetchPicture(context.Background(), site.URL+"/gif")
	if err != nil || kind != "image/gif" || string(data) != tinyGIF {
		t.Errorf("a picture: %q, %d bytes, %v", kind, len(data), err)
	}
	for path, want := range map[string]error{"/page": ErrNoPicture, "/svg": ErrNoPicture, "/endless": ErrNoPicture,
		"/large": ErrNoPicture, "/missing": ErrNoPicture, "/loopback": ErrRefused, "/file": ErrRefused,
	} {
		if _, data, err := f.FetchPicture(context.Background(), site.URL+path); !errors.Is(err, want) || data != nil {
			t.Errorf("%s: %d bytes, %v", path, len(data), err)
		}
	}
	f.client.Timeout = 50 * time.Millisecond
	if _, _, err := f.FetchPicture(context.Background(), site.URL+"/slow"); err == nil {
		t.Error("a slow site has no limit")
	}
	for _, address := range []string{site.URL + "/gif", "http://localhost/", "http://[::1]/", "ftp://example.org/x.png",
		"http://user:pass@example.org/x.png", "/x.png"} {
		if _, _, err := New().FetchPicture(context.Background(), address); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

package httpd

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

// failingServer is a wire.Server in which every read panics.
type failingServer struct{ wire.Server }

func (failingServer) AuthVersion() uint64 { return 1 }

func (failingServer) View(realm.ID, realm.Caller, func(realm.View) (any, error)) (any, error) {
	panic("a fault of the program")
}

// A fault of a page is answered with a whole page in the visitor's language, which says nothing about the fault and
// allows no script, and the server goes on.
func TestPageAfterPanic(t *testing.T) {
	_, at := serveFast(t, failingServer{}, nil)
	for _, c := range []struct{ path, language, says string }{
		{"/login/", "en", "Something went wrong. Please try again later."},
		{"/login/", "de", "Etwas ist schiefgegangen."},
	} {
		req, err := http.NewRequest("GET", "http://"+at+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html")
		req.Header.Set("Accept-Language", c.language)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 500 || res.Header.Get("Content-Language") != c.language ||
			!strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") ||
			res.Header.Get("Content-Security-Policy") == "" || strings.Contains(string(body), "fault") ||
			!strings.Contains(string(body), c.says) || !strings.Contains(string(body), "</html>") {
			t.Errorf("GET %s: %d %v, %v\n%s", c.path, res.StatusCode, res.Header, err, body)
		}
	}
}

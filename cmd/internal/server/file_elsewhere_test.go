package server

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot/files"
	"parley/wire/httpd"
)

// A core without a bucket lacks the files that were uploaded while another core was the leader. While no other core can
// give them, its backup names them, and a download says why it is refused: a client must not learn that the file does
// not exist. It is the same for uploads, thumbnails and avatars. A picture that no row names does not exist.
func TestFilesOfAnotherCore(t *testing.T) {
	core := newMatrixServer(t, newCoverage(byKey))
	if _, err := core.orgs.CreateRealm("", "Ours"); err != nil {
		t.Fatal(err)
	}
	owner := core.join(ours, ourHost, "owner", realm.Owner, 0, 0)
	core.must(owner, "POST", "/user_uploads", "file", "here")
	other, err := files.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	lacking := func(f *files.Store, content bool) string {
		t.Helper()
		list, _, err := orgfiles.FindMissing(core.disk, f, 0, content)
		if err != nil {
			t.Fatal(err)
		}
		return orgfiles.DescribeLacking(list)
	}
	if got := lacking(core.files, true); got != "" {
		t.Fatalf("the core that has all files lacks %q", got)
	}
	if got := lacking(other, false); !strings.Contains(got, "1 files are missing") ||
		!strings.Contains(got, "missing: content/") || !strings.Contains(got, "(organization 1)") {
		t.Fatalf("the core without the file lacks %q", got)
	}

	link := core.must(owner, "POST", "/user_uploads", "file", "here").body["url"].(string)
	address, _ := core.must(owner, "GET", link).body["url"].(string)
	named := map[string]bool{"0123456789abcdef0123456789abcdef": true}
	fetch := orgfiles.NewFetcher(other, slog.New(slog.DiscardHandler), func(kind, name string) (bool, error) {
		return kind == realm.PictureFile && named[name], nil
	})
	defer fetch.Close()
	options := core.options
	options.Files = orgfiles.Serve(other, fetch, nil)
	s := &Server{fetcher: fetch}
	if s.filesState() != "" {
		t.Errorf("the state of the files is %q", s.filesState())
	}
	server := httpd.New(options)
	get := func(path string) *fasthttp.Response {
		req := &fasthttp.Request{}
		req.SetRequestURI("http://" + ourHost + path)
		ctx := &fasthttp.RequestCtx{}
		ctx.Init(req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
		server.Handle(ctx)
		return &ctx.Response
	}
	for _, path := range []string{address, "/user_avatars/1/0123456789abcdef0123456789abcdef.png"} {
		r := get(path)
		body, retry := string(r.Body()), r.Header.Peek("Retry-After")
		if r.StatusCode() != 503 || !strings.Contains(body, "FILES_UNAVAILABLE") ||
			!strings.Contains(body, "another server") || len(retry) == 0 ||
			!strings.Contains(string(r.Header.Peek("Cache-Control")), "no-store") {
			t.Errorf("%s, of another core, is answered %d %s, %q", path, r.StatusCode(), body, &r.Header)
		}
	}
	for _, name := range []string{"fedcba9876543210fedcba9876543210.png", "..", "x.jpg"} {
		if r := get("/user_avatars/1/" + name); r.StatusCode() != 404 {
			t.Errorf("picture %s, which no row names, is answered %d %s", name, r.StatusCode(), r.Body())
		}
	}
	store := orgfiles.Serve(other, fetch, nil)
	for what, make := range map[string]func() (string, error){
		"thumbnail":   func() (string, error) { return store.Thumbnail(1, strings.Repeat("a", 64), false) },
		"first frame": func() (string, error) { return store.Still(1, strings.Repeat("a", 64)) },
	} {
		if _, err := make(); err == nil || !strings.Contains(err.Error(), "another server") {
			t.Errorf("the %s of a file of another core: %v", what, err)
		}
	}
	if !strings.Contains(s.filesState(), "4 downloads were refused") {
		t.Errorf("the state of the files is %q", s.filesState())
	}
}

package server

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/snapshot/files"
	"parley/wire/httpd"
)

// A core without a bucket lacks the files that were uploaded while another core was the leader. Its backup names them,
// and a download says why it is refused: a client must not learn that the file does not exist.
func TestFilesOfAnotherCore(t *testing.T) {
	core := newMatrixServer(t, newCoverage(byKey))
	if _, err := core.orgs.CreateRealm("", "Ours"); err != nil {
		t.Fatal(err)
	}
	owner := core.join(ours, ourHost, "owner", realm.Owner, 0, 0)
	core.must(owner, "POST", "/user_uploads", "file", "here")
	dir := t.TempDir()
	other, err := files.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	there := core.tools.Files.(fileStore).s
	if lacking, err := lackingFiles(core.disk, there); err != nil || lacking != "" {
		t.Fatalf("the core that has all files lacks %q, %v", lacking, err)
	}
	lacking, err := lackingFiles(core.disk, other)
	if err != nil || !strings.Contains(lacking, "would lack 1 files") ||
		!strings.Contains(lacking, "missing: content/") || !strings.Contains(lacking, "(organization 1)") {
		t.Fatalf("the core without the file lacks %q, %v", lacking, err)
	}

	link := core.must(owner, "POST", "/user_uploads", "file", "here").body["url"].(string)
	address, _ := core.must(owner, "GET", link).body["url"].(string)
	var elsewhere atomic.Int64
	options := core.options
	options.Files = openFiles{other, &elsewhere}
	req := &fasthttp.Request{}
	req.SetRequestURI("http://" + ourHost + address)
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
	httpd.New(options).Handle(ctx)
	body, retry := string(ctx.Response.Body()), ctx.Response.Header.Peek("Retry-After")
	if ctx.Response.StatusCode() != 503 || !strings.Contains(body, "FILES_UNAVAILABLE") ||
		!strings.Contains(body, "another server") || len(retry) == 0 {
		t.Errorf("%s, of another core, is answered %d %s", address, ctx.Response.StatusCode(), body)
	}
	s := &Server{}
	if s.filesState() != "" {
		t.Errorf("the state of the files is %q", s.filesState())
	}
	s.elsewhere.Store(elsewhere.Load())
	if !strings.Contains(s.filesState(), "1 downloads were refused") {
		t.Errorf("the state of the files is %q", s.filesState())
	}
}

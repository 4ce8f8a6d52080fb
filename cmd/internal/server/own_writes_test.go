package server

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire/httpd"
)

// releaseOnQuestion lets the edge get its facts as soon as it has asked the owner once more.
func releaseOnQuestion(cluster *directCluster) (end func()) {
	asked, stop := cluster.questions.Load(), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cluster.late.Unlock()
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for cluster.questions.Load() == asked {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop); <-done }
}

// A client writes at the core and reads at an edge that does not have the write yet. The edge refuses nothing as
// missing before it has the newest fact of the core: not messages, channels, users, or the caller's own account.
func TestNothingIsMissingAtALateEdge(t *testing.T) {
	core, edge, cluster, owner, member := stageWithEdge(t)
	refusals := 0
	for _, write := range []struct {
		name string
		make func() (path string, as *matrixUser)
	}{
		{"message", func() (string, *matrixUser) {
			r := core.must(owner, "POST", "/messages", "type", "direct", "to", []int64{member.id}, "content", "new")
			return fmt.Sprint("/messages/", r.int("id")), owner
		}},
		{"message of another user", func() (string, *matrixUser) {
			r := core.must(owner, "POST", "/messages", "type", "direct", "to", []int64{member.id}, "content", "new")
			return fmt.Sprint("/messages/", r.int("id")), member
		}},
		{"channel", func() (string, *matrixUser) {
			core.must(owner, "POST", "/users/me/subscriptions", "subscriptions", []map[string]string{{"name": "new"}})
			return "/get_stream_id?stream=new", owner
		}},
		{"user", func() (string, *matrixUser) {
			return fmt.Sprint("/users/", core.join(ours, ourHost, "new", realm.Member, 0, 0).id), owner
		}},
		{"new account of the caller", func() (string, *matrixUser) {
			return "/users/me", core.join(ours, ourHost, "newer", realm.Member, 0, 0)
		}},
	} {
		for range 10 {
			core.waitForFrontOf(edge)
			cluster.late.Lock()
			end := releaseOnQuestion(cluster)
			path, as := write.make()
			r := edge.send(as, "GET", path)
			end()
			if r.status != 200 {
				refusals++
				t.Logf("%s: %d %s", write.name, r.status, r.raw)
			}
			if write.name != "message" { // names are used once
				break
			}
		}
	}
	if refusals > 0 {
		t.Errorf("%d requests were refused for what the core had acknowledged", refusals)
	}
	// What does not exist costs one question, and the refusal is that of the core.
	core.waitForFrontOf(edge)
	asked := cluster.questions.Load()
	here, there := edge.send(owner, "GET", "/messages/4711"), core.send(owner, "GET", "/messages/4711")
	if here.status != 400 || here.raw != there.raw || cluster.questions.Load() != asked+1 {
		t.Errorf("a missing message is answered %d %s after %d questions", here.status, here.raw,
			cluster.questions.Load()-asked)
	}
	// A request with a wrong form, and one without credentials, cost none.
	asked = cluster.questions.Load()
	visitor := &matrixUser{host: ourHost}
	if r := edge.send(owner, "GET", "/messages", "anchor", "x"); r.status != 400 {
		t.Errorf("a wrong anchor is answered %d %s", r.status, r.raw)
	}
	if r := edge.send(visitor, "GET", "/users/me"); r.status != 401 {
		t.Errorf("a request without credentials is answered %d %s", r.status, r.raw)
	}
	if n := cluster.questions.Load() - asked; n != 0 {
		t.Errorf("%d questions for requests that no fact can allow", n)
	}
	// If the core does not answer, the client has to repeat the request.
	cluster.unreachable.Store(true)
	r := edge.send(owner, "GET", "/messages/4711")
	if r.status != 503 || r.body["code"] != "SERVER_OVERLOADED" {
		t.Errorf("without the core, a missing message is answered %d %s", r.status, r.raw)
	}
}

// waitForFrontOf waits until an edge has everything of this core.
func (c *matrixServer) waitForFrontOf(edge *matrixServer) {
	c.Helper()
	if err := edge.orgs.WaitFor(c.Context(), ours, c.orgs.DurableSeq(ours)); err != nil {
		c.Fatal(err)
	}
}

// The answer to a browser's write has a cookie with its fact. A late edge waits for that fact before it serves the
// browser, also where it would not refuse anything. A forged number costs one question and no wait.
func TestBrowsersReadTheirWritesAtALateEdge(t *testing.T) {
	core, edge, cluster, owner, _ := stageWithEdge(t)
	core.login = bySession
	core.prepareLogin(owner, ours, 0)
	core.waitForFrontOf(edge)
	browse := func(s *httpd.Server, method, target, body, writes string) *fasthttp.RequestCtx {
		t.Helper()
		req := &fasthttp.Request{}
		req.Header.SetMethod(method)
		req.SetRequestURI("http://" + ourHost + target)
		req.Header.SetHost(ourHost)
		if body != "" {
			req.Header.SetContentType("application/x-www-form-urlencoded")
			req.SetBodyString(body)
		}
		core.addCredentials(req, owner, method, strings.TrimPrefix(target, "/json"))
		req.Header.Set("X-CSRFToken", owner.session.csrf)
		if writes != "" {
			req.Header.SetCookie("parley_writes", writes)
		}
		ctx := &fasthttp.RequestCtx{}
		ctx.Init(req, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
		s.Handle(ctx)
		if ctx.Response.StatusCode() != 200 {
			t.Fatalf("%s %s: %d %s", method, target, ctx.Response.StatusCode(), ctx.Response.Body())
		}
		return ctx
	}
	const read = "/json/messages?anchor=newest&num_before=1&num_after=0&narrow=[]&apply_markdown=false"
	for i, writer := range []*httpd.Server{cluster.owner, edge.server} {
		text := fmt.Sprint("text-", i)
		sent := browse(writer, "POST", "/json/messages", fmt.Sprintf("type=direct&to=[%d]&content=%s", owner.id,
			text), "")
		var cookie fasthttp.Cookie
		cookie.SetKey("parley_writes")
		if !sent.Response.Header.Cookie(&cookie) || !cookie.HTTPOnly() ||
			cookie.SameSite() != fasthttp.CookieSameSiteLaxMode || cookie.MaxAge() != 60 {
			t.Fatalf("the answer to a write has the cookie %q", cookie.String())
		}
		core.waitForFrontOf(edge)
		cluster.late.Lock()
		end := releaseOnQuestion(cluster)
		text += "-late"
		sent = browse(cluster.owner, "POST", "/json/messages",
			fmt.Sprintf("type=direct&to=[%d]&content=%s", owner.id, text), "")
		sent.Response.Header.Cookie(&cookie)
		got := browse(edge.server, "GET", read, "", string(cookie.Value()))
		end()
		if !strings.Contains(string(got.Response.Body()), text) {
			t.Errorf("the edge shows the browser %s, without its message", got.Response.Body())
		}
		if got.Response.Header.PeekCookie("parley_writes") != nil {
			t.Error("the answer to a read has a cookie about writes")
		}
	}
	core.waitForFrontOf(edge)
	for forged, questions := range map[string]int64{"1.18446744073709551615": 1, "2.999999": 0, "1.": 0, "x": 0,
		"1.99999999999999999999999": 0, fmt.Sprint("1.", core.orgs.DurableSeq(ours)): 0} {
		asked := cluster.questions.Load()
		browse(edge.server, "GET", read, "", forged)
		if n := cluster.questions.Load() - asked; n != questions {
			t.Errorf("the cookie %q costs %d questions, not %d", forged, n, questions)
		}
	}
}

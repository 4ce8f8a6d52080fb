package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"parley/actors"
	"parley/actors/delivery"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/cmd/internal/sites"
	"parley/snapshot"
	"parley/wire"
	"parley/wire/calls"
	"parley/wire/httpd"
)

// directCluster connects an edge and the owner in one process, in place of a link between two.
type directCluster struct {
	*actors.Server // of the node
	core           *actors.Server
	owner          *httpd.Server
	tries          atomic.Int64 // requests that were sent to the owner
	lose           atomic.Int64 // how many answers of the owner are lost
	edge           *actors.Edge // the owner's end
	batches        atomic.Int64 // of presence
	keeps          bool         // the node is a core that keeps event queues
	late           sync.RWMutex // while it is locked, the edge gets no facts
	questions      atomic.Int64 // for the newest fact
	unreachable    atomic.Bool  // the owner does not answer them

	sendsMu sync.Mutex
	sends   *httpd.ForwardedSends // of owner
	fast    atomic.Int64          // requests that it has taken
}

// serve lets the owner carry out a request, as the owner's end of a link does.
func (c *directCluster) serve(r httpd.ForwardedRequest) (a httpd.ForwardedAnswer, err error) {
	answered := make(chan struct{})
	c.sendsMu.Lock()
	if c.sends == nil {
		c.sends = c.owner.NewForwardedSends()
	}
	taken := c.sends.Begin(r, func(got httpd.ForwardedAnswer, failed error) {
		a, err = got, failed
		close(answered)
	})
	c.sends.Flush()
	c.sendsMu.Unlock()
	if !taken {
		return c.owner.ServeForwarded(r)
	}
	c.fast.Add(1)
	<-answered
	return a, err
}

// NewestSeq asks the owner.
func (c *directCluster) NewestSeq(ctx context.Context, id realm.ID) (realm.Seq, error) {
	c.questions.Add(1)
	if c.unreachable.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return c.core.DurableSeq(id), nil
}

// lateSource is the source of an edge's replicas. It delivers no facts while the test holds them back.
type lateSource struct {
	snapshot.Disk
	cluster *directCluster
}

func (s lateSource) Follow(
	id realm.ID, after realm.Seq, fn func(realm.Batch) error, done func(error),
) (stop func()) {
	return s.Disk.Follow(id, after, func(b realm.Batch) error {
		s.cluster.late.RLock()
		defer s.cluster.late.RUnlock()
		return fn(b)
	}, done)
}

func (c *directCluster) HostsQueues(realm.ID) bool { return c.keeps }

func (c *directCluster) Prepare(string) error { return nil }
func (c *directCluster) IsReady() bool        { return true }
func (c *directCluster) DialOwner() (net.Conn, error) {
	return nil, errors.New("files are not tested here")
}
func (c *directCluster) NewRequest() string { return fmt.Sprintf("edge-%d", requestIDs.Add(1)) }

func (c *directCluster) Forward(
	_ context.Context, r httpd.ForwardedRequest,
) (httpd.ForwardedAnswer, error) {
	c.tries.Add(1)
	if c.edge != nil {
		r.Edge = c.edge.Key()
	}
	a, err := c.serve(r)
	if err == nil && c.lose.Add(-1) >= 0 {
		err = errors.New("the connection broke")
	}
	return a, err
}

func (c *directCluster) CloseQueue(id realm.ID, q realm.QueueID) { c.edge.CloseQueue(id, q) }
func (c *directCluster) Tick(id realm.ID)                        { c.core.Tick(id) }
func (c *directCluster) AdoptQueue(id realm.ID, a delivery.Adoption, answer func(delivery.Adopted, error)) {
	c.edge.AdoptQueue(id, a, answer)
}
func (c *directCluster) ReportQueues(id realm.ID, k delivery.HostedQueues) {
	c.edge.ReportQueues(id, k)
}
func (c *directCluster) ReportAcks(id realm.ID, a delivery.QueueAcks) { c.edge.ReportAcks(id, a) }
func (c *directCluster) ReportPresence(id realm.ID, list []presence.Report) {
	c.batches.Add(1)
	c.edge.ReportPresence(id, list)
}

// elapsed is the clock of an edge. A batch of presence takes so long that the edge sends the next report at once.
func (c *directCluster) elapsed() time.Duration {
	return time.Since(testsBegan) + time.Duration(c.batches.Load())*5*time.Second
}

var (
	testsBegan = time.Now()
	requestIDs atomic.Int64 // of all edges
)

// sharedDisk is the disk of a core that follows another one: the same store, which it does not write.
type sharedDisk struct{ snapshot.Disk }

func (sharedDisk) Claim(realm.ID, uint64) (realm.Claimed, error) {
	return realm.Claimed{}, errNotLeading
}
func (sharedDisk) Owned(realm.ID) (c realm.Claimed, ok bool, err error) {
	return c, true, errNotLeading
}
func (sharedDisk) HasOwned() bool                                                  { return true }
func (sharedDisk) WriteRows(realm.ID, uint64, realm.Seq, []realm.EncodedRow) error { return nil }
func (sharedDisk) SavePresence(realm.ID, uint64, []realm.EncodedRow) error         { return nil }
func (sharedDisk) Level() uint16                                                   { return realm.Level }
func (sharedDisk) VerifyLeader(done func(error))                                   { done(errNotLeading) }

var errNotLeading = errors.New("this core does not lead")

// newEdge returns a server that has replicas of the organizations of another one, and the connection between them.
func newEdge(t *testing.T, core *matrixServer) (*matrixServer, *directCluster) {
	t.Helper()
	return newFollower(t, core, false)
}

// newFollowingCore returns a core that keeps event queues of the organizations of another one, which leads.
func newFollowingCore(t *testing.T, core *matrixServer) (*matrixServer, *directCluster) {
	t.Helper()
	return newFollower(t, core, true)
}

func newFollower(t *testing.T, core *matrixServer, isCore bool) (*matrixServer, *directCluster) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	sites, renderer := sites.New("http://"+ourHost), &wire.Renderer{}
	cluster := &directCluster{core: core.orgs, keeps: isCore}
	var disk actors.Disk = actors.NoDisk{}
	var others actors.Cluster
	if isCore {
		disk, others = sharedDisk{core.disk}, sharedDisk{core.disk}
	}
	orgs, err := actors.Open(disk, actors.Options{
		Cluster:  others,
		Protocol: wire.SessionProtocol{},
		Renderer: renderer,
		Secret:   []byte("a secret of thirty-two characters"),
		Log:      quiet,
		Site:     sites.Site,
		Now:      core.clock,
		Elapsed:  cluster.elapsed,
		Fatal:    func(err error) { panic(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	sites.Orgs = orgs
	ofOwner := core.options
	ofOwner.Cluster = &directCluster{Server: core.orgs}
	cluster.Server, cluster.owner = orgs, httpd.New(ofOwner)
	cluster.edge = core.orgs.ConnectEdge("edge", orgs)
	home := func(request string) bool { return strings.HasPrefix(request, "edge-") }
	if isCore {
		orgs.FollowOwner(cluster, home)
		orgs.PauseReplicas(false)
	}
	for _, id := range core.orgs.Realms() {
		if isCore {
			continue
		}
		err := orgs.OpenReplica(id, actors.ReplicaOptions{Source: lateSource{core.disk, cluster}, Owner: cluster,
			Home: home})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range core.orgs.Realms() {
		core.orgs.FollowPresence(id, func(rows []presence.Row) { orgs.RestorePresence(id, rows) })
		core.orgs.FollowEphemeral(id, func(x realm.Publication) { orgs.DeliverEphemeral(id, x) })
	}
	tools := *core.tools
	tools.Renderer = renderer
	if !isCore {
		tools = toolsOfEdge(tools)
	}
	edge := &matrixServer{T: t, orgs: orgs, tools: &tools, coverage: core.coverage, login: core.login}
	edge.now.Store(core.now.Load())
	options := core.options
	options.Server, options.Tools, options.Realms, options.Cluster = orgs, &tools, sites, cluster
	options.ForwardAll = isCore
	edge.server = httpd.New(options)
	t.Cleanup(func() { withShutdownTimeout(orgs.Close) })
	return edge, cluster
}

// toolsOfEdge returns the tools that an edge has: its own answers need no others.
func toolsOfEdge(t wire.Tools) wire.Tools {
	t.Sign, t.LinkToken, t.JWTKeys, t.WebPushKey, t.Places = nil, nil, nil, "", nil
	t.VerifySignature = func(string, string) bool { return false }
	t.Files, t.Thumbnails, t.StartExport, t.StartOwnExport, t.Organizations = nil, nil, nil, nil, nil
	t.CheckSpace, t.SubdomainTaken, t.HostnameProof = nil, nil, nil
	if t.Calls != nil {
		t.Calls = calls.AtOwner(t.Calls.Address())
	}
	return t
}

// stageWithEdge returns a small organization, an edge of it, and the connection between them.
func stageWithEdge(t *testing.T) (core, edge *matrixServer, cluster *directCluster, owner, member *matrixUser) {
	t.Helper()
	core = newMatrixServer(t, newCoverage(byKey))
	for _, name := range []string{"", "other"} {
		if _, err := core.orgs.CreateRealm(name, "Ours"); err != nil {
			t.Fatal(err)
		}
	}
	owner = core.join(ours, ourHost, "owner", realm.Owner, 0, 0)
	member = core.join(ours, ourHost, "member", realm.Member, 0, 0)
	edge, cluster = newEdge(t, core)
	return core, edge, cluster, owner, member
}

// A client of an edge sees one server: its writes are carried out by the owner, its reads and polls by the edge find
// them at once, and refusals are those of the owner.
func TestForward(t *testing.T) {
	core, edge, _, owner, member := stageWithEdge(t)
	queue := edge.must(member, "POST", "/register", "event_types", []string{"message"})
	member.queue, _ = queue.body["queue_id"].(string)
	if member.queue == "" || queue.body["realm_name"] != nil && queue.body["zulip_version"] == nil {
		t.Fatalf("registered: %s", queue.raw)
	}
	var sent []int64
	for i := range 20 {
		text := fmt.Sprint("number ", i)
		r := edge.must(owner, "POST", "/messages", "type", "direct", "to", []int64{member.id}, "content", text)
		sent = append(sent, r.int("id"))
		got := edge.must(owner, "GET", fmt.Sprint("/messages/", r.int("id")), "apply_markdown", "false")
		if got.body["raw_content"] != text {
			t.Fatalf("read after write: %s", got.raw)
		}
	}
	if got := ids(edge.fetch(member, member.queue).body["events"], "id"); len(got) != len(sent) {
		t.Errorf("%d events for %d messages", len(got), len(sent))
	}
	for _, ask := range []func(c *matrixServer) reply{
		func(c *matrixServer) reply { return c.send(member, "PATCH", "/realm", "name", "Mine") },
		func(c *matrixServer) reply {
			return c.send(member, "POST", "/messages", "type", "direct", "to", []int64{4711})
		},
		func(c *matrixServer) reply { return c.send(member, "DELETE", "/messages/4711") },
		func(c *matrixServer) reply { return c.send(member, "GET", "/messages/4711") },
		func(c *matrixServer) reply { return c.send(&matrixUser{host: ourHost}, "POST", "/messages") },
		func(c *matrixServer) reply { return c.send(member, "POST", "/register", "narrow", "?") },
	} {
		here, there := ask(edge), ask(core)
		if here.status != there.status || here.raw != there.raw || here.status < 400 {
			t.Errorf("the edge answers %d %s, the owner %d %s", here.status, here.raw, there.status, there.raw)
		}
	}
	if n := core.orgs.Metrics.OpenQueues.Load(); n != 0 {
		t.Errorf("the owner keeps %d queues, too", n)
	}
	edge.must(member, "DELETE", "/events", "queue_id", member.queue)
	if got := edge.fetch(member, member.queue).body["code"]; got != "BAD_EVENT_QUEUE_ID" {
		t.Errorf("the closed queue is there: %v", got)
	}
}

// If the connection to the owner breaks after a request was carried out, it is not carried out again: a message is
// answered by its fact, any other request with a retry later.
func TestForwardedRequestRunsOnce(t *testing.T) {
	core, edge, cluster, owner, member := stageWithEdge(t)
	messages := func() int {
		return len(objects(core.must(owner, "GET", "/messages", "anchor", "newest", "num_before", 100, "num_after", 0,
			"narrow", []any{}).body["messages"]))
	}
	before := messages()
	cluster.lose.Store(3)
	r := edge.must(owner, "POST", "/messages", "type", "direct", "to", []int64{member.id}, "content", "once")
	if n := messages() - before; n != 1 {
		t.Errorf("the message was sent %d times", n)
	}
	if got := core.must(owner, "GET", fmt.Sprint("/messages/", r.int("id"))); got.body["raw_content"] != "once" {
		t.Errorf("the answer names another message: %s", got.raw)
	}
	cluster.lose.Store(1)
	a := edge.send(owner, "POST", fmt.Sprintf("/messages/%d/reactions", r.int("id")), "emoji_name", "smile")
	if a.status != 503 {
		t.Errorf("a request that may have been carried out is answered %d %s", a.status, a.raw)
	}
	cluster.lose.Store(1)
	refused := edge.send(owner, "POST", "/messages", "type", "direct", "to", []int64{4711}, "content", "no")
	if refused.status != 400 {
		t.Errorf("a refused request that was sent twice is answered %d %s", refused.status, refused.raw)
	}
	// Tries that arrive at the same time wait for each other.
	body := fmt.Sprintf("type=direct&to=[%d]&content=hi", member.id)
	request := httpd.ForwardedRequest{ID: "edge-twice", Realm: ours, Again: true, Remote: "192.0.2.1",
		HTTP: fmt.Appendf(nil, "POST /api/v1/messages HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", ourHost,
			base64.StdEncoding.EncodeToString([]byte(owner.email+":"+owner.key)), len(body), body)}
	before = messages()
	var answers sync.Map
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			x, err := cluster.serve(request)
			if err != nil {
				t.Error(err)
			}
			_, body, _ := strings.Cut(string(x.HTTP), "\r\n\r\n")
			answers.Store(body, true)
		})
	}
	all.Wait()
	if n := messages() - before; n != 1 {
		t.Errorf("the message was sent %d times: %v", n, &answers)
	}
}

// putNodeBefore makes an edge, or a core that follows, answer the requests of a permission matrix.
func (s *matrixStage) putNodeBefore(isCore bool) {
	edge, _ := newFollower(s.T, s.matrixServer, isCore)
	s.server, s.front = edge.server, edge.orgs
}

// A page is answered by the owner, with its cookies. A form that may have been carried out is not sent again.
func TestForwardPages(t *testing.T) {
	core, edge, cluster, _, _ := stageWithEdge(t)
	get := func(c *matrixServer) *fasthttp.RequestCtx {
		var request fasthttp.Request
		request.SetRequestURI("http://" + ourHost + "/login")
		request.Header.SetHost(ourHost)
		ctx := &fasthttp.RequestCtx{}
		ctx.Init(&request, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
		c.server.Handle(ctx)
		return ctx
	}
	here, there := get(edge), get(core)
	if here.Response.StatusCode() != 200 || len(here.Response.Body()) != len(there.Response.Body()) ||
		len(here.Response.Header.PeekCookie("csrftoken")) != len(there.Response.Header.PeekCookie("csrftoken")) {
		t.Errorf("the edge answers\n%s\nthe owner\n%s", &here.Response, &there.Response)
	}
	sent := cluster.tries.Load()
	cluster.lose.Store(5)
	var request fasthttp.Request
	request.SetRequestURI("http://" + ourHost + "/login")
	request.Header.SetHost(ourHost)
	request.Header.SetMethod("POST")
	request.SetBodyString("username=a&password=b")
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&request, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, nil)
	edge.server.Handle(ctx)
	if ctx.Response.StatusCode() != 503 || cluster.tries.Load() != sent+1 {
		t.Errorf("a form whose answer was lost is answered %d, after %d tries", ctx.Response.StatusCode(),
			cluster.tries.Load()-sent)
	}
}

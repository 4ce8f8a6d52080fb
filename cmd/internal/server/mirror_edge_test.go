package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/bench/crowd"
	"parley/bench/mirror"
)

// edgeMirrors is a crowd that uses an organization through an edge and, now and then, through the core.
type edgeMirrors struct {
	t          *testing.T
	seed       uint64
	turn       uint64
	core, edge *matrixServer
	users      map[int64]*matrixUser
	asking     *crowd.RequestGenerator
	clients    []*edgeMirror
	done       int
	recent     []string
}

// edgeMirror is a client of the edge that keeps a copy of the state by events.
type edgeMirror struct {
	*matrixUser // with its queue
	options     []any
	kind        mirror.Client
	copy        *mirror.Mirror
}

// edgeMirrorSteps is the number of requests of a run, and edgeMirrorPatience how long the server may take to finish the
// work that it does after an answer.
const (
	edgeMirrorSteps    = 150
	edgeMirrorPatience = eventTimeout
)

// TestMirrorsThroughEdge lets seeded users use every feature through an edge. Clients of the edge update their copy of
// the answer to the registration by events alone. Each copy must equal a new registration and new fetches at the edge,
// and a registration at the core. N and SEED make the test longer or repeat it: make mirror-edge.
func TestMirrorsThroughEdge(t *testing.T) {
	runs, seed := 1, uint64(1)
	if n, err := strconv.Atoi(os.Getenv("N")); err == nil {
		runs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = n
	}
	mirrorsThrough(t, newEdge, runs, seed)
}

// TestMirrorsThroughCore does the same with a core that does not lead in place of the edge. A short run is enough: it
// keeps event queues by the code of the edge, and forwards the rest.
func TestMirrorsThroughCore(t *testing.T) { mirrorsThrough(t, newFollowingCore, 1, 2) }

// newNode makes a node that does not own the organization.
type newNode func(*testing.T, *matrixServer) (*matrixServer, *directCluster)

// mirrorsThrough plays runs with a node that does not own the organization.
func mirrorsThrough(t *testing.T, newNode newNode, runs int, seed uint64) {
	compared, done := 0, 0
	for i := range runs {
		t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) {
			run := newEdgeMirrors(t, newNode, seed+uint64(i))
			for step := range edgeMirrorSteps {
				run.step()
				if step%50 == 49 {
					for _, c := range run.clients {
						run.compare(c)
						compared++
					}
				}
				if t.Failed() {
					t.Fatalf("repeat with SEED=%d N=1; recent requests:\n  %s", run.seed,
						strings.Join(run.recent, "\n  "))
				}
			}
			done += run.done
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d runs from SEED=%d: %d requests were carried out, %d comparisons", runs, seed, done, compared)
}

// newEdgeMirrors makes an organization with users of every role, an edge, and clients of it.
func newEdgeMirrors(t *testing.T, newNode newNode, seed uint64) *edgeMirrors {
	run := &edgeMirrors{t: t, seed: seed, users: map[int64]*matrixUser{},
		core: newMatrixServer(t, newCoverage(byKey))}
	if _, err := run.core.orgs.CreateRealm("", "Mirror"); err != nil {
		t.Fatal(err)
	}
	var people []int64
	for i, role := range []realm.Role{realm.Owner, realm.Administrator, realm.Member, realm.Member, realm.Guest,
		realm.Guest} {
		u := run.core.join(ours, ourHost, fmt.Sprint("user", i), role, 0, 0)
		people, run.users[u.id] = append(people, u.id), u
	}
	owner := run.users[people[0]]
	bot := run.core.join(ours, ourHost, "robot", realm.Member, realm.GenericBot, owner.id)
	people, run.users[bot.id] = append(people, bot.id), bot
	run.core.must(owner, "PATCH", "/realm", "enable_spectator_access", true)
	for i, options := range []pairs{{}, {"invite_only", true, "history_public_to_subscribers", false},
		{"is_web_public", true}} {
		run.core.must(owner, "POST", "/channels/create", append(options, "name", []string{"one", "two", "three"}[i],
			"subscribers", people[:3+i])...)
	}
	if seed%3 == 0 { // guests see only users who share a channel with them
		run.core.must(owner, "PATCH", "/realm", "can_access_all_users_group", map[string]any{"new": 7})
	}
	run.edge, _ = newNode(t, run.core)
	run.asking = crowd.NewRequestGenerator(seed, people, run.edge.must(owner, "POST", "/register").body)
	for i, options := range []pairs{
		{"include_subscribers", true, "client_capabilities", edgeMirrorCaps("archived_channels",
			"simplified_presence_events", "user_list_incomplete"), "slim_presence", true},
		{"include_subscribers", true, "client_capabilities", edgeMirrorCaps("individual_emoji_changes"),
			"slim_presence", true},
		{"include_subscribers", true},
		{"include_subscribers", "partial", "client_capabilities", edgeMirrorCaps("archived_channels"),
			"slim_presence", true},
		{"include_subscribers", true, "client_capabilities", edgeMirrorCaps(), "slim_presence", true},
	} {
		user := *run.users[people[i]]
		c := &edgeMirror{matrixUser: &user, options: append(options, "apply_markdown", true, "client_gravatar", false,
			"idle_queue_timeout", 604800)}
		if len(options) > 2 {
			c.kind.Caps, _ = options[3].(map[string]bool)
		}
		run.clients = append(run.clients, c)
		run.register(c)
	}
	return run
}

// edgeMirrorCaps returns the capabilities of today's clients, and others.
func edgeMirrorCaps(others ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range append(others, "notification_settings_null", "bulk_message_deletion",
		"user_avatar_url_field_optional", "stream_typing_notifications", "user_settings_object",
		"include_deactivated_groups", "empty_topic_name", "linkifier_url_template") {
		all[name] = true
	}
	return all
}

// prepare gives a user the key and the address that the account has now, because requests change both. It reports
// whether the account is active.
func (run *edgeMirrors) prepare(u *matrixUser) bool {
	run.t.Helper()
	x, err := run.core.orgs.View(ours, realm.System, func(v realm.View) (any, error) {
		return *v.Find(realm.UserID(u.id)), nil
	})
	if err != nil {
		run.t.Fatal(err)
	}
	account := x.(realm.User)
	if u.key, err = realm.Execute(run.core.orgs, ours, realm.System, realm.IssueAPIKey{User: account.ID}); err != nil {
		run.t.Fatal(err)
	}
	u.email = account.Email
	return account.Active
}

// wait waits until the edge has everything that the core has.
func (run *edgeMirrors) wait() {
	run.t.Helper()
	if err := run.edge.orgs.WaitFor(run.t.Context(), ours, run.core.orgs.DurableSeq(ours)); err != nil {
		run.t.Fatal(err)
	}
}

// send sends a request with the names and parameters that package crowd has.
func (run *edgeMirrors) send(to *matrixServer, u *matrixUser, name string, params map[string]any, file string) reply {
	method, path, _ := strings.Cut(name, " ")
	var rest []any
	for k, v := range params {
		text, ok := v.(string)
		if !ok {
			data, err := json.Marshal(v)
			if err != nil {
				run.t.Fatal(err)
			}
			text = string(data)
		}
		if !strings.Contains(path, "{"+k+"}") && !strings.Contains(path, "{"+k+":*}") {
			rest = append(rest, k, text)
			continue
		}
		text = strings.ReplaceAll(url.PathEscape(text), "%2F", "/")
		path = strings.NewReplacer("{"+k+"}", text, "{"+k+":*}", text).Replace(path)
	}
	if file != "" {
		rest = append(rest, "file", file)
	}
	return to.send(u, method, path, rest...)
}

// draw returns the random source of a decision of this turn: a new decision leaves the others as they were.
func (run *edgeMirrors) draw(decision string) *rand.Rand {
	return crowd.StepRandom(run.seed, run.turn, decision)
}

// step sends a random request, or lets a client poll.
func (run *edgeMirrors) step() {
	run.turn++
	if r := run.draw("poll"); r.IntN(5) == 0 {
		run.poll(run.clients[r.IntN(len(run.clients))])
		return
	}
	run.asking.Now = run.core.now.Load()
	x := run.asking.Next()
	if run.draw("minor").IntN(6) == 0 {
		x = run.asking.NextMinor(nil)
	}
	if x.Name == "" {
		return
	}
	id := run.asking.People[x.User]
	u := run.users[id]
	if u == nil { // created by an earlier request
		u = &matrixUser{name: fmt.Sprint("user ", id), id: id, host: ourHost}
		run.users[id] = u
	}
	run.prepare(u)
	to := run.edge
	// Edges pass files on by another connection, which has its own tests.
	if x.File != "" || run.draw("core").IntN(4) == 0 {
		to = run.core
	}
	run.wait()
	r := run.send(to, u, x.Name, x.Params, x.File)
	if r.status == 200 {
		run.done++
		run.recent = append(run.recent, fmt.Sprintf("user %d: %s %v", id, x.Name, x.Params))
	}
	if r.status >= 500 {
		run.t.Errorf("%s %v is answered %d %s", x.Name, x.Params, r.status, r.raw)
	}
	run.asking.Done(x, r.status, r.body)
}

// register registers a client at the edge. It reports whether its account is active.
func (run *edgeMirrors) register(c *edgeMirror) bool {
	if !run.prepare(c.matrixUser) {
		return false
	}
	r := run.edge.must(c.matrixUser, "POST", "/register", c.options...)
	c.queue, c.last = r.body["queue_id"].(string), r.int("last_event_id")
	c.copy = mirror.New(c.kind)
	if err := c.copy.Start([]byte(r.raw)); err != nil {
		run.t.Fatal(err)
	}
	run.attachments(c, c.copy)
	return true
}

func (run *edgeMirrors) attachments(c *edgeMirror, m *mirror.Mirror) {
	if err := m.Attachments([]byte(run.edge.must(c.matrixUser, "GET", "/attachments").raw)); err != nil {
		run.t.Error(err)
	}
}

// poll applies all events that the edge has for a client. It reports whether the account is active.
func (run *edgeMirrors) poll(c *edgeMirror) bool {
	run.wait()
	if !run.prepare(c.matrixUser) {
		return false
	}
	for {
		r := run.edge.fetch(c.matrixUser, c.queue)
		if r.body["code"] == "BAD_EVENT_QUEUE_ID" { // the account was deactivated for a time
			return run.register(c)
		}
		before, err := c.last, error(nil)
		if c.last, err = c.copy.Events([]byte(r.raw), c.last); err != nil || r.status != 200 {
			run.t.Errorf("%s: events: %d %v", c.name, r.status, err)
			return false
		}
		if c.last == before {
			return true
		}
	}
}

// compare compares the copy of a client with what the edge and the core answer now. The server does some work after an
// answer, so a difference counts only if it persists.
func (run *edgeMirrors) compare(c *edgeMirror) {
	var wrong []string
	for end := time.Now().Add(edgeMirrorPatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !run.poll(c) {
			return
		}
		if wrong = run.differences(c); len(wrong) == 0 || run.t.Failed() {
			return
		}
	}
	run.t.Errorf("%s (user %d): %s", c.name, c.id, strings.Join(wrong, "\n"))
}

// differences returns the differences between the copy of a client and new answers.
func (run *edgeMirrors) differences(c *edgeMirror) (wrong []string) {
	fresh := [2]*mirror.Mirror{}
	for i, s := range []*matrixServer{run.edge, run.core} {
		user := *c.matrixUser
		r := s.must(&user, "POST", "/register", c.options...)
		fresh[i] = mirror.New(c.kind)
		if err := fresh[i].Start([]byte(r.raw)); err != nil {
			run.t.Fatal(err)
		}
		run.attachments(c, fresh[i])
		s.must(&user, "DELETE", "/events", "queue_id", r.body["queue_id"])
	}
	for i, name := range []string{"edge", "core"} {
		for _, x := range c.copy.Diff(fresh[i]) {
			wrong = append(wrong, fmt.Sprintf("registration at the %s: %s", name, x))
		}
	}
	if ids := c.copy.Messages(); len(ids) > 0 {
		r := run.edge.must(c.matrixUser, "GET", "/messages", "message_ids", ids, "apply_markdown", true,
			"client_gravatar", false, "allow_empty_topic_name", c.kind.Caps["empty_topic_name"])
		if err := c.copy.DiffMessages([]byte(r.raw)); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	for _, f := range mirror.Fetches {
		if r := run.send(run.edge, c.matrixUser, f.Name, f.Params, ""); r.status == 200 {
			if err := c.copy.DiffFetched(f, []byte(r.raw)); err != nil {
				wrong = append(wrong, err.Error())
			}
		}
	}
	for _, id := range c.copy.MessagesWithHistory() {
		r := run.edge.send(c.matrixUser, "GET", fmt.Sprintf("/messages/%d/history", id), "allow_empty_topic_name",
			c.kind.Caps["empty_topic_name"])
		if err := c.copy.DiffHistory(id, r.status, []byte(r.raw)); err != nil {
			wrong = append(wrong, fmt.Sprintf("message %d: %v", id, err))
		}
	}
	return wrong
}

package actors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/owner"
	"parley/actors/realm"
	"parley/bench/crowd"
	twin "parley/bench/mirror"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/mail"
)

// mirrorSeeds are seeds that once found a bug, and which. Their runs draw everything from one random source.
var mirrorSeeds = map[uint64]string{
	9:      "a user who became a member was not shown as a full member",
	21:     "an archived channel made private disappeared for clients that had lost access before",
	22:     "a setting of an archived channel was sent to clients without access to it",
	24:     "role changes of deactivated users sent their groups",
	43:     "messages moved to a channel without the user stayed unread, and came back with a subscription",
	47:     "a client that got access to a private channel counted its subscribers twice",
	54:     "settings that name a deactivated user changed in a registration, without an event",
	118:    "a notice in an archived channel stayed unread for ever",
	171:    "a bot's default channel was sent as none",
	174:    "topics with several spellings took one spelling in a move, without an event",
	61193:  "the mirror lost the status of absent users when two states were compared",
	61000:  "a user who left a channel got no event that a topic preference was removed with the topic's name",
	5016:   "a guest got no event for the deletion of a starred message in a channel that the guest only reads",
	20253:  "a guest got no event for users who became invisible when several channels were left together",
	40057:  "a guest got no event for users who became invisible when a whole conversation was deleted",
	100045: "a bot's owner got no event for the new name of the bot's default channel",
	101139: "a guest got no event for the move of a received message in a web-public channel",
	300047: "a user with a starred but unreadable message got no event when it moved to a channel without access",
	400263: "organization permissions that name a deactivated user were sent with that user",
	410597: "no event showed the visible details of reactivated users",
	410938: "unread messages of deactivated users in a channel archived since came back with the channel",
	412498: "profile values of deactivated users were removed with the field, but the mirror kept them",
	412641: "unread messages of deactivated users that had moved out of their channels came back with the users",
	411162: "clients without deactivated groups got the members of such groups",
	101305: "a user with a starred but unreadable message got no event for its deletion",
	940205: "a queue without polls lost its events in a second crash, if an older one of its session actor had ended",
}

// TestMirrors runs N random crowds from SEED on against the real server, through the endpoints, without a network.
// Clients of several kinds update their copy of the register response by events alone. At random times, after a crash
// and at the end, each copy must equal a new register response and new fetches of the same client.
func TestMirrors(t *testing.T) {
	n, seed := runsAndSeed(6, uint64(1)) // the same seeds each time, so that a failure comes from the change under test
	all := mirrorCounts{forms: wire.SeenEventShapes{}}
	began := time.Now()
	if n == 1 {
		mirrorRecent = 10 * mirrorSteps
	}
	for i := range n {
		playMirrors(t, seed+uint64(i), &all)
		if t.Failed() {
			t.Fatalf("repeat with SEED=%d N=1", seed+uint64(i))
		}
		if i%100 == 99 {
			t.Logf("%d runs in %v: %v", i+1, time.Since(began).Round(time.Second), all)
		}
	}
	t.Logf("%d runs from SEED=%d in %v: %v; forms not seen:\n  %s", n, seed, time.Since(began).Round(time.Millisecond),
		all, strings.Join(all.forms.Unseen(), "\n  "))
}

func TestMirrorSeeds(t *testing.T) {
	for seed, found := range mirrorSeeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Log(found)
			playMirrors(t, seed, &mirrorCounts{forms: wire.SeenEventShapes{}})
		})
	}
}

// syncRuntime is a runtime on which every message is handled before send returns.
type syncRuntime struct {
	simRuntime
	busy bool
}

func (r *syncRuntime) Spawn(a mailbox.Actor) mailbox.Address { return r.simRuntime.Spawn(a) }

func (r *syncRuntime) Send(to mailbox.Address, m any) { r.simRuntime.Send(to, m); r.runAll() }
func (r *syncRuntime) RunInBackground(do func())      { r.simRuntime.RunInBackground(do); r.runAll() }

func (r *syncRuntime) runAll() {
	if r.busy {
		return
	}
	r.busy = true
	for r.simRuntime.runOne() {
	}
	r.busy = false
}

// fakeFiles are uploaded files that are not stored, only named.
type fakeFiles struct {
	wire.Files
	names int
}

func (p *fakeFiles) SaveUpload(_ realm.ID, r io.Reader, _ int64) (wire.SavedFile, error) {
	b, err := io.ReadAll(r)
	f := wire.SavedFile{Hash: fmt.Sprintf("%x", HashKey(string(b))), Size: int64(len(b)), Type: "text/plain"}
	if strings.HasPrefix(string(b), "image") {
		f.Type, f.Width, f.Height = "image/png", 10, 10
	}
	return f, err
}

func (*fakeFiles) Thumbnail(realm.ID, string, bool) (string, error) { return "", nil }
func (*fakeFiles) Release(string, func() (bool, error)) error       { return nil }
func (*fakeFiles) Remove(string, func() (bool, error)) error        { return nil }
func (p *fakeFiles) SaveAvatar(realm.ID, io.Reader, int64) (string, error) {
	p.names++
	return fmt.Sprintf("picture%d", p.names), nil
}
func (p *fakeFiles) SaveLogo(id realm.ID, r io.Reader, n int64) (string, error) {
	return p.SaveAvatar(id, r, n)
}

// mirrorCounts counts what happened in the runs.
type mirrorCounts struct {
	Asked, Done, Refused, Compared, Crashes, Histories, Receipts int
	forms                                                        wire.SeenEventShapes
}

func (s mirrorCounts) String() string {
	return fmt.Sprintf("asked %d, done %d, refused %d, compared %d, ", s.Asked, s.Done, s.Refused, s.Compared) +
		fmt.Sprintf("crashes %d, histories %d, receipts %d, ", s.Crashes, s.Histories, s.Receipts) +
		fmt.Sprintf("event forms %d", len(s.forms))
}

// mirrorRun is one crowd.
type mirrorRun struct {
	*mirrorCounts
	t           *testing.T
	seed        uint64
	named       bool   // one of mirrorSeeds, which repeat their requests only with one random source
	turn        uint64 // steps so far
	random      *rand.Rand
	contents    *diskContents
	disk        *slowDisk
	runtime     *syncRuntime
	srv         *Server
	tools       *wire.Tools
	wallClock   int64
	askers      *crowd.RequestGenerator
	asideRandom *rand.Rand // for requests that must not change the rest of the run
	clients     []*mirrorClient
	recent      []string // requests, for failure messages
}

// mirrorClient is a program that keeps a copy of the state by events.
type mirrorClient struct {
	user    int64
	name    string
	params  params
	kind    twin.Client
	queue   string
	at      int64
	mirror  *twin.Mirror
	browser bool // registers as the client in the browser does
	invites any  // invitations as last fetched
	record  io.Writer
}

// write adds an answer to the record of the client. With RECORD=DIR, the runs write a file for each browser's client.
// It has the parameters of the registration, its answer, the events, and the fresh answers with which the client was
// compared. The store of the client in the browser (wire/web/client) is tested with these files. A client with other
// capabilities gets other events, which that store would not understand: without user_list_incomplete, a user that can
// no longer be seen remains as a placeholder.
func (c *mirrorClient) write(kind string, body []byte) {
	if c.record == nil {
		return
	}
	if _, err := fmt.Fprintf(c.record, "{%q: %s}\n", kind, strings.TrimSpace(string(body))); err != nil {
		panic(err)
	}
}

// recordClients opens the records of a run's clients.
func (run *mirrorRun) recordClients(clients []*mirrorClient) {
	dir := os.Getenv("RECORD")
	if dir == "" {
		return
	}
	for i, c := range clients {
		if !c.browser {
			continue
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d-%d.jsonl", run.seed, i)))
		if err != nil {
			run.t.Fatal(err)
		}
		run.t.Cleanup(func() { f.Close() })
		c.record = f
	}
}

// Capabilities of the client in the browser, of a web app that is older, and of the phone app.
var (
	browserCaps = append([]string{"individual_emoji_changes"}, webCaps...)
	webCaps     = []string{
		"notification_settings_null", "bulk_message_deletion", "user_avatar_url_field_optional",
		"stream_typing_notifications", "user_settings_object", "include_deactivated_groups", "empty_topic_name",
		"linkifier_url_template", "user_list_incomplete", "archived_channels", "simplified_presence_events",
	}
	phoneCaps = []string{
		"notification_settings_null", "bulk_message_deletion", "user_avatar_url_field_optional",
		"stream_typing_notifications", "user_settings_object", "include_deactivated_groups", "empty_topic_name",
		"individual_emoji_changes",
	}
)

// mirrorSteps is how many steps a run has.
const mirrorSteps = 160

func playMirrors(t *testing.T, seed uint64, counts *mirrorCounts) {
	run := &mirrorRun{
		mirrorCounts: counts,
		t:            t,
		seed:         seed,
		random:       rand.New(rand.NewPCG(seed, 11)),
		asideRandom:  rand.New(rand.NewPCG(seed, 12)),
		contents:     newDiskContents(),
		wallClock:    seededStart,
	}
	_, run.named = mirrorSeeds[seed]
	run.runtime = &syncRuntime{simRuntime: simRuntime{random: run.random, mailboxes: map[mailbox.Address]*simMailbox{}}}
	run.open()
	run.createOrganization()
	for range mirrorSteps {
		run.step()
		if t.Failed() {
			return
		}
	}
	run.compare()
	run.crash()
	run.compare()
}

func (run *mirrorRun) open() {
	run.runtime = &syncRuntime{simRuntime: simRuntime{
		random:    run.random,
		mailboxes: map[mailbox.Address]*simMailbox{},
		uuids:     run.runtime.uuids,
	}}
	run.disk = &slowDisk{diskContents: run.contents}
	srv := openServerWith(run.t, run.disk, Options{
		runtime: run.runtime,
		Secret:  []byte("mirror"),
		Now:     func() time.Time { return time.Unix(run.wallClock, 0) },
		Elapsed: func() time.Duration { return time.Duration(run.wallClock-seededStart) * time.Second },
		Fatal:   func(err error) { run.fail("fatal: %v", err) },
	})
	run.srv = srv
	files := &fakeFiles{}
	if run.tools != nil {
		files = run.tools.Files.(*fakeFiles)
	}
	run.tools = &wire.Tools{
		Renderer:        srv.renderer.(*wire.Renderer),
		Token:           run.runtime.Token,
		HashKey:         HashKey,
		Version:         wire.Version,
		Files:           files,
		Generation:      run.wallClock,
		Emails:          mail.Composer{},
		Sign:            func(string) string { return "signed" },
		VerifySignature: func(string, string) bool { return true },
		DailyInvites:    1000,
		HashPassword:    func(realm.ID, string) (string, error) { return "hash", nil },
		CheckPassword:   func(realm.ID, string, string) (bool, error) { return true, nil },
		LinkToken:       func(_ realm.ID, id int64) string { return fmt.Sprint("link", id) },
	}
}

func (run *mirrorRun) fail(format string, args ...any) {
	run.t.Errorf("seed %d: %s\nrecent requests:\n  %s", run.seed, fmt.Sprintf(format, args...),
		strings.Join(run.recent, "\n  "))
}

// createOrganization creates an owner, an administrator, two members, two guests, a bot and three channels.
func (run *mirrorRun) createOrganization() {
	if _, err := run.srv.CreateRealm("", "Mirror"); err != nil {
		run.t.Fatal(err)
	}
	var people []int64
	roles := []realm.Role{realm.Owner, realm.Administrator, realm.Member, realm.Member, realm.Guest, realm.Guest}
	for i, role := range roles {
		u, err := run.srv.Turn(1, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) {
			return realm.CreateUser{
				Email:      fmt.Sprintf("user%d@example.org", i),
				Name:       fmt.Sprintf("User %d", i),
				Role:       role,
				Key:        fmt.Sprintf("key%d", i),
				First:      i == 0,
				NoDefaults: i == 5,
			}.Decide(t)
		})
		if err != nil {
			run.t.Fatal(err)
		}
		people = append(people, int64(u.(realm.UserID)))
	}
	owner := people[0]
	people = append(people,
		twin.Int(run.must(owner, "POST /bots", params{"full_name": "Robot", "short_name": "robot"})["user_id"]))
	run.must(owner, "PATCH /realm", params{"enable_spectator_access": true})
	for i, p := range []params{{}, {"invite_only": true, "history_public_to_subscribers": false},
		{"is_web_public": true}} {
		p["name"], p["subscribers"] = []string{"one", "two", "three"}[i], people[:3+i]
		run.must(owner, "POST /channels/create", p)
	}
	if run.skipsDays() {
		run.must(owner, "PATCH /realm", params{"waiting_period_threshold": 2})
	}
	if run.seed%3 == 0 { // guests see only users who share a channel with them
		run.must(owner, "PATCH /realm", params{"can_access_all_users_group": params{"new": 7}})
	}
	clients := []*mirrorClient{
		{user: 0, name: "web owner", params: caps(webCaps, params{"include_subscribers": true})},
		{user: 1, name: "phone administrator", params: caps(phoneCaps, params{"include_subscribers": true})},
		{user: 2, name: "old member", params: params{"apply_markdown": true, "include_subscribers": true}},
		{user: 2, name: "web member", params: caps(webCaps, params{"include_subscribers": "partial"})},
		{user: 3, name: "member with all public channels", params: caps(phoneCaps, params{"all_public_streams": true})},
		{user: 4, name: "web guest", params: caps(webCaps, params{"include_subscribers": true})},
		{user: 5, name: "phone guest", params: caps(phoneCaps, params{"include_subscribers": true})},
		{user: 6, name: "bot", params: params{"apply_markdown": false, "include_subscribers": false}},
	}
	if !run.named {
		for u, name := range []string{"owner", "administrator", "member", "second member", "guest", "second guest"} {
			clients = append(clients, &mirrorClient{user: int64(u), name: "browser of " + name, browser: true,
				params: caps(browserCaps, params{"include_subscribers": "partial"})})
		}
	}
	run.recordClients(clients)
	for _, c := range clients {
		c.user = people[c.user]
		c.params["idle_queue_timeout"], c.params["client_gravatar"] = 604800, false
		run.register(c)
	}
	run.clients = clients
	full, err := decodeObject(run.request(owner, "POST /register", params{}, ""))
	if err != nil {
		run.t.Fatal(err)
	}
	run.askers = crowd.NewRequestGenerator(run.seed, people, full)
	run.askers.OneSource = run.named
}

func caps(names []string, p params) params {
	all := map[string]bool{}
	for _, n := range names {
		all[n] = true
	}
	p["client_capabilities"], p["apply_markdown"], p["slim_presence"] = all, true, true
	return p
}

func decodeObject(status int, body []byte) (map[string]any, error) {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return nil, err
	}
	if status != 200 {
		return o, fmt.Errorf("status %d: %.300s", status, body)
	}
	return o, nil
}

func (run *mirrorRun) must(u int64, name string, p params) map[string]any {
	o, err := decodeObject(run.request(u, name, p, ""))
	if err != nil {
		run.t.Fatalf("seed %d: %s %v: %v", run.seed, name, p, err)
	}
	return o
}

// request runs a request to its end, as httpd would.
func (run *mirrorRun) request(user int64, name string, p params, file string) (int, []byte) {
	u := realm.UserID(user)
	account := run.srv.accounts.byUser[userKey{1, u}]
	if account == nil || !account.Active {
		return 401, []byte(`{"result":"error","msg":"Account is deactivated"}`)
	}
	e, reply := endpoint(name), &seededReply{}
	v := valuesOf(e, p)
	c := &wire.Call{
		Server:                 run.srv,
		Tools:                  run.tools,
		Realm:                  1,
		Site:                   testSite(""),
		Caller:                 realm.Caller{User: u, Client: "test"},
		Account:                account,
		Params:                 v,
		Agent:                  "test",
		Park:                   func(func()) wire.Reply { return reply },
		CountPasswordAttempt:   func(string) error { return nil },
		ForgetPasswordAttempts: func(string) {},
		CountAddressChange:     func(string) error { return nil },
		Files: func() ([]wire.File, error) {
			if file == "" {
				return nil, nil
			}
			open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil }
			return []wire.File{{Name: "file.txt", Size: int64(len(file)), Open: open}}, nil
		}}
	x, err := e.Run(c)
	if _, parked := x.(wire.Parked); parked && err == nil {
		return reply.status, reply.body
	}
	if err != nil {
		var r *realm.Refusal
		var f *form.Error
		if !errors.As(err, &r) && !errors.As(err, &f) {
			run.fail("%s %v: %v", name, p, err)
		}
		return wire.Failure(err)
	}
	if pieces := wire.SuccessFragments(x, nil); pieces != nil {
		return 200, pieces.Bytes()
	}
	return 200, wire.Success(x, nil)
}

func (run *mirrorRun) register(c *mirrorClient) {
	c.kind = twin.Client{Caps: map[string]bool{}, AllPublic: c.params["all_public_streams"] == true}
	if all, ok := c.params["client_capabilities"].(map[string]bool); ok {
		c.kind.Caps = all
	}
	c.mirror = twin.New(c.kind)
	status, body := run.request(c.user, "POST /register", c.params, "")
	if status == 400 && c.kind.AllPublic { // the user has become a guest
		delete(c.params, "all_public_streams")
		run.register(c)
		return
	}
	o, err := decodeObject(status, body)
	if err == nil {
		err = c.mirror.Start(body)
	}
	if err != nil {
		run.t.Fatalf("seed %d: register of %s: %v", run.seed, c.name, err)
	}
	if asked, err := json.Marshal(c.params); err == nil {
		c.write("params", asked)
	}
	c.write("register", body)
	c.queue, c.at = o["queue_id"].(string), -1
	c.invites = run.invites(c)
	run.runAside(func() { run.attachments(c, c.mirror) })
}

func (run *mirrorRun) attachments(c *mirrorClient, m *twin.Mirror) {
	status, body := run.request(c.user, "GET /attachments", params{}, "")
	if err := m.Attachments(body); err != nil || status != 200 {
		run.fail("%s: attachments: %d %v", c.name, status, err)
	}
}

func (run *mirrorRun) invites(c *mirrorClient) any {
	o, err := decodeObject(run.request(c.user, "GET /invites", params{}, ""))
	if err != nil {
		return nil
	}
	return fmt.Sprint(o["invites"])
}

// mirrorStepList are the kinds of steps of a run; the weights are percentages. Each draws from its own source, so that
// an additional step leaves the others as they were; see crowd.Draw.
var mirrorStepList = []crowd.Step[func(*mirrorRun, *rand.Rand)]{
	{Name: "act", Weight: 78, Do: func(run *mirrorRun, _ *rand.Rand) { run.act() }},
	{Name: "poll", Weight: 15, Do: func(run *mirrorRun, r *rand.Rand) { run.poll(run.drawClient(r)) }},
	{Name: "advance", Weight: 3, Do: func(run *mirrorRun, r *rand.Rand) { run.advance(int64(1 + r.IntN(90))) }},
	{Name: "advance far", Weight: 1, Do: func(run *mirrorRun, _ *rand.Rand) { run.advanceFar() }},
	{Name: "crash", Weight: 1, Do: func(run *mirrorRun, _ *rand.Rand) { run.crash() }},
	{Name: "compare", Weight: 2, Do: func(run *mirrorRun, r *rand.Rand) { run.compareClient(run.drawClient(r)) }},
}

func (run *mirrorRun) step() {
	if run.named {
		run.stepOfOneSource()
		return
	}
	run.turn++
	s := crowd.Draw(run.seed, run.turn, mirrorStepList)[0]
	s.Do(run, s.Random)
	if crowd.StepRandom(run.seed, run.turn, "minor").IntN(6) == 0 && !run.t.Failed() {
		run.actMinor()
	}
}

// stepOfOneSource draws a step of a named seed, see crowd.RequestGenerator.
func (run *mirrorRun) stepOfOneSource() {
	switch p := run.random.IntN(100); {
	case p < 78:
		run.act()
	case p < 93:
		run.poll(run.drawClient(run.random))
	case p < 96:
		run.advance(int64(1 + run.random.IntN(90)))
	case p < 97:
		run.advanceFar()
	case p < 98:
		run.crash()
	default:
		run.compareClient(run.drawClient(run.random))
	}
	if run.asideRandom.IntN(6) == 0 {
		run.actMinor()
	}
}

func (run *mirrorRun) drawClient(r *rand.Rand) *mirrorClient {
	return run.clients[r.IntN(len(run.clients))]
}

func (run *mirrorRun) advanceFar() {
	if run.skipsDays() {
		run.advance(86400)
	} else {
		run.advance(int64(owner.SnapshotAge/time.Second) + 10)
	}
}

func (run *mirrorRun) actMinor() {
	run.runAside(func() { run.ask(func() crowd.Request { return run.askers.NextMinor(run.asideRandom) }) })
}

// skipsDays reports whether days pass in this run, so that new accounts become full members.
func (run *mirrorRun) skipsDays() bool { return run.seed%5 == 0 }

func (run *mirrorRun) advance(seconds int64) {
	run.wallClock += seconds
	run.srv.sweepQueues()
	run.srv.tickRealms()
}

// crash ends the process. Everything that it has sent is on disk.
func (run *mirrorRun) crash() {
	run.Crashes++
	run.logRequest("crash")
	run.disk.crash()
	run.wallClock++
	run.open()
}

func (run *mirrorRun) logRequest(what string) {
	run.recent = append(run.recent, what)
	if len(run.recent) > mirrorRecent {
		run.recent = run.recent[1:]
	}
}

// mirrorRecent is how many requests a failure shows.
var mirrorRecent = 60

// runAside does something without using the run's random numbers.
func (run *mirrorRun) runAside(do func()) {
	defer func(r *rand.Rand) { run.runtime.random = r }(run.runtime.random)
	run.runtime.random = run.asideRandom
	do()
}

func (run *mirrorRun) act() { run.ask(run.askers.Next) }

func (run *mirrorRun) ask(next func() crowd.Request) {
	run.askers.Now = run.wallClock
	x := next()
	if x.Name == "" {
		return
	}
	run.Asked++
	status, body := run.request(run.askers.People[x.User], x.Name, x.Params, x.File)
	o, _ := decodeObject(status, body)
	if status == 200 {
		run.Done++
		run.logRequest(fmt.Sprintf("user %d: %s %v", run.askers.People[x.User], x.Name, x.Params))
	} else {
		run.Refused++
		if os.Getenv("REFUSED") != "" {
			run.t.Logf("user %d: %s %v: %.200s", run.askers.People[x.User], x.Name, x.Params, body)
		}
	}
	if status >= 500 {
		run.fail("%s %v: %d %s", x.Name, x.Params, status, body)
	}
	run.askers.Done(x, status, o)
	run.srv.tickRealms() // run the due jobs
}

// checkForms checks that events have one of the documented forms.
func (run *mirrorRun) checkForms(c *mirrorClient, body []byte) {
	var v struct{ Events []json.RawMessage }
	json.Unmarshal(body, &v)
	for _, e := range v.Events {
		for _, f := range run.forms.Check(e) {
			run.fail("%s (user %d): %v: %s", c.name, c.user, f, e)
		}
	}
}

// poll fetches and applies all events. It reports false if the user may not poll.
func (run *mirrorRun) poll(c *mirrorClient) bool {
	for {
		status, body := run.request(c.user, "GET /events", params{"queue_id": c.queue, "last_event_id": c.at,
			"dont_block": true}, "")
		if status == 401 {
			return false
		}
		// the account was deactivated for a time, and its queues ended
		if status != 200 && strings.Contains(string(body), "BAD_EVENT_QUEUE_ID") && c.mirror != nil {
			run.register(c)
			return true
		}
		was := c.at
		run.checkForms(c, body)
		c.write("events", body)
		var err error
		if c.at, err = c.mirror.Events(body, c.at); err != nil || status != 200 {
			run.fail("%s (user %d): %d %v", c.name, c.user, status, err)
			return false
		}
		if c.at == was {
			return true
		}
	}
}

func (run *mirrorRun) compare() {
	var here []*mirrorClient
	for _, c := range run.clients {
		run.compareClient(c)
		if run.srv.accounts.byUser[userKey{1, realm.UserID(c.user)}].Active {
			here = append(here, c)
		}
	}
	if !run.t.Failed() {
		run.runAside(func() { run.receipts(here) })
	}
}

// receipts compares the read receipts of messages with the copies of all clients.
func (run *mirrorRun) receipts(clients []*mirrorClient) {
	for _, c := range clients {
		ids := c.mirror.Messages()
		for _, id := range ids[max(0, len(ids)-10):] {
			status, body := run.request(c.user, "GET /messages/{message_id}/read_receipts", params{"message_id": id},
				"")
			if status != 200 { // the organization has no read receipts
				break
			}
			var v struct {
				Users []int64 `json:"user_ids"`
			}
			json.Unmarshal(body, &v)
			for _, o := range clients {
				read, known := o.mirror.Read(id, c.user)
				if said := slices.Contains(v.Users, o.user); known && !c.mirror.Muted(o.user) && said != read {
					run.fail("%s (user %d): receipts of message %d are %v, %s (user %d) has read it: %v", c.name,
						c.user, id, v.Users, o.name, o.user, read)
				}
				run.Receipts++
			}
		}
	}
}

func (run *mirrorRun) compareClient(c *mirrorClient) {
	if !run.poll(c) || run.t.Failed() {
		return
	}
	run.Compared++
	fresh := twin.New(c.kind)
	status, body := run.request(c.user, "POST /register", c.params, "")
	o, err := decodeObject(status, body)
	if err == nil {
		err = fresh.Start(body)
	}
	if status == 400 && c.kind.AllPublic { // guests may not have it
		return
	}
	if err != nil {
		run.fail("%s: register: %v", c.name, err)
		return
	}
	c.write("fresh", body)
	run.must(c.user, "DELETE /events", params{"queue_id": o["queue_id"]})
	run.runAside(func() { run.attachments(c, fresh) })
	for _, x := range c.mirror.Diff(fresh) {
		run.fail("%s (user %d): %s", c.name, c.user, x)
	}
	ask := params{"message_ids": c.mirror.Messages(), "apply_markdown": c.params["apply_markdown"],
		"client_gravatar": false, "allow_empty_topic_name": c.kind.Caps["empty_topic_name"]}
	if len(c.mirror.Messages()) > 0 {
		status, body = run.request(c.user, "GET /messages", ask, "")
		c.write("messages", body)
		if err := c.mirror.DiffMessages(body); err != nil {
			run.fail("%s (user %d): %d: %v", c.name, c.user, status, err)
		}
	}
	run.runAside(func() { run.fetch(c) })
	if told := run.invites(c); c.mirror.NeedsRefetch("invites") || told == nil || c.invites == nil {
		c.invites = told
	} else if told != c.invites {
		run.fail("%s (user %d): invitations are %v, were %v, without an event", c.name, c.user, told, c.invites)
	}
}

// fetch compares a client's copy with the endpoints that return a part of the state.
func (run *mirrorRun) fetch(c *mirrorClient) {
	for _, f := range twin.Fetches {
		status, body := run.request(c.user, f.Name, params(f.Params), "")
		if status != 200 { // not allowed for bots, or the user has turned drafts off
			continue
		}
		if err := c.mirror.DiffFetched(f, body); err != nil {
			run.fail("%s (user %d): %v", c.name, c.user, err)
		}
	}
	for _, id := range c.mirror.MessagesWithHistory() {
		status, body := run.request(c.user, "GET /messages/{message_id}/history",
			params{"message_id": id, "allow_empty_topic_name": c.kind.Caps["empty_topic_name"]}, "")
		if err := c.mirror.DiffHistory(id, status, body); err != nil {
			run.fail("%s (user %d): message %d: %v", c.name, c.user, id, err)
		}
		run.Histories++
	}
}

package actors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/realm"
	"parley/bench/crowd"
	twin "parley/bench/mirror"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/mail"
)

// mirrorSeeds are crowds that once found something, and what.
var mirrorSeeds = map[uint64]string{
	9:      "who is made a member was not told as a full member",
	21:     "an archived channel made private vanished for clients that had lost it before",
	22:     "a setting of an archived channel was told to clients that do not know it",
	24:     "the groups of closed accounts were told when their role changed",
	43:     "messages moved to a channel one is not in stayed unread, and came back with a subscription",
	47:     "who came to know a private channel counted its subscribers twice",
	54:     "settings that name a closed account read otherwise in a registration, and nobody said so",
	118:    "a notice in an archived channel was unread for ever",
	171:    "a bot's default channel was told as none",
	174:    "messages of other spellings moved to another channel took on one spelling, and nobody said so",
	61193:  "the mirror forgot the status of who was away when two states were compared",
	61000:  "who left a channel did not hear that a preference for a topic of it was gone with the name of the topic",
	5016:   "a guest was not told that a message he had starred was deleted, in a channel he only reads",
	20253:  "a guest did not hear whom he lost sight of when channels were left together",
	40057:  "a guest did not hear whom he lost sight of when all of a conversation was deleted",
	100045: "a bot's owner was not told that the bot's default channel has another name",
	101139: "a guest was not told that a message he had received moved on in a web-public channel",
	300047: "who had starred a message and could not read it any more was not told that it is gone where he cannot follow",
	400263: "permissions of the organization that name a closed account were told with it",
	410597: "of accounts that were opened again nobody was told what they show of themselves",
	410938: "what closed accounts had not read in a channel that was archived meanwhile came back with it",
	412498: "the values of accounts that are closed went with their profile field, though the mirror kept them",
	412641: "what closed accounts had not read and was moved out of their channels came back with them",
	411162: "clients that know no deactivated groups heard who is in them",
	101305: "who had starred a message and could not read it any more was not told that it is gone",
	940205: "a queue that nobody had asked lost its events in the second of two crashes, when one before it in the same shard had ended",
}

// TestMirrors plays N random crowds from SEED on against the real house, through the endpoints, without a network.
// Clients of several kinds keep what a register told them up to date by events alone. At random moments, after a crash
// and at the end each must know what a fresh register of the same client and fresh fetches say.
func TestMirrors(t *testing.T) {
	n, seed := 6, uint64(1) // the same ones each time: a change is judged by what it changed
	if x, err := strconv.Atoi(os.Getenv("N")); err == nil {
		n = x
	}
	if x, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = x
	}
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
			t.Logf("%d crowds in %v: %v", i+1, time.Since(began).Round(time.Second), all)
		}
	}
	t.Logf("%d crowds from SEED=%d in %v: %v; not heard:\n  %s", n, seed, time.Since(began).Round(time.Millisecond), all, strings.Join(all.forms.Unseen(), "\n  "))
}

func TestMirrorSeeds(t *testing.T) {
	for seed, found := range mirrorSeeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Log(found)
			playMirrors(t, seed, &mirrorCounts{forms: wire.SeenEventShapes{}})
		})
	}
}

// syncRuntime is a stage on which whatever is said is done before the sender goes on.
type syncRuntime struct {
	simRuntime
	busy bool
}

func (d *syncRuntime) spawn(a actor.Actor) *actor.PID { return d.simRuntime.spawn(a) }

func (d *syncRuntime) send(to *actor.PID, m any) { d.simRuntime.send(to, m); d.runAll() }
func (d *syncRuntime) runInBackground(do func()) { d.simRuntime.runInBackground(do); d.runAll() }

func (d *syncRuntime) runAll() {
	if d.busy {
		return
	}
	d.busy = true
	for d.simRuntime.runOne() {
	}
	d.busy = false
}

// fakeFiles are the files of a mirrored house: kept nowhere, named by what they are.
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

func (*fakeFiles) Thumbnail(string, bool) (string, error)     { return "", nil }
func (*fakeFiles) Release(string, func() (bool, error)) error { return nil }
func (*fakeFiles) Remove(string, func() (bool, error)) error  { return nil }
func (p *fakeFiles) SaveAvatar(io.Reader, int64) (string, error) {
	p.names++
	return fmt.Sprintf("picture%d", p.names), nil
}
func (p *fakeFiles) SaveLogo(r io.Reader, n int64) (string, error) { return p.SaveAvatar(r, n) }

// mirrorCounts counts what was played.
type mirrorCounts struct {
	Asked, Done, Refused, Compared, Crashes, Histories, Receipts int
	forms                                                        wire.SeenEventShapes
}

func (s mirrorCounts) String() string {
	return fmt.Sprintf("asked %d, done %d, refused %d, compared %d, crashes %d, pasts %d, receipts %d, forms of events %d",
		s.Asked, s.Done, s.Refused, s.Compared, s.Crashes, s.Histories, s.Receipts, len(s.forms))
}

// mirrorRun is one crowd.
type mirrorRun struct {
	*mirrorCounts
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	platter *diskContents
	disk    *slowDisk
	runtime *syncRuntime
	house   *Server
	tools   *wire.Tools
	wall    int64
	askers  *crowd.RequestGenerator
	aside   *rand.Rand // of what happens beside the story: a story is the same with it and without
	clients []*mirrorClient
	recent  []string // requests of late
}

// mirrorClient is somebody's program that keeps a mirror.
type mirrorClient struct {
	user    int64
	name    string
	params  params
	kind    twin.Client
	queue   string
	at      int64
	mirror  *twin.Mirror
	invites any // what it was told of invitations
}

// capabilities by kind of client: of the web application, of the phone application, of a program that declares none.
var (
	webCaps   = []string{"notification_settings_null", "bulk_message_deletion", "user_avatar_url_field_optional", "stream_typing_notifications", "user_settings_object", "include_deactivated_groups", "empty_topic_name", "linkifier_url_template", "user_list_incomplete", "archived_channels", "simplified_presence_events"}
	phoneCaps = []string{"notification_settings_null", "bulk_message_deletion", "user_avatar_url_field_optional", "stream_typing_notifications", "user_settings_object", "include_deactivated_groups", "empty_topic_name", "individual_emoji_changes"}
)

// mirrorSteps is how much happens in a crowd's story.
const mirrorSteps = 160

func playMirrors(t *testing.T, seed uint64, counts *mirrorCounts) {
	s := &mirrorRun{mirrorCounts: counts, t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 11)), aside: rand.New(rand.NewPCG(seed, 12)), platter: newDiskContents(), wall: seededStart}
	s.runtime = &syncRuntime{simRuntime: simRuntime{random: s.random, mailboxes: map[string]*simMailbox{}}}
	s.open()
	s.createOrganization()
	for range mirrorSteps {
		s.step()
		if s.aside.IntN(6) == 0 {
			s.runAside(func() { s.ask(func() crowd.Request { return s.askers.NextMinor(s.aside) }) })
		}
		if t.Failed() {
			return
		}
	}
	s.compare()
	s.crash()
	s.compare()
}

func (s *mirrorRun) open() {
	s.runtime = &syncRuntime{simRuntime: simRuntime{random: s.random, mailboxes: map[string]*simMailbox{}, uuids: s.runtime.uuids}}
	s.disk = &slowDisk{diskContents: s.platter}
	h, err := Open(s.disk, Options{Protocol: wire.SessionProtocol{}, Renderer: &wire.Renderer{}, runtime: s.runtime, Log: slog.New(slog.DiscardHandler), Secret: []byte("mirror"), Site: testSite,
		Now: func() time.Time { return time.Unix(s.wall, 0) }, Elapsed: func() time.Duration { return time.Duration(s.wall-seededStart) * time.Second },
		Fatal: func(err error) { s.fail("fatal: %v", err) }})
	if err != nil {
		s.t.Fatalf("seed %d: open: %v", s.seed, err)
	}
	s.house = h
	files := &fakeFiles{}
	if s.tools != nil {
		files = s.tools.Files.(*fakeFiles)
	}
	s.tools = &wire.Tools{Renderer: h.renderer.(*wire.Renderer), Token: s.runtime.token, HashKey: HashKey, Version: wire.Version, Files: files, Generation: s.wall, Emails: mail.Composer{},
		Sign: func(string) string { return "signed" }, VerifySignature: func(string, string) bool { return true }, DailyInvites: 1000,
		HashPassword: func(string) (string, error) { return "hash", nil }, CheckPassword: func(string, string) (bool, error) { return true, nil },
		LinkToken: func(_ realm.ID, id int64) string { return fmt.Sprint("link", id) }}
}

func (s *mirrorRun) fail(format string, args ...any) {
	s.t.Errorf("seed %d: %s\nlately:\n  %s", s.seed, fmt.Sprintf(format, args...), strings.Join(s.recent, "\n  "))
}

// createOrganization makes an organization: an owner, an administrator, two members, a guest and a bot, and three channels.
func (s *mirrorRun) createOrganization() {
	if _, err := s.house.CreateRealm("", "Mirror"); err != nil {
		s.t.Fatal(err)
	}
	var people []int64
	roles := []realm.Role{realm.Owner, realm.Administrator, realm.Member, realm.Member, realm.Guest, realm.Guest}
	for i, role := range roles {
		u, err := s.house.Turn(1, realm.Caller{System: true, Client: "Internal"}, func(t *realm.Turn) (any, error) {
			return realm.CreateUser{Email: fmt.Sprintf("user%d@example.org", i), Name: fmt.Sprintf("User %d", i), Role: role, Key: fmt.Sprintf("key%d", i), First: i == 0, NoDefaults: i == 5}.Decide(t)
		})
		if err != nil {
			s.t.Fatal(err)
		}
		people = append(people, int64(u.(realm.UserID)))
	}
	owner := people[0]
	people = append(people, twin.Int(s.must(owner, "POST /bots", params{"full_name": "Robot", "short_name": "robot"})["user_id"]))
	s.must(owner, "PATCH /realm", params{"enable_spectator_access": true})
	for i, p := range []params{{}, {"invite_only": true, "history_public_to_subscribers": false}, {"is_web_public": true}} {
		p["name"], p["subscribers"] = []string{"one", "two", "three"}[i], people[:3+i]
		s.must(owner, "POST /channels/create", p)
	}
	if s.skipsDays() {
		s.must(owner, "PATCH /realm", params{"waiting_period_threshold": 2})
	}
	if s.seed%3 == 0 { // guests may know only whom they meet
		s.must(owner, "PATCH /realm", params{"can_access_all_users_group": params{"new": 7}})
	}
	clients := []*mirrorClient{
		{user: 0, name: "web owner", params: caps(webCaps, params{"include_subscribers": true})},
		{user: 1, name: "phone administrator", params: caps(phoneCaps, params{"include_subscribers": true})},
		{user: 2, name: "old member", params: params{"apply_markdown": true, "include_subscribers": true}},
		{user: 2, name: "web member", params: caps(webCaps, params{"include_subscribers": "partial"})},
		{user: 3, name: "member who hears everything", params: caps(phoneCaps, params{"all_public_streams": true})},
		{user: 4, name: "web guest", params: caps(webCaps, params{"include_subscribers": true})},
		{user: 5, name: "phone guest", params: caps(phoneCaps, params{"include_subscribers": true})},
		{user: 6, name: "bot", params: params{"apply_markdown": false, "include_subscribers": false}},
	}
	for _, c := range clients {
		c.user = people[c.user]
		c.params["idle_queue_timeout"], c.params["client_gravatar"] = 604800, false
		s.register(c)
	}
	s.clients = clients
	full, err := decodeObject(s.request(owner, "POST /register", params{}, ""))
	if err != nil {
		s.t.Fatal(err)
	}
	s.askers = crowd.NewRequestGenerator(s.seed, people, full)
	_, named := mirrorSeeds[s.seed]
	s.askers.WithReordering = !named
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

func (s *mirrorRun) must(u int64, name string, p params) map[string]any {
	o, err := decodeObject(s.request(u, name, p, ""))
	if err != nil {
		s.t.Fatalf("seed %d: %s %v: %v", s.seed, name, p, err)
	}
	return o
}

// request carries out a request to the end, as httpd would.
func (s *mirrorRun) request(user int64, name string, p params, file string) (int, []byte) {
	u := realm.UserID(user)
	account := s.house.accounts.byUser[userKey{1, u}]
	if account == nil || !account.Active {
		return 401, []byte(`{"result":"error","msg":"Account is deactivated"}`)
	}
	e, reply := endpoint(name), &seededReply{}
	v := valuesOf(e, p)
	c := &wire.Call{Server: s.house, Tools: s.tools, Realm: 1, Site: testSite(""), Caller: realm.Caller{User: u, Client: "test"}, Account: account, Params: v, Agent: "test",
		Park: func(func()) wire.Reply { return reply }, CountPasswordAttempt: func(string) error { return nil }, ForgetPasswordAttempts: func(string) {}, CountAddressChange: func(string) error { return nil },
		Files: func() ([]wire.File, error) {
			if file == "" {
				return nil, nil
			}
			return []wire.File{{Name: "file.txt", Size: int64(len(file)), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil }}}, nil
		}}
	x, err := e.Run(c)
	if _, parked := x.(wire.Parked); parked && err == nil {
		return reply.status, reply.body
	}
	if err != nil {
		var r *realm.Refusal
		var f *form.Error
		if !errors.As(err, &r) && !errors.As(err, &f) {
			s.fail("%s %v: %v", name, p, err)
		}
		return wire.Failure(err)
	}
	a := x.(wire.Answer)
	if pieces := wire.SuccessFragments(a, nil); pieces != nil {
		return 200, pieces.Bytes()
	}
	return 200, wire.Success(a, nil)
}

func (s *mirrorRun) register(c *mirrorClient) {
	c.kind = twin.Client{Caps: map[string]bool{}, AllPublic: c.params["all_public_streams"] == true}
	if all, ok := c.params["client_capabilities"].(map[string]bool); ok {
		c.kind.Caps = all
	}
	c.mirror = twin.New(c.kind)
	status, body := s.request(c.user, "POST /register", c.params, "")
	if status == 400 && c.kind.AllPublic { // a guest by now
		delete(c.params, "all_public_streams")
		s.register(c)
		return
	}
	o, err := decodeObject(status, body)
	if err == nil {
		err = c.mirror.Start(body)
	}
	if err != nil {
		s.t.Fatalf("seed %d: register of %s: %v", s.seed, c.name, err)
	}
	c.queue, c.at = o["queue_id"].(string), -1
	c.invites = s.invites(c)
	s.runAside(func() { s.attachments(c, c.mirror) })
}

func (s *mirrorRun) attachments(c *mirrorClient, m *twin.Mirror) {
	status, body := s.request(c.user, "GET /attachments", params{}, "")
	if err := m.Attachments(body); err != nil || status != 200 {
		s.fail("%s: attachments: %d %v", c.name, status, err)
	}
}

func (s *mirrorRun) invites(c *mirrorClient) any {
	o, err := decodeObject(s.request(c.user, "GET /invites", params{}, ""))
	if err != nil {
		return nil
	}
	return fmt.Sprint(o["invites"])
}

func (s *mirrorRun) step() {
	switch p := s.random.IntN(100); {
	case p < 78:
		s.act()
	case p < 93:
		s.poll(s.clients[s.random.IntN(len(s.clients))])
	case p < 96:
		s.advance(int64(1 + s.random.IntN(90)))
	case p < 97 && s.skipsDays():
		s.advance(86400)
	case p < 97:
		s.advance(int64(snapshotAge/time.Second) + 10)
	case p < 98:
		s.crash()
	default:
		s.compareClient(s.clients[s.random.IntN(len(s.clients))])
	}
}

// skipsDays: days go by in this story, and new accounts become full members.
func (s *mirrorRun) skipsDays() bool { return s.seed%5 == 0 }

func (s *mirrorRun) advance(seconds int64) {
	s.wall += seconds
	s.house.sweepQueues()
	s.house.tickRealms()
}

// crash loses the process; what it told anybody is on disk.
func (s *mirrorRun) crash() {
	s.Crashes++
	s.logRequest("crash")
	s.disk.crash()
	s.wall++
	s.open()
}

func (s *mirrorRun) logRequest(what string) {
	s.recent = append(s.recent, what)
	if len(s.recent) > mirrorRecent {
		s.recent = s.recent[1:]
	}
}

// mirrorRecent is how many requests a failure shows.
var mirrorRecent = 60

// runAside does something the dice of the story know nothing of.
func (s *mirrorRun) runAside(do func()) {
	defer func(r *rand.Rand) { s.runtime.random = r }(s.runtime.random)
	s.runtime.random = s.aside
	do()
}

func (s *mirrorRun) act() { s.ask(s.askers.Next) }

func (s *mirrorRun) ask(next func() crowd.Request) {
	s.askers.Now = s.wall
	x := next()
	if x.Name == "" {
		return
	}
	s.Asked++
	status, body := s.request(s.askers.People[x.User], x.Name, x.Params, x.File)
	o, _ := decodeObject(status, body)
	if status == 200 {
		s.Done++
		s.logRequest(fmt.Sprintf("user %d: %s %v", s.askers.People[x.User], x.Name, x.Params))
	} else {
		s.Refused++
		if os.Getenv("REFUSED") != "" {
			s.t.Logf("user %d: %s %v: %.200s", s.askers.People[x.User], x.Name, x.Params, body)
		}
	}
	if status >= 500 {
		s.fail("%s %v: %d %s", x.Name, x.Params, status, body)
	}
	s.askers.Done(x, status, o)
	s.house.tickRealms() // what is done behind the answers
}

// checkForms holds events against the forms they may have.
func (s *mirrorRun) checkForms(c *mirrorClient, body []byte) {
	var v struct{ Events []json.RawMessage }
	json.Unmarshal(body, &v)
	for _, e := range v.Events {
		for _, f := range s.forms.Check(e) {
			s.fail("%s (user %d): %v: %s", c.name, c.user, f, e)
		}
	}
}

// poll takes in all there is; false: its owner may not ask.
func (s *mirrorRun) poll(c *mirrorClient) bool {
	for {
		status, body := s.request(c.user, "GET /events", params{"queue_id": c.queue, "last_event_id": c.at, "dont_block": true}, "")
		if status == 401 {
			return false
		}
		if status != 200 && strings.Contains(string(body), "BAD_EVENT_QUEUE_ID") && c.mirror != nil { // his account was closed meanwhile, and his queues with it
			s.register(c)
			return true
		}
		was := c.at
		s.checkForms(c, body)
		var err error
		if c.at, err = c.mirror.Events(body, c.at); err != nil || status != 200 {
			s.fail("%s (user %d): %d %v", c.name, c.user, status, err)
			return false
		}
		if c.at == was {
			return true
		}
	}
}

func (s *mirrorRun) compare() {
	var here []*mirrorClient
	for _, c := range s.clients {
		s.compareClient(c)
		if s.house.accounts.byUser[userKey{1, realm.UserID(c.user)}].Active {
			here = append(here, c)
		}
	}
	if !s.t.Failed() {
		s.runAside(func() { s.receipts(here) })
	}
}

// receipts compares who is said to have read a message with what everybody's clients know.
func (s *mirrorRun) receipts(clients []*mirrorClient) {
	for _, c := range clients {
		ids := c.mirror.Messages()
		for _, id := range ids[max(0, len(ids)-10):] {
			status, body := s.request(c.user, "GET /messages/{message_id}/read_receipts", params{"message_id": id}, "")
			if status != 200 { // the organization has none
				break
			}
			var v struct {
				Users []int64 `json:"user_ids"`
			}
			json.Unmarshal(body, &v)
			for _, o := range clients {
				read, known := o.mirror.Read(id, c.user)
				if said := slices.Contains(v.Users, o.user); known && !c.mirror.Muted(o.user) && said != read {
					s.fail("%s (user %d): receipts of message %d are %v, %s (user %d) has read it: %v", c.name, c.user, id, v.Users, o.name, o.user, read)
				}
				s.Receipts++
			}
		}
	}
}

func (s *mirrorRun) compareClient(c *mirrorClient) {
	if !s.poll(c) || s.t.Failed() {
		return
	}
	s.Compared++
	fresh := twin.New(c.kind)
	status, body := s.request(c.user, "POST /register", c.params, "")
	o, err := decodeObject(status, body)
	if err == nil {
		err = fresh.Start(body)
	}
	if status == 400 && c.kind.AllPublic { // guests may not have it
		return
	}
	if err != nil {
		s.fail("%s: register: %v", c.name, err)
		return
	}
	s.must(c.user, "DELETE /events", params{"queue_id": o["queue_id"]})
	s.runAside(func() { s.attachments(c, fresh) })
	for _, x := range c.mirror.Diff(fresh) {
		s.fail("%s (user %d): %s", c.name, c.user, x)
	}
	ask := params{"message_ids": c.mirror.Messages(), "apply_markdown": c.params["apply_markdown"], "client_gravatar": false, "allow_empty_topic_name": c.kind.Caps["empty_topic_name"]}
	if len(c.mirror.Messages()) > 0 {
		status, body = s.request(c.user, "GET /messages", ask, "")
		if err := c.mirror.DiffMessages(body); err != nil {
			s.fail("%s (user %d): %d: %v", c.name, c.user, status, err)
		}
	}
	s.runAside(func() { s.fetch(c) })
	if told := s.invites(c); c.mirror.NeedsRefetch("invites") || told == nil || c.invites == nil {
		c.invites = told
	} else if told != c.invites {
		s.fail("%s (user %d): invitations are %v, were %v, and no event said so", c.name, c.user, told, c.invites)
	}
}

// fetch compares what a client knows with what endpoints say that answer a part each.
func (s *mirrorRun) fetch(c *mirrorClient) {
	for _, f := range twin.Fetches {
		status, body := s.request(c.user, f.Name, params(f.Params), "")
		if status != 200 { // bots have no groups, and who keeps no drafts may not ask for them
			continue
		}
		if err := c.mirror.DiffFetched(f, body); err != nil {
			s.fail("%s (user %d): %v", c.name, c.user, err)
		}
	}
	for _, id := range c.mirror.MessagesWithHistory() {
		status, body := s.request(c.user, "GET /messages/{message_id}/history", params{"message_id": id, "allow_empty_topic_name": c.kind.Caps["empty_topic_name"]}, "")
		if err := c.mirror.DiffHistory(id, status, body); err != nil {
			s.fail("%s (user %d): message %d: %v", c.name, c.user, id, err)
		}
		s.Histories++
	}
}

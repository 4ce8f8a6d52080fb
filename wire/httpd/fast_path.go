package httpd

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
)

// fastPathTargets are the requests offered to the fast path, as every client writes them: event polls, messages,
// presence reports, and streams of agents.
var fastPathTargets = []string{"GET /api/v1/events?", "GET /json/events?", "POST /api/v1/messages ",
	"POST /json/messages ", "POST /api/v1/users/me/presence ", "POST /json/users/me/presence ", "GET " + mcpPath + " "}

// fastPath handles event polls, messages and presence reports on the loop that read them. It takes only requests
// that are ordinary in every respect. All other requests, and every request that must be refused before the
// organization is asked, go to the ordinary path: so no rule exists here only.
//
// Each loop has its own fastPath, so nothing here needs a lock.
type fastPath struct {
	server   *Server
	polls    []*wire.PollRequest // collected until Flush
	commands []wire.AsyncCommand // collected until Flush

	// Memory for reading a form, used again by the next request.
	args    fasthttp.Args
	values  form.Values
	agent   string    // User-Agent of the last request
	clients [2]string // client names derived from it, with an API key and with a browser session
}

// maxBatchedPolls is the number of polls collected before they are sent to the sessions: a fifth of a
// millisecond of reading.
const maxBatchedPolls = 256

// parkedPoll is a waiting event poll: one allocation for connection and session. When a client repeats the poll
// on the same connection, the same memory is used again: by then nothing refers to the answered poll.
type parkedPoll struct {
	park.Parked
	park.Memo
	poll       wire.PollRequest // its Reply is this parkedPoll
	server     wire.Server
	caller     park.Caller // the account that is charged
	limitLines []byte      // rate limit headers of the answer
	// until is when the ordinary path must handle the poll, in Unix seconds: the use of the browser session is to be
	// recorded, or the API key has expired. 0: never.
	until int64
}

// Caller returns the caller for which unsent answers count.
func (p *parkedPoll) Caller() park.Caller { return p.caller }

// Gone cancels the poll, because the client has left.
func (p *parkedPoll) Gone() { p.server.CancelPoll(p.poll) }

// Handle is offered a request that begins with one of fastPathTargets.
func (f *fastPath) Handle(q *park.FastRequest) bool {
	if f.server.mustWaitForOwner() {
		return false
	}
	if string(q.Method) == "POST" {
		if !f.enter() {
			return false
		}
		done := f.handleCommand(q)
		if !done {
			f.leave(1)
		}
		return done
	}
	if len(q.Body) != 0 {
		return false
	}
	if string(q.Target) == mcpPath {
		return f.handleStream(q)
	}
	return f.handlePoll(q)
}

// enter lets a command in, unless the organizations are moving to another core. A command that is collected calls leave
// in Flush, so that a pause waits for it.
func (f *fastPath) enter() bool { return !f.server.options.ForwardAll || f.server.pause.tryEnter() }

func (f *fastPath) leave(n int) {
	if f.server.options.ForwardAll {
		f.server.pause.leave(n)
	}
}

func (f *fastPath) handlePoll(q *park.FastRequest) bool {
	// Read before any lookup: a later change makes the next poll look up again.
	version := f.server.options.Server.AuthVersion()
	_, query, _ := bytes.Cut(q.Target, []byte("?"))
	c, ok := f.call(q, form.Query, query)
	if !ok || !f.mayPoll(q, &c) {
		return false
	}
	p, ok := wire.PreparePoll(&c)
	if !ok || f.server.forwardsPolls(c.Realm) {
		return false
	}
	w := &parkedPoll{poll: p, server: c.Server, caller: callerOfAccount(c.Account)}
	w.poll.Reply, w.poll.AuthVersion = w, version
	if w.limitLines, ok = f.countRequest(w.caller.Account, nil); !ok {
		return false
	}
	if c.Session != nil {
		w.until = c.Site.Policy.RenewalTime(c.Session)
	} else if k := c.Account.AdditionalKey(c.Caller.Key); k != nil {
		w.until = k.Expires
	}
	w.Owner = w
	if at, ok := lastEventSpan(q.Target, p.Last); ok {
		q.Remember(&w.Memo, at.from, at.to)
	}
	f.parkPoll(q, w)
	return true
}

// call returns the call of a request with its url-encoded parameters. It uses the parser and the checks of the
// ordinary path. It reports false if the ordinary path would refuse the request. It does not check the scope of the
// key. The parameters are valid until the next call.
func (f *fastPath) call(q *park.FastRequest, source form.Source, encoded []byte) (c wire.Call, ok bool) {
	if len(encoded) == 0 || tooManyParams(encoded) {
		return c, false
	}
	f.values.Reset()
	f.args.ParseBytes(encoded)
	addArgs(&f.values, source, &f.args)
	c = wire.Call{Server: f.server.options.Server, Tools: f.server.options.Tools, Params: &f.values}
	c.Realm, c.Site = f.server.options.Realms.ByHost(strings.ToLower(string(q.Host)))
	if len(q.Authorization) == 0 {
		ok = f.identifyBrowser(q, &c)
	} else {
		ok = f.server.checkCredentials(&c, q.Authorization, false, c.Server.AccountByKeyHash) == nil
	}
	return c, ok
}

// mayPoll reports whether the key of a call is allowed to poll. It sets the address of the call if the key is limited
// to networks. Behind a proxy, only the ordinary path knows the address.
func (f *fastPath) mayPoll(q *park.FastRequest, c *wire.Call) bool {
	scope := c.KeyScope()
	if scope == nil {
		return true
	}
	if scope.Networks != nil {
		if f.server.trusted(q.Address) {
			return false
		}
		c.Address = clientNetworkKey(q.Address)
	}
	return wire.CheckPollScope(c) == nil
}

// identifyBrowser identifies the caller by a browser session, with the checks of authenticateBrowser. It reports false
// also when the use of the session is to be recorded: the ordinary path does that.
func (f *fastPath) identifyBrowser(q *park.FastRequest, c *wire.Call) bool {
	if !bytes.HasPrefix(q.Target, []byte(webPrefix+"/")) {
		return false
	}
	b := browserHeaders{cookie: q.Cookie, token: q.CSRFToken, origin: q.Origin, referer: q.Referer, host: q.Host,
		secure: secure(false, c.Site)}
	if !f.server.findSession(c, &b) || c.Site.Policy.RenewalDue(c.Session, f.server.now().Unix()) {
		return false
	}
	field, _ := c.Params.Get(csrfField)
	c.Params.Consume(csrfField)
	return string(q.Method) == "GET" || f.server.checkCSRF(c, &b, field) == nil
}

// HandleRepeated handles a poll that equals the previous one of its connection except for last_event_id. The
// checks of the credentials stay valid as long as no account and no organization has changed, and until parkedPoll.until.
// The session checks the queue again.
func (f *fastPath) HandleRepeated(q *park.FastRequest, m *park.Memo, number []byte) bool {
	w := m.Owner.(*parkedPoll)
	last, ok := parseEventID(number)
	if !ok || w.poll.AuthVersion != w.server.AuthVersion() || f.server.mustWaitForOwner() ||
		f.server.forwardsPolls(w.poll.Realm) {
		return false
	}
	if w.until != 0 && f.server.now().Unix() >= w.until {
		return false
	}
	if w.limitLines, ok = f.countRequest(w.caller.Account, w.limitLines); !ok {
		return false
	}
	w.poll.Last = last
	f.parkPoll(q, w)
	return true
}

func (f *fastPath) parkPoll(q *park.FastRequest, w *parkedPoll) {
	q.Park(&w.Parked, w, w.limitLines)
	if f.polls = append(f.polls, &w.poll); len(f.polls) >= maxBatchedPolls {
		f.Flush()
	}
}

// countRequest counts a request of a caller. It returns the rate limit header lines, in the memory of lines. It
// reports false, without counting, if the budget is exhausted.
func (f *fastPath) countRequest(caller string, lines []byte) ([]byte, bool) {
	l := f.server.users
	if l == nil {
		return nil, true
	}
	v := l.count(caller)
	return v.appendHeaderLines(lines[:0]), v.retry <= 0
}

// Flush passes the collected messages and reports to their organizations, and the polls to their sessions.
func (f *fastPath) Flush() {
	if len(f.commands) > 0 {
		f.server.options.Server.RunAsync(f.commands)
		f.leave(len(f.commands))
		clear(f.commands)
		f.commands = f.commands[:0]
	}
	if len(f.polls) > 0 {
		f.server.options.Server.PollAll(f.polls)
		clear(f.polls)
		f.polls = f.polls[:0]
	}
}

// span is a range of bytes in the target of a request.
type span struct{ from, to int }

// lastEventSpan returns the position of the value of last_event_id in a target. It reports false if the target does
// not show plainly that this value is last: then the next poll is not recognized by comparing bytes.
func lastEventSpan(target []byte, last int64) (at span, ok bool) {
	const name = "last_event_id="
	if bytes.ContainsAny(target, "%+") || bytes.Count(target, []byte(name)) != 1 {
		return at, false
	}
	at.from = bytes.Index(target, []byte(name)) + len(name)
	at.to = len(target)
	if n := bytes.IndexByte(target[at.from:], '&'); n >= 0 {
		at.to = at.from + n
	}
	before := target[at.from-len(name)-1]
	n, ok := parseEventID(target[at.from:at.to])
	return at, ok && n == last && (before == '?' || before == '&')
}

// parseEventID parses an event ID as clients write it: -1, or digits without leading zeros. HandleRepeated uses it in
// place of the form, which would cost more than the rest of a repeated poll. It accepts fewer texts than the form does.
func parseEventID(b []byte) (n int64, ok bool) {
	if string(b) == "-1" {
		return -1, true
	}
	if len(b) == 0 || len(b) > 18 || len(b) > 1 && b[0] == '0' {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

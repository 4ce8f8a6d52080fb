package httpd

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
	"parley/wire/httpd/park"
)

// fastPathTargets are the requests offered to the fast path, as every client writes them: event polls, messages
// and presence reports.
var fastPathTargets = []string{"GET /api/v1/events?", "GET /json/events?", "POST /api/v1/messages ",
	"POST /json/messages ",
	"POST /api/v1/users/me/presence ", "POST /json/users/me/presence "}

// fastPath handles event polls, messages and presence reports on the loop that read them. It takes only requests
// that are ordinary in every respect. All other requests, and every request that must be refused before the
// organization is asked, go to the ordinary path: so no rule exists here only.
//
// Each loop has its own fastPath, so nothing here needs a lock.
type fastPath struct {
	server      *Server
	polls       []*wire.PollRequest // collected until Flush
	commands    []wire.AsyncCommand // likewise
	credentials [maxCredentialBytes]byte

	// Scratch memory for reading a form.
	args   fasthttp.Args
	values form.Values
	agent  string // User-Agent of the last request
	client string // client name derived from it
}

// maxCredentialBytes is the longest credentials the fast path decodes: an email address of 200 bytes and a key.
const maxCredentialBytes = 256

// maxBatchedPolls is the number of polls collected before they are passed on: a fifth of a millisecond of
// reading.
const maxBatchedPolls = 256

// parkedPoll is a waiting event poll: one allocation for connection and session. When a client repeats the poll
// on the same connection, the same memory is used again: by then nothing refers to the answered poll.
type parkedPoll struct {
	park.Parked
	park.Memo
	poll        wire.PollRequest // its Reply is this parkedPoll
	server      wire.Server
	authVersion uint64 // AuthVersion when the credentials were checked
	limitKey    string // the account's key in the limiter, "" without a limit
	limitLines  []byte // rate limit headers of the answer
}

// Gone tells the session that the client has left.
func (p *parkedPoll) Gone() { p.server.CancelPoll(p.poll) }

func (f *fastPath) Handle(q *park.FastRequest) bool {
	if string(q.Method) == "POST" {
		return f.handleCommand(q)
	}
	if len(q.Body) > 0 {
		return false
	}
	p, at, ok := parsePoll(q.Target)
	if !ok {
		return false
	}
	// read before any lookup: a later change makes the poll look up again
	version := f.server.options.Server.AuthVersion()
	a, _, ok := f.authenticate(q)
	if !ok {
		return false
	}
	w := &parkedPoll{server: f.server.options.Server, poll: p, authVersion: version, limitKey: f.limitKey(a)}
	w.poll.Realm, w.poll.User, w.poll.Reply = a.Realm, a.User, w
	if w.limitLines, ok = f.countRequest(w.limitKey, nil); !ok {
		return false
	}
	w.Owner = w
	q.Remember(&w.Memo, at.from, at.to)
	f.parkPoll(q, w)
	return true
}

// HandleRepeated handles a poll that equals the previous one of its connection except for last_event_id. The
// checks of the credentials stay valid as long as no account and no organization has changed. The session checks
// the queue again.
func (f *fastPath) HandleRepeated(q *park.FastRequest, m *park.Memo, number []byte) bool {
	w := m.Owner.(*parkedPoll)
	last, ok := parseEventID(number)
	if !ok || w.authVersion != w.server.AuthVersion() {
		return false
	}
	if w.limitLines, ok = f.countRequest(w.limitKey, w.limitLines); !ok {
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

// limitKey returns the key of an account in the limiter, "" without a limit.
func (f *fastPath) limitKey(a *wire.Account) string {
	if f.server.users == nil {
		return ""
	}
	return limitKey(a)
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

// parsePoll parses the query of an event poll that has only the usual parameters, without escapes. at is the
// position of last_event_id in target. Any other query reports false.
func parsePoll(target []byte) (p wire.PollRequest, at span, ok bool) {
	_, query, _ := bytes.Cut(target, []byte("?"))
	queue, last := false, false
	for len(query) > 0 {
		var pair []byte
		end := len(target) - len(query)
		pair, query, _ = bytes.Cut(query, []byte("&"))
		end += len(pair)
		name, value, _ := bytes.Cut(pair, []byte("="))
		switch string(name) {
		case "queue_id":
			if queue || len(value) == 0 || !isPlain(value) {
				return p, at, false
			}
			p.Queue, queue = realm.QueueID(value), true
		case "last_event_id":
			n, ok := parseEventID(value)
			if last || !ok {
				return p, at, false
			}
			p.Last, last = n, true
			at = span{end - len(value), end}
		case "dont_block":
			if string(value) != "false" {
				return p, at, false
			}
		default:
			return p, at, false
		}
	}
	return p, at, queue && last
}

// isPlain reports whether a value is free of escapes: all its bytes mean themselves in a query.
func isPlain(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != ':' && c != '_' &&
			c != '.' {
			return false
		}
	}
	return true
}

// parseEventID parses an event ID as clients write it: -1, or digits without leading zeros.
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

// authenticate returns the account and the site of a request with good credentials. It reports false in every
// other case; Server.authenticate then finds the right refusal.
func (f *fastPath) authenticate(q *park.FastRequest) (a *wire.Account, site wire.Site, ok bool) {
	const basic = "Basic "
	h := q.Authorization
	if len(h) < len(basic) || string(h[:len(basic)]) != basic ||
		base64.StdEncoding.DecodedLen(len(h)-len(basic)) > len(f.credentials) {
		return nil, site, false
	}
	n, err := base64.StdEncoding.Decode(f.credentials[:], h[len(basic):])
	if err != nil {
		return nil, site, false
	}
	email, key, ok := bytes.Cut(f.credentials[:n], []byte(":"))
	if !ok || len(key) != keyLength {
		return nil, site, false
	}
	a, ok = f.server.options.Server.AccountByKeyHash(f.server.options.Tools.HashKey(string(key)))
	if !ok || !a.Active || a.Bot == realm.IncomingWebhook || a.Email != string(email) {
		return nil, site, false
	}
	id, site := f.server.options.Realms.ByHost(strings.ToLower(string(q.Host)))
	if a.Realm != id || site.Deactivated {
		return nil, site, false
	}
	return a, site, true
}

// appendHeaderLines appends the header lines that tell the rest of the budget.
func (v verdict) appendHeaderLines(b []byte) []byte {
	b = append(append(b, headerLimit...), ": "...)
	b = strconv.AppendInt(b, int64(v.limit), 10)
	b = append(append(append(b, "\r\n"...), headerRemaining...), ": "...)
	b = strconv.AppendInt(b, int64(v.remaining), 10)
	b = append(append(append(b, "\r\n"...), headerReset...), ": "...)
	b = strconv.AppendInt(b, v.reset.Unix(), 10)
	return append(b, "\r\n"...)
}

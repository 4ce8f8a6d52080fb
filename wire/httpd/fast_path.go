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

// fastPathTargets are what fastPath is offered: asking for events, sending and reporting presence, as every client writes it.
var fastPathTargets = []string{"GET /api/v1/events?", "GET /json/events?", "POST /api/v1/messages ", "POST /json/messages ",
	"POST /api/v1/users/me/presence ", "POST /json/users/me/presence "}

// fastPath answers requests for events, and carries out sends and reports, on the loop that read them. It takes what is ordinary in
// every respect; anything else, and everything that is to be refused before the organization has its say, goes the usual
// way, so that no rule stands here only.
type fastPath struct {
	server      *Server
	polls       []*wire.PollRequest // put off until Flush
	commands    []wire.AsyncCommand // likewise
	credentials [maxCredentialBytes]byte

	// What the reading of a form needs and does not keep.
	args   fasthttp.Args
	values form.Values
	agent  string // the last one
	client string // the program's name in it
}

// maxCredentialBytes is how long credentials may be that are taken quickly, in bytes: an address of 200 and a key.
const maxCredentialBytes = 256

// maxBatchedPolls is how many polls are put off before they are handed on though more are at hand: a fifth of a millisecond's.
const maxBatchedPolls = 256

// parkedPoll is a waiting request for events: one piece of memory for connection and session. A client that asks the same
// again on the same connection gets the same piece: whoever answers a poll forgets it before.
type parkedPoll struct {
	park.Parked
	park.Memo
	poll        wire.PollRequest // its Reply is this
	server      wire.Server
	authVersion uint64 // what the house's directory was when the credentials were good
	limitKey    string // the account as the limiter knows it, "" without one
	limitLines  []byte // what that says of the budget
}

// Gone tells the session that the client has left.
func (p *parkedPoll) Gone() { p.server.CancelPoll(p.poll) }

func (k *fastPath) Handle(q *park.FastRequest) bool {
	if string(q.Method) == "POST" {
		return k.handleCommand(q)
	}
	if len(q.Body) > 0 {
		return false
	}
	p, at, ok := parsePoll(q.Target)
	if !ok {
		return false
	}
	vouched := k.server.options.Server.AuthVersion() // before anything is looked up: what changes meanwhile is looked up again
	a, _, ok := k.authenticate(q)
	if !ok {
		return false
	}
	w := &parkedPoll{server: k.server.options.Server, poll: p, authVersion: vouched, limitKey: k.limitKey(a)}
	w.poll.Realm, w.poll.User, w.poll.Reply = a.Realm, a.User, w
	if w.limitLines, ok = k.countRequest(w.limitKey, nil); !ok {
		return false
	}
	w.Owner = w
	q.Remember(&w.Memo, at.from, at.to)
	k.parkPoll(q, w)
	return true
}

// HandleRepeated takes a poll that is the one before but for last_event_id: whose it is, and that he may, is known as long as no
// account and no organization has changed. Which queue there is, and whether it may be asked, its session decides anew.
func (k *fastPath) HandleRepeated(q *park.FastRequest, m *park.Memo, number []byte) bool {
	w := m.Owner.(*parkedPoll)
	last, ok := parseEventID(number)
	if !ok || w.authVersion != w.server.AuthVersion() {
		return false
	}
	if w.limitLines, ok = k.countRequest(w.limitKey, w.limitLines); !ok {
		return false
	}
	w.poll.Last = last
	k.parkPoll(q, w)
	return true
}

func (k *fastPath) parkPoll(q *park.FastRequest, w *parkedPoll) {
	q.Park(&w.Parked, w, w.limitLines)
	if k.polls = append(k.polls, &w.poll); len(k.polls) >= maxBatchedPolls {
		k.Flush()
	}
}

// limitKey is what spend knows an account by.
func (k *fastPath) limitKey(a *wire.Account) string {
	if k.server.users == nil {
		return ""
	}
	return limitKey(a)
}

// countRequest counts a caller's request, and returns the header lines that say what is left, in the memory of lines. It reports
// false, and has spent nothing, where there were too many.
func (k *fastPath) countRequest(caller string, lines []byte) ([]byte, bool) {
	l := k.server.users
	if l == nil {
		return nil, true
	}
	v := l.count(caller)
	return v.appendHeaderLines(lines[:0]), v.retry <= 0
}

// Flush hands sends and reports to their organizations and polls to their sessions.
func (k *fastPath) Flush() {
	if len(k.commands) > 0 {
		k.server.options.Server.RunAsync(k.commands)
		clear(k.commands)
		k.commands = k.commands[:0]
	}
	if len(k.polls) > 0 {
		k.server.options.Server.PollAll(k.polls)
		clear(k.polls)
		k.polls = k.polls[:0]
	}
}

// span is where something stands in a target.
type span struct{ from, to int }

// parsePoll reads the query of a request for events, if it has just the usual parameters, plainly written. at is where
// last_event_id stands.
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

// isPlain tells whether a value means itself: nothing in it is written in another way in a query.
func isPlain(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != ':' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// parseEventID reads an event's number as clients write it: -1, or digits.
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

// authenticate is who asks, if the credentials are good and nothing speaks against the account; see authenticate.
func (k *fastPath) authenticate(q *park.FastRequest) (a *wire.Account, site wire.Site, ok bool) {
	const basic = "Basic "
	h := q.Authorization
	if len(h) < len(basic) || string(h[:len(basic)]) != basic || base64.StdEncoding.DecodedLen(len(h)-len(basic)) > len(k.credentials) {
		return nil, site, false
	}
	n, err := base64.StdEncoding.Decode(k.credentials[:], h[len(basic):])
	if err != nil {
		return nil, site, false
	}
	email, key, ok := bytes.Cut(k.credentials[:n], []byte(":"))
	if !ok || len(key) != keyLength {
		return nil, site, false
	}
	a, ok = k.server.options.Server.AccountByKeyHash(k.server.options.Tools.HashKey(string(key)))
	if !ok || !a.Active || a.Bot == realm.IncomingWebhook || a.Email != string(email) {
		return nil, site, false
	}
	id, site := k.server.options.Realms.ByHost(strings.ToLower(string(q.Host)))
	if a.Realm != id || site.Deactivated {
		return nil, site, false
	}
	return a, site, true
}

// appendHeaderLines writes the header lines that say what is left of a budget.
func (v verdict) appendHeaderLines(b []byte) []byte {
	b = append(append(b, headerLimit...), ": "...)
	b = strconv.AppendInt(b, int64(v.limit), 10)
	b = append(append(append(b, "\r\n"...), headerRemaining...), ": "...)
	b = strconv.AppendInt(b, int64(v.remaining), 10)
	b = append(append(append(b, "\r\n"...), headerReset...), ": "...)
	b = strconv.AppendInt(b, v.reset.Unix(), 10)
	return append(b, "\r\n"...)
}

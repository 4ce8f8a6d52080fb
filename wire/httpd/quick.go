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

// quickTargets are what quick is offered: asking for events, sending and reporting presence, as every client writes it.
var quickTargets = []string{"GET /api/v1/events?", "GET /json/events?", "POST /api/v1/messages ", "POST /json/messages ",
	"POST /api/v1/users/me/presence ", "POST /json/users/me/presence "}

// quick answers requests for events, and carries out sends and reports, on the loop that read them. It takes what is ordinary in
// every respect; anything else, and everything that is to be refused before the organization has its say, goes the usual
// way, so that no rule stands here only.
type quick struct {
	s           *Server
	polls       []*wire.PollRequest // put off until Flush
	orders      []wire.Order        // likewise
	credentials [maxCredentials]byte

	// What the reading of a form needs and does not keep.
	args   fasthttp.Args
	values form.Values
	agent  string // the last one
	client string // the program's name in it
}

// maxCredentials is how long credentials may be that are taken quickly, in bytes: an address of 200 and a key.
const maxCredentials = 256

// maxPutOff is how many polls are put off before they are handed on though more are at hand: a fifth of a millisecond's.
const maxPutOff = 256

// quickPoll is a waiting request for events: one piece of memory for connection and session. A client that asks the same
// again on the same connection gets the same piece: whoever answers a poll forgets it before.
type quickPoll struct {
	park.Parked
	park.Memo
	poll    wire.PollRequest // its Reply is this
	house   wire.House
	vouched uint64 // what the house's directory was when the credentials were good
	caller  string // the account as the limiter knows it, "" without one
	lines   []byte // what that says of the budget
}

// Gone tells the session that the client has left.
func (p *quickPoll) Gone() { p.house.Gone(p.poll) }

func (k *quick) Take(q *park.QuickRequest) bool {
	if string(q.Method) == "POST" {
		return k.order(q)
	}
	if len(q.Body) > 0 {
		return false
	}
	p, at, ok := readPoll(q.Target)
	if !ok {
		return false
	}
	vouched := k.s.o.House.Vouched() // before anything is looked up: what changes meanwhile is looked up again
	a, _, ok := k.caller(q)
	if !ok {
		return false
	}
	w := &quickPoll{house: k.s.o.House, poll: p, vouched: vouched, caller: k.budget(a)}
	w.poll.Realm, w.poll.User, w.poll.Reply = a.Realm, a.User, w
	if w.lines, ok = k.spend(w.caller, nil); !ok {
		return false
	}
	w.Owner = w
	q.Remember(&w.Memo, at.from, at.to)
	k.park(q, w)
	return true
}

// Again takes a poll that is the one before but for last_event_id: whose it is, and that he may, is known as long as no
// account and no organization has changed. Which queue there is, and whether it may be asked, its session decides anew.
func (k *quick) Again(q *park.QuickRequest, m *park.Memo, number []byte) bool {
	w := m.Owner.(*quickPoll)
	last, ok := readID(number)
	if !ok || w.vouched != w.house.Vouched() {
		return false
	}
	if w.lines, ok = k.spend(w.caller, w.lines); !ok {
		return false
	}
	w.poll.Last = last
	k.park(q, w)
	return true
}

func (k *quick) park(q *park.QuickRequest, w *quickPoll) {
	q.Park(&w.Parked, w, w.lines)
	if k.polls = append(k.polls, &w.poll); len(k.polls) >= maxPutOff {
		k.Flush()
	}
}

// budget is what spend knows an account by.
func (k *quick) budget(a *wire.Account) string {
	if k.s.users == nil {
		return ""
	}
	return callerKey(a)
}

// spend counts a caller's request, and returns the header lines that say what is left, in the memory of lines. It reports
// false, and has spent nothing, where there were too many.
func (k *quick) spend(caller string, lines []byte) ([]byte, bool) {
	l := k.s.users
	if l == nil {
		return nil, true
	}
	v := l.take(caller)
	return v.appendLines(lines[:0]), v.retry <= 0
}

// Flush hands sends and reports to their organizations and polls to their sessions.
func (k *quick) Flush() {
	if len(k.orders) > 0 {
		k.s.o.House.Order(k.orders)
		clear(k.orders)
		k.orders = k.orders[:0]
	}
	if len(k.polls) > 0 {
		k.s.o.House.PollAll(k.polls)
		clear(k.polls)
		k.polls = k.polls[:0]
	}
}

// place is where something stands in a target.
type place struct{ from, to int }

// readPoll reads the query of a request for events, if it has just the usual parameters, plainly written. at is where
// last_event_id stands.
func readPoll(target []byte) (p wire.PollRequest, at place, ok bool) {
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
			if queue || len(value) == 0 || !plain(value) {
				return p, at, false
			}
			p.Queue, queue = realm.QueueID(value), true
		case "last_event_id":
			n, ok := readID(value)
			if last || !ok {
				return p, at, false
			}
			p.Last, last = n, true
			at = place{end - len(value), end}
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

// plain tells whether a value means itself: nothing in it is written in another way in a query.
func plain(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != ':' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// readID reads an event's number as clients write it: -1, or digits.
func readID(b []byte) (n int64, ok bool) {
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

// caller is who asks, if the credentials are good and nothing speaks against the account; see authenticate.
func (k *quick) caller(q *park.QuickRequest) (a *wire.Account, site wire.Site, ok bool) {
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
	a, ok = k.s.o.House.ByKeyHash(k.s.o.Tools.HashKey(string(key)))
	if !ok || !a.Active || a.Bot == realm.IncomingWebhook || a.Email != string(email) {
		return nil, site, false
	}
	id, site := k.s.o.Realms.ByHost(strings.ToLower(string(q.Host)))
	if a.Realm != id || site.Closed {
		return nil, site, false
	}
	return a, site, true
}

// appendLines writes the header lines that say what is left of a budget.
func (v verdict) appendLines(b []byte) []byte {
	b = append(append(b, headerLimit...), ": "...)
	b = strconv.AppendInt(b, int64(v.limit), 10)
	b = append(append(append(b, "\r\n"...), headerRemaining...), ": "...)
	b = strconv.AppendInt(b, int64(v.remaining), 10)
	b = append(append(append(b, "\r\n"...), headerReset...), ": "...)
	b = strconv.AppendInt(b, v.reset.Unix(), 10)
	return append(b, "\r\n"...)
}

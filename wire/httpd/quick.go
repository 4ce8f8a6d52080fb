package httpd

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/httpd/park"
)

// quickTargets are what quick is offered: asking for events, as every client writes it.
var quickTargets = []string{"/api/v1/events?", "/json/events?"}

// quick answers requests for events on the loop that read them. It takes what is ordinary in every respect; anything
// else, and everything that is to be refused, goes the usual way, so that no rule stands here only.
type quick struct {
	s           *Server
	polls       []wire.PollRequest // put off until Flush
	credentials [maxCredentials]byte
}

// maxCredentials is how long credentials may be that are taken quickly, in bytes: an address of 200 and a key.
const maxCredentials = 256

// maxPutOff is how many polls are put off before they are handed on though more are at hand: a fifth of a millisecond's.
const maxPutOff = 64

// quickPoll is one waiting request for events: one piece of memory for connection and session.
type quickPoll struct {
	park.Parked
	house wire.House
	poll  wire.PollRequest // without Reply, which is this
}

// Gone tells the session that the client has left.
func (p *quickPoll) Gone() {
	poll := p.poll
	poll.Reply = p
	p.house.Gone(poll)
}

func (k *quick) Take(q *park.QuickRequest) bool {
	p, ok := readPoll(q.Target)
	if !ok {
		return false
	}
	a, ok := k.caller(q)
	if !ok {
		return false
	}
	extra := ""
	if l := k.s.users; l != nil {
		v := l.take(callerKey(a))
		if v.retry > 0 {
			return false // nothing was spent
		}
		extra = v.lines()
	}
	w := &quickPoll{house: k.s.o.House, poll: p}
	w.poll.Realm, w.poll.User = a.Realm, a.User
	q.Park(&w.Parked, w, extra)
	p = w.poll
	p.Reply = w
	if k.polls = append(k.polls, p); len(k.polls) >= maxPutOff {
		k.Flush()
	}
	return true
}

// Flush hands the polls to their sessions.
func (k *quick) Flush() {
	if len(k.polls) == 0 {
		return
	}
	k.s.o.House.PollAll(k.polls)
	clear(k.polls)
	k.polls = k.polls[:0]
}

// readPoll reads the query of a request for events, if it has just the usual parameters, plainly written.
func readPoll(target []byte) (p wire.PollRequest, ok bool) {
	_, query, _ := bytes.Cut(target, []byte("?"))
	queue, last := false, false
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte("&"))
		name, value, _ := bytes.Cut(pair, []byte("="))
		switch string(name) {
		case "queue_id":
			if queue || len(value) == 0 || !plain(value) {
				return p, false
			}
			p.Queue, queue = realm.QueueID(value), true
		case "last_event_id":
			n, ok := readID(value)
			if last || !ok {
				return p, false
			}
			p.Last, last = n, true
		case "dont_block":
			if string(value) != "false" {
				return p, false
			}
		default:
			return p, false
		}
	}
	return p, queue && last
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
func (k *quick) caller(q *park.QuickRequest) (*wire.Account, bool) {
	const basic = "Basic "
	h := q.Authorization
	if len(h) < len(basic) || string(h[:len(basic)]) != basic || base64.StdEncoding.DecodedLen(len(h)-len(basic)) > len(k.credentials) {
		return nil, false
	}
	n, err := base64.StdEncoding.Decode(k.credentials[:], h[len(basic):])
	if err != nil {
		return nil, false
	}
	email, key, ok := bytes.Cut(k.credentials[:n], []byte(":"))
	if !ok || len(key) != keyLength {
		return nil, false
	}
	a, ok := k.s.o.House.ByKeyHash(k.s.o.Tools.HashKey(string(key)))
	if !ok || !a.Active || a.Bot == realm.IncomingWebhook || a.Email != string(email) {
		return nil, false
	}
	id, site := k.s.o.Realms.ByHost(strings.ToLower(string(q.Host)))
	if a.Realm != id || site.Closed {
		return nil, false
	}
	return a, true
}

// lines are the header lines that say what is left of a budget.
func (v verdict) lines() string {
	b := make([]byte, 0, 96)
	b = append(b, "X-RateLimit-Limit: "...)
	b = strconv.AppendInt(b, int64(v.limit), 10)
	b = append(b, "\r\nX-RateLimit-Remaining: "...)
	b = strconv.AppendInt(b, int64(v.remaining), 10)
	b = append(b, "\r\nX-RateLimit-Reset: "...)
	b = strconv.AppendInt(b, v.reset.Unix(), 10)
	return string(append(b, "\r\n"...))
}

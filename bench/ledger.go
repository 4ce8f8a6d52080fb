package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// A ledger holds what was sent and who saw it, and knows what must be true: every acknowledged send is seen exactly
// once, in the order of message ids, by each poller of its audience, and by nobody else. What was refused is seen by
// nobody. Of a send whose answer was lost nothing is known, but either all see it or none.
type ledger struct {
	mark      []byte // stands before a send's number in its text; tells our messages from all others
	sends     []send
	audiences []audience
	listeners []*listener
	open      int64 // deliveries still due, of sends that were acknowledged
	due       int64 // deliveries due in all
	got       int64
	broken    []violation
	brokenN   int
	foreign   int64 // messages of others, not judged
}

// maxViolations bounds what is kept; the first of a kind is the smallest witness.
const maxViolations = 20

type sendState uint8

const (
	sendUnder   sendState = iota // no answer yet
	sendAcked                    // the server said it is sent
	sendRefused                  // the server said it is not
	sendUnknown                  // the answer was lost
)

type send struct {
	audience int32
	sender   int32
	state    sendState
	due      int32 // pollers that should see it
	seen     int32
	message  int64
	intended time.Duration
	after    func() // called once, when all have seen it
}

// An audience is a set of people who see the same messages: a channel's subscribers or those of a direct conversation.
type audience struct {
	name    string
	members []uint64 // by person
	pollers int32    // listeners among them
}

func (a *audience) has(person int32) bool {
	i := int(person >> 6)
	return i < len(a.members) && a.members[i]>>(person&63)&1 == 1
}

func (a *audience) add(person int32) {
	for len(a.members) <= int(person>>6) {
		a.members = append(a.members, 0)
	}
	a.members[person>>6] |= 1 << (person & 63)
}

// A listener is what one poller has seen.
type listener struct {
	person int32
	no     int32
	last   int64 // newest message id
	lastNo int
	seen   []uint64 // by send
}

// A violation is a promise the server broke.
type violation struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

func newLedger(seed uint64) *ledger {
	return &ledger{mark: []byte(fmt.Sprintf("pb%04xx", seed&0xffff))}
}

func (l *ledger) audience(name string, people ...int32) int32 {
	a := audience{name: name}
	for _, p := range people {
		a.add(p)
	}
	for _, x := range l.listeners {
		if a.has(x.person) {
			a.pollers++
		}
	}
	l.audiences = append(l.audiences, a)
	return int32(len(l.audiences) - 1)
}

// listen adds a poller. All must be there before the first send.
func (l *ledger) listen(person int32) *listener {
	x := &listener{person: person, no: int32(len(l.listeners)), lastNo: -1}
	l.listeners = append(l.listeners, x)
	for i := range l.audiences {
		if l.audiences[i].has(person) {
			l.audiences[i].pollers++
		}
	}
	return x
}

// send opens an entry and answers its number and the text that carries it.
func (l *ledger) send(sender, audience int32, intended time.Duration, filler string, after func()) (int, string) {
	no := len(l.sends)
	due := l.audiences[audience].pollers
	l.sends = append(l.sends, send{audience: audience, sender: sender, intended: intended, due: due, after: after})
	l.open += int64(due)
	l.due += int64(due)
	return no, string(l.mark) + strconv.Itoa(no) + "x " + filler
}

func (l *ledger) answered(no int, status int, message int64, lost bool) {
	s := &l.sends[no]
	switch {
	case lost:
		s.state = sendUnknown
		l.release(s)
	case status != 200:
		s.state = sendRefused
		l.release(s)
		if s.seen > 0 {
			l.breach("refused but seen", "send %d (message %d) was refused with status %d, yet %d pollers saw it", no,
				s.message, status, s.seen)
		}
	default:
		s.state = sendAcked
		if s.message != 0 && s.message != message {
			l.breach("two ids", "send %d was acknowledged as message %d, but pollers saw it as message %d", no,
				message, s.message)
		}
		s.message = message
	}
	if s.due == 0 && s.after != nil {
		f := s.after
		s.after = nil
		f()
	}
}

// release: nobody must wait for a send that may not be.
func (l *ledger) release(s *send) {
	if left := s.due - s.seen; left > 0 {
		l.open -= int64(left)
		l.due -= int64(left)
	}
	if s.after != nil {
		f := s.after
		s.after = nil
		f()
	}
}

// saw enters one message event. It answers when the send was meant to happen, and whether it is one of ours.
func (l *ledger) saw(x *listener, message int64, content []byte) (time.Duration, bool) {
	no, ok := l.number(content)
	if !ok || no >= len(l.sends) {
		l.foreign++
		return 0, false
	}
	s := &l.sends[no]
	w, bit := no>>6, uint64(1)<<(no&63)
	for len(x.seen) <= w {
		x.seen = append(x.seen, 0)
	}
	a := &l.audiences[s.audience]
	switch {
	case x.seen[w]&bit != 0:
		l.breach("duplicate", "poller %d (person %d) saw send %d, message %d in %s, a second time; the newest it "+
			"had seen was message %d", x.no, x.person, no, message, a.name, x.last)
		return 0, false
	case !a.has(x.person):
		l.breach("leak", "poller %d (person %d) saw send %d, message %d, of %s, to which it does not belong", x.no,
			x.person, no, message, a.name)
		return 0, false
	case message <= x.last:
		l.breach("reorder", "poller %d (person %d) saw message %d (send %d, %s) after message %d (send %d)", x.no,
			x.person, message, no, a.name, x.last, x.lastNo)
	case s.message != 0 && s.message != message:
		l.breach("two ids", "send %d is message %d for one and message %d for poller %d", no, s.message, message, x.no)
	case s.state == sendRefused:
		l.breach("refused but seen", "send %d, refused, was seen by poller %d as message %d", no, x.no, message)
	}
	x.seen[w] |= bit
	x.last, x.lastNo = message, no
	s.message = message
	s.seen++
	l.got++
	if s.state == sendUnder || s.state == sendAcked {
		l.open--
	}
	if s.seen == s.due && s.after != nil {
		f := s.after
		s.after = nil
		f()
	}
	return s.intended, true
}

// number finds a send's number in a message's text, plain or rendered.
func (l *ledger) number(content []byte) (int, bool) {
	i := bytes.Index(content, l.mark)
	if i < 0 {
		return 0, false
	}
	n, any := 0, false
	for _, c := range content[i+len(l.mark):] {
		if c < '0' || c > '9' {
			return n, any && c == 'x'
		}
		n, any = n*10+int(c-'0'), true
	}
	return 0, false
}

// settled says whether everything that is due has been seen.
func (l *ledger) settled() bool { return l.open <= 0 }

// close judges what was never seen. Call it when nothing more can come.
func (l *ledger) close() {
	for no := range l.sends {
		s := &l.sends[no]
		must := s.state == sendAcked || s.state == sendUnknown && s.seen > 0
		if !must || s.seen >= s.due {
			continue
		}
		a := &l.audiences[s.audience]
		for _, x := range l.listeners {
			if a.has(x.person) && (no>>6 >= len(x.seen) || x.seen[no>>6]>>(no&63)&1 == 0) {
				how := "acknowledged"
				if s.state == sendUnknown {
					how = "unacknowledged but seen by others"
				}
				l.breach("loss", "send %d, message %d in %s, %s, was never seen by poller %d (person %d); %d of %d "+
					"saw it; the newest that poller saw was message %d", no, s.message, a.name, how, x.no, x.person,
					s.seen, s.due, x.last)
				break
			}
		}
	}
}

func (l *ledger) breach(kind, format string, args ...any) {
	l.brokenN++
	if len(l.broken) < maxViolations {
		l.broken = append(l.broken, violation{kind, fmt.Sprintf(format, args...)})
	}
}

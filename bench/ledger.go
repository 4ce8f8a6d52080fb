package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// A ledger records all sends and the pollers that saw them, and checks the guarantees. Each poller of the audience sees
// an acknowledged send exactly once, in the order of message ids; no other poller sees it. No poller sees a refused
// send. A send whose answer was lost is seen by the whole audience or by no poller.
type ledger struct {
	marker           []byte // precedes the number of a send in its text; identifies the messages of this run
	sends            []send
	audiences        []audience
	listeners        []*listener
	outstanding      int64 // deliveries that are still due, of acknowledged and pending sends
	due              int64 // all deliveries due
	seen             int64
	violations       []violation
	violationCount   int
	violationsByKind map[string]int
	foreignMessages  int64         // messages of other senders, not checked
	now              time.Duration // time of the answer that is being recorded
	lateLimit        time.Duration // 0: late messages are not violations
	// Of a run with several agents: the number of agents, the index of this one, and conversions between times of the
	// loop and microseconds on the clock of the coordinator.
	agents, index int
	stamp         func(time.Duration) int64
	unstamp       func(int64) time.Duration
	checked       int // sends of other agents that all pollers saw

	// touched has the audience of each message that this run has reacted to or edited: the events about it are only for
	// that audience.
	touched map[int64]int32

	checkText bool // the text of each message is compared with the one that was sent
}

const (
	// maxViolations bounds the stored violations of each kind; they are the earliest ones.
	maxViolations = 50
	// lateLimit is the time between the first poller and the last one that sees a message. A longer time is a fault of
	// the server or of a proxy: all pollers are behind if the server is only slow.
	lateLimit = 10 * time.Second
	// maxTouched bounds the messages whose later events are checked: some 10 MB.
	maxTouched = 200_000
)

type sendState uint8

const (
	sendPending sendState = iota // no answer yet
	sendAcked                    // the server accepted it
	sendRefused                  // the server rejected it
	sendUnknown                  // the answer was lost
)

type send struct {
	audience int32
	sender   int32
	state    sendState
	due      int32 // pollers that must see it
	seen     int32
	plain    bool // its text is the filler, which every poller must see as a whole
	message  int64
	intended time.Duration
	base     time.Duration // when the first poller saw it; with a single poller, when it was acknowledged
	onSeen   func()        // called once, when the whole audience has seen it
}

// An audience is a set of users that receive the same messages: the subscribers of a channel or the participants of a
// direct conversation.
type audience struct {
	name    string
	members []uint64 // bit set by person
	pollers int32    // listeners among them
}

func (a *audience) contains(person int32) bool {
	i := int(person >> 6)
	return i < len(a.members) && a.members[i]>>(person&63)&1 == 1
}

func (a *audience) add(person int32) {
	for len(a.members) <= int(person>>6) {
		a.members = append(a.members, 0)
	}
	a.members[person>>6] |= 1 << (person & 63)
}

// A listener records the messages that one poller has seen.
type listener struct {
	person   int32
	number   int32
	queue    string // id of its event queue
	last     int64  // newest message id
	lastSend int
	seen     []uint64      // bit set by send
	lateAt   time.Duration // time of the last answer with a late message
}

func (x *listener) String() string {
	return fmt.Sprintf("poller %d (person %d, queue %s)", x.number, x.person, x.queue)
}

// A violation is one violated guarantee.
type violation struct {
	Kind    string    `json:"kind"`
	Text    string    `json:"text"`
	At      time.Time `json:"at"` // when the generator found it
	Queue   string    `json:"queue,omitempty"`
	Message int64     `json:"message,omitempty"`
}

// line returns the violation as one line of text.
func (v violation) line() string {
	return fmt.Sprintf("%s: %s [found at %s]", v.Kind, v.Text, v.At.Format("15:04:05.000"))
}

func newLedger(seed uint64) *ledger {
	return &ledger{marker: []byte(fmt.Sprintf("pb%04xx", seed&0xffff)), lateLimit: lateLimit,
		violationsByKind: map[string]int{}, touched: map[int64]int32{}}
}

// touch records that the run changes a message.
func (l *ledger) touch(s *send) {
	if len(l.touched) < maxTouched {
		l.touched[s.message] = s.audience
	}
}

// recordAbout records an event about a message: only the audience of the message may see it.
func (l *ledger) recordAbout(x *listener, kind []byte, message int64) {
	if to, ok := l.touched[message]; ok && !l.audiences[to].contains(x.person) {
		l.report(x, message, "leak", "%s saw an event %s of message %d in %s, but is not in its audience", x, kind,
			message,
			l.audiences[to].name)
	}
}

func (l *ledger) addAudience(name string, people ...int32) int32 {
	a := audience{name: name}
	for _, p := range people {
		a.add(p)
	}
	for _, x := range l.listeners {
		if a.contains(x.person) {
			a.pollers++
		}
	}
	l.audiences = append(l.audiences, a)
	return int32(len(l.audiences) - 1)
}

// addListener adds a poller. All pollers must be added before the first send.
func (l *ledger) addListener(person int32) *listener {
	x := &listener{person: person, number: int32(len(l.listeners)), lastSend: -1}
	l.listeners = append(l.listeners, x)
	for i := range l.audiences {
		if l.audiences[i].contains(person) {
			l.audiences[i].pollers++
		}
	}
	return x
}

// send adds an entry and returns its number and the text of the message, which contains the number.
func (l *ledger) send(sender, audience int32, intended time.Duration, text string, after func()) (int, string) {
	no := len(l.sends)
	due := l.audiences[audience].pollers
	l.sends = append(l.sends, send{audience: audience, sender: sender, plain: text == filler, intended: intended,
		due: due, onSeen: after})
	l.outstanding += int64(due)
	l.due += int64(due)
	if l.agents > 0 {
		return no, fmt.Sprintf("%s%dx%dx %s", l.marker, l.global(no), l.stamp(intended), text)
	}
	return no, string(l.marker) + strconv.Itoa(no) + "x " + text
}

func (l *ledger) recordAnswer(no int, status int, message int64, lost bool) {
	s := &l.sends[no]
	switch {
	case lost:
		s.state = sendUnknown
		l.cancelDue(s)
	case status != 200:
		s.state = sendRefused
		l.cancelDue(s)
		if s.seen > 0 {
			l.addViolation("refused but seen",
				"send %d (message %d) was refused with status %d, but %d pollers saw it", no,
				s.message, status, s.seen)
		}
	default:
		s.state = sendAcked
		if s.message != 0 && s.message != message {
			l.addViolation("two ids", "send %d was acknowledged as message %d, but pollers saw it as message %d", no,
				message, s.message)
		}
		s.message = message
		if s.base == 0 {
			s.base = l.now
		}
	}
	if s.due == 0 && s.onSeen != nil {
		f := s.onSeen
		s.onSeen = nil
		f()
	}
}

// cancelDue stops waiting for deliveries of a send that was refused or whose answer was lost.
func (l *ledger) cancelDue(s *send) {
	if left := s.due - s.seen; left > 0 {
		l.outstanding -= int64(left)
		l.due -= int64(left)
	}
	if s.onSeen != nil {
		f := s.onSeen
		s.onSeen = nil
		f()
	}
}

// recordSeen records one message event. It returns the intended time of the send, and whether the message is one of
// this run.
func (l *ledger) recordSeen(x *listener, message int64, content []byte) (time.Duration, bool) {
	no, ok := l.sendNumber(content)
	if ok && l.agents > 0 {
		if no%l.agents != l.index {
			return l.recordRemote(x, message, no, content)
		}
		no /= l.agents
	}
	if !ok || no >= len(l.sends) {
		l.foreignMessages++
		return 0, false
	}
	s := &l.sends[no]
	global := l.global(no)
	w, bit := global>>6, uint64(1)<<(global&63)
	for len(x.seen) <= w {
		x.seen = append(x.seen, 0)
	}
	a := &l.audiences[s.audience]
	switch {
	case x.seen[w]&bit != 0:
		l.report(x, message, "duplicate", "%s saw send %d, message %d in %s, a second time; the newest it had "+
			"seen was "+
			"message %d", x, no, message, a.name, x.last)
		return 0, false
	case !a.contains(x.person):
		l.report(x, message, "leak", "%s saw send %d, message %d in %s, but is not in its audience", x, no, message,
			a.name)
		return 0, false
	case message <= x.last:
		l.report(x, message, "reorder", "%s saw message %d (send %d, %s) after message %d (send %d)", x, message, no,
			a.name, x.last, x.lastSend)
	case s.message != 0 && s.message != message:
		l.report(x, message, "two ids", "send %d is message %d for another poller and message %d for %s", no, s.message,
			message, x)
	case s.state == sendRefused:
		l.report(x, message, "refused but seen", "send %d was refused, but %s saw it as message %d", no, x, message)
	}
	if s.plain && l.checkText && !bytes.Contains(content, fillerBytes) {
		l.report(x, message, "truncated", "%s saw send %d, message %d in %s, with a text that is not the one "+
			"sent: %.150q",
			x, no, message, a.name, content)
	}
	if s.seen == 0 && (s.due > 1 || s.base == 0) {
		s.base = l.now
	} else if late := l.now - s.base; l.lateLimit > 0 && late > l.lateLimit && x.lateAt != l.now {
		x.lateAt = l.now // the other messages of the same answer are late for the same reason
		l.report(x, message, "late", "%s saw send %d, message %d in %s, %v after it was acknowledged or another "+
			"poller "+
			"saw it", x, no, message, a.name, late.Round(time.Millisecond))
	}
	x.seen[w] |= bit
	x.last, x.lastSend = message, no
	s.message = message
	s.seen++
	l.seen++
	if s.state == sendPending || s.state == sendAcked {
		l.outstanding--
	}
	if s.seen == s.due && s.onSeen != nil {
		f := s.onSeen
		s.onSeen = nil
		f()
	}
	return s.intended, true
}

// recordRemote records a message event of a send of another agent. The audience of the send is checked at the end.
func (l *ledger) recordRemote(x *listener, message int64, no int, content []byte) (time.Duration, bool) {
	i := bytes.Index(content, l.marker) + len(l.marker)
	_, rest, _ := bytes.Cut(content[i:], []byte("x"))
	digits, _, _ := bytes.Cut(rest, []byte("x"))
	us, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		l.foreignMessages++
		return 0, false
	}
	switch {
	case x.has(no):
		l.report(x, message, "duplicate", "%s saw send %d of another agent, message %d, a second time", x, no, message)
		return 0, false
	case message <= x.last:
		l.report(x, message, "reorder", "%s saw message %d (send %d of another agent) after message %d", x, message, no,
			x.last)
	}
	if l.checkText && !bytes.Contains(content, fillerBytes) {
		l.report(x, message, "truncated", "%s saw send %d of another agent, message %d, with a text that is not "+
			"the one "+
			"sent: %.150q", x, no, message, content)
	}
	for len(x.seen) <= no>>6 {
		x.seen = append(x.seen, 0)
	}
	x.seen[no>>6] |= 1 << (no & 63)
	x.last, x.lastSend = message, no
	l.seen++
	return l.unstamp(us), true
}

// maxSends is larger than the number of sends of any run: a text with a larger number is not of this run.
const maxSends = 1 << 32

// sendNumber finds the number of a send in the text of a message, plain or rendered.
func (l *ledger) sendNumber(content []byte) (int, bool) {
	i := bytes.Index(content, l.marker)
	if i < 0 {
		return 0, false
	}
	n, any := 0, false
	for _, c := range content[i+len(l.marker):] {
		if c < '0' || c > '9' {
			return n, any && c == 'x'
		}
		if n, any = n*10+int(c-'0'), true; n > maxSends {
			return 0, false
		}
	}
	return 0, false
}

// allSeen reports whether all deliveries due have been seen.
func (l *ledger) allSeen() bool { return l.outstanding <= 0 }

// checkLost adds a violation for each send that a poller of its audience did not see. Call it after the last event.
func (l *ledger) checkLost() {
	for no := range l.sends {
		s := &l.sends[no]
		must := s.state == sendAcked || s.state == sendUnknown && s.seen > 0
		if !must || s.seen >= s.due {
			continue
		}
		a := &l.audiences[s.audience]
		for _, x := range l.listeners {
			if a.contains(x.person) && !x.has(l.global(no)) {
				how := "acknowledged"
				if s.state == sendUnknown {
					how = "unacknowledged but seen by other pollers"
				}
				l.report(x, s.message, "loss", "send %d, message %d in %s, %s, was not seen by %s; %d of %d "+
					"pollers saw "+
					"it; the newest message of this poller was %d", no, s.message, a.name, how, x, s.seen, s.due,
					x.last)
				break
			}
		}
	}
}

// addViolation records a violation that is not one of a single queue.
func (l *ledger) addViolation(kind, format string, args ...any) {
	l.report(nil, 0, kind, format, args...)
}

// report records a violation that the poller x found, with the id of its message, or 0.
func (l *ledger) report(x *listener, message int64, kind, format string, args ...any) {
	l.violationCount++
	l.violationsByKind[kind]++
	if l.violationsByKind[kind] > maxViolations {
		return
	}
	v := violation{Kind: kind, Text: fmt.Sprintf(format, args...), At: time.Now().UTC(), Message: message}
	if x != nil {
		v.Queue = x.queue
	}
	l.violations = append(l.violations, v)
}

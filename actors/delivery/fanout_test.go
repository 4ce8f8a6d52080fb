package delivery

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/realm"
	"parley/wire"
)

// bufferReply is a Reply that copies the answer into its own memory, as a connection does.
type bufferReply struct {
	out     []byte
	answers int
}

func (p *bufferReply) Answer(_ int, parts ...[]byte) bool {
	p.out = p.out[:0]
	for _, b := range parts {
		p.out = append(p.out, b...)
	}
	p.answers++
	return true
}

// singleNode is the node of a single server.
type singleNode struct{ Node }

func (singleNode) ReadOnly() bool { return false }

// fanout is one session actor with a queue and a poll for each of its users.
type fanout struct {
	sessionActor *sessionActor
	users        []realm.UserID
	polls        pollBatch
	replies      []bufferReply
	seq          realm.Seq
}

func newFanout(t testing.TB, n int) *fanout {
	t.Helper()
	all, began := &Sessions{Realm: 1}, time.Now()
	all.env = &Env{
		Protocol:  wire.SessionProtocol{Encodings: wire.NewEventEncodings()},
		Node:      singleNode{},
		Runtime:   mailbox.NewRuntime(nil),
		SinceOpen: func() time.Duration { return time.Since(began) },
		Metrics:   &Metrics{},
	}
	t.Cleanup(all.env.Runtime.Shutdown)
	all.Flow = newFlow(all.env, all)
	f := &fanout{sessionActor: newSessionActor(all, 0), replies: make([]bufferReply, n), seq: 1}
	state := f.sessionActor.open()
	for i := range n {
		q := realm.Queue{
			ID:         realm.QueueID(fmt.Sprintf("%036d", i)),
			User:       realm.UserID((i + 1) * SessionActors),
			At:         1,
			EventTypes: []string{"message"},
			Idle:       600,
		}
		f.sessionActor.openQueue(state, q, false, 0)
		f.users = append(f.users, q.User)
		f.polls = append(f.polls, &wire.PollRequest{
			Realm: 1,
			User:  q.User,
			Queue: q.ID,
			Last:  -1,
			Reply: &f.replies[i],
		})
	}
	return f
}

// round sends every user's poll and delivers one message to all.
func (f *fanout) round() {
	f.sessionActor.handlePolls(f.polls)
	f.seq++
	text := strings.Repeat("some text ", 20)
	e := &realm.MessageArrived{Message: realm.MessageInfo{
		ID:          realm.MessageID(f.seq),
		Channel:     1,
		ChannelName: "general",
		Topic:       "proof",
		Body:        &realm.Body{Text: text, HTML: "<p>" + text + "</p>"},
	}}
	f.sessionActor.deliver(&deliver{
		publications: []realm.Publication{{Seq: f.seq, Notices: []realm.Notice{{To: f.users, Event: e}}}},
	})
	for _, p := range f.polls {
		p.Last = int64(f.seq-1) << 8
	}
}

// The memory that delivering a message takes in a session actor does not depend on the number of recipients.
func TestFanoutAllocatesPerMessageOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector pools forget at random what they are given")
	}
	few, many := newFanout(t, 10), newFanout(t, 1000)
	for _, f := range []*fanout{few, many} {
		for range 3 {
			f.round()
		}
	}
	a, b := testing.AllocsPerRun(20, few.round), testing.AllocsPerRun(20, many.round)
	if b > a+20 {
		t.Errorf("%v allocations for 10 who hear, %v for 1,000", a, b)
	}
	for i := range many.replies {
		if p := &many.replies[i]; p.answers != 24 || !strings.Contains(string(p.out),
			fmt.Sprintf(`"id":%d}],"queue_id":"%036d"`, int64(many.seq-1)<<8, i)) {
			t.Fatalf("user %d was told %d times, at last %s", i, p.answers, p.out)
		}
	}
}

// BenchmarkFanout measures a delivery from poll to bytes, without connections: one session actor with 10,000 users. One
// operation is one delivery.
//
//	go test -run - -bench Fanout ./actors/delivery
func BenchmarkFanout(b *testing.B) {
	f := newFanout(b, 10_000)
	f.round()
	b.ReportAllocs()
	b.ResetTimer()
	for range max(1, b.N/len(f.users)) {
		f.round()
	}
}

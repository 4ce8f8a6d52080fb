package actors

import (
	"fmt"
	"strings"
	"testing"

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

// fanout is one session actor with a queue and a poll for each of its users.
type fanout struct {
	sessionActor *sessionActor
	realm        *sessionRealm
	users        []realm.UserID
	polls        pollBatch
	replies      []bufferReply
	seq          realm.Seq
}

func newFanout(t testing.TB, n int) *fanout {
	srv := openServer(t, &slowDisk{diskContents: newDiskContents()})
	createOrganization(t, srv, "ann")
	f := &fanout{sessionActor: newSessionActor(srv, 0), replies: make([]bufferReply, n), seq: 1}
	f.realm = f.sessionActor.realm(srv.find(1))
	for i := range n {
		q := realm.Queue{
			ID:         realm.QueueID(fmt.Sprintf("%036d", i)),
			User:       realm.UserID((i + 1) * SessionActors),
			At:         1,
			EventTypes: []string{"message"},
			Idle:       600,
		}
		f.sessionActor.openQueue(f.realm, q, false)
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
	f.sessionActor.deliver(&deliver{f.realm.handle,
		[]realm.Publication{{Seq: f.seq, Notices: []realm.Notice{{To: f.users, Event: e}}}}, 0, nil})
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
		defer closeServer(t, f.sessionActor.srv)
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
//	go test -run - -bench Fanout ./actors
func BenchmarkFanout(b *testing.B) {
	f := newFanout(b, 10_000)
	defer closeServer(b, f.sessionActor.srv)
	f.round()
	b.ReportAllocs()
	b.ResetTimer()
	for range max(1, b.N/len(f.users)) {
		f.round()
	}
}

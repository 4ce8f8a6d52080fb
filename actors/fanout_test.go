package actors

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

// bufferReply is a Reply that writes the answer into memory of its own, as a connection does.
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

// fanout is one session actor with a queue for each of its users, and their polls.
type fanout struct {
	s       *shard
	r       *shardRealm
	users   []realm.UserID
	polls   pollBatch
	replies []bufferReply
	seq     realm.Seq
}

func newFanout(t testing.TB, n int) *fanout {
	h := openServer(t, &slowDisk{diskContents: newDiskContents()})
	createOrganization(t, h, "ann")
	c := &fanout{s: newShard(h, 0), replies: make([]bufferReply, n), seq: 1}
	c.r = c.s.realm(h.find(1))
	for i := range n {
		q := realm.Queue{ID: realm.QueueID(fmt.Sprintf("%036d", i)), User: realm.UserID((i + 1) * Shards), At: 1, EventTypes: []string{"message"}, Idle: 600}
		c.s.openQueue(c.r, q, false)
		c.users = append(c.users, q.User)
		c.polls = append(c.polls, &wire.PollRequest{Realm: 1, User: q.User, Queue: q.ID, Last: -1, Reply: &c.replies[i]})
	}
	return c
}

// round has everybody poll and hear of one message.
func (c *fanout) round() {
	c.s.handlePolls(c.polls)
	c.seq++
	text := strings.Repeat("some text ", 20)
	e := &realm.MessageArrived{Message: realm.MessageInfo{ID: realm.MessageID(c.seq), Channel: 1, ChannelName: "general", Topic: "proof", Body: &realm.Body{Text: text, HTML: "<p>" + text + "</p>"}}}
	c.s.deliver(&deliver{c.r.handle, []realm.Told{{Seq: c.seq, Notices: []realm.Notice{{To: c.users, Event: e}}}}, 0})
	for _, p := range c.polls {
		p.Last = int64(c.seq-1) << 8
	}
}

// Whatever memory a message takes on its way through a session actor, it does not grow with those who hear of it.
func TestFanoutAllocatesPerMessageOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector pools forget at random what they are given")
	}
	few, many := newFanout(t, 10), newFanout(t, 1000)
	for _, c := range []*fanout{few, many} {
		defer closeServer(t, c.s.h)
		for range 3 {
			c.round()
		}
	}
	a, b := testing.AllocsPerRun(20, few.round), testing.AllocsPerRun(20, many.round)
	if b > a+20 {
		t.Errorf("%v allocations for 10 who hear, %v for 1,000", a, b)
	}
	for i := range many.replies {
		if p := &many.replies[i]; p.answers != 24 || !strings.Contains(string(p.out), fmt.Sprintf(`"id":%d}],"queue_id":"%036d"`, int64(many.seq-1)<<8, i)) {
			t.Fatalf("user %d was told %d times, at last %s", i, p.answers, p.out)
		}
	}
}

// BenchmarkFanout is a delivery from poll to bytes, without connections: one session actor, 10,000 users. One operation is
// one delivery.
//
//	go test -run - -bench Fanout ./actors
func BenchmarkFanout(b *testing.B) {
	c := newFanout(b, 10_000)
	defer closeServer(b, c.s.h)
	c.round()
	b.ReportAllocs()
	b.ResetTimer()
	for range max(1, b.N/len(c.users)) {
		c.round()
	}
}

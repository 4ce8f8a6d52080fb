package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"parley/actors/realm"
	"parley/snapshot/codec"
)

// boards is the stage of a tale: mailboxes that are served when the tale says so.
type boards struct {
	random *rand.Rand
	boxes  map[string]*box
	order  []*box
	works  []func()
	drawn  int
}

type box struct {
	id    *actor.PID
	actor actor.Actor
	mail  []any
}

// served is the context of one message: all that our actors ask of it.
type served struct {
	actor.Context
	self    *actor.PID
	message any
}

func (s served) Self() *actor.PID { return s.self }
func (s served) Message() any     { return s.message }

func (b *boards) spawn(a actor.Actor) *actor.PID {
	x := &box{id: actor.NewPID("tale", strconv.Itoa(len(b.order))), actor: a}
	b.boxes[x.id.Id] = x
	b.order = append(b.order, x)
	return x.id
}

func (b *boards) spawnSession(a actor.Actor) *actor.PID { return b.spawn(a) }

func (b *boards) send(to *actor.PID, m any) {
	x := b.boxes[to.Id]
	x.mail = append(x.mail, m)
}

func (b *boards) work(do func()) { b.works = append(b.works, do) }
func (*boards) end()             {}

func (b *boards) token(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[b.random.IntN(len(letters))]
	}
	return string(out)
}

func (b *boards) uuid() string {
	b.drawn++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", b.random.Uint64()>>16)
}

func (b *boards) dice(sides int64) int64 { return b.random.Int64N(sides) }

// serve hands one message over, or lets one piece of work beside the actors finish; false: there is nothing to do.
func (b *boards) serve() bool {
	var waiting []*box
	for _, x := range b.order {
		if len(x.mail) > 0 {
			waiting = append(waiting, x)
		}
	}
	n := len(waiting) + len(b.works)
	if n == 0 {
		return false
	}
	i := b.random.IntN(n)
	if i >= len(waiting) {
		i -= len(waiting)
		do := b.works[i]
		b.works = slices.Delete(b.works, i, i+1)
		do()
		return true
	}
	waiting[i].next()
	return true
}

func (x *box) next() {
	m := x.mail[0]
	x.mail = x.mail[1:]
	x.actor.Receive(served{self: x.id, message: m})
}

// taleDisk remembers every fact that ever reached it, also those that rows took over.
type taleDisk struct {
	*slowDisk
	history *[][]byte
}

func (d taleDisk) Append(batches []realm.Batch) error {
	if d.dead {
		return nil
	}
	if err := d.slowDisk.Append(batches); err != nil {
		return err
	}
	for _, b := range batches {
		*d.history = append(*d.history, b.Facts...)
	}
	return nil
}

// taleBase is what every tale begins with: four people, an open channel and one of two of them.
type taleBase struct {
	rows   map[string]realm.EncodedRow
	at     realm.Seq
	people []realm.UserID
	open   realm.ChannelID
	closed realm.ChannelID
}

const taleBegan = 1_700_000_000

func newTaleBase(t *testing.T) *taleBase {
	b, r := &boards{random: rand.New(rand.NewPCG(1, 1))}, realm.New(1)
	base := &taleBase{rows: map[string]realm.EncodedRow{}}
	moment := realm.Moment{Now: taleBegan, Token: b.token, UUID: b.uuid, Hash: HashKey, Key: func(u realm.UserID, epoch int64) string { return fmt.Sprint("key ", u, epoch) }}
	r.Clock(taleBegan)
	play := func(u realm.UserID, decide func(*realm.Turn) (any, error)) any {
		a, _, _, err := realm.Play(r, realm.Caller{User: u, System: u == 0, Client: "test"}, moment, decide)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	play(0, func(t *realm.Turn) (any, error) { return realm.FoundRealm{Name: "Tale"}.Decide(t) })
	for _, n := range []string{"ann", "bo", "cy", "di"} {
		c := realm.JoinUser{Email: n + "@example.org", Name: n, Role: realm.Member, Key: n, First: n == "ann", NoDefaults: true}
		base.people = append(base.people, play(0, func(t *realm.Turn) (any, error) { return c.Decide(t) }).(realm.UserID))
	}
	channel := func(name string, private bool, people []realm.UserID) realm.ChannelID {
		c := realm.Subscribe{Channels: []realm.Joining{{Name: name}}, New: realm.NewChannel{Private: private}}
		for _, u := range people {
			c.Principals = append(c.Principals, realm.Principal{ID: u})
		}
		return play(people[0], func(t *realm.Turn) (any, error) { return c.Decide(t) }).(realm.Joined).Created[0]
	}
	base.open, base.closed = channel("open", false, base.people), channel("closed", true, base.people[:2])
	base.at = r.Seq()
	r.Each(func(table uint16, key, row any) {
		e := realm.EncodedRow{Table: table, Key: codec.Key(key), Value: codec.Row(row)}
		base.rows[fmt.Sprintf("%d %x", table, e.Key)] = e
	})
	return base
}

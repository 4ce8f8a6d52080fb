package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"parley/actors/mailbox"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// simRuntime is the runtime of a seeded run: it handles one message at a time, in a random order of the actors.
type simRuntime struct {
	random     *rand.Rand
	mailboxes  map[mailbox.Address]*simMailbox
	order      []*simMailbox
	background []func()
	uuids      int
}

type simMailbox struct {
	id       mailbox.Address
	actor    mailbox.Actor
	messages []any
}

func (r *simRuntime) Spawn(a mailbox.Actor) mailbox.Address {
	m := &simMailbox{id: mailbox.NewAddress(strconv.Itoa(len(r.order))), actor: a}
	r.mailboxes[m.id] = m
	r.order = append(r.order, m)
	return m.id
}

func (r *simRuntime) SessionSpawner() func(mailbox.Actor) mailbox.Address { return r.Spawn }

func (r *simRuntime) Send(to mailbox.Address, m any) {
	x := r.mailboxes[to]
	x.messages = append(x.messages, m)
}

func (r *simRuntime) RunInBackground(do func()) { r.background = append(r.background, do) }
func (*simRuntime) Shutdown()                   {}
func (*simRuntime) Stop(mailbox.Address)        {}

func (r *simRuntime) After(_ time.Duration, do func()) { r.RunInBackground(do) }

func (r *simRuntime) Token(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	out := make([]byte, n)
	for i := range out {
		out[i] = letters[r.random.IntN(len(letters))]
	}
	return string(out)
}

func (r *simRuntime) UUID() string {
	r.uuids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", r.random.Uint64()>>16)
}

func (r *simRuntime) RandomBelow(sides int64) int64 { return r.random.Int64N(sides) }

// runOne lets a random actor handle its next message, or runs a random background function. It reports false if there
// is nothing to do.
func (r *simRuntime) runOne() bool {
	var waiting []*simMailbox
	for _, m := range r.order {
		if len(m.messages) > 0 {
			waiting = append(waiting, m)
		}
	}
	n := len(waiting) + len(r.background)
	if n == 0 {
		return false
	}
	i := r.random.IntN(n)
	if i >= len(waiting) {
		i -= len(waiting)
		do := r.background[i]
		r.background = slices.Delete(r.background, i, i+1)
		do()
		return true
	}
	waiting[i].receiveNext()
	return true
}

func (x *simMailbox) receiveNext() {
	m := x.messages[0]
	x.messages = x.messages[1:]
	x.actor.Receive(m)
}

// seededDisk keeps every batch that was ever appended, also those whose facts are in the rows now, and passes it to a
// follower in another process.
type seededDisk struct {
	*slowDisk
	history  *[][]byte
	follower *seededFollower
}

// seededFollower is a replica of the organization that only follows. It goes on when the server crashes.
type seededFollower struct {
	realm        *realm.Realm
	publications []realm.Publication
}

// follow applies a batch as it arrives over a link.
func (f *seededFollower) follow(data []byte) error {
	b, err := codec.DecodeBatch(data)
	if err != nil {
		return err
	}
	facts, err := codec.DecodeFacts(&b)
	if err != nil {
		return err
	}
	f.realm.SetClock(b.Now + 30*86400) // its own clock is wrong
	publications, err := f.realm.Follow(b, facts)
	f.publications = append(f.publications, publications...)
	return err
}

func (d seededDisk) Append(batches []realm.Batch) []error {
	if d.dead {
		return make([]error, len(batches))
	}
	errs := d.slowDisk.Append(batches)
	for i, b := range batches {
		if errs[i] != nil {
			continue
		}
		data := codec.EncodeBatch(&b)
		*d.history = append(*d.history, data)
		errs[i] = d.follower.follow(data)
	}
	return errs
}

// seededBase is the organization that every seeded run begins with: four users, a public channel, and a private channel
// of two of them.
type seededBase struct {
	rows   map[string]realm.EncodedRow
	at     realm.Seq
	people []realm.UserID
	open   realm.ChannelID
	closed realm.ChannelID
}

const seededStart = 1_700_000_000

func newSeededBase(t *testing.T) *seededBase {
	b, r := &simRuntime{random: rand.New(rand.NewPCG(1, 1))}, realm.New(1)
	base := &seededBase{rows: map[string]realm.EncodedRow{}}
	moment := realm.TurnEnv{
		Now:    seededStart,
		Token:  b.Token,
		UUID:   b.UUID,
		Hash:   HashKey,
		APIKey: func(u realm.UserID, epoch int64) string { return fmt.Sprint("key ", u, epoch) },
	}
	r.SetClock(seededStart)
	play := func(u realm.UserID, decide func(*realm.Turn) (any, error)) any {
		a, _, _, err := realm.RunTurn(r, realm.Caller{User: u, System: u == 0, Client: "test"}, moment, decide)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	play(0, func(t *realm.Turn) (any, error) { return realm.FoundRealm{Name: "Tale"}.Decide(t) })
	for _, n := range []string{"ann", "bo", "cy", "di"} {
		c := realm.CreateUser{
			Email:      n + "@example.org",
			Name:       n,
			Role:       realm.Member,
			Key:        n,
			First:      n == "ann",
			NoDefaults: true,
		}
		base.people = append(base.people,
			play(0, func(t *realm.Turn) (any, error) { return c.Decide(t) }).(realm.UserID))
	}
	channel := func(name string, private bool, people []realm.UserID) realm.ChannelID {
		c := realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: name}}, New: realm.NewChannel{Private: private}}
		for _, u := range people {
			c.Principals = append(c.Principals, realm.Principal{ID: u})
		}
		return play(people[0],
			func(t *realm.Turn) (any, error) { return c.Decide(t) }).(realm.SubscribeResult).Created[0]
	}
	base.open, base.closed = channel("open", false, base.people), channel("closed", true, base.people[:2])
	base.at = r.Seq()
	r.EachRow(func(table uint16, key, row any) {
		e := realm.EncodedRow{Table: table, Key: codec.EncodeKey(key), Value: codec.EncodeRow(row)}
		base.rows[fmt.Sprintf("%d %x", table, e.Key)] = e
	})
	return base
}

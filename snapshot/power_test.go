package snapshot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// TestPowerLoss runs small seeded workloads. Before every write, sync, creation, rename and removal of a file it clones
// the disk as after a power loss, with none, half or all of the unsynced data. Each clone must open with everything
// that was acknowledged; the running step may have happened or not. One run in eight, the second one of each eight,
// is an organization with its queues; the others use the store alone.
//
// SEED selects the first run and N the number of power losses. Pebble's background flushes depend on timing, so a seed
// repeats the steps but not each single loss.
func TestPowerLoss(t *testing.T) {
	n, seed := envInt("N", 600), uint64(envInt("SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("SEED=%d", seed)
	began, runs, bare, whole, shown := time.Now(), 0, 0, 0, 0
	for ; bare+whole < n && !t.Failed(); runs++ {
		seed, percent := seed+uint64(runs), []int{0, 50, 100}[runs%3]
		if runs%8 == 1 {
			whole += losePowerOfOrganization(t, seed, percent)
		} else {
			bare += losePowerOfStore(t, seed, percent)
		}
		if bare+whole >= 100_000*(shown+1) {
			shown++
			t.Logf("%d so far, in %v", bare+whole, time.Since(began).Round(time.Second))
		}
		if t.Failed() {
			t.Fatalf("repeat with SEED=%d N=1, %d%% of unsynced data", seed, percent)
		}
	}
	took := time.Since(began)
	t.Logf("%d power losses (%d of a bare store, %d of an organization) in %d runs, %.0f a second",
		bare+whole, bare, whole, runs, float64(bare+whole)/took.Seconds())
}

// storeSteps and orgSteps are the steps of a run: enough for flushes and staged snapshots, and few enough that a clone
// of the disk stays small.
const storeSteps, orgSteps = 30, 25

func losePowerOfStore(t *testing.T, seed uint64, percent int) int {
	points := crashPoints(t, seed, storeSteps, 1<<30, percent)
	for i, p := range points {
		if i%32 == int(seed%32) {
			p.verify(t, seed, i)
			continue
		}
		s, err := Open("data", crashOptions(p.disk))
		if err != nil {
			t.Errorf("seed %d, loss %d before %s, in step %d: %v", seed, i, p.op, p.after, err)
			continue
		}
		if got := dumpStore(s); !slices.Contains(p.history[p.before:p.after+1], got) {
			t.Errorf("seed %d, loss %d before %s, in step %d: %s",
				seed, i, p.op, p.after, difference(got, p.history[p.before]))
		}
		s.closeUnflushed()
	}
	return len(points)
}

// closeUnflushed closes a store that is not needed any more, without writing anything.
func (s *Store) closeUnflushed() {
	s.fail(errSeenEnough)
	s.Close()
}

var errSeenEnough = errors.New("seen enough")

// organization is an organization in a store. It does what its actors would do, one step at a time.
type organization struct {
	t            *testing.T
	random       *rand.Rand
	disk         Disk
	realm        *realm.Realm
	epoch        uint64
	count        int
	unacked      map[realm.Seq]string // encoded events of every fact
	unackedSaved realm.Seq            // events up to this number are in the rows
	digests      map[realm.Seq]string
	texts        map[realm.Seq]map[realm.BodyRef]string
	users        []realm.UserID
	messages     []realm.MessageID
	queues       []realm.QueueID
}

func losePowerOfOrganization(t *testing.T, seed uint64, percent int) int {
	var mu sync.Mutex
	var points []organizationCrashPoint
	o := &organization{
		t:       t,
		random:  rand.New(rand.NewPCG(seed, 2)),
		realm:   realm.New(1),
		unacked: map[realm.Seq]string{},
		digests: map[realm.Seq]string{},
		texts:   map[realm.Seq]map[realm.BodyRef]string{0: {}},
	}
	o.digests[0] = StateDigest(o.realm).String()
	var begun, answered realm.Seq
	disk, rng := vfs.NewCrashableMem(), rand.New(rand.NewPCG(seed, uint64(percent)))
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isWrite(op) {
			mu.Lock()
			p := organizationCrashPoint{what: fmt.Sprintf("%v %s", op.Kind, op.Path), answered: answered}
			p.disk = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
			p.begun = begun
			points = append(points, p)
			mu.Unlock()
		}
		return nil
	}))
	s, err := Open("data", crashOptions(fs))
	if err != nil {
		t.Fatal(err)
	}
	o.disk = Disk{Store: s}
	claimed, err := o.disk.Claim(1, AnyEpoch)
	if err != nil {
		t.Fatal(err)
	}
	o.epoch = claimed.Epoch
	for range orgSteps {
		batch := o.step()
		mu.Lock()
		begun = o.realm.Seq()
		mu.Unlock()
		if len(batch.Facts) > 0 {
			if err := errors.Join(o.disk.Append([]realm.Batch{batch})...); err != nil {
				t.Fatal(err)
			}
		}
		mu.Lock()
		answered = begun
		mu.Unlock()
		if o.random.IntN(6) == 0 {
			o.snapshot()
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for i, p := range points {
		if err := o.checkRecovery(p); err != nil {
			t.Errorf("seed %d, loss %d before %s, with %d to %d on disk: %v", seed, i, p.what, p.answered, p.begun, err)
		}
	}
	return len(points)
}

type organizationCrashPoint struct {
	what            string
	disk            *vfs.MemFS
	answered, begun realm.Seq
}

// step runs one turn and returns its facts, which the caller writes.
func (o *organization) step() realm.Batch {
	o.count++
	text := fmt.Sprintf("text %d", o.count)
	someone := func() realm.UserID { return o.users[o.random.IntN(len(o.users))] }
	switch {
	case o.count == 1:
		return runCommand(o, 0, realm.FoundRealm{Name: "Power"})
	case len(o.users) < 3:
		return runCommand(o, 0, realm.CreateUser{
			Name:       text,
			Email:      fmt.Sprintf("p%d@example.org", o.count),
			Role:       realm.Member,
			Key:        text,
			NoDefaults: true,
		})
	case o.count == 5:
		return runCommand(o, o.users[0],
			realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "open"}}, Principals: principals(o.users...)})
	case o.count == 6:
		return runCommand(o, o.users[0], realm.Subscribe{
			Channels:   []realm.ChannelToJoin{{Name: "closed"}},
			Principals: principals(o.users[:2]...),
			New:        realm.NewChannel{Private: true},
		})
	}
	switch k := o.random.IntN(12); {
	case k == 0 || len(o.queues) == 0:
		return runCommand(o, someone(),
			realm.Register{State: func(realm.View, *realm.Queue) (any, error) { return nil, nil }})
	case k == 1 && len(o.queues) > 1:
		return runCommand(o, 0, realm.CloseQueue{ID: o.queues[o.random.IntN(len(o.queues))]})
	case k == 2 && len(o.messages) > 0:
		message := o.messages[o.random.IntN(len(o.messages))]
		return runCommand(o, someone(), realm.AddReaction{Message: message, Name: "wave"})
	case k == 3 && len(o.messages) > 0:
		return runCommand(o, o.users[0], realm.DeleteMessage{Message: o.messages[o.random.IntN(len(o.messages))]})
	case k == 4:
		return runCommand(o, someone(), realm.Unsubscribe{Names: []string{"open"}})
	case k == 5:
		return runCommand(o, someone(), realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "open"}}})
	case k == 6 && len(o.messages) > 0:
		return runCommand(o, someone(), realm.Flag{Messages: o.messages, Op: "add", Flag: "read"})
	}
	return runCommand(o, someone(), realm.SendMessage{
		ToChannel:   true,
		ChannelName: []string{"open", "closed"}[o.random.IntN(2)],
		Topic:       "t",
		Body:        realm.Body{Text: text, HTML: text},
	})
}

func principals(users ...realm.UserID) (out []realm.Principal) {
	for _, u := range users {
		out = append(out, realm.Principal{ID: u})
	}
	return out
}

// runCommand runs a turn. A refused command changes nothing.
func runCommand[A any](o *organization, u realm.UserID, c realm.Command[A]) realm.Batch {
	now := 1_700_000_000 + int64(o.count)
	b := realm.Batch{Realm: 1, Epoch: o.epoch, After: o.realm.Seq(), Level: o.realm.Level(), Now: now}
	token := func(n int) string {
		t := make([]byte, n)
		for i := range t {
			t[i] = byte('a' + o.random.IntN(26))
		}
		return string(t)
	}
	env := realm.TurnEnv{
		Now:    now,
		Token:  token,
		UUID:   func() string { return token(32) },
		Hash:   func(s string) (h [32]byte) { copy(h[:], s); return h },
		APIKey: func(u realm.UserID, epoch int64) string { return fmt.Sprint("key ", u, epoch) },
	}
	o.realm.SetClock(env.Now)
	a, facts, notices, err := realm.RunTurn(o.realm, realm.Caller{User: u, System: u == 0, Client: "test"}, env,
		c.Decide)
	if err != nil {
		return b
	}
	switch x := any(a).(type) {
	case realm.UserID:
		o.users = append(o.users, x)
	case realm.SendResult:
		o.messages = append(o.messages, x.ID)
	case realm.Registered:
		o.queues = append(o.queues, x.Queue.ID)
	}
	if c, ok := any(c).(realm.CloseQueue); ok {
		o.queues = slices.DeleteFunc(o.queues, func(q realm.QueueID) bool { return q == c.ID })
	}
	if c, ok := any(c).(realm.DeleteMessage); ok {
		o.messages = slices.DeleteFunc(o.messages, func(m realm.MessageID) bool { return m == c.Message })
	}
	texts := map[realm.BodyRef]string{}
	for ref, text := range o.texts[b.After] {
		texts[ref] = text
	}
	for _, f := range facts {
		b.Facts = append(b.Facts, codec.EncodeFact(f))
		if w, ok := f.(realm.TextWriter); ok {
			for ref, body := range w.Bodies() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref, Body: body})
				texts[ref] = body.Text
			}
		}
		if e, ok := f.(realm.TextEraser); ok {
			for _, ref := range e.Erased() {
				b.Texts = append(b.Texts, realm.TextWrite{Ref: ref})
				delete(texts, ref)
			}
		}
	}
	for _, x := range notices {
		if !x.Ephemeral {
			o.unacked[x.Seq] = describePublication(x)
		}
	}
	o.digests[o.realm.Seq()], o.texts[o.realm.Seq()] = StateDigest(o.realm).String(), texts
	return b
}

// describePublication returns the notices of a fact as comparable text.
func describePublication(t realm.Publication) string {
	x := realm.Publication{Seq: t.Seq}
	for _, n := range t.Notices {
		if n.Event.EventType() != "" {
			x.Notices = append(x.Notices, n)
		}
	}
	if len(x.Notices) == 0 {
		return ""
	}
	return string(codec.EncodeUnacked(x))
}

// snapshot writes the changed rows and the notices of the facts since the last one, which no queue has acknowledged.
func (o *organization) snapshot() {
	var rows []realm.EncodedRow
	cut := o.realm.BeginSnapshot(
		func(table uint16, key, row any) { rows = append(rows, o.disk.EncodeRow(table, key, row)) },
	)
	cut.NextRows(func() bool { return false })
	for seq := o.unackedSaved + 1; seq <= cut.Seq; seq++ {
		if k := o.unacked[seq]; k != "" {
			rows = append(rows,
				realm.EncodedRow{Table: realm.UnackedEventsTable, Key: codec.UnackedKey(seq), Value: []byte(k)})
		}
	}
	o.unackedSaved = cut.Seq
	if err := o.disk.WriteRows(1, o.epoch, cut.Seq, rows); err != nil {
		o.t.Fatal(err)
	}
}

// checkRecovery loads the organization from the disk after a loss, as at a start, and compares it.
func (o *organization) checkRecovery(p organizationCrashPoint) error {
	s, err := Open("data", crashOptions(p.disk))
	if err != nil {
		return err
	}
	defer s.closeUnflushed()
	d := Disk{Store: s}
	rows, last, err := d.Bounds(1)
	if err != nil {
		return err
	}
	if last < p.answered || last > p.begun {
		return fmt.Errorf("the journal ends at %d", last)
	}
	r := realm.New(1)
	unacked, err := d.Load(1, r, presence.New())
	if err != nil {
		return err
	}
	r.SetSeq(rows, realm.RunSequentially)
	notices := map[realm.Seq]string{}
	for _, t := range unacked {
		notices[t.Seq] = describePublication(t)
	}
	err = d.Tail(1, rows, func(x realm.Record) error {
		notices[x.Seq] = describePublication(r.ReplayAt(x.Fact, x.Now, x.Level))
		return nil
	})
	if err != nil {
		return err
	}
	if got, want := StateDigest(r).String(), o.digests[last]; got != want {
		return fmt.Errorf("state is\n%s, want\n%s", got, want)
	}
	for seq := realm.Seq(1); seq <= last; seq++ {
		if notices[seq] != o.unacked[seq] {
			return fmt.Errorf("fact %d has other notices", seq)
		}
	}
	texts := map[realm.BodyRef]string{}
	err = d.EachText(1, func(ref realm.BodyRef, body func() (realm.Body, error)) error {
		b, err := body()
		texts[ref] = b.Text
		return err
	})
	if err != nil {
		return err
	}
	if fmt.Sprint(texts) != fmt.Sprint(o.texts[last]) {
		return fmt.Errorf("texts are %v, want %v", texts, o.texts[last])
	}
	return nil
}

package realmtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/actors/calendar"
	"parley/actors/realm"
	"parley/snapshot/codec"
)

// StartTime is the time at which a scene starts, in Unix seconds.
const StartTime = 1_700_000_000

// System is the caller of commands that the server itself runs.
const System realm.UserID = 0

// Scene is an organization and the notices of its last command. Users created with Join have an event queue.
type Scene struct {
	T     testing.TB
	Realm *realm.Realm
	Now   int64 // Unix seconds
	// Pushes says that a push notification service is configured.
	PushEnabled bool
	// Bouncer says that this service is a push bouncer, which has to know the devices.
	PushBouncer bool
	// Mails says that emails about missed messages are enabled.
	EmailEnabled bool

	follower     *realm.Realm // applies every batch right after the turn
	recorded     []recordedBatch
	applied      []appliedFact
	saved        map[rowKey]savedRow // rows of all snapshots so far, as on disk
	publications []realm.Publication // of the last command
	tokens       int                 // number of the last token or UUID
	texts        map[realm.BodyRef]realm.Body
}

// recordedBatch is the encoded batch of one turn, and the encoded notices of each of its facts.
type recordedBatch struct {
	batch   []byte
	notices map[realm.Seq][]any
}

// rowKey identifies a row: its table and its encoded key.
type rowKey struct {
	table uint16
	key   string
}

// savedRow is an encoded row with its encoded key.
type savedRow struct{ key, row []byte }

// appliedFact is a fact that was decoded from a batch and applied.
type appliedFact struct {
	seq     realm.Seq
	fact    realm.Fact
	encoded []byte
}

// New founds an organization. The scene checks recovery when the test ends, unless the test has failed.
func New(t testing.TB) *Scene {
	s := &Scene{T: t, Realm: realm.New(1), follower: realm.New(1), Now: StartTime, saved: map[rowKey]savedRow{},
		texts: map[realm.BodyRef]realm.Body{}}
	Do(s, System, realm.FoundRealm{Name: "Scene"})
	t.Cleanup(func() {
		if !t.Failed() {
			s.checkRecovery()
		}
	})
	return s
}

// Advance moves the scene's clock forward.
func (s *Scene) Advance(seconds int64) { s.Now += seconds }

// Join creates an account and opens a queue for it. Without a role the user is a member.
func (s *Scene) Join(name string, role ...realm.Role) realm.UserID {
	s.T.Helper()
	c := realm.CreateUser{Name: name, Email: emailName(name) + "@example.com"}
	if len(role) > 0 {
		c.Role = role[0]
	}
	u := Do(s, System, c)
	s.OpenQueue(u)
	return u
}

// JoinBot creates a generic bot of a user and opens a queue for it.
func (s *Scene) JoinBot(name string, owner realm.UserID) realm.UserID {
	s.T.Helper()
	u := Do(s, System, realm.CreateUser{Name: name, Email: emailName(name) + "-bot@example.com",
		Role: realm.Member, Bot: realm.GenericBot, BotOwner: owner})
	s.OpenQueue(u)
	return u
}

func emailName(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", ".")) }

// OpenQueue opens a queue that gets all events, for a client that supports everything.
func (s *Scene) OpenQueue(u realm.UserID) realm.QueueID {
	s.T.Helper()
	noState := func(realm.View, *realm.Queue) (any, error) { return nil, nil }
	r := Do(s, u, realm.Register{Queue: realm.Queue{Caps: 1<<12 - 1, Subscribers: "true"}, State: noState})
	return r.Queue.ID
}

// ViewAs returns the organization as a user may see it.
func (s *Scene) ViewAs(u realm.UserID) realm.View {
	s.Realm.SetClock(s.Now)
	return s.Realm.ViewAs(callerOf(u), s.Now)
}

func callerOf(u realm.UserID) realm.Caller {
	return realm.Caller{User: u, Client: "scene", System: u == System}
}

// turnEnv returns the inputs of a turn. Tokens and ids are counted, so that they are the same in every run.
func (s *Scene) turnEnv() realm.TurnEnv {
	return realm.TurnEnv{
		Now: s.Now, PushEnabled: s.PushEnabled, PushBouncer: s.PushBouncer, EmailEnabled: s.EmailEnabled,
		Token: func(n int) string {
			s.tokens++
			return fmt.Sprintf("%0*d", n, s.tokens)
		},
		UUID: func() string {
			s.tokens++
			return fmt.Sprintf("00000000-0000-4000-8000-%012d", s.tokens)
		},
		NextRepeat:      calendar.Next,
		APIKey:          func(u realm.UserID, epoch int64) string { return fmt.Sprintf("key-%d-%d", u, epoch) },
		InviteLinkToken: func(id int64) string { return fmt.Sprintf("link-%d", id) },
		Hash: func(secret string) (h [32]byte) {
			copy(h[:], secret)
			return h
		},
	}
}

// Try runs a command and returns its answer and error.
func Try[A any](s *Scene, u realm.UserID, c realm.Command[A]) (A, error) {
	return RunTurn(s, u, c.Decide)
}

// RunTurn is Try for a function instead of a command, such as the result of Realm.Due.
func RunTurn[A any](s *Scene, u realm.UserID, decide func(*realm.Turn) (A, error)) (A, error) {
	return runTurnAs(s, callerOf(u), decide)
}

// DoAs is Do for a caller with credentials.
func DoAs[A any](s *Scene, c realm.Caller, cmd realm.Command[A]) A {
	s.T.Helper()
	a, err := runTurnAs(s, c, cmd.Decide)
	if err != nil {
		s.T.Fatalf("%T by user %d: %v", cmd, c.User, err)
	}
	return a
}

// TryAs is Try for a caller with credentials.
func TryAs[A any](s *Scene, c realm.Caller, cmd realm.Command[A]) (A, error) {
	return runTurnAs(s, c, cmd.Decide)
}

func runTurnAs[A any](s *Scene, c realm.Caller, decide func(*realm.Turn) (A, error)) (A, error) {
	s.Realm.SetClock(s.Now)
	a, facts, publications, err := realm.RunTurn(s.Realm, c, s.turnEnv(), decide)
	s.publications = publications
	if len(facts) == 0 {
		return a, err
	}
	encode := func(f realm.Fact) []byte { return codec.EncodeFact(f) }
	b := realm.NewBatch(s.Realm, 1, facts, encode)
	x := recordedBatch{batch: codec.EncodeBatch(&b), notices: map[realm.Seq][]any{}}
	for _, t := range publications {
		if !t.Ephemeral {
			x.notices[t.Seq] = encodeNotices(t)
		}
	}
	for _, w := range b.Texts {
		if delete(s.texts, w.Ref); w.Body != nil {
			s.texts[w.Ref] = *w.Body
		}
	}
	s.recorded = append(s.recorded, x)
	s.follow("follower", s.follower, x)
	return a, err
}

// Text returns a version of a message's text as it is on disk, or none if it was erased.
func (s *Scene) Text(ref realm.BodyRef) realm.Body { return s.texts[ref] }

// Do runs a command and returns its answer. A refusal fails the test.
func Do[A any](s *Scene, u realm.UserID, c realm.Command[A]) A {
	s.T.Helper()
	a, err := Try(s, u, c)
	if err != nil {
		s.T.Fatalf("%T by user %d refused: %v", c, u, err)
	}
	return a
}

// ExpectRefusal runs a command that must be refused with this text or code, without recording a fact.
func ExpectRefusal[A any](s *Scene, u realm.UserID, c realm.Command[A], want string) {
	s.T.Helper()
	before := s.Realm.Seq()
	_, err := Try(s, u, c)
	var r *realm.Refusal
	if !errors.As(err, &r) {
		s.T.Fatalf("%T by user %d: got %v, want the refusal %q", c, u, err, want)
	}
	if r.Msg != want && r.Code != want {
		s.T.Fatalf("%T by user %d: refused as %s %q, want %q", c, u, r.Code, r.Msg, want)
	}
	if s.Realm.Seq() != before {
		s.T.Fatalf("%T by user %d was refused after it recorded facts", c, u)
	}
}

// ListEvents returns the events that a user got from the last command, in order.
func (s *Scene) ListEvents(u realm.UserID) []realm.Event {
	var out []realm.Event
	for _, t := range s.publications {
		for _, n := range t.Notices {
			for _, to := range n.To {
				if to == u && n.Event.EventType() != "" {
					out = append(out, n.Event)
				}
			}
		}
	}
	return out
}

// ListEventsOf returns the events of one Go type that a user got from the last command, in order.
func ListEventsOf[E realm.Event](s *Scene, u realm.UserID) []E {
	var out []E
	for _, e := range s.ListEvents(u) {
		if x, ok := e.(E); ok {
			out = append(out, x)
		}
	}
	return out
}

// ExpectEvents requires that a user got exactly these types of events from the last command, in this order.
func (s *Scene) ExpectEvents(u realm.UserID, types ...string) {
	s.T.Helper()
	got := []string{}
	for _, e := range s.ListEvents(u) {
		got = append(got, e.EventType())
	}
	if strings.Join(got, " ") != strings.Join(types, " ") {
		s.T.Fatalf("user %d got the events %v, want %v", u, got, types)
	}
}

// ExpectNoEvents requires that these users got no events from the last command.
func (s *Scene) ExpectNoEvents(users ...realm.UserID) {
	s.T.Helper()
	for _, u := range users {
		s.ExpectEvents(u)
	}
}

// Restart replaces the organization by one loaded from a snapshot, as after a restart of the server.
func (s *Scene) Restart() {
	s.T.Helper()
	s.Realm = s.loadSnapshot()
}

// SaveRow stores a row that a snapshot hands out; a nil row is removed. Tests that write a snapshot of their own must
// call it, because the scene's next snapshot contains only rows changed since.
func (s *Scene) SaveRow(table uint16, key, row any) {
	k := codec.EncodeKey(key)
	id := rowKey{table, string(k)}
	if row == nil {
		delete(s.saved, id)
		return
	}
	s.saved[id] = savedRow{k, codec.EncodeRow(row)}
}

// loadSnapshot writes a snapshot and loads all rows of this and earlier snapshots into an empty organization, in the
// order of their keys on disk. Then it rebuilds the indexes.
func (s *Scene) loadSnapshot() *realm.Realm {
	s.T.Helper()
	it := s.Realm.BeginSnapshot(s.SaveRow)
	for !it.NextRows(func() bool { return false }) {
	}
	saved := make([]rowKey, 0, len(s.saved))
	for k := range s.saved {
		saved = append(saved, k)
	}
	slices.SortFunc(saved, func(a, b rowKey) int {
		if a.table != b.table {
			return int(a.table) - int(b.table)
		}
		return strings.Compare(a.key, b.key)
	})
	r := realm.New(1)
	r.SetClock(s.Now)
	for _, k := range saved {
		x := s.saved[k]
		if err := r.LoadRow(k.table, codec.Decoder(x.key), codec.Decoder(x.row)); err != nil {
			s.T.Fatalf("load row %q of table %d: %v", k.key, k.table, err)
		}
	}
	r.SetSeq(it.Seq, realm.RunSequentially)
	return r
}

// checkRecovery compares the organization with one that has followed it, with one replayed from its batches, and with
// one loaded from its snapshots.
func (s *Scene) checkRecovery() {
	s.T.Helper()
	s.compare("follower", s.follower)
	if want, got := stateDigest(s.Realm), stateDigest(s.follower); want != got {
		s.T.Errorf("the follower has another state: the digests of the rows are %x and %x", want, got)
	}
	s.compare("replayed batches", s.replayBatches())
	s.checkFacts()
	s.compare("loaded snapshot", s.loadSnapshot())
}

// follow applies a batch to another organization. Each fact must send the same events as in the scene.
func (s *Scene) follow(name string, r *realm.Realm, x recordedBatch) {
	s.T.Helper()
	b, err := codec.DecodeBatch(x.batch)
	if err != nil {
		s.T.Fatal(err)
	}
	facts, err := codec.DecodeFacts(&b)
	if err != nil {
		s.T.Fatal(err)
	}
	r.SetClock(b.Now + followerAhead) // a view at another time
	publications, err := r.Follow(b, facts)
	if err != nil {
		s.T.Fatalf("%s: %v", name, err)
	}
	got := map[realm.Seq][]any{}
	for _, t := range publications {
		got[t.Seq] = encodeNotices(t)
	}
	for i, f := range facts {
		seq := b.After + realm.Seq(i) + 1
		if !reflect.DeepEqual(got[seq], x.notices[seq]) {
			s.T.Fatalf("%s: fact %d (%T) sends other events than in the scene:\n  before %v\n  now    %v",
				name, seq, f, x.notices[seq], got[seq])
		}
		s.applied = append(s.applied, appliedFact{seq, f, b.Facts[i]})
	}
}

// checkFacts requires that no fact was changed by its own apply or a later one: other processes apply it, too.
func (s *Scene) checkFacts() {
	s.T.Helper()
	for _, x := range s.applied {
		if !bytes.Equal(codec.EncodeFact(x.fact), x.encoded) {
			s.T.Errorf("fact %d (%T) has another content since it was applied", x.seq, x.fact)
		}
	}
}

// followerAhead is the error of a follower's clock in seconds. The result of applying a batch does not depend on it.
const followerAhead = 40 * 86400

// replayBatches applies the batches to an empty organization. Each fact must send the same events as before.
func (s *Scene) replayBatches() *realm.Realm {
	s.T.Helper()
	r := realm.New(1)
	for _, x := range s.recorded {
		s.follow("replay", r, x)
	}
	return r
}

// compare requires that a recovered organization has the same rows and the same derived data as the scene.
func (s *Scene) compare(name string, recovered *realm.Realm) {
	s.T.Helper()
	if recovered.Seq() != s.Realm.Seq() {
		s.T.Errorf("%s: fact number %d, want %d", name, recovered.Seq(), s.Realm.Seq())
	}
	s.compareMaps(name+": row", decodeRows(s.Realm), decodeRows(recovered))
	s.compareMaps(name+": derived", s.Realm.Derived(), recovered.Derived())
}

// stateDigest returns the exclusive or of the SHA-256 of all encoded rows.
func stateDigest(r *realm.Realm) (sum [sha256.Size]byte) {
	r.EachRow(func(table uint16, key, row any) {
		line := fmt.Appendf(nil, "%d %x %x", table, codec.EncodeKey(key), codec.EncodeRow(row))
		for i, b := range sha256.Sum256(line) {
			sum[i] ^= b
		}
	})
	return sum
}

// compareMaps reports each value that differs, is missing, or is there in addition.
func (s *Scene) compareMaps(what string, want, got map[string]any) {
	s.T.Helper()
	for k, v := range want {
		if !reflect.DeepEqual(got[k], v) {
			s.T.Errorf("%s %s differs:\n  before %v\n  now    %v", what, k, v, got[k])
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			s.T.Errorf("%s %s did not exist before:\n  now    %v", what, k, v)
		}
	}
}

// decodeRows returns all rows in a comparable form, by table and key.
func decodeRows(r *realm.Realm) map[string]any {
	out := map[string]any{}
	r.EachRow(func(table uint16, key, row any) {
		out[fmt.Sprintf("%d/%v", table, key)] = decodePlain(codec.EncodeRow(row))
	})
	return out
}

// encodeNotices returns the notices of a fact in a comparable form.
func encodeNotices(t realm.Publication) (out []any) {
	for _, n := range t.Notices {
		out = append(out, n.To, n.PublicOnly, realm.NumberOf(n.Event), decodePlain(codec.EncodeFact(n.Event)[2:]))
	}
	return out
}

// decodePlain returns encoded data without the order in which maps were written. Maps with keys other than texts cannot
// be decoded this way. For those it returns the sorted bytes, in which lost or new bytes are still found.
func decodePlain(encoded []byte) any {
	var x any
	if err := codec.Decoder(encoded)(&x); err != nil {
		slices.Sort(encoded)
		return encoded
	}
	return x
}

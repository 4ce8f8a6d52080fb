package wire

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"parley/actors/realm"
)

// hall is an organization in memory.
type hall struct {
	r      *realm.Realm
	tokens int
}

var hallSite = Site{URL: "http://hall.example", Host: "hall.example", Name: "hall"}

func play[A any](t testing.TB, h *hall, u realm.UserID, c realm.Command[A]) A {
	t.Helper()
	token := func(n int) string { h.tokens++; return fmt.Sprintf("%0*d", n, h.tokens) }
	m := realm.Moment{Now: 1_700_000_000, Token: token, UUID: func() string { return token(36) }, Hash: func(string) (x [32]byte) { return x },
		Key: func(u realm.UserID, epoch int64) string { return "" }}
	h.r.Clock(m.Now)
	a, _, _, err := realm.Play(h.r, realm.Caller{User: u, System: u == 0, Client: "test"}, m, c.Decide)
	if err != nil {
		t.Fatalf("%T: %v", c, err)
	}
	return a
}

func newHall(t testing.TB, users, channels int) (*hall, []realm.UserID) {
	h := &hall{r: realm.New(1)}
	play(t, h, 0, realm.FoundRealm{StringID: "hall", Name: "Hall"})
	var ids []realm.UserID
	for i := range users {
		role := []realm.Role{realm.Owner, realm.Administrator, realm.Moderator, realm.Guest}
		c := realm.JoinUser{Name: fmt.Sprintf("Person %d", i), Email: fmt.Sprintf("person%d@hall.example", i), Role: realm.Member, First: true}
		if i < len(role) {
			c.Role = role[i]
		}
		ids = append(ids, play(t, h, 0, c))
	}
	for i := range channels {
		play(t, h, ids[0], realm.Subscribe{Channels: []realm.Joining{{Name: fmt.Sprintf("channel %d", i), Description: "What is said here"}}, Fatal: true})
		for k := 0; k < 20 && users > 100; k += 10 {
			u := ids[5+(i*7+k)%(users-5)]
			if !h.r.Subscribed(u, realm.ChannelID(i+1)) {
				play(t, h, u, realm.Subscribe{Channels: []realm.Joining{{Name: fmt.Sprintf("channel %d", i)}}})
			}
		}
	}
	return h, ids
}

// newState is a registration of somebody's, before anything is built.
func (h *hall) newState(u realm.UserID, caps realm.Caps) *state {
	q := realm.Queue{Gravatar: u%2 == 0, Caps: caps, Subscribers: "partial"}
	c := &Call{House: closedHouse{}, Site: hallSite, Tools: &Tools{}}
	return &state{c: c, View: h.r.ViewAs(realm.Caller{User: u}, 1_700_000_000), queue: &q, Client: ClientOf(&q), a: Answer{}, wants: func(string) bool { return true }}
}

const modern = realm.Caps(1<<12 - 1)

// plainJSON is a value as a client decodes it.
func plainJSON(t testing.TB, v any) any {
	t.Helper()
	var x any
	if err := json.Unmarshal(encode(v), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// anew is the sections that others share, built without anything kept.
func anew(s *state) Answer {
	fresh := *s
	fresh.a = Answer{}
	usersAnew(&fresh)
	realmSection(&fresh)
	serverSection(&fresh)
	fresh.a["realm_user_groups"] = groupsAnew(s.View, s.Has(realm.CapDeactivatedGroups))
	list := []any{}
	for _, c := range s.visibleChannels() {
		list = append(list, channelObject(s.ChannelInfo(c.Channel)))
	}
	fresh.a["streams"] = list
	return fresh.a
}

// TestSharedSectionsAreAsIfBuiltAnew changes accounts at random and compares what viewers of every kind are shown from
// shared pieces with what is built for them alone.
func TestSharedSectionsAreAsIfBuiltAnew(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := rand.New(rand.NewPCG(seed, 1))
	h, ids := newHall(t, 150, 5)
	compare := func(what string) {
		t.Helper()
		for _, u := range []realm.UserID{0, ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], ids[d.IntN(len(ids))]} {
			for _, caps := range []realm.Caps{0, modern} {
				s := h.newState(u, caps)
				s.build()
				whole := SuccessPieces(s.finished(), []string{"x"}).Bytes()
				var got map[string]any
				if err := json.Unmarshal(whole, &got); err != nil {
					t.Fatalf("%s: user %d: %v", what, u, err)
				}
				if got["result"] != "success" || got["ignored_parameters_unsupported"] == nil {
					t.Fatalf("no envelope: %v", got["result"])
				}
				for name, want := range anew(s) {
					if name == "streams" && u == 0 {
						continue // visitors do not get it
					}
					if want := plainJSON(t, want); !reflect.DeepEqual(got[name], want) {
						t.Fatalf("seed %d, %s: user %d is shown other %s:\n  shared %v\n  anew   %v", seed, what, u, name, got[name], want)
					}
				}
			}
		}
	}
	play(t, h, ids[0], realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "enable_spectator_access", Value: true}}})
	compare("at first")
	for i := range 40 {
		u := ids[1+d.IntN(len(ids)-1)]
		var what string
		switch d.IntN(6) {
		case 0:
			name := fmt.Sprintf("Somebody %d", i)
			what = "renamed"
			play(t, h, ids[0], realm.EditUser{User: u, Name: &name})
		case 1:
			what = "address visibility"
			if h.r.Find(u).Active {
				play(t, h, u, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "email_address_visibility", Value: int64(1 + d.IntN(5))}}})
			}
		case 2:
			what = "deactivated"
			if h.r.Find(u).Active {
				play(t, h, ids[0], realm.DeactivateUser{User: u})
			}
		case 3:
			what = "reactivated"
			if !h.r.Find(u).Active {
				play(t, h, ids[0], realm.ReactivateUser{User: u})
			}
		case 4:
			what = "joined"
			ids = append(ids, play(t, h, 0, realm.JoinUser{Name: fmt.Sprintf("New %d", i), Email: fmt.Sprintf("new%d@hall.example", i)}))
		case 5:
			what = "limits of guests"
			to := []string{"role:members", "role:everyone"}[d.IntN(2)]
			play(t, h, ids[0], realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_access_all_users_group", New: realm.GroupValue{Group: h.r.SystemGroup(to)}}}})
		}
		compare(what)
	}
}

// registerAllocation is how many bytes one more registration may allocate in an organization of 10,000 accounts and
// 1,000 channels.
const registerAllocation = 2 << 20

func BenchmarkRegister(b *testing.B) {
	h, ids := newHall(b, 10_000, 1_000)
	b.Run("shared", func(b *testing.B) {
		first := h.newState(ids[4], modern) // what is shared is made once for a kind of viewers
		first.build()
		first = h.newState(ids[5], modern)
		first.build()
		b.ReportAllocs()
		b.ResetTimer()
		size := 0
		for i := range b.N {
			s := h.newState(ids[4+i%1000], modern)
			s.build()
			size = SuccessPieces(s.finished(), nil).Len()
		}
		b.ReportMetric(float64(size), "bytes")
	})
	b.Run("anew", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			s := h.newState(ids[4+i%1000], modern)
			for _, x := range sections {
				if x.wanted(s.wants) {
					x.build(s)
				}
			}
			for name, v := range anew(s) {
				s.a[name] = v
			}
			Success(s.finished(), nil)
		}
	})
}

// TestRegisterAllocatesLittle measures a smaller organization, where the shared part must already not count.
func TestRegisterAllocatesLittle(t *testing.T) {
	h, ids := newHall(t, 2_000, 200)
	register := func() {
		s := h.newState(ids[10], modern)
		s.build()
		SuccessPieces(s.finished(), nil)
	}
	register() // what is shared is made once
	r := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			register()
		}
	})
	if n := r.AllocedBytesPerOp(); n > registerAllocation/4 {
		t.Errorf("one more registration allocates %d bytes, at most %d allowed", n, registerAllocation/4)
	}
	t.Logf("%v and %d bytes a registration", r.NsPerOp(), r.AllocedBytesPerOp())
}

// Channels are encoded ahead of the turn, some at a time, and again only where something has changed.
func TestChannelsEncodedAhead(t *testing.T) {
	h, ids := newHall(t, 50, 900)
	warm := func() (looks, faces, lists int) {
		v := h.r.ViewAs(realm.Caller{User: ids[0]}, 1_700_000_000)
		for next := realm.ChannelID(0); next >= 0; looks++ {
			next = v.WarmChannelFaces(next, func(c realm.ChannelInfo) []byte { faces++; return channelFace(c) }, func(ids []realm.UserID) []byte { lists++; return membersFace(ids) })
		}
		return looks, faces, lists
	}
	if looks, faces, lists := warm(); looks < 3 || faces < 900 || faces != lists {
		t.Errorf("%d channels and %d lists were encoded in %d looks", faces, lists, looks)
	}
	if _, faces, lists := warm(); faces != 0 || lists != 0 {
		t.Errorf("%d channels and %d lists were encoded again", faces, lists)
	}
	name := "channel of another name"
	var one realm.ChannelID
	h.r.EachChannel(func(c *realm.Channel) { one = c.ID })
	play(t, h, ids[0], realm.EditChannel{Channel: one, Name: &name})
	if _, faces, lists := warm(); faces != 1 || lists != 0 {
		t.Errorf("one channel has another name: %d channels and %d lists were encoded again", faces, lists)
	}
	s := h.newState(ids[0], modern)
	s.build()
	if shown := fmt.Sprint(plainJSON(t, s.finished()["streams"])); !strings.Contains(shown, name) {
		t.Error("the new name is not shown")
	}
}

// What is encoded ahead, a little at a time, is what the registration shows; and accounts in slices are all of them,
// each once.
func TestAccountsInSlices(t *testing.T) {
	h, ids := newHall(t, 300, 1)
	warm := func(max int) (looks int) {
		s := h.newState(ids[3], modern)
		kind, anybody := s.roster()
		for looks = 1; !s.WarmUserFaces(kind, s.userChunk(anybody), max); looks++ {
		}
		return looks
	}
	if n := warm(1); n < 5 {
		t.Errorf("300 accounts were encoded in %d looks", n)
	}
	name := "Another Name"
	play(t, h, ids[0], realm.EditUser{User: ids[100], Name: &name})
	if n := warm(1); n > 2 {
		t.Errorf("one account changed, and it took %d looks", n)
	}
	s := h.newState(ids[3], modern)
	s.UserFaces(rosterKind{realm.Guest, s.Gravatar, hallSite}, func([]*realm.User) [][]byte {
		t.Error("what was encoded ahead was encoded again")
		return nil
	}, 0, nil, joinUsers)
	s.build()
	shown := plainJSON(t, s.finished()["realm_users"]).([]any)
	if len(shown) != 300 || !strings.Contains(fmt.Sprint(shown), name) {
		t.Errorf("%d accounts are shown", len(shown))
	}

	name = "Yet Another Name"
	play(t, h, ids[0], realm.EditUser{User: ids[100], Name: &name})
	s = h.newState(ids[3], modern)
	s.build()
	if shown = plainJSON(t, s.finished()["realm_users"]).([]any); len(shown) != 300 || !strings.Contains(fmt.Sprint(shown), name) {
		t.Errorf("%d accounts are shown when one changed", len(shown))
	}

	v := h.r.ViewAs(realm.Caller{User: ids[0]}, 1_700_000_000)
	c := &Call{Site: hallSite, Caller: v.Caller}
	var whole, sliced []any
	usersAfter(c, v, getUsersForm{Profile: true}, 0, 1000, &whole)
	slices := 0
	for after, more := realm.UserID(0), true; more; slices++ {
		after, more = usersAfter(c, v, getUsersForm{Profile: true}, after, 7, &sliced)
	}
	if len(whole) != 300 || slices < 300/7 || !reflect.DeepEqual(whole, sliced) {
		t.Errorf("%d accounts at once, %d in %d slices", len(whole), len(sliced), slices)
	}
}

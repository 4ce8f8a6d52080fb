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

// testRealm is an organization in memory.
type testRealm struct {
	r      *realm.Realm
	tokens int
}

var testSite = Site{URL: "http://test.example", Host: "test.example", Name: "test"}

func execute[A any](t testing.TB, h *testRealm, u realm.UserID, c realm.Command[A]) A {
	t.Helper()
	token := func(n int) string { h.tokens++; return fmt.Sprintf("%0*d", n, h.tokens) }
	m := realm.TurnEnv{Now: 1_700_000_000, Token: token, UUID: func() string {
		return token(36)
	}, Hash: func(string) (x [32]byte) { return x },
		APIKey: func(u realm.UserID, epoch int64) string { return "" }}
	h.r.SetClock(m.Now)
	a, _, _, err := realm.RunTurn(h.r, realm.Caller{User: u, System: u == 0, Client: "test"}, m, c.Decide)
	if err != nil {
		t.Fatalf("%T: %v", c, err)
	}
	return a
}

func newTestRealm(t testing.TB, users, channels int) (*testRealm, []realm.UserID) {
	h := &testRealm{r: realm.New(1)}
	execute(t, h, 0, realm.FoundRealm{StringID: "test", Name: "Test"})
	var ids []realm.UserID
	for i := range users {
		role := []realm.Role{realm.Owner, realm.Administrator, realm.Moderator, realm.Guest}
		c := realm.CreateUser{Name: fmt.Sprintf("Person %d", i), Email: fmt.Sprintf("person%d@test.example", i),
			Role: realm.Member, First: true}
		if i < len(role) {
			c.Role = role[i]
		}
		ids = append(ids, execute(t, h, 0, c))
	}
	for i := range channels {
		execute(t, h, ids[0], realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: fmt.Sprintf("channel %d", i),
			Description: "A channel"}}, AllOrNothing: true})
		for k := 0; k < 20 && users > 100; k += 10 {
			u := ids[5+(i*7+k)%(users-5)]
			if !h.r.Subscribed(u, realm.ChannelID(i+1)) {
				execute(t, h, u, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: fmt.Sprintf("channel %d", i)}}})
			}
		}
	}
	return h, ids
}

// newInitialState returns the initial state for a registering user, before any section is built.
func (h *testRealm) newInitialState(u realm.UserID, caps realm.Caps) *initialState {
	q := realm.Queue{Gravatar: u%2 == 0, Caps: caps, Subscribers: "partial"}
	c := &Call{Server: closedServer{}, Site: testSite, Tools: &Tools{}}
	return &initialState{call: c, View: h.r.ViewAs(realm.Caller{User: u}, 1_700_000_000), queue: &q,
		Client: ClientOf(&q), answer: &registration{}, wants: func(string) bool { return true }}
}

const allCapabilities = realm.Caps(1<<12 - 1)

// throughJSON returns a value as a client decodes it.
func throughJSON(t testing.TB, v any) any {
	t.Helper()
	var x any
	if err := json.Unmarshal(encode(v), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// buildUncached builds the sections that use cached JSON, without the cache.
func buildUncached(s *initialState) *registration {
	uncached := *s
	uncached.answer = &registration{}
	usersSectionUncached(&uncached)
	uncached.answer.Realm.JSON = encodedFieldsOf(registeredOrganization{newOrganizationFields(s), newServerFields(s)})
	groups := allGroups(s.View, s.Has(realm.CapDeactivatedGroups))
	uncached.answer.Groups = encodedAs[[]registeredGroupJSON](encode(groups))
	list := each(s.visibleChannels(),
		func(c visibleChannel) channelJSON { return newChannel(s.ChannelInfo(c.Channel)) })
	uncached.answer.Channels = encodedAs[[]channelJSON](encode(list))
	return uncached.answer
}

// TestSharedSectionsEqualUncachedOnes changes accounts at random. For viewers of every kind it compares the sections
// built from cached JSON with sections built for them alone.
func TestSharedSectionsEqualUncachedOnes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	d := rand.New(rand.NewPCG(seed, 1))
	h, ids := newTestRealm(t, 150, 5)
	compare := func(what string) {
		t.Helper()
		for _, u := range []realm.UserID{0, ids[0], ids[1], ids[2], ids[3], ids[4], ids[5], ids[d.IntN(len(ids))]} {
			for _, caps := range []realm.Caps{0, allCapabilities} {
				s := h.newInitialState(u, caps)
				s.build()
				whole := SuccessFragments(s.finish(), []string{"x"}).Bytes()
				var got map[string]any
				if err := json.Unmarshal(whole, &got); err != nil {
					t.Fatalf("%s: user %d: %v", what, u, err)
				}
				if got["result"] != "success" || got["ignored_parameters_unsupported"] == nil {
					t.Fatalf("no envelope: %v", got["result"])
				}
				for name, want := range throughJSON(t, buildUncached(s)).(map[string]any) {
					if name == "streams" && u == 0 {
						continue // logged-out visitors do not get the section
					}
					if !reflect.DeepEqual(got[name], want) {
						t.Fatalf("seed %d, %s: user %d gets a different %s:\n  cached   %v\n  uncached %v", seed, what,
							u, name, got[name], want)
					}
				}
			}
		}
	}
	execute(t, h, ids[0], realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "enable_spectator_access",
		Value: true}}})
	compare("initially")
	for i := range 40 {
		u := ids[1+d.IntN(len(ids)-1)]
		var what string
		switch d.IntN(6) {
		case 0:
			name := fmt.Sprintf("Renamed %d", i)
			what = "renamed"
			execute(t, h, ids[0], realm.EditUser{User: u, Name: &name})
		case 1:
			what = "address visibility"
			if h.r.Find(u).Active {
				execute(t, h, u, realm.ChangeSettings{Values: []realm.SettingValue{{Name: "email_address_visibility",
					Value: int64(1 + d.IntN(5))}}})
			}
		case 2:
			what = "deactivated"
			if h.r.Find(u).Active {
				execute(t, h, ids[0], realm.DeactivateUser{User: u})
			}
		case 3:
			what = "reactivated"
			if !h.r.Find(u).Active {
				execute(t, h, ids[0], realm.ReactivateUser{User: u})
			}
		case 4:
			what = "joined"
			ids = append(ids, execute(t, h, 0, realm.CreateUser{Name: fmt.Sprintf("New %d", i),
				Email: fmt.Sprintf("new%d@test.example", i)}))
		case 5:
			what = "guest visibility"
			to := []string{"role:members", "role:everyone"}[d.IntN(2)]
			execute(t, h, ids[0],
				realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_access_all_users_group",
					New: realm.GroupValue{Group: h.r.SystemGroup(to)}}}})
		}
		compare(what)
	}
}

// registerAllocation is how many bytes one more registration may allocate in an organization of 10,000 accounts and
// 1,000 channels.
const registerAllocation = 2 << 20

func BenchmarkRegister(b *testing.B) {
	h, ids := newTestRealm(b, 10_000, 1_000)
	b.Run("cached", func(b *testing.B) {
		first := h.newInitialState(ids[4], allCapabilities) // fills the caches, which all viewers of a kind share
		first.build()
		first = h.newInitialState(ids[5], allCapabilities)
		first.build()
		b.ReportAllocs()
		b.ResetTimer()
		size := 0
		for i := range b.N {
			s := h.newInitialState(ids[4+i%1000], allCapabilities)
			s.build()
			size = SuccessFragments(s.finish(), nil).Len()
		}
		b.ReportMetric(float64(size), "bytes")
	})
	b.Run("uncached", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			s := h.newInitialState(ids[4+i%1000], allCapabilities)
			s.build()
			Success(s.finish(), nil)
			Success(buildUncached(s), nil)
		}
	})
}

// ownRegisterBytes is how many bytes of a registration may belong to one user alone, in an organization of 2,000
// accounts and 200 channels. They are encoded, compressed and sent for every registration, so a list that is the
// same for all users must not be among them.
const ownRegisterBytes = 20_000

func TestRegistrationsShareEqualLists(t *testing.T) {
	h, ids := newTestRealm(t, 2_000, 200)
	s := h.newInitialState(ids[10], allCapabilities)
	s.build()
	own := 0
	for _, f := range SuccessFragments(s.finish(), nil) {
		if f.Run == nil && !f.Shared {
			own += len(f.JSON)
		}
	}
	if own > ownRegisterBytes {
		t.Errorf("%d bytes of a registration belong to one user alone, at most %d allowed", own, ownRegisterBytes)
	}
	t.Logf("%d bytes of its own", own)
}

// TestRegisterAllocationLimit measures a smaller organization, where the cached part must already cost nothing.
func TestRegisterAllocationLimit(t *testing.T) {
	h, ids := newTestRealm(t, 2_000, 200)
	register := func() {
		s := h.newInitialState(ids[10], allCapabilities)
		s.build()
		SuccessFragments(s.finish(), nil)
	}
	register() // fills the caches
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

// TestChannelsAreEncodedAhead checks that channels are encoded before the turn, some per view, and again only after a
// change.
func TestChannelsAreEncodedAhead(t *testing.T) {
	h, ids := newTestRealm(t, 50, 900)
	warm := func() (views, channels, lists int) {
		v := h.r.ViewAs(realm.Caller{User: ids[0]}, 1_700_000_000)
		for next := realm.ChannelID(0); next >= 0; views++ {
			next = v.WarmChannelJSON(next, func(c realm.ChannelInfo) []byte {
				channels++
				return channelFieldsJSON(c)
			}, func(ids []realm.UserID) []byte { lists++; return subscribersJSON(ids) })
		}
		return views, channels, lists
	}
	if views, channels, lists := warm(); views < 3 || channels < 900 || channels != lists {
		t.Errorf("%d channels and %d lists were encoded in %d views", channels, lists, views)
	}
	if _, channels, lists := warm(); channels != 0 || lists != 0 {
		t.Errorf("%d channels and %d lists were encoded again", channels, lists)
	}
	name := "channel of another name"
	var one realm.ChannelID
	h.r.EachChannel(func(c *realm.Channel) { one = c.ID })
	execute(t, h, ids[0], realm.EditChannel{Channel: one, Name: &name})
	if _, channels, lists := warm(); channels != 1 || lists != 0 {
		t.Errorf("after one channel was renamed, %d channels and %d lists were encoded again", channels, lists)
	}
	s := h.newInitialState(ids[0], allCapabilities)
	s.build()
	if shown := fmt.Sprint(throughJSON(t, s.finish().Channels)); !strings.Contains(shown, name) {
		t.Error("the registration has the old name")
	}
}

// TestUsersEncodedInChunks checks that accounts encoded ahead are those of the registration, and that reading
// accounts in slices returns each once.
func TestUsersEncodedInChunks(t *testing.T) {
	h, ids := newTestRealm(t, 300, 1)
	warm := func(max int) (views int) {
		s := h.newInitialState(ids[3], allCapabilities)
		kind, viewer := s.userListKey()
		for views = 1; !s.WarmUserListJSON(kind, s.userChunkEncoder(viewer), max); views++ {
		}
		return views
	}
	if n := warm(1); n < 5 {
		t.Errorf("300 accounts were encoded in %d views", n)
	}
	name := "Another Name"
	execute(t, h, ids[0], realm.EditUser{User: ids[100], Name: &name})
	if n := warm(1); n > 2 {
		t.Errorf("encoding one changed account took %d views", n)
	}
	s := h.newInitialState(ids[3], allCapabilities)
	s.UserListJSON(userListCacheKey{role: realm.Guest, gravatar: s.Gravatar, site: testSite},
		func([]*realm.User) [][]byte {
			t.Error("accounts that were encoded ahead were encoded again")
			return nil
		}, 0, nil, joinUserChunks)
	s.build()
	shown := throughJSON(t, s.finish().Users).([]any)
	if len(shown) != 300 || !strings.Contains(fmt.Sprint(shown), name) {
		t.Errorf("the registration has %d accounts", len(shown))
	}

	name = "Yet Another Name"
	execute(t, h, ids[0], realm.EditUser{User: ids[100], Name: &name})
	s = h.newInitialState(ids[3], allCapabilities)
	s.build()
	if shown = throughJSON(t, s.finish().Users).([]any); len(shown) != 300 ||
		!strings.Contains(fmt.Sprint(shown), name) {
		t.Errorf("after one change the registration has %d accounts", len(shown))
	}

	v := h.r.ViewAs(realm.Caller{User: ids[0]}, 1_700_000_000)
	c := &Call{Site: testSite, Caller: v.Caller}
	var whole, sliced []any
	appendUsersAfter(c, v, getUsersForm{Profile: true}, 0, 1000, &whole)
	slices := 0
	for after, more := realm.UserID(0), true; more; slices++ {
		after, more = appendUsersAfter(c, v, getUsersForm{Profile: true}, after, 7, &sliced)
	}
	if len(whole) != 300 || slices < 300/7 || !reflect.DeepEqual(whole, sliced) {
		t.Errorf("%d accounts at once, %d in %d slices", len(whole), len(sliced), slices)
	}
}

package realm_test

import (
	"reflect"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// A fact is the same for every process that applies it. So it has only fields that are stored: data that notices
// needs of the state before the fact belongs to the realm, see savePriorState.
func TestFactsHaveOnlyStoredFields(t *testing.T) {
	for number, f := range realm.TypesByNumber() {
		for i := range f.NumField() {
			field := f.Field(i)
			notStored := strings.HasPrefix(field.Tag.Get("msgpack"), "-") &&
				field.Type != reflect.TypeFor[realm.Body]() &&
				field.Type != reflect.TypeFor[*realm.Body]()
			if !field.IsExported() && !field.Anonymous || notStored {
				t.Errorf("fact %d, %s: the field %s is not stored", number, f.Name(), field.Name)
			}
		}
	}
}

// The ages of accounts and channels come from the batch. A replica whose own clock is wrong has the same state and
// sends the same events.
func TestFollowUsesTheClockOfTheBatch(t *testing.T) {
	s := realmtest.New(t)
	ann := s.Join("Ann", realm.Owner)
	s.Advance(3 * 86400)
	bo := s.Join("Bo")
	s.Advance(86400)
	realmtest.Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "young"}}})
	s.Advance(8 * 86400)
	realmtest.Do(s, ann, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "young"}},
		Principals: []realm.Principal{{ID: bo}}})
	s.ExpectEvents(bo, "subscription")
}

func TestFollowRefusesOtherBatches(t *testing.T) {
	r := realm.New(7)
	founded := []realm.Fact{&realm.Founded{Name: "Follower", At: realmtest.StartTime}}
	for name, b := range map[string]realm.Batch{
		"cannot be applied to realm 7": {Realm: 8},
		"follows fact 1":               {Realm: 7, After: 1},
		"has the rule level 65535":     {Realm: 7, Level: 65535},
	} {
		if _, err := r.Follow(b, founded); err == nil || !strings.Contains(err.Error(), name) || r.Seq() != 0 {
			t.Errorf("got %v at fact %d, want an error with %q and nothing applied", err, r.Seq(), name)
		}
	}
	if _, err := r.Follow(realm.Batch{Realm: 7, Now: realmtest.StartTime, Level: realm.Level}, founded); err != nil {
		t.Error(err)
	}
	if r.Seq() != 1 {
		t.Errorf("the follower is at fact %d", r.Seq())
	}
}

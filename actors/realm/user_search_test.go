package realm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// names returns the names of the users that a search by a user finds.
func names(s *Scene, u realm.UserID, q realm.PeopleQuery) string {
	q.Max = max(q.Max, 1)
	found, more, err := s.ViewAs(u).SearchPeople(q)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, x := range found {
		out = append(out, x.Name)
	}
	if more {
		out = append(out, "...")
	}
	return strings.Join(out, ", ")
}

func everyone(text string) realm.PeopleQuery {
	return realm.PeopleQuery{Text: text, Active: true, People: true, Bots: true, Max: 50}
}

// limitGuests lets guests see only users with whom they share a channel or a conversation.
func limitGuests(s *Scene) {
	Do(s, s.Join("Olive", realm.Owner), realm.ChangeOrganization{Groups: []realm.GroupChange{{
		Name: "can_access_all_users_group", New: realm.GroupValue{Group: s.Realm.SystemGroup("role:members")}}}})
}

// buildPeopleIndex builds the index like a request.
func buildPeopleIndex(t *testing.T, s *Scene, u realm.UserID) {
	t.Helper()
	v := s.ViewAs(u)
	step, number := v.BeginPeopleBuild()
	if step != realm.PeopleBegun {
		t.Fatalf("step %d", step)
	}
	if again, _ := v.BeginPeopleBuild(); again == realm.PeopleBegun {
		t.Error("two builds at a time")
	}
	var texts []realm.PersonText
	for after, more := realm.UserID(0), true; more; {
		texts, after, more = v.PeopleTexts(texts, after, 700)
	}
	v.FinishPeopleBuild(number, realm.BuildPeopleIndex(texts))
	if step, _ := v.BeginPeopleBuild(); step != realm.PeopleReady {
		t.Errorf("step %d after a build", step)
	}
}

// A search finds the same users, in the same order, with and without the index.
func TestSearchPeople(t *testing.T) {
	for _, crowd := range []int{0, 2500} {
		t.Run(fmt.Sprint(crowd), func(t *testing.T) {
			s := New(t)
			ann := s.Join("Ann Smith")
			s.Join("Bo Annable")
			cy := s.Join("Cy Anderssonlongname Annatoo")
			dan := s.Join("Dan Old")
			for i := range crowd {
				s.Join(fmt.Sprintf("Crowd %04d", i))
			}
			Do(s, s.Join("Olive", realm.Owner), realm.DeactivateUser{User: dan})
			if crowd > 0 {
				buildPeopleIndex(t, s, ann)
			}
			for _, c := range []struct{ text, found string }{
				{"ann", "Ann Smith, Bo Annable, Cy Anderssonlongname Annatoo"},
				{"ANN s", "Ann Smith"},
				{"smith ann", "Ann Smith"},
				{"annatoo c", "Cy Anderssonlongname Annatoo"},
				{"anderssonlong", "Cy Anderssonlongname Annatoo"},
				{"anderssonlonx", ""},
				{"old", ""},
				{"nn", ""},
			} {
				if got := names(s, ann, everyone(c.text)); got != c.found {
					t.Errorf("%q finds %q instead of %q", c.text, got, c.found)
				}
			}
			q := everyone("old")
			q.Deactivated = true
			if got := names(s, ann, q); got != "Dan Old" {
				t.Errorf("deactivated users: %q", got)
			}
			q.Active = false
			if got := names(s, ann, q); got != "Dan Old" {
				t.Errorf("only deactivated users: %q", got)
			}
			// conversations come first, and changes count at once
			Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: cy}}, Body: realm.Body{Text: "hi"}})
			if got := names(s, ann, everyone("ann")); !strings.HasPrefix(got, "Ann Smith, Cy") &&
				!strings.HasPrefix(got, "Cy") {
				t.Errorf("the user of a conversation is not first: %q", got)
			}
			name := "Zoe New"
			Do(s, cy, realm.ChangeSettings{Name: &name})
			if got := names(s, ann, everyone("zo")); got != "Zoe New" {
				t.Errorf("after a new name: %q", got)
			}
			if got := names(s, ann, everyone("anderss")); got != "" {
				t.Errorf("by an old name: %q", got)
			}
			s.Join("Zoe Newer")
			if got := names(s, ann, everyone("zoe")); got != "Zoe New, Zoe Newer" {
				t.Errorf("after a join: %q", got)
			}
		})
	}
}

// The pages of a search have each user once.
func TestSearchPages(t *testing.T) {
	s := New(t)
	ann := s.Join("Ann")
	for i := range 2500 {
		s.Join(fmt.Sprintf("Crowd %04d", i))
	}
	buildPeopleIndex(t, s, ann)
	var got []string
	for more := true; more; {
		q := everyone("crowd")
		q.Offset = len(got)
		var found []*realm.User
		found, more, _ = s.ViewAs(ann).SearchPeople(q)
		for _, u := range found {
			got = append(got, u.Name)
		}
	}
	if len(got) != 2500 || !slices.IsSorted(got) || len(slices.Compact(got)) != 2500 {
		t.Errorf("%d users, sorted: %t", len(got), slices.IsSorted(got))
	}
}

// A limited guest finds only users that share a channel or a conversation with the guest, and learns of no others.
func TestLimitedGuestSearch(t *testing.T) {
	for _, crowd := range []int{0, 2500} {
		s := New(t)
		ann, bo := s.Join("Ann One"), s.Join("Ann Two")
		gus := s.Join("Gus", realm.Guest)
		for i := range crowd {
			s.Join(fmt.Sprintf("Crowd %04d", i))
		}
		limitGuests(s)
		if crowd > 0 {
			buildPeopleIndex(t, s, ann)
		}
		if got := names(s, gus, everyone("ann")); got != "" {
			t.Errorf("a limited guest finds %q", got)
		}
		Do(s, ann, realm.SendMessage{People: []realm.Principal{{ID: gus}}, Body: realm.Body{Text: "hi"}})
		if got := names(s, gus, everyone("ann")); got != "Ann One" {
			t.Errorf("a limited guest finds %q after a message", got)
		}
		if got := names(s, bo, everyone("ann")); got != "Ann One, Ann Two" {
			t.Errorf("a member finds %q", got)
		}
		for _, u := range s.ViewAs(gus).ShortUserList() {
			if u.ID == bo || strings.HasPrefix(u.Name, "Crowd") {
				t.Errorf("the short list of a limited guest has %s", u.Name)
			}
		}
	}
}

package server

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// shortRegistration is the parts of a registration that depend on the number of users.
type shortRegistration struct {
	Incomplete bool `json:"realm_users_incomplete"`
	Active     int  `json:"realm_active_user_count"`
	Users      []struct {
		ID int64 `json:"user_id"`
	} `json:"realm_users"`
	Bots   []json.RawMessage `json:"cross_realm_bots"`
	Groups []struct {
		Name    string
		Members []int64
		Count   *int `json:"member_count"`
	} `json:"realm_user_groups"`
}

// A client with the capability gets a short list of users, others get all, or a refusal that names the limit.
func TestShortUserList(t *testing.T) {
	d := startDemo(t, func(s *Settings) { s.ShortUserList = 1 })
	register := func(caps string) (r shortRegistration) {
		t.Helper()
		decode(t, d.call("bo@example.org", "POST", "register", url.Values{"client_capabilities": {caps}}), &r)
		return r
	}
	all, short := register("{}"), register(`{"short_user_list":true}`)
	if all.Incomplete || !short.Incomplete || short.Active == 0 || len(short.Bots) != len(all.Bots) {
		t.Errorf("short list: %+v, complete list: %+v", short, all)
	}
	if len(short.Users) == 0 || len(short.Users) > len(all.Users) {
		t.Errorf("%d users of %d", len(short.Users), len(all.Users))
	}
	for _, u := range short.Users {
		if !slices.Contains(all.Users, u) {
			t.Errorf("user %d is only in the short list", u.ID)
		}
	}
	var found struct {
		People []struct {
			Name string `json:"full_name"`
		}
	}
	decode(t, d.call("bo@example.org", "GET", "people", url.Values{"query": {"ann"}}), &found)
	if len(found.People) != 1 || !strings.HasPrefix(found.People[0].Name, "Ann") {
		t.Errorf("found: %v", found)
	}
}

// decode stores an answer in a struct.
func decode(t *testing.T, answer map[string]any, into any) {
	t.Helper()
	b, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

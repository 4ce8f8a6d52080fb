package wire

import (
	"fmt"
	"testing"

	"parley/actors/realm"
	"parley/wire/markdown"
)

func TestMentionsHideUsersFromGuests(t *testing.T) {
	h, ids := newTestRealm(t, 6, 0)
	guest, hidden := ids[3], ids[5]
	execute(t, h, ids[0], realm.ChangeOrganization{Groups: []realm.GroupChange{{Name: "can_access_all_users_group",
		New: realm.GroupValue{Group: h.r.SystemGroup("role:members")}}}})
	name := h.r.Find(hidden).Name
	for user, known := range map[realm.UserID]bool{guest: false, ids[4]: true} {
		for _, text := range []string{fmt.Sprintf("@**|%d**", hidden), "@_**" + name + "**",
			fmt.Sprintf("@**%s|%d**", name, hidden)} {
			k := resolveReferences(h.r.ViewAs(realm.Caller{User: user}, 1_700_000_000), markdown.Scan(text),
				&markdownConfig{})
			_, byID := k.UserByID(int64(hidden))
			_, byName := k.UserByName(name)
			if (byID || byName) != known {
				t.Errorf("user %d writes %s: the mention shows the hidden user: %v, want %v",
					user, text, byID || byName, known)
			}
		}
	}
}

func TestTopicLinksNeedReadAccess(t *testing.T) {
	h, ids := newTestRealm(t, 6, 0)
	owner, admin, member := ids[0], ids[1], ids[4]
	execute(t, h, owner, realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: "board"}},
		New: realm.NewChannel{Private: true}})
	for user, want := range map[realm.UserID]struct {
		known, readable bool
	}{owner: {true, true}, admin: {true, false}, member: {false, false}} {
		k := resolveReferences(h.r.ViewAs(realm.Caller{User: user}, 1_700_000_000), markdown.Scan("#**board>x**"),
			&markdownConfig{})
		if c, known := k.Channel("board"); known != want.known || c.Readable != want.readable {
			t.Errorf("user %d: known %v, readable %v, want %v", user, known, c.Readable, want)
		}
	}
}

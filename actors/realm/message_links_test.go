package realm_test

import (
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// MarkLinks marks messages whose text has not changed since it was read.
func TestMarkLinks(t *testing.T) {
	s := newTestScene(t)
	if s.Realm.Org().LinksChecked != MaxMessageID {
		t.Error("a new organization is to be checked")
	}
	s.Realm.Org().LinksChecked = 0 // as in one that an older program has founded
	a, b, c := s.post(s.ann, s.public, "t", "x"), s.post(s.ann, s.public, "t", "y"), s.post(s.ann, s.public, "t", "z")
	do(s, s.ann, s.editText(b, "without a link"))
	links := func() []MessageID {
		n, err := s.ViewAs(s.ann).Narrow([]Term{{Operator: "has", Operand: Operand{Text: "link"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return n.AllIDs(nil)
	}
	mark := MarkLinks{Texts: []BodyRef{{Message: a}, {Message: b}, {Message: 9999}}, UpTo: b}
	refused(s, s.owner, mark, "Insufficient permission")
	do(s, realmtest.System, mark)
	if got := links(); !slices.Equal(got, []MessageID{a}) || s.Realm.Org().LinksChecked != b {
		t.Errorf("messages with links: %v, checked up to %d", got, s.Realm.Org().LinksChecked)
	}
	do(s, realmtest.System, MarkLinks{Texts: []BodyRef{{Message: c}}, UpTo: MaxMessageID})
	s.Restart()
	if got := links(); !slices.Equal(got, []MessageID{a, c}) || s.Realm.Org().LinksChecked != MaxMessageID {
		t.Errorf("messages with links: %v, checked up to %d", got, s.Realm.Org().LinksChecked)
	}
	do(s, s.ann, s.editText(a, "no link any more"))
	if got := links(); !slices.Equal(got, []MessageID{c}) {
		t.Errorf("messages with links after an edit: %v", got)
	}
}

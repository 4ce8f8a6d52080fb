package realm_test

import (
	"fmt"
	"testing"

	. "parley/actors/realm"
)

// A user that is mentioned together with very many others finds the messages that mention them, until an edit or a
// deletion removes the mention.
func TestBulkMentions(t *testing.T) {
	s := newTestScene(t)
	var crowd []UserID
	for i := range 600 {
		crowd = append(crowd, s.Join(fmt.Sprint("Member ", i)))
		s.join(crowd[i], s.public)
	}
	one, late := crowd[500], s.Join("Late")
	s.join(late, s.public)
	g := do(s, s.ann, CreateGroup{Name: "crowd", Members: crowd})
	call := func() MessageID {
		c := channelMessage(s.public, "a", "@*crowd*")
		c.Content.Groups = []GroupID{g}
		return do(s, s.ann, c).ID
	}
	first, second := call(), call()
	s.expectNarrow(one, oneTerm("is", "mentioned"), first, second)
	s.expectNarrow(late, oneTerm("is", "mentioned"))
	do(s, s.ann, ChangeMembers{Group: g, Add: []UserID{late}})
	third := call()
	s.expectNarrow(one, oneTerm("is", "mentioned"), first, second, third)
	s.expectNarrow(late, oneTerm("is", "mentioned"), third)
	if u := s.ViewAs(late).Unread().Sorted(); len(u.Mentions) != 1 || u.Mentions[0] != third {
		t.Errorf("unread mentions: %v", u.Mentions)
	}
	do(s, s.ann, s.editText(first, "nobody"))
	do(s, s.ann, DeleteMessage{Message: second})
	s.expectNarrow(one, oneTerm("is", "mentioned"), third)
	edit := s.editText(first, "@*crowd*")
	edit.Content.Content.Groups = []GroupID{g}
	do(s, s.ann, edit)
	s.expectNarrow(late, oneTerm("is", "mentioned"), first, third)
}

package realm_test

import (
	"fmt"
	"testing"

	. "parley/actors/realm"
)

// Who is mentioned together with very many others finds the messages that mention him, until they no longer do.
func TestMentionsOfManyAtOnce(t *testing.T) {
	s := newStage(t)
	var crowd []UserID
	for i := range 600 {
		crowd = append(crowd, s.Join(fmt.Sprint("Member ", i)))
		s.join(crowd[i], s.public)
	}
	one, late := crowd[500], s.Join("Late")
	s.join(late, s.public)
	g := do(s, s.ann, CreateGroup{Name: "crowd", Members: crowd})
	call := func() MessageID {
		c := say(s.public, "a", "@*crowd*")
		c.Content.Groups = []GroupID{g}
		return do(s, s.ann, c).ID
	}
	first, second := call(), call()
	s.sees(one, by("is", "mentioned"), first, second)
	s.sees(late, by("is", "mentioned"))
	do(s, s.ann, ChangeMembers{Group: g, Add: []UserID{late}})
	third := call()
	s.sees(one, by("is", "mentioned"), first, second, third)
	s.sees(late, by("is", "mentioned"), third)
	if u := s.View(late).Unread().Sorted(); len(u.Mentions) != 1 || u.Mentions[0] != third {
		t.Errorf("unread mentions: %v", u.Mentions)
	}
	do(s, s.ann, s.text(first, "nobody"))
	do(s, s.ann, DeleteMessage{Message: second})
	s.sees(one, by("is", "mentioned"), third)
	edit := s.text(first, "@*crowd*")
	edit.Content.Content.Groups = []GroupID{g}
	do(s, s.ann, edit)
	s.sees(late, by("is", "mentioned"), first, third)
}

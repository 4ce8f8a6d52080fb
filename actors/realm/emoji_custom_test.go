package realm_test

import (
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

func TestAddAndRemoveEmoji(t *testing.T) {
	s := New(t)
	adam, ann, bo, gus := s.Join("Adam", realm.Administrator), s.Join("Ann"), s.Join("Bo"), s.Join("Gus", realm.Guest)
	bot := s.JoinBot("Helper", ann)
	add := func(name string) realm.AddEmoji { return realm.AddEmoji{Name: name, Hash: "ab12", Kind: "image/jpeg"} }
	ExpectRefusal(s, gus, add("party"), "Not allowed for guest users")
	ExpectRefusal(s, bot, add("party"), "This endpoint does not accept bot requests.")
	ExpectRefusal(s, ann, add("Party"),
		"Emoji names must contain only lowercase English letters, digits, spaces, dashes, and underscores.")
	ExpectRefusal(s, ann, add("party-"), "Emoji names must end with either a letter or digit.")
	ExpectRefusal(s, ann, realm.AddEmoji{Name: "smile", BuiltIn: true},
		"Only administrators can override default emoji.")
	Do(s, ann, add(" big party"))
	s.ExpectEvents(gus, "realm_emoji")
	ExpectRefusal(s, bo, add("big_party"), "A custom emoji with this name already exists.")
	if d := s.Realm.MarkdownConfig(); len(d.Emoji) != 1 || d.Emoji[0].Name != "big_party" ||
		d.Emoji[0].File != "1.jpg" {
		t.Errorf("the Markdown configuration has %+v", d.Emoji)
	}
	u := Do(s, bo, realm.SaveUpload{Name: "same.jpg", Type: "image/jpeg", Hash: "ab12", Size: 10})
	if hash := Do(s, bo, realm.DeleteUpload{ID: u.ID}); hash != "" {
		t.Error("deleting an upload would delete the image of an emoji with the same bytes")
	}
	ExpectRefusal(s, bo, realm.RemoveEmoji{Name: "big_party"}, "Must be an organization administrator or emoji author")
	ExpectRefusal(s, ann, realm.RemoveEmoji{Name: "nosuch"}, "Emoji 'nosuch' does not exist")
	Do(s, adam, realm.RemoveEmoji{Name: "big_party"})
	if got := ListEventsOf[*realm.EmojiChanged](s, gus); len(got) != 1 || !got[0].Emoji.Deactivated ||
		len(got[0].All) != 1 {
		t.Errorf("a guest received %+v", got)
	}
	if d := s.Realm.MarkdownConfig(); len(d.Emoji) != 0 {
		t.Errorf("the Markdown configuration has %+v", d.Emoji)
	}
	Do(s, bo, add("big_party"))
	if got := s.Realm.CustomEmojis(); len(got) != 2 || got[1].ID != 2 {
		t.Errorf("%+v", got)
	}
}

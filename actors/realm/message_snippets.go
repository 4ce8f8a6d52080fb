package realm

import "strings"

// maxSnippets is how many snippets one user may have: every registration contains all of them.
const maxSnippets = 1000

// MaxSnippetTitle is the maximum length of a title in code points (protocol).
const MaxSnippetTitle = 60

// Snippet is the row of a text that a user saved for reuse.
type Snippet struct {
	ID      int64
	User    UserID
	Title   string
	Content string
	Created int64
}

func (s *Snippet) owner() UserID { return s.User }

// SnippetsOf returns a user's snippets, ordered by id.
func (r *Realm) SnippetsOf(u UserID) []Snippet { return r.small.snippets.list(u) }

// snippetBytes returns the size of the texts of a user's snippets.
func (r *Realm) snippetBytes(u UserID) (n int) {
	for _, s := range r.SnippetsOf(u) {
		n += len(s.Content)
	}
	return n
}

// AddSnippet asks to save a text.
type AddSnippet struct{ Title, Content string }

func (c AddSnippet) Decide(t *Turn) (int64, error) {
	me := t.Me()
	if me == nil {
		return 0, errNotMember()
	}
	if t.sumCharged(me.ID, t.small.snippets.count) >= maxSnippets {
		return 0, BadRequest("Too many saved snippets (limit: %d)", maxSnippets)
	}
	s := Snippet{
		ID: t.nextID("snippet"), User: me.ID, Title: strings.TrimSpace(c.Title),
		Content: strings.TrimSpace(c.Content), Created: t.Now,
	}
	if err := checkOwnTexts("saved snippets", t.sumCharged(me.ID, t.snippetBytes)+len(s.Content)); err != nil {
		return 0, err
	}
	t.Record(&SnippetAdded{s})
	return s.ID, nil
}

// SnippetAdded says that a user saved a text.
type SnippetAdded struct{ Snippet Snippet }

func (*SnippetAdded) EventType() string { return "saved_snippets" }

func (f *SnippetAdded) apply(r *Realm) {
	s := f.Snippet
	r.reserveID("snippet", s.ID)
	r.small.snippets.put(s.ID, &s)
}

func (f *SnippetAdded) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.Snippet.User), Event: f}}
}

// ChangeSnippet asks to change a saved text. Nil fields stay unchanged.
type ChangeSnippet struct {
	ID             int64
	Title, Content *string
}

func (c ChangeSnippet) Decide(t *Turn) (Done, error) {
	old := t.small.snippets.findOwned(t.User, c.ID)
	if old == nil {
		return Done{}, Missing("Saved snippet does not exist.")
	}
	s := *old
	if c.Title != nil {
		s.Title = strings.TrimSpace(*c.Title)
	}
	if c.Content != nil {
		s.Content = strings.TrimSpace(*c.Content)
	}
	if err := checkOwnTexts("saved snippets", t.sumCharged(t.User,
		t.snippetBytes)+len(s.Content)-len(old.Content)); err != nil {
		return Done{}, err
	}
	if s != *old {
		t.Record(&SnippetChanged{s})
	}
	return Done{}, nil
}

// SnippetChanged says that a saved text was changed.
type SnippetChanged struct{ Snippet Snippet }

func (*SnippetChanged) EventType() string { return "saved_snippets" }

func (f *SnippetChanged) apply(r *Realm) { s := f.Snippet; r.small.snippets.put(s.ID, &s) }

func (f *SnippetChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.Snippet.User), Event: f}}
}

// RemoveSnippet asks to delete a saved text.
type RemoveSnippet struct{ ID int64 }

func (c RemoveSnippet) Decide(t *Turn) (Done, error) {
	if t.small.snippets.findOwned(t.User, c.ID) == nil {
		return Done{}, Missing("Saved snippet does not exist.")
	}
	t.Record(&SnippetRemoved{t.User, c.ID})
	return Done{}, nil
}

// SnippetRemoved says that a saved text was deleted.
type SnippetRemoved struct {
	User UserID
	ID   int64
}

func (*SnippetRemoved) EventType() string { return "saved_snippets" }

func (f *SnippetRemoved) apply(r *Realm) { r.small.snippets.remove(f.ID) }

func (f *SnippetRemoved) notices(r *Realm) []Notice {
	return []Notice{{To: r.usersAudience(f.User), Event: f}}
}

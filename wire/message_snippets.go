package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var snippetEndpoints = []Endpoint{
	Get("/saved_snippets", func(_ *Call, v realm.View, _ noParameters) (*snippetsAnswer, error) {
		return &snippetsAnswer{each(v.SnippetsOf(v.User), newSnippet)}, nil
	}),
	CommandFromForm("POST", "/saved_snippets", func(f addSnippetForm) realm.AddSnippet {
		return realm.AddSnippet{Title: f.Title, Content: f.Content}
	}, func(id int64) *addedSnippetAnswer { return &addedSnippetAnswer{id} }),
	CommandFromForm("PATCH", "/saved_snippets/{saved_snippet_id}", changeSnippet, emptyAnswer),
	CommandFromForm("DELETE", "/saved_snippets/{saved_snippet_id}", func(f snippetIDForm) realm.RemoveSnippet {
		return realm.RemoveSnippet{ID: f.ID}
	}, emptyAnswer),
}

var snippetEvents = []EventKind{
	Event(func(e *realm.SnippetAdded, _ *Recipient) *snippetAddedEvent {
		return &snippetAddedEvent{Snippet: newSnippet(e.Snippet)}
	}),
	Event(func(e *realm.SnippetChanged, _ *Recipient) *snippetChangedEvent {
		return &snippetChangedEvent{Snippet: newSnippet(e.Snippet)}
	}),
	Event(func(e *realm.SnippetRemoved, _ *Recipient) *snippetRemovedEvent {
		return &snippetRemovedEvent{ID: e.ID}
	}),
}

type snippetsAnswer struct {
	Snippets []snippetJSON `json:"saved_snippets"`
}

type addedSnippetAnswer struct {
	ID int64 `json:"saved_snippet_id"`
}

type snippetAddedEvent struct {
	_       struct{}    `const:"type=saved_snippets op=add"`
	Snippet snippetJSON `json:"saved_snippet"`
}

type snippetChangedEvent struct {
	_       struct{}    `const:"type=saved_snippets op=update"`
	Snippet snippetJSON `json:"saved_snippet"`
}

type snippetRemovedEvent struct {
	_  struct{} `const:"type=saved_snippets op=remove"`
	ID int64    `json:"saved_snippet_id"`
}

type snippetJSON struct {
	ID      int64  `json:"id"`
	Title   string `json:"title"`
	Content string `json:"content"`
	Created int64  `json:"date_created"`
}

type snippetIDForm struct {
	ID int64 `path:"saved_snippet_id"`
}

type addSnippetForm struct {
	Title   string `form:"title,required,strip,minlen=1,maxlen=60"`
	Content string `form:"content,required,strip,minlen=1,maxlen=10000"`
}

type changeSnippetForm struct {
	ID      int64            `path:"saved_snippet_id"`
	Title   form.Opt[string] `form:"title,strip,minlen=1,maxlen=60"`
	Content form.Opt[string] `form:"content,strip,minlen=1,maxlen=10000"`
}

func changeSnippet(f changeSnippetForm) realm.ChangeSnippet {
	return realm.ChangeSnippet{ID: f.ID, Title: pointerIfSet(f.Title), Content: pointerIfSet(f.Content)}
}

func newSnippet(s realm.Snippet) snippetJSON { return snippetJSON{s.ID, s.Title, s.Content, s.Created} }

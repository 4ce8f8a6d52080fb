package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var snippetEndpoints = []Endpoint{
	Get("/saved_snippets", func(_ *Call, v realm.View, _ none) (Answer, error) {
		return Answer{"saved_snippets": snippetObjects(v.SnippetsOf(v.User))}, nil
	}).Says("{saved_snippets: [Snippet]}"),
	Do("POST", "/saved_snippets", func(f addSnippetForm) realm.AddSnippet {
		return realm.AddSnippet{Title: f.Title, Content: f.Content}
	}, func(id int64) Answer { return Answer{"saved_snippet_id": id} }).Says("{saved_snippet_id: int}"),
	Do("PATCH", "/saved_snippets/{saved_snippet_id}", changeSnippet, silent),
	Do("DELETE", "/saved_snippets/{saved_snippet_id}", func(f snippetIDForm) realm.RemoveSnippet {
		return realm.RemoveSnippet{ID: f.ID}
	}, silent),
}

var snippetEvents = []EventKind{
	Event(func(e *realm.SnippetAdded, _ *To) any {
		return obj{"type": "saved_snippets", "op": "add", "saved_snippet": snippetObject(e.Snippet)}
	}),
	Event(func(e *realm.SnippetChanged, _ *To) any {
		return obj{"type": "saved_snippets", "op": "update", "saved_snippet": snippetObject(e.Snippet)}
	}),
	Event(func(e *realm.SnippetRemoved, _ *To) any {
		return obj{"type": "saved_snippets", "op": "remove", "saved_snippet_id": e.ID}
	}),
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
	return realm.ChangeSnippet{ID: f.ID, Title: given(f.Title), Content: given(f.Content)}
}

func snippetObjects(list []realm.Snippet) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, snippetObject(s))
	}
	return out
}

func snippetObject(s realm.Snippet) obj {
	return obj{"id": s.ID, "title": s.Title, "content": s.Content, "date_created": s.Created}
}

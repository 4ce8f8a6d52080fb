package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var snippetEndpoints = []Endpoint{
	Get("/saved_snippets", func(_ *Call, v realm.View, _ noParameters) (Answer, error) {
		return Answer{"saved_snippets": snippetObjects(v.SnippetsOf(v.User))}, nil
	}).Returns("{saved_snippets: [Snippet]}"),
	CommandFromForm("POST", "/saved_snippets", func(f addSnippetForm) realm.AddSnippet {
		return realm.AddSnippet{Title: f.Title, Content: f.Content}
	}, func(id int64) Answer { return Answer{"saved_snippet_id": id} }).Returns("{saved_snippet_id: int}"),
	CommandFromForm("PATCH", "/saved_snippets/{saved_snippet_id}", changeSnippet, emptyAnswer),
	CommandFromForm("DELETE", "/saved_snippets/{saved_snippet_id}", func(f snippetIDForm) realm.RemoveSnippet {
		return realm.RemoveSnippet{ID: f.ID}
	}, emptyAnswer),
}

var snippetEvents = []EventKind{
	EventOneOf(func(e *realm.SnippetAdded, _ *Recipient) any {
		return obj{"type": "saved_snippets", "op": "add", "saved_snippet": snippetObject(e.Snippet)}
	}),
	EventOneOf(func(e *realm.SnippetChanged, _ *Recipient) any {
		return obj{"type": "saved_snippets", "op": "update", "saved_snippet": snippetObject(e.Snippet)}
	}),
	EventOneOf(func(e *realm.SnippetRemoved, _ *Recipient) any {
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
	return realm.ChangeSnippet{ID: f.ID, Title: pointerIfSet(f.Title), Content: pointerIfSet(f.Content)}
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

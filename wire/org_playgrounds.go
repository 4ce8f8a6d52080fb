package wire

import (
	"slices"
	"strings"

	"github.com/yosida95/uritemplate/v3"

	"parley/actors/realm"
)

var playgroundEndpoints = []Endpoint{
	CommandFromForm("POST", "/realm/playgrounds", func(f addPlaygroundForm) realm.AddPlayground {
		return realm.AddPlayground{Name: f.Name, Language: f.Language, Template: f.Template,
			TemplateError: playgroundFault(strings.TrimSpace(f.Template))}
	}, newIDAnswer),
	CommandFromForm("DELETE", "/realm/playgrounds/{playground_id}", func(f playgroundForm) realm.RemovePlayground {
		return realm.RemovePlayground{ID: f.ID}
	}, emptyAnswer),
}

var playgroundEvents = []EventKind{
	Event(func(e *realm.PlaygroundsChanged, to *Recipient) *playgroundsEvent {
		return &playgroundsEvent{Playgrounds: each(e.List, newPlayground)}
	}),
}

type playgroundsEvent struct {
	_           struct{}         `const:"type=realm_playgrounds"`
	Playgrounds []playgroundJSON `json:"realm_playgrounds"`
}

// playgroundJSON has the language under two keys, because older clients read the older key.
type playgroundJSON struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	Language    string `json:"highlighter_language"`
	OldLanguage string `json:"pygments_language"`
	Template    string `json:"url_template"`
}

type playgroundForm struct {
	ID int64 `path:"playground_id"`
}

type addPlaygroundForm struct {
	Name     string `form:"name,required"`
	Language string `form:"highlighter_language,alias=pygments_language,required"`
	Template string `form:"url_template,required"`
}

// playgroundFault returns the first error in the URL template of a playground, or nil.
func playgroundFault(text string) error {
	t, err := uritemplate.New(text)
	if err != nil || !opensWebPage(text) {
		return realm.ErrBadField("url_template", "Invalid URL template.")
	}
	names := t.Varnames()
	switch {
	case !slices.Contains(names, "code"):
		return realm.ErrBadField("__all__", `Missing the required variable "code" in the URL template`)
	case slices.ContainsFunc(names, func(n string) bool { return n != "code" }):
		return realm.ErrBadField("__all__", `"code" should be the only variable present in the URL template`)
	}
	return nil
}

// opensWebPage reports whether every URL of a template is one of http or https, at a host that the template begins
// with. Clients open the URL at a click, so javascript: and data: would run code of a member.
func opensWebPage(template string) bool {
	lower := strings.ToLower(template)
	for _, scheme := range []string{"https://", "http://"} {
		if rest, ok := strings.CutPrefix(lower, scheme); ok {
			return rest != "" && !strings.ContainsRune("{/?#:@", rune(rest[0]))
		}
	}
	return false
}

func newPlayground(p realm.Playground) playgroundJSON {
	return playgroundJSON{p.ID, p.Name, p.Language, p.Language, p.Template}
}

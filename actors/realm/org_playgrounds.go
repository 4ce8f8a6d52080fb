package realm

import "strings"

// Playground is the row of a website on which code of one language can be run.
type Playground struct {
	ID       int64
	Name     string
	Language string
	Template string // RFC 6570 template of its URL, with the one variable code
}

// Limits of playgrounds. The lengths are in code points; the protocol limits only that of the language. The number is
// limited because every change sends the whole list to all users.
const (
	maxPlaygroundName     = 255
	maxPlaygroundLanguage = 40
	maxPlaygroundTemplate = 4096
	maxPlaygrounds        = 200
)

// Playgrounds returns the organization's playgrounds in the order they were added.
func (r *Realm) Playgrounds() []Playground { return r.small.playgrounds.list() }

// ErrBadField refuses a row with an invalid field. The protocol names the field beside the text; "__all__" means the
// whole row.
func ErrBadField(field, msg string) *Refusal {
	return BadRequest("%s", msg).With("errors", map[string]any{field: []string{msg}})
}

// blankField is the protocol's text for an empty field.
const blankField = "This field cannot be blank."

// AddPlayground asks to add a playground. Fault is the error of the caller's check of the template. It is returned
// after the other checks.
type AddPlayground struct {
	Name, Language, Template string
	TemplateError            error
}

func (c AddPlayground) Decide(t *Turn) (int64, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return 0, err
	}
	p := Playground{t.nextID("playground"),
		strings.TrimSpace(c.Name), strings.TrimSpace(c.Language), strings.TrimSpace(c.Template)}
	switch {
	case p.Name == "":
		return 0, ErrBadField("name", blankField)
	case runeCount(p.Name) > maxPlaygroundName:
		return 0, BadRequest("name is too long (limit: %d characters)", maxPlaygroundName)
	case p.Language == "":
		return 0, ErrBadField("highlighter_language", blankField)
	case runeCount(p.Language) > maxPlaygroundLanguage:
		return 0, BadRequest("highlighter_language is too long (limit: %d characters)", maxPlaygroundLanguage)
	case strings.Trim(strings.ToLower(p.Language), "abcdefghijklmnopqrstuvwxyz0123456789_.+#- ") != "":
		return 0, BadRequest("Invalid characters in pygments language")
	case runeCount(p.Template) > maxPlaygroundTemplate:
		return 0, BadRequest("url_template is too long (limit: %d characters)", maxPlaygroundTemplate)
	case c.TemplateError != nil:
		return 0, c.TemplateError
	}
	for _, o := range t.small.playgrounds.all() {
		if o.Name == p.Name && o.Language == p.Language {
			return 0, ErrBadField("__all__",
				"Realm playground with this Realm, Pygments language and Name already exists.")
		}
	}
	if t.small.playgrounds.size() >= maxPlaygrounds {
		return 0, BadRequest("Too many playgrounds (limit: %d)", maxPlaygrounds)
	}
	if err := t.checkRegistrationSize(registeredRowBytes + len(p.Name) + len(p.Template)); err != nil {
		return 0, err
	}
	t.Record(&PlaygroundAdded{p})
	return p.ID, nil
}

// PlaygroundAdded says that a playground was added.
type PlaygroundAdded struct{ Playground Playground }

func (f *PlaygroundAdded) apply(r *Realm) {
	p := f.Playground
	r.reserveID("playground", p.ID)
	r.small.playgrounds.put(p.ID, &p)
}

func (f *PlaygroundAdded) notices(r *Realm) []Notice { return r.playgroundNotices() }

// RemovePlayground asks to remove a playground.
type RemovePlayground struct{ ID int64 }

func (c RemovePlayground) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	if t.small.playgrounds.find(c.ID) == nil {
		return Done{}, BadRequest("Invalid playground")
	}
	t.Record(&PlaygroundRemoved{c.ID})
	return Done{}, nil
}

// PlaygroundRemoved says that a playground was removed.
type PlaygroundRemoved struct{ ID int64 }

func (f *PlaygroundRemoved) apply(r *Realm)            { r.small.playgrounds.remove(f.ID) }
func (f *PlaygroundRemoved) notices(r *Realm) []Notice { return r.playgroundNotices() }

// PlaygroundsChanged is the event realm_playgrounds with the whole list.
type PlaygroundsChanged struct{ List []Playground }

func (*PlaygroundsChanged) EventType() string { return "realm_playgrounds" }

// playgroundNotices sends the whole list to all users.
func (r *Realm) playgroundNotices() []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: &PlaygroundsChanged{r.Playgrounds()}}}
}

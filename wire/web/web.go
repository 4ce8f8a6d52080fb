package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"html/template"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

//go:embed templates locale style.css server.js passkey.js icon.svg client.html service_worker.js dist
var content embed.FS

// Language is a language of pages.
type Language = language.Tag

// Page is one page to be rendered.
type Page struct {
	Language Language // of Match
	CSRF     string   // token for the page's forms
	View
}

// View is the content of a page: the name of its template, its title, and the data that the template shows.
type View struct {
	Template string
	Title    string // in English, or a name, which is not translated
	Error    string // shown above the content; "" for none
	Client   bool   // the page starts the client in the browser; it shows the content only without scripts
	Script   string // path of the script that the page loads; "" for none
	Wide     bool   // the page has tables
	Data     any
}

// StylePath is the path of the stylesheet. It changes with the content, so browsers can keep the file for ever.
var StylePath = "/static/parley/style-" + hash(Style()) + ".css"

// Style returns the stylesheet.
func Style() []byte { return mustRead("style.css") }

// IconPath is the path of the icon that browsers show beside the title of a page. It changes with the content, too.
var IconPath = "/static/parley/icon-" + hash(Icon()) + ".svg"

// Icon returns the icon.
func Icon() []byte { return mustRead("icon.svg") }

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

func mustRead(name string) []byte {
	b, err := content.ReadFile(name)
	if err != nil {
		panic("BUG: read embedded file: " + err.Error())
	}
	return b
}

// languages are the languages with translations; the first one is the fallback.
var languages = listLanguages()

// dictionaries have the texts and templates of each language. They are read when the first page in that language is
// rendered: most servers show pages in few languages, and those of all take megabytes.
var dictionaries = func() map[language.Tag]func() *dictionary {
	all := map[language.Tag]func() *dictionary{}
	for _, tag := range languages {
		all[tag] = sync.OnceValue(func() *dictionary { return readDictionary(tag) })
	}
	return all
}()

// dictionary has the texts of a language, and its templates by name.
type dictionary struct {
	printer   *message.Printer
	patterns  []pattern
	templates map[string]func() *template.Template
}

// pattern is a text with one unknown part, such as the error about an address.
type pattern struct {
	before, after string
	translated    string // with %s for the unknown part
}

var matcher = language.NewMatcher(languages)

// minPatternBytes is the length of the known parts of a pattern: a text that a user has chosen must not fit by chance.
const minPatternBytes = 15

// listLanguages returns English and the languages of the translations.
func listLanguages() []language.Tag {
	tags := []language.Tag{language.English}
	files, err := content.ReadDir("locale")
	if err != nil {
		panic("BUG: list translations: " + err.Error())
	}
	for _, f := range files {
		tags = append(tags, language.MustParse(strings.TrimSuffix(f.Name(), ".json")))
	}
	return tags
}

// readDictionary reads the translations of a language. English has none.
func readDictionary(tag language.Tag) *dictionary {
	d, c := &dictionary{}, catalog.NewBuilder(catalog.Fallback(language.English))
	for english, translated := range readTranslations(tag) {
		if err := c.SetString(tag, english, translated); err != nil {
			panic("BUG: translation of " + english + ": " + err.Error())
		}
		before, after, ok := strings.Cut(english, "%s")
		if ok && !strings.Contains(after, "%s") && len(before)+len(after) >= minPatternBytes {
			d.patterns = append(d.patterns, pattern{before, after, translated})
		}
	}
	// The longest one that fits is used, whatever the order of the file.
	slices.SortFunc(d.patterns, func(a, b pattern) int {
		return cmp.Or(len(b.before)+len(b.after)-len(a.before)-len(a.after), strings.Compare(a.before, b.before))
	})
	d.printer = message.NewPrinter(tag, message.Catalog(c))
	d.templates = d.readTemplates(tag)
	return d
}

// readTranslations returns the texts of a language by the English ones.
func readTranslations(tag language.Tag) (list map[string]string) {
	if tag == language.English {
		return nil
	}
	name := path.Join("locale", tag.String()+".json")
	if err := json.Unmarshal(mustRead(name), &list); err != nil {
		panic("BUG: translations " + name + ": " + err.Error())
	}
	return list
}

// Languages returns the languages in which pages can be shown.
func Languages() []Language { return languages }

// Match returns the language of a page for the value of an Accept-Language header.
func Match(accept string) Language {
	wanted, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		return languages[0]
	}
	_, index, _ := matcher.Match(wanted...)
	return languages[index]
}

// NewMatcher returns a function that chooses, of several language codes, the one that fits the value of an
// Accept-Language header best, or "".
func NewMatcher(codes []string) func(accept string) string {
	var tags []language.Tag
	var known []string
	for _, code := range codes {
		if tag, err := language.Parse(code); err == nil {
			tags, known = append(tags, tag), append(known, code)
		}
	}
	matcher := language.NewMatcher(tags)
	return func(accept string) string {
		wanted, _, err := language.ParseAcceptLanguage(accept)
		if err != nil || len(wanted) == 0 || len(known) == 0 {
			return ""
		}
		_, index, confidence := matcher.Match(wanted...)
		if confidence == language.No {
			return ""
		}
		return known[index]
	}
}

// readTemplates returns the templates of pages by name. Each is parsed when its page is first rendered.
func (d *dictionary) readTemplates(tag language.Tag) map[string]func() *template.Template {
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"t": func(english string, args ...any) string {
			return translate(d.printer, d.patterns, english, args)
		},
		"rightToLeft": func() bool { return isRightToLeft(tag) },
		"style":       func() string { return StylePath },
		"icon":        func() string { return IconPath },
		"client":      func() clientFiles { return client },
		"manifest":    func() string { return ManifestPath },
		"labelled": func(label string, fields []APIField) labelledFields {
			return labelledFields{label,
				fields}
		},
	}).Parse(string(mustRead("templates/layout.html"))))
	template.Must(layout.Parse(string(mustRead("client.html"))))
	files, err := content.ReadDir("templates")
	if err != nil {
		panic("BUG: list templates: " + err.Error())
	}
	all := map[string]func() *template.Template{}
	for _, f := range files {
		if f.Name() == "layout.html" {
			continue
		}
		all[strings.TrimSuffix(f.Name(), ".html")] = sync.OnceValue(func() *template.Template {
			return template.Must(template.Must(layout.Clone()).Parse(string(mustRead("templates/" + f.Name()))))
		})
	}
	return all
}

// isRightToLeft reports whether a language is written from right to left.
func isRightToLeft(tag language.Tag) bool {
	script, _ := tag.Script()
	return script.String() == "Arab" || script.String() == "Hebr"
}

// translate returns a text in the language of the printer. Without args, % has no meaning in it: so a text from
// elsewhere, such as an error, is never taken for a format. If it fits a pattern, the text around the unknown part is
// translated.
func translate(p *message.Printer, patterns []pattern, english string, args []any) string {
	if len(args) > 0 {
		return p.Sprintf(english, args...)
	}
	if !strings.Contains(english, "%") {
		if translated := p.Sprintf(english); translated != english {
			return translated
		}
	}
	for _, x := range patterns {
		rest, ok := strings.CutPrefix(english, x.before)
		if part, fits := strings.CutSuffix(rest, x.after); ok && fits {
			return strings.Replace(x.translated, "%s", part, 1)
		}
	}
	return english
}

// templateOf returns a template in a language, or nil.
func templateOf(tag language.Tag, name string) *template.Template {
	if read := dictionaries[tag]; read != nil {
		if parse := read().templates[name]; parse != nil {
			return parse()
		}
	}
	return nil
}

// Render returns the HTML of a page.
func Render(p Page) []byte {
	t := templateOf(p.Language, p.Template)
	if t == nil {
		panic("BUG: no template " + p.Template + " in " + p.Language.String())
	}
	name := "layout.html"
	if p.Client {
		name = "client"
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, p); err != nil {
		panic("BUG: render page: " + err.Error())
	}
	return b.Bytes()
}

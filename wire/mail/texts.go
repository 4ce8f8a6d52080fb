package mail

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"golang.org/x/text/language"

	"parley/wire"
)

//go:embed locale
var locale embed.FS

// texts are the translations of the English texts of emails into one language. English has none.
type texts map[string]string

// languages are those in which emails are written; the first one is the fallback. translations has the texts of each.
var languages, translations = loadTexts()

var languageMatcher = language.NewMatcher(languages)

func loadTexts() (tags []language.Tag, all []texts) {
	tags, all = []language.Tag{language.English}, []texts{nil}
	files, err := locale.ReadDir("locale")
	if err != nil {
		panic("BUG: list translations of emails: " + err.Error())
	}
	for _, f := range files {
		data, err := locale.ReadFile(path.Join("locale", f.Name()))
		var t texts
		if err == nil {
			err = json.Unmarshal(data, &t)
		}
		if err != nil {
			panic("BUG: translations of emails " + f.Name() + ": " + err.Error())
		}
		tags, all = append(tags, language.MustParse(strings.TrimSuffix(f.Name(), ".json"))), append(all, t)
	}
	return tags, all
}

// textsIn returns the texts in the language with a code, such as pt-br, or in the one that is nearest to it.
func textsIn(code string) texts {
	tag, err := language.Parse(code)
	if err != nil {
		return translations[0]
	}
	_, index, _ := languageMatcher.Match(tag)
	return translations[index]
}

// text returns the translation of an English text with its arguments.
func (t texts) text(english string, args ...any) string {
	if translated := t[english]; translated != "" {
		english = translated
	}
	return fmt.Sprintf(english, args...)
}

// device translates what wire.DeviceText returns.
func (t texts) device(english string) string {
	if browser, system, ok := strings.Cut(english, " on "); ok {
		return t.text("%s on %s", browser, system)
	}
	if english == wire.UnknownBrowser {
		return t.text(wire.UnknownBrowser)
	}
	return english
}

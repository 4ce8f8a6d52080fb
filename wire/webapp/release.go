package webapp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The feature levels of the releases that can read this server's registrations: those of version 12. Older ones need
// fields that the protocol no longer has, and newer ones may need fields that it does not have yet.
const (
	OldestLevel = 480
	NewestLevel = 500
)

// maxTextFile limits a file of the release that is read into memory, in bytes. The largest are translations.
const maxTextFile = 4 << 20

// Release is the official web app of one unpacked release. Its methods are safe for concurrent use.
type Release struct {
	Version string // as people know it; "" if the release does not say it
	Level   int    // feature level; 0 if the release does not say it
	// Fingerprint differs for releases whose page differs.
	Fingerprint string

	root, static    *os.Root
	scripts, styles []string // names below webpack-bundles, in the order in which the page loads them
	content         block
	head            []block
	languages       []Language
	languageList    []byte                       // JSON
	texts           map[string]map[string]string // of the page's own texts; by code, then by English text
	emojiTable      string                       // name of the table of emoji below static, "" if there is none
}

// Language is a language that the web app is translated to.
type Language struct {
	Code   string `json:"code"`   // such as pt-br
	Locale string `json:"locale"` // name of the folder with the translation, such as pt_BR
	Name   string `json:"name"`   // in the language itself
	// Percent is how much is translated, for the list in which users choose a language; nil: unknown.
	Percent *json.Number `json:"percent_translated,omitempty"`
}

// Open reads the web app of an unpacked release. It refuses one whose feature level does not fit, unless anyLevel is
// set. The errors say which file is wrong, and how.
func Open(dir string, anyLevel bool) (r *Release, err error) {
	r = &Release{}
	if r.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
			r = nil
		}
	}()
	if err := r.readVersion(anyLevel); err != nil {
		return r, err
	}
	unpacked, err := r.openStatic()
	if err != nil {
		return r, err
	}
	hash := sha256.New()
	for _, read := range []func(io.Writer) error{
		r.readStats, r.readTemplates, func(w io.Writer) error { return r.readLanguages(w, unpacked) }, r.readManifest,
	} {
		if err := read(hash); err != nil {
			return r, err
		}
	}
	io.WriteString(hash, r.Version) // a hash does not fail
	r.Fingerprint = hex.EncodeToString(hash.Sum(nil)[:12])
	return r, nil
}

// Close closes the directories.
func (r *Release) Close() (err error) {
	for _, root := range []*os.Root{r.root, r.static} {
		if root != nil {
			err = errors.Join(err, root.Close())
		}
	}
	return err
}

// read returns the content of a file of the release.
func (r *Release) read(name string) ([]byte, error) {
	f, err := r.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a file")
	}
	if err == nil && info.Size() > maxTextFile {
		err = fmt.Errorf("has more than %d bytes", maxTextFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTextFile))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// readJSON reads a file of the release into a value, and adds its content to the fingerprint.
func (r *Release) readJSON(name string, into any, fingerprint io.Writer) error {
	b, err := r.read(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fingerprint.Write(b) // a hash does not fail
	return nil
}

var (
	levelLine   = regexp.MustCompile(`(?m)^API_FEATURE_LEVEL\s*=\s*([0-9]{1,6})\b`)
	versionLine = regexp.MustCompile(`(?m)^ZULIP_VERSION\s*=\s*["']([^"'\n]{1,80})["']`)
)

// readVersion reads version and feature level, and checks that the level fits.
func (r *Release) readVersion(anyLevel bool) error {
	b, err := r.read("version.py")
	if err != nil && !anyLevel {
		return fmt.Errorf("the feature level is unknown: %w", err)
	}
	if m := versionLine.FindSubmatch(b); m != nil {
		r.Version = string(m[1])
	}
	if m := levelLine.FindSubmatch(b); m != nil {
		r.Level, _ = strconv.Atoi(string(m[1])) // it has only digits
	}
	switch {
	case anyLevel:
	case r.Level == 0:
		return errors.New("version.py has no API_FEATURE_LEVEL")
	case r.Level < OldestLevel || r.Level > NewestLevel:
		return fmt.Errorf("the release %q has feature level %d; this server can serve the web app of levels %d to %d "+
			"(web-dir-any-level tries others)", r.Version, r.Level, OldestLevel, NewestLevel)
	}
	return nil
}

// openStatic opens the directory of static files. unpacked reports whether it is that of a release; otherwise it is
// that of a source tree, which has fewer files.
func (r *Release) openStatic() (unpacked bool, err error) {
	const ofRelease = "prod-static/serve"
	for _, name := range []string{ofRelease, "static"} {
		if info, err := r.root.Stat(name + "/webpack-bundles"); err != nil || !info.IsDir() {
			continue
		}
		r.static, err = r.root.OpenRoot(name)
		return name == ofRelease, err
	}
	return false, errors.New("there is no folder prod-static/serve/webpack-bundles: is this an unpacked release?")
}

// readStats reads which scripts and stylesheets the page loads.
func (r *Release) readStats(fingerprint io.Writer) error {
	const name = "webpack-stats-production.json"
	var stats struct {
		Status string
		Chunks struct{ App []string }
	}
	if err := r.readJSON(name, &stats, fingerprint); err != nil {
		return err
	}
	if stats.Status != "done" {
		return fmt.Errorf("%s: the status is %q, not \"done\": the release was not built to the end", name,
			stats.Status)
	}
	for _, file := range stats.Chunks.App {
		list := &r.scripts
		switch filepath.Ext(file) {
		case ".css":
			list = &r.styles
		case ".js":
		default:
			continue
		}
		if !bundleName.MatchString(file) {
			return fmt.Errorf("%s: %q is not the name of a file", name, file)
		}
		if info, err := r.static.Stat("webpack-bundles/" + file); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("%s names %s, which is not in webpack-bundles", name, file)
		}
		*list = append(*list, file)
	}
	if len(r.scripts) == 0 {
		return fmt.Errorf("%s: chunks.app has no script", name)
	}
	return nil
}

// bundleName is the pattern of names that can be in an attribute without escapes.
var bundleName = regexp.MustCompile(`^[A-Za-z0-9_~@+-][A-Za-z0-9._~@+-]{0,200}$`)

// indexTemplate is the template of the page.
const indexTemplate = "templates/zerver/app/index.html"

// readTemplates parses the blocks of the page.
func (r *Release) readTemplates(fingerprint io.Writer) error {
	b, err := r.read(indexTemplate)
	if err != nil {
		return err
	}
	fingerprint.Write(b) // a hash does not fail
	for _, name := range []string{"content", "meta_viewport", "customhead"} {
		parsed, found, err := parseBlock(string(b), name)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", indexTemplate, err)
		case name == "meta_viewport" && !found:
			r.head = append(r.head,
				block{{text: `<meta name="viewport" content="width=device-width, initial-scale=1.0">`}})
		case name != "content":
			r.head = append(r.head, parsed)
		case !found:
			return fmt.Errorf("%s: there is no block content", indexTemplate)
		default:
			r.content = parsed
		}
	}
	if !bytes.Contains(b, []byte("csrf_input")) {
		return fmt.Errorf("%s: no form contains csrf_input: the web app could not change anything", indexTemplate)
	}
	return nil
}

// English is the language that needs no translation.
const English = "en"

var (
	codePattern   = regexp.MustCompile(`^[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}$`)
	localePattern = regexp.MustCompile(`^[A-Za-z]{2,3}(_[A-Za-z0-9]{2,8}){0,2}$`)
)

// maxLanguages limits the list of languages; the web app is translated to about 50.
const maxLanguages = 500

// readLanguages reads the list of languages, and the translations of the page's own texts. A source tree has no list.
func (r *Release) readLanguages(fingerprint io.Writer, unpacked bool) error {
	const name = "locale/language_name_map.json"
	var list struct {
		Languages []Language `json:"name_map"`
	}
	err := r.readJSON(name, &list, fingerprint)
	if errors.Is(err, fs.ErrNotExist) && !unpacked {
		list.Languages, err = []Language{{Code: English, Locale: English, Name: "English"}}, nil
	}
	if err != nil {
		return err
	}
	if len(list.Languages) > maxLanguages {
		return fmt.Errorf("%s has more than %d languages", name, maxLanguages)
	}
	var own []string
	for _, b := range append(slices.Clone(r.head), r.content) {
		own = append(own, b.translatable()...)
	}
	r.texts = map[string]map[string]string{}
	for _, l := range list.Languages {
		if !codePattern.MatchString(l.Code) || !localePattern.MatchString(l.Locale) {
			return fmt.Errorf("%s: the language with the code %q and the locale %q is not valid", name, l.Code,
				l.Locale)
		}
		if _, twice := r.texts[l.Code]; twice {
			return fmt.Errorf("%s has the language %s twice", name, l.Code)
		}
		r.texts[l.Code] = map[string]string{}
		r.languages = append(r.languages, l)
		b, err := r.readTranslations(l)
		if err != nil {
			return err
		}
		var all map[string]string
		if err := json.Unmarshal(b, &all); err != nil {
			return fmt.Errorf("locale/%s/translations.json: %w", l.Locale, err)
		}
		for _, english := range own {
			if text := all[english]; text != "" {
				r.texts[l.Code][english] = text
			}
		}
	}
	r.languageList, err = json.Marshal(r.languages)
	return err
}

// readTranslations returns the translations of a language as a JSON object. English has none, and a language of which
// nothing is translated has no file.
func (r *Release) readTranslations(l Language) ([]byte, error) {
	b, err := r.read("locale/" + l.Locale + "/translations.json")
	if l.Code == English || errors.Is(err, fs.ErrNotExist) {
		return []byte("{}"), nil
	}
	return b, err
}

// Languages returns the languages of the release.
func (r *Release) Languages() []Language { return r.languages }

// LanguageList returns the languages as a JSON list.
func (r *Release) LanguageList() []byte { return r.languageList }

// HasLanguage reports whether the release has a language.
func (r *Release) HasLanguage(code string) bool { return r.texts[code] != nil }

// Translations returns the translations of a language as a JSON object, in English an empty one. They are read from the
// disk, because most of the languages are never asked for.
func (r *Release) Translations(code string) ([]byte, error) {
	for _, l := range r.languages {
		if l.Code != code {
			continue
		}
		b, err := r.readTranslations(l)
		if err == nil && (!json.Valid(b) || !bytes.HasPrefix(bytes.TrimSpace(b), []byte("{"))) {
			err = fmt.Errorf("locale/%s/translations.json is not a JSON object", l.Locale)
		}
		return b, err
	}
	return []byte("{}"), nil
}

// readManifest finds the table of emoji, whose name contains a hash. A source tree has no manifest.
func (r *Release) readManifest(fingerprint io.Writer) error {
	const table = "generated/emoji/emoji_api.json"
	var manifest struct{ Paths map[string]string }
	if err := r.readJSON("staticfiles.json", &manifest, fingerprint); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range []string{manifest.Paths[table], table} {
		if !fs.ValidPath(name) || strings.ContainsAny(name, `\?#%"'<>`) {
			continue
		}
		if info, err := r.static.Stat(name); err == nil && info.Mode().IsRegular() {
			r.emojiTable = name
			return nil
		}
	}
	return nil
}

// EmojiTable returns the path of the release's table of emoji below StaticPath, or "" if it has none.
func (r *Release) EmojiTable() string { return r.emojiTable }

package webapp

import (
	"encoding/json"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/wire/webapp/webapptest"
)

const goodLevel = 500

func open(t *testing.T, files webapptest.Release) *Release {
	t.Helper()
	r, err := Open(files.Write(t), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

var paramsPattern = regexp.MustCompile(`(?s)<div hidden id="page-params" data-params='([^']*)'></div></body></html>$`)

// The page has the block of the release with the values of the page, its scripts in order, and parameters that come out
// of the attribute as they were put in.
func TestPage(t *testing.T) {
	r := open(t, webapptest.New(goodLevel))
	params := `{"a":"</div><script>alert('1')</script>&amp;\"","b":1}`
	page := string(r.HTML(&Page{Language: "de", ColorScheme: 2, Title: "A <b> org", CSRF: `to"ken`, Nonce: "n1",
		Params: []byte(params), FirefoxAndroid: true}))
	for _, want := range []string{
		`<!DOCTYPE html><html lang="de" class="dark-theme">`, `<title>A &lt;b&gt; org - Zulip</title>`,
		`<link id="favicon" rel="icon" href="/static/images/favicon.svg?v=4">`,
		`<link rel="stylesheet" href="/static/webpack-bundles/` + webapptest.Style + `">`,
		`<script defer crossorigin="anonymous" nonce="n1" src="/static/webpack-bundles/` + webapptest.Vendor +
			`"></script><script defer crossorigin="anonymous" nonce="n1" src="/static/webpack-bundles/` +
			webapptest.Script + `"></script>`,
		`<meta name="viewport" content="width=device-width, interactive-widget=resizes-content" />`,
		`<link href="/static/images/logo/apple-touch-icon-precomposed.png" rel="apple-touch-icon-precomposed" />`,
		`<p>Lade <a href="">neu</a>.</p>`, `title="&#34;Mehr&#34; laden"`, `<!-- visitors cannot read -->`,
		`<script nonce="n1">document`, `<div id="compose" ></div>`,
		`<input type="hidden" name="csrfmiddlewaretoken" value="to&#34;ken">`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s\n%s", want, page)
		}
	}
	for _, never := range []string{"{%", "{{", "{#", "gravatar", "alert('1')", "app.js.map", "a comment"} {
		if strings.Contains(page, never) {
			t.Errorf("the page contains %s\n%s", never, page)
		}
	}
	m := paramsPattern.FindStringSubmatch(page)
	if m == nil || html.UnescapeString(m[1]) != params {
		t.Errorf("parameters %q, want %q", m, params)
	}
	page = string(r.HTML(&Page{Language: "en", ColorScheme: 1, Spectators: true, Description: `"us"`,
		Params: []byte("{}")}))
	for _, want := range []string{`<html lang="en" class="color-scheme-automatic">`, "<!-- visitors can read -->",
		`content="&#34;us&#34;"`, `<p>Loading <a href="">again</a>.</p>`, `title="Load more"`,
		`content="width=device-width"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s\n%s", want, page)
		}
	}
	if list := string(r.LanguageList()); !json.Valid([]byte(list)) || !strings.Contains(list,
		`{"code":"pt-br","locale":"pt_BR","name":"Português Brasileiro","percent_translated":50}`) {
		t.Error(list)
	}
	if b, err := r.Translations("de"); err != nil || !strings.Contains(string(b), "Entwürfe") {
		t.Errorf("German: %s %v", b, err)
	}
	if b, err := r.Translations("xx"); err != nil || string(b) != "{}" {
		t.Errorf("a language that the release does not have: %s %v", b, err)
	}
}

// Every directory that cannot be served is refused, with the reason.
func TestRefusedReleases(t *testing.T) {
	const index, stats, languages = "templates/zerver/app/index.html", "webpack-stats-production.json",
		"locale/language_name_map.json"
	type files = webapptest.Release
	with := func(name, text string) func(files) { return func(f files) { f[name] = text } }
	without := func(name string) func(files) { return func(f files) { delete(f, name) } }
	replaced := func(name, from, to string) func(files) {
		return func(f files) { f[name] = strings.Replace(f[name], from, to, 1) }
	}
	for _, x := range []struct {
		why    string
		change func(files)
		any    bool
	}{
		{"version.py", without("version.py"), false},
		{"no API_FEATURE_LEVEL", with("version.py", `ZULIP_VERSION = "12.0"`), false},
		{"feature level 372; this server can serve the web app of levels 480 to 500",
			replaced("version.py", "= 500", "= 372"), false},
		{"feature level 501", replaced("version.py", "= 500", "= 501"), false},
		{"webpack-bundles: is this an unpacked release?", func(f files) {
			for name := range f {
				if strings.HasPrefix(name, "prod-static") {
					delete(f, name)
				}
			}
		}, true},
		{stats, without(stats), true},
		{stats, with(stats, "{"), true},
		{`the status is "compile", not "done"`, replaced(stats, `"done"`, `"compile"`), true},
		{"chunks.app has no script", with(stats, `{"status":"done"}`), true},
		{"is not the name of a file", replaced(stats, webapptest.Vendor, "../x.js"), true},
		{"is not the name of a file", replaced(stats, webapptest.Vendor, `x\">.js`), true},
		{"which is not in webpack-bundles", replaced(stats, webapptest.Vendor, "gone.js"), true},
		{index, without(index), true},
		{"there is no block content", replaced(index, "block content", "block contents"), true},
		{"no form contains csrf_input", replaced(index, "{{ csrf_input }}", ""), true},
		{"unknown construct {{ request.user }}", replaced(index, "{{ csp_nonce }}", "{{ request.user }}"), true},
		{"unknown construct {% include 'x' %}", replaced(index, "{# a comment #}", "{% include 'x' %}"), true},
		{"unknown construct {% if a and b %}", replaced(index, "if embedded", "if a and b"), true},
		{"unknown construct inside {% trans %}", replaced(index, "{% endtrans %}", "{{ x }}{% endtrans %}"), true},
		{"{% else %} has no beginning", replaced(index, "{# a comment #}", "{% else %}"), true},
		{"{% if %} has no end", replaced(index, "data-embedded{% endif %}", ""), true},
		{"nested conditions", replaced(index, "{# a comment #}", strings.Repeat("{% if embedded %}", 10_000)), true},
		{languages, without(languages), true},
		{"is not valid", replaced(languages, `"code":"de"`, `"code":"../de"`), true},
		{"is not valid", replaced(languages, `"locale":"de"`, `"locale":"../.."`), true},
		{"has the language de twice", replaced(languages, `"code":"pt-br"`, `"code":"de"`), true},
		{"locale/de/translations.json", with("locale/de/translations.json", "[]"), true},
		{"has more than", with("locale/de/translations.json", strings.Repeat(" ", maxTextFile+1)), true},
		{"staticfiles.json", with("staticfiles.json", "x"), true},
	} {
		f := webapptest.New(goodLevel)
		x.change(f)
		r, err := Open(f.Write(t), x.any)
		if err == nil || !strings.Contains(err.Error(), x.why) || r != nil {
			t.Errorf("%s: the error is %v", x.why, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), false); err == nil {
		t.Error("a directory that does not exist is accepted")
	}
	f := webapptest.New(372)
	if r, err := Open(f.Write(t), true); err != nil || r.Level != 372 || r.Version != "12.3" {
		t.Errorf("any level: %v", err)
	}
}

// A source tree has static instead of prod-static/serve, and no list of languages.
func TestSourceTree(t *testing.T) {
	files := webapptest.Release{}
	for name, text := range webapptest.New(goodLevel) {
		if !strings.HasPrefix(name, "locale/") && name != "staticfiles.json" {
			files[strings.Replace(name, "prod-static/serve/", "static/", 1)] = text
		}
	}
	r := open(t, files)
	if string(r.LanguageList()) != `[{"code":"en","locale":"en","name":"English"}]` ||
		r.EmojiTable() != "generated/emoji/emoji_api.json" {
		t.Errorf("languages %s, table %s", r.LanguageList(), r.EmojiTable())
	}
}

// Static files are those of one folder. No name leads to a folder, a hidden file, or out of it.
func TestFiles(t *testing.T) {
	dir := webapptest.New(goodLevel).Write(t)
	static := filepath.Join(dir, "prod-static", "serve")
	for name, to := range map[string]string{"out.txt": "../secret.txt", "etc": "/etc", "in.svg": "images/favicon.svg"} {
		if err := os.Symlink(to, filepath.Join(static, name)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, name := range []string{"", ".", "..", "../secret.txt", "images", "images/", "images/../../secret.txt",
		"/etc/passwd", "out.txt", "etc/passwd", "webpack-bundles/.hidden.0123456789abcdef0123.json",
		"images\\favicon.svg",
		"none", "images/favicon.svg/x", "images//favicon.svg", "a\x00b"} {
		if f, err := r.Open(name, true); err == nil {
			t.Errorf("%q is served", name)
			f.Close()
		}
	}
	for _, x := range []struct {
		name, kind           string
		compressed, lasting  bool
		accepts, alternative bool
	}{
		{"webpack-bundles/" + webapptest.Script, "text/javascript; charset=utf-8", true, true, true, true},
		{"webpack-bundles/" + webapptest.Script, "text/javascript; charset=utf-8", false, true, false, true},
		{"webpack-bundles/" + webapptest.Vendor, "text/javascript; charset=utf-8", false, true, true, false},
		{"webpack-bundles/files/a.0123456789abcdef0123.png", "image/png", false, true, true, false},
		{"generated/emoji/emoji_api.0123456789ab.json", "application/json", false, true, true, false},
		{"generated/emoji/emoji_api.json", "application/json", false, false, true, false},
		{"audio/notification_sounds/zulip.ogg", "audio/ogg", false, false, true, false},
		{"in.svg", "image/svg+xml", false, false, true, false},
	} {
		f, err := r.Open(x.name, x.accepts)
		if err != nil {
			t.Error(err)
			continue
		}
		b, err := io.ReadAll(f)
		if f.Compressed != x.compressed || f.Lasting != x.lasting || f.Alternatives != x.alternative ||
			f.Type != x.kind || err != nil || int64(len(b)) != f.Info.Size() {
			t.Errorf("%s: %+v, %d bytes, %v", x.name, f, len(b), err)
		}
		f.Close()
	}
	if r.EmojiTable() != "generated/emoji/emoji_api.0123456789ab.json" {
		t.Error(r.EmojiTable())
	}
}

// The fingerprint is that of the page: it differs after each change of the bundle, the template and the languages.
func TestFingerprint(t *testing.T) {
	first := open(t, webapptest.New(goodLevel)).Fingerprint
	if again := open(t, webapptest.New(goodLevel)).Fingerprint; again != first || len(first) != 24 {
		t.Errorf("equal releases have the fingerprints %s and %s", first, again)
	}
	for _, name := range []string{"webpack-stats-production.json", "templates/zerver/app/index.html",
		"locale/language_name_map.json", "staticfiles.json"} {
		f := webapptest.New(goodLevel)
		f[name] += "\n"
		if open(t, f).Fingerprint == first {
			t.Errorf("a change of %s does not change the fingerprint", name)
		}
	}
}

package web

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"testing"
)

// views is a View of each template, with text that must be escaped.
var views = []View{
	Message("Log in", "100% <b>bold</b>"),
	Failure("Page not found", "<b>bold</b>"),
	Login("A <b>bold</b> org", LoginForm{URL: "https://chat.example", Email: `"<b>`, Next: `/"<b>`, Reset: true,
		Register: true, Mobile: "ab", Desktop: "cd"}),
	Login("Demo", LoginForm{Demo: []DemoAccount{{"<b>@example.org", "<b>Ann", "Member", `/"<b>.png`}}}),
	Register(`"<b>`, "The password is too weak."),
	SignUp(`"<b>`, `"<b>`, ""),
	ForgottenPassword(`"<b>`, ""),
	NewPassword(""),
	FindAccounts(`"<b>`, ""),
	GoTo(`"<b>`, ""),
	NewOrganization(`"<b>`, `"<b>`, `"<b>`, ""),
	CreateOrganization("A <b>bold</b> org %s", `"<b>`, `"<b>`, ""),
	MessageLink(
		"Password changed",
		"Your new password is set. All browsers and apps were logged out.",
		"/login/",
		"Log in",
	),
	DesktopLogin("<b>"),
	Join("A <b>bold</b> org %s", JoinForm{Inviter: "<b>Ann</b> %d", Email: `"<b>`, Name: `"<b>`}),
	Identities(IdentitiesPage{List: []Identity{{"<b>", "<b>", "<b>", "<b>"}}, AskPassword: true,
		Providers: []Provider{{"<b>", "oidc/<b>", ""}}}),
	FactorCode(nil, "<b>"), FactorCode(passkey, "<b>"), Factor(),
	NewFactor(NewFactorData{"<b>", "data:image/png;base64,AA", true, false, nil}),
	NewFactor(NewFactorData{"<b>", "data:image/png;base64,AA", false, true, passkey}),
	Passkeys(PasskeysPage{List: []Passkey{{"<b>", "<b>", "<b>", "<b>"}}, AskPassword: true, Passkey: passkey}),
	Passkeys(PasskeysPage{}), PasskeyLogin(passkey, "/<b>"), CallPage("<b>"),
	RecoveryCodes([]string{"<b>"}, "/", ""), RecoveryCodes(nil, "", "<b>"), ResetFactor("<b>", true, "<b>"),
	LoginFailed("<b>"), ConnectLogin("<b>", "<b>"), ChooseName("<b>", "<b>", "<b>"),
	Confirm("New address", "<b>Really?</b>", "Confirm"),
	Sessions([]Session{{ID: 1, Browser: "<b>", System: "<b>", Own: true}, {ID: 2, System: "<b>"}, {ID: 3}}),
	ServerPageOf(ServerStatus{Health: "<b>", Values: []ServerValue{{Key: "<b>", Label: "Send requests", Chart: true}},
		Turns: []ServerTurn{{Kind: "<b>"}}, Bounds: []ServerBound{{Of: "<b>"}}}),
	Consent(ConsentForm{App: "<b>", Host: "<b>", User: "<b>", Rights: []string{"read"}, Lifetimes: []int64{86400},
		Password: true, Request: `"<b>`}),
	Offline(),
	apiView(""), apiView("get-b"), apiView("B"),
	Home("A <b>bold</b> org", HomeData{URL: "https://chat.example", Name: "<b>", Email: "a@example.org"}),
}

var passkey = &PasskeyForm{Do: "create", Options: `{"a":"<b>"}`, Question: "<b>", Button: "Add a passkey", Auto: true,
	Named: true, AskPassword: true, Next: "<b>", Mobile: "<b>", Desktop: "<b>"}

// Every template is rendered in every language: escaped, without scripts, with a title, a heading and labelled fields.
func TestPages(t *testing.T) {
	seen := map[string]bool{}
	field, label := regexp.MustCompile(`<input (type="email"|type="password"|name)`), regexp.MustCompile(`<label>`)
	for _, v := range views {
		seen[v.Template] = true
		for _, language := range Languages() {
			html := string(Render(Page{Language: language, CSRF: "token", View: v}))
			wanted := []string{`<html lang="` + language.String() + `"`, "<title>", "<h1>", IconPath}
			if v.Script != "" {
				html = strings.Replace(html, `<script src="`+v.Script+`" defer></script>`, "", 1)
			}
			if v.Client {
				// The only script is a file: the security policy of the page allows none in its text.
				html = strings.Replace(html, `<script type="module" src="`+client.Script+`"></script>`, "", 1)
				wanted = append(wanted, "<noscript>", client.Style)
			} else {
				wanted = append(wanted, "<main>", StylePath)
			}
			for _, want := range wanted {
				if !strings.Contains(html, want) {
					t.Errorf("%s in %s: no %s\n%s", v.Template, language, want, html)
				}
			}
			for _, never := range []string{"<b>", "<script", "style=", "%!", "ZgotmplZ"} {
				if strings.Contains(html, never) {
					t.Errorf("%s in %s contains %s\n%s", v.Template, language, never, html)
				}
			}
			if f, l := len(field.FindAllString(html, -1)), len(label.FindAllString(html, -1)); f != l {
				t.Errorf("%s in %s: %d fields, %d labels", v.Template, language, f, l)
			}
			if n := strings.Count(html, `method="post"`); n != strings.Count(
				html,
				`name="csrfmiddlewaretoken" value="token"`,
			) {
				t.Errorf("%s in %s: a form of %d has no token\n%s", v.Template, language, n, html)
			}
		}
	}
	files, err := content.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".html"); name != "layout" && !seen[name] {
			t.Errorf("template %s is not tested: add a view", name)
		}
	}
}

var translated = regexp.MustCompile(`\bt "([^"]+)"`)

// Every translation file has each text of the templates, and each has the same arguments.
func TestTranslations(t *testing.T) {
	files, err := content.ReadDir("locale")
	if err != nil {
		t.Fatal(err)
	}
	templates, err := content.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var list map[string]string
		if err := json.Unmarshal(mustRead(path.Join("locale", f.Name())), &list); err != nil {
			t.Fatal(err)
		}
		for _, name := range templates {
			for _, m := range translated.FindAllStringSubmatch(string(mustRead("templates/"+name.Name())), -1) {
				if list[m[1]] == "" {
					t.Errorf("%s has no translation of %q in %s", f.Name(), m[1], name.Name())
				}
			}
		}
		for _, v := range views { // the texts of forms are in their constructors
			if d, ok := v.Data.(formData); ok {
				wanted := []string{d.Intro, d.Button}
				if v.Template == "form" {
					wanted = append(wanted, v.Title)
				}
				for _, x := range d.Fields {
					wanted = append(wanted, x.Label)
				}
				for _, text := range wanted {
					if text != "" && list[text] == "" {
						t.Errorf("%s has no translation of %q", f.Name(), text)
					}
				}
			}
		}
		for english, text := range list {
			if strings.Count(english, "%s") != strings.Count(text, "%s") {
				t.Errorf("%s: %q and %q have different arguments", f.Name(), english, text)
			}
		}
	}
}

// A page is shown in the language that the browser prefers among those that exist, else in English.
func TestMatch(t *testing.T) {
	for accept, want := range map[string]string{"": "en", "de-AT,de;q=0.9,en;q=0.5": "de", "en-GB,de;q=0.1": "en",
		"xx": "en", "fr;q=1, de;q=0.5": "fr", "sv;q=1, de;q=0.5": "de", ";;;": "en"} {
		if got := Match(accept).String(); got != want {
			t.Errorf("Accept-Language %q: %s, want %s", accept, got, want)
		}
	}
}

// A matcher chooses among the given languages, also for regions, and none if none fits.
func TestNewMatcher(t *testing.T) {
	match := NewMatcher([]string{"en", "de", "pt-br", "zh-hans"})
	for accept, want := range map[string]string{
		"": "", "de": "de", "de-AT, en;q=0.5": "de", "pt": "pt-br", "zh-CN": "zh-hans", "fr, en;q=0.1": "en", "fr": "",
		"-;;": "", "*": "",
	} {
		if got := match(accept); got != want {
			t.Errorf("%q: %q, want %q", accept, got, want)
		}
	}
	if got := NewMatcher(nil)("de"); got != "" {
		t.Errorf("without languages: %q", got)
	}
}

// apiView is a page about an API with one operation and one object, or the page with all operations.
func apiView(name string) View {
	a, err := NewAPI([]byte(`{"paths": {"/<b>": {"get": {"operationId": "get-b", "summary": "<b>", "description": "<b>",
		"tags": ["<b>"], "parameters": [{"name": "<b>", "in": "query", "description": "<b>", "example": "<b>",
		"schema": {"type": ["string", "null"], "maxLength": 3, "default": "<b>"}}],
		"responses": {"200": {"description": "<b>", "content": {"application/json": {"schema":
		{"$ref": "#/components/schemas/B"}}}}}}}}, "components": {"schemas": {"B": {"type": "object", "properties":
		{"<b>": {"type": "array", "items": {"enum": ["<b>"]}}}, "anyOf": [{"$ref": "#/components/schemas/B"}]}}}}`))
	if err != nil {
		panic(err)
	}
	if name == "" {
		return a.Index()
	}
	v, _ := a.Page(name)
	return v
}

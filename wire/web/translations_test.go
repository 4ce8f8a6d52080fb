package web

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pageSources are the functions that make texts of pages: pages, and refusals that pages show. Without functions, all
// of a file.
var pageSources = map[string][]string{
	"../httpd/pages*.go":                  nil,
	"../httpd/limits.go":                  {"TooMany"},
	"../login_sign_up.go":                 nil,
	"../login_identities.go":              nil,
	"../login_factor.go":                  nil,
	"../login_confirm.go":                 {"errNotFresh", "errHelpSession", "confirm"},
	"../signon/*.go":                      nil,
	"../login_organizations.go":           nil,
	"../login_api_key.go":                 {"accountByPassword", "errAuthFailed", "ErrAccountDeactivated"},
	"../login_sessions.go":                {"DevelopmentLogIn"},
	"../user_edit.go":                     {"errWeakPassword"},
	"../user_email_address.go":            nil,
	"../answer_refusals.go":               {"errRealmDeactivated"},
	"../../actors/realm/login_*.go":       nil,
	"../../actors/realm/user_login.go":    nil,
	"../../actors/realm/user_help.go":     {"ErrHelpLink"},
	"../../actors/realm/invite_accept.go": nil,
	"../../actors/realm/realm_names.go": {
		"checkName",
		"CheckUserName",
		"CheckOrganizationName",
		"ErrInvalidEmail",
	},
	"../../actors/realm/org_domains.go":          {"checkEmailDomain"},
	"../../actors/realm/user_lookup.go":          {"CheckNewUser"},
	"../../actors/realm/realm_refusals.go":       {"errPermission"},
	"../../actors/realm/user_settings.go":        {"checkNewEmail"},
	"../../actors/realm/login_password_reset.go": nil,
}

// textArguments are the positions of texts in calls: of pages, and of refusals. -1 is the last argument that is a text.
var textArguments = map[string][]int{
	"web.Failure": {0, 1}, "web.Message": {0, 1}, "web.MessageLink": {0, 1, 3}, "web.Confirm": {0, 1, 2},
	"fail": {0}, "BadRequest": {0}, "Missing": {0}, "Refuse": {2}, "errJoinLink": {0},
	"realm.BadRequest": {0}, "realm.Missing": {0}, "realm.Refuse": {2},
}

// protocolOnly are texts that no page shows, with the reason.
var protocolOnly = map[string]string{
	"Method Not Allowed": "the page has a text of its own",
	"Invalid subdomain":  "the page has a text of its own",
}

// returnedTexts are the reasons of addressProblem, which refusals of invitations repeat.
var returnedTexts = []string{"Outside your domain.", "Please use your real email address."}

// literal returns the text of an expression, with %s for the parts that are not known here; false if nothing is known.
func literal(x ast.Expr, constants map[string]string) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, err == nil && x.Kind == token.STRING
	case *ast.Ident:
		text, ok := constants[x.Name]
		return text, ok
	case *ast.BinaryExpr:
		a, known := literal(x.X, constants)
		b, also := literal(x.Y, constants)
		if !known {
			a = "%s"
		}
		if !also {
			b = "%s"
		}
		return a + b, known || also
	}
	return "", false
}

// shownTexts returns the texts of pages and refusals in a file.
func shownTexts(t *testing.T, name string, functions []string) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
			for i, value := range v.Values {
				if text, ok := literal(value, nil); ok {
					constants[v.Names[i].Name] = text
				}
			}
		}
		return true
	})
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); len(functions) > 0 && (!ok || !slices.Contains(functions, f.Name.Name)) {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				name = f.Name
			case *ast.SelectorExpr:
				if p, ok := f.X.(*ast.Ident); ok {
					name = p.Name + "." + f.Sel.Name
				}
			}
			for _, i := range textArguments[name] {
				if i < len(call.Args) {
					if text, ok := literal(call.Args[i], constants); ok && text != "%s" {
						out = append(out, text)
					}
				}
			}
			return true
		})
	}
	return out
}

// Every translation file has every text that a page can show: titles, messages, and the errors of forms. A text with a
// part that is not known here, such as an address, is translated with %s for that part.
func TestPageTextsAreTranslated(t *testing.T) {
	files, err := content.ReadDir("locale")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for pattern, functions := range pageSources {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Errorf("no source %s: %v", pattern, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				for _, text := range shownTexts(t, name, functions) {
					texts[text] = name
				}
			}
		}
	}
	for _, text := range returnedTexts {
		texts[text] = "org_domains.go"
	}
	if len(texts) < 50 {
		t.Errorf("only %d texts were found", len(texts))
	}
	number := regexp.MustCompile(`%[dq]`)
	for _, f := range files {
		var list map[string]string
		if err := json.Unmarshal(mustRead(path.Join("locale", f.Name())), &list); err != nil {
			t.Fatal(err)
		}
		for text, where := range texts {
			key := number.ReplaceAllString(text, "%s")
			if list[key] == "" && protocolOnly[text] == "" {
				t.Errorf("%s has no translation of %q in %s", f.Name(), key, where)
			}
		}
	}
	for text := range protocolOnly {
		if texts[text] == "" {
			t.Errorf("protocolOnly has %q, which no source contains", text)
		}
	}
}

// Every language has the texts of all others, with the same unknown parts and without empty ones. No text is left in
// English, except names and words that both languages have.
func TestLanguagesHaveTheSameTexts(t *testing.T) {
	wanted := []string{"en", "ar", "de", "es", "fr", "it", "ja", "nl", "pt", "zh-Hans"}
	var have []string
	for _, tag := range Languages() {
		have = append(have, tag.String())
	}
	if !slices.Equal(have, wanted) {
		t.Fatalf("languages %v, want %v", have, wanted)
	}
	var german map[string]string
	if err := json.Unmarshal(mustRead("locale/de.json"), &german); err != nil {
		t.Fatal(err)
	}
	for _, name := range have[1:] {
		var list map[string]string
		if err := json.Unmarshal(mustRead("locale/"+name+".json"), &list); err != nil {
			t.Fatal(err)
		}
		same := 0
		for english := range german {
			translated := list[english]
			if translated == "" || strings.Count(translated, "%s") != strings.Count(english, "%s") ||
				strings.Count(translated, "%") != strings.Count(english, "%") {
				t.Errorf("%s: %q is translated to %q", name, english, translated)
			}
			if translated == english && strings.Contains(english, " ") && english != "%s on %s" {
				same++
				t.Logf("%s: %q is not translated", name, english)
			}
		}
		if len(list) != len(german) || same > 0 {
			t.Errorf("%s has %d texts, German has %d; %d are English", name, len(list), len(german), same)
		}
	}
}

// Pages in Arabic are written from right to left, others are not.
func TestDirectionOfPages(t *testing.T) {
	for accept, want := range map[string]bool{"ar": true, "ar-EG": true, "de": false, "zh-CN": false, "": false} {
		page := Page{Language: Match(accept), View: Message("Log in", "Log out")}
		if got := strings.Contains(string(Render(page)), `dir="rtl"`); got != want {
			t.Errorf("%q: right to left is %v", accept, got)
		}
	}
	for accept, want := range map[string]string{"zh-CN": "zh-Hans", "pt-BR": "pt", "fr-CA,en": "fr", "xx": "en"} {
		if got := Match(accept).String(); got != want {
			t.Errorf("%q gets %s, want %s", accept, got, want)
		}
	}
}

// A text with an unknown part is translated around that part, which stays as it is.
func TestTranslateAroundParts(t *testing.T) {
	for english, want := range map[string]string{
		"From now on, log in as 100%@example.org.": "Melde dich von jetzt an als 100%@example.org an.",
		"Use <b>@example.org as your address from now on?": "Von jetzt an die Adresse &lt;b&gt;@example.org " +
			"benutzen?",
		"no such text: 100%": "no such text: 100%",
	} {
		html := string(Render(Page{Language: Match("de"), View: Message("Log in", english)}))
		if !strings.Contains(html, want) {
			t.Errorf("%q is not translated to %q:\n%s", english, want, html)
		}
	}
}

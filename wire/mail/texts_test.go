package mail

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
)

// emailTexts returns the English texts that the sources of the package pass to texts.text.
func emailTexts(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{"wire.UnknownBrowser": wire.UnknownBrowser}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
				for i, value := range v.Values {
					if text := textOf(value, nil); text != "" {
						constants[v.Names[i].Name] = text
					}
				}
			}
			return true
		})
	}
	out := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "text" && len(call.Args) > 0 {
				if text := textOf(call.Args[0], constants); text != "" {
					out[text] = true
				} else {
					t.Errorf("a text is not constant: %T", call.Args[0])
				}
			}
			return true
		})
	}
	return out
}

func textOf(x ast.Expr, constants map[string]string) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(x.Value)
		return text
	case *ast.Ident:
		return constants[x.Name]
	case *ast.SelectorExpr:
		if p, ok := x.X.(*ast.Ident); ok {
			return constants[p.Name+"."+x.Sel.Name]
		}
	case *ast.BinaryExpr:
		return textOf(x.X, constants) + textOf(x.Y, constants)
	}
	return ""
}

// Every language has each text of emails, with the same unknown parts, and no others.
func TestEmailTextsAreTranslated(t *testing.T) {
	english := emailTexts(t)
	if len(english) < 50 || len(languages) != 10 {
		t.Fatalf("%d texts in %d languages", len(english), len(languages))
	}
	part := regexp.MustCompile(`%[a-z]`)
	for i, tag := range languages[1:] {
		list := translations[i+1]
		for text := range english {
			if !slices.Equal(part.FindAllString(text, -1), part.FindAllString(list[text], -1)) {
				t.Errorf("%s: %q is translated to %q", tag, text, list[text])
			}
		}
		for text, translated := range list {
			if !english[text] {
				t.Errorf("%s: no email has the text %q", tag, text)
			}
			if translated == text && strings.Contains(text, " ") {
				t.Errorf("%s: %q is not translated", tag, text)
			}
		}
	}
}

// An email is written in the language of its reader, with the codes of the setting default_language.
func TestEmailsAreInTheLanguageOfTheReader(t *testing.T) {
	u := &realm.User{Name: "Ann", Email: "ann@example.org"}
	for code, want := range map[string]string{
		"": "Hello Ann,", "en": "Hello Ann,", "en-gb": "Hello Ann,", "de": "Hallo Ann,", "fr": "Bonjour Ann,",
		"pt-br": "Olá, Ann,", "zh-hans": "Ann，您好！", "ar": "مرحبًا Ann،", "ja": "Annさん、こんにちは。", "eo": "Hello Ann,",
		"no such code": "Hello Ann,",
	} {
		e := Composer{}.AccountDeactivated(u, realm.Letterhead{Org: "Acme", Language: code}, "", wire.Site{})
		if e.Paragraphs[0] != want {
			t.Errorf("%q: %q, want %q", code, e.Paragraphs[0], want)
		}
	}
	login := Composer{}.NewLogin(realm.LoginEmail{User: u, Letterhead: realm.Letterhead{Org: "Acme", Language: "de"},
		Session: realm.BrowserSession{Agent: "no browser"}}, wire.Site{Host: "chat.example"})
	if want := "Gerät: einem unbekannten Browser"; !slices.Contains(login.Paragraphs, want) {
		t.Errorf("%q, want %q", login.Paragraphs, want)
	}
}

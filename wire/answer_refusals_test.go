package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/actors/realm"
)

var refusalKinds = map[string]realm.RefusalKind{
	"Invalid":         realm.Invalid,
	"Unauthenticated": realm.Unauthenticated,
	"Forbidden":       realm.Forbidden,
	"NotFound":        realm.NotFound,
	"TooMany":         realm.TooMany,
	"Busy":            realm.Busy,
	"TooLarge":        realm.TooLarge,
	"BadGateway":      realm.BadGateway,
	"NoSpace":         realm.NoSpace,
}

// TestEveryRefusalIsDescribed searches the source code for refusals. Each must have its code and status in
// errorCodes.
func TestEveryRefusalIsDescribed(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{".", "form", "httpd", "webhooks", "push", "mail", "../actors", "../actors/realm",
		"../cmd/parley"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no sources in %s: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) < 2 || calledName(call.Fun) != "Refuse" {
					return true
				}
				code, ok := call.Args[1].(*ast.BasicLit)
				kind, known := refusalKinds[calledName(call.Args[0])]
				if !ok || !known {
					t.Errorf("%s: a refusal must have a literal kind and code", name)
					return true
				}
				c, err := strconv.Unquote(code.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[c] = true
				if ErrorShape(statusOfKind[kind], c) == nil {
					t.Errorf("%s: %s with status %d is not in errorCodes", name, c, statusOfKind[kind])
				}
				return true
			})
		}
	}
	form := []string{"REQUEST_VARIABLE_MISSING", "REQUEST_VARIABLE_INVALID", "REQUEST_CONFUSING_VAR"}
	for _, c := range errorCodes {
		if !found[c.name] && !slices.Contains(form, c.name) {
			t.Errorf("%s is in errorCodes, but no refusal uses it", c.name)
		}
	}
}

func calledName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

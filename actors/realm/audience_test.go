package realm_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// audienceHelpers are the other functions in audience files, with the reason why they are there.
var audienceHelpers = map[string]string{
	"excludeUsers":       "removes users from an audience",
	"connectedUsers":     "the cache from which audiences of channels are combined",
	"membersExcept":      "a method of that cache",
	"onlyMembersCanSee":  "decides whether channelAudience can use the cache",
	"channelAudienceSet": "channelAudience as a set",
	"connectedMembersIn": "a part of channelAudienceSet",
}

// Functions that return the users who get an event are named and filed by one scheme, so that a reader finds all of
// them. The comment in audience.go describes it.
func TestAudienceFunctions(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		isAudienceFile := name == "audience.go" || strings.HasSuffix(name, "_audience.go")
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			isAudience := strings.HasSuffix(f.Name.Name, "Audience")
			seen[f.Name.Name] = seen[f.Name.Name] || isAudienceFile
			switch {
			case isAudience && !isAudienceFile:
				t.Errorf("%s in %s: move it to a file *_audience.go, or give it another name", f.Name.Name, name)
			case isAudience && !returnsUsers(f):
				t.Errorf("%s in %s: a function of this name returns []UserID and nothing else", f.Name.Name, name)
			case !isAudience && isAudienceFile && audienceHelpers[f.Name.Name] == "":
				t.Errorf("%s in %s: name it ...Audience, move it, or add it to audienceHelpers with a reason",
					f.Name.Name, name)
			}
		}
	}
	for name := range audienceHelpers {
		if !seen[name] {
			t.Errorf("audienceHelpers has %s, but no audience file does: remove it from the table", name)
		}
	}
}

// returnsUsers reports whether a function has the single result []UserID.
func returnsUsers(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || f.Type.Results.NumFields() != 1 {
		return false
	}
	list, ok := f.Type.Results.List[0].Type.(*ast.ArrayType)
	if !ok || list.Len != nil {
		return false
	}
	element, ok := list.Elt.(*ast.Ident)
	return ok && element.Name == "UserID"
}

package realm

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm/ids"
)

// userFields calls fn with the path of each field of a row that can have a text, the number of a user, or a set of ids.
func userFields(x reflect.Type, path string, rows map[reflect.Type]bool, fn func(path string)) {
	switch x.Kind() {
	case reflect.Pointer:
		userFields(x.Elem(), path, rows, fn)
	case reflect.Slice, reflect.Array:
		if x.Elem().Kind() == reflect.Uint8 {
			fn(path)
			return
		}
		userFields(x.Elem(), path, rows, fn)
	case reflect.Map:
		if x.Key() == reflect.TypeFor[UserID]() {
			fn(path + "[key]")
		}
		userFields(x.Elem(), path+"[]", rows, fn)
	case reflect.Struct:
		if x == reflect.TypeFor[ids.Set]() || path != "" && rows[x] {
			fn(path)
			return
		}
		for i := range x.NumField() {
			userFields(x.Field(i).Type, strings.TrimPrefix(path+"."+x.Field(i).Name, "."), rows, fn)
		}
	case reflect.String, reflect.Interface:
		fn(path)
	default:
		if x == reflect.TypeFor[UserID]() {
			fn(path)
		}
	}
}

// declaredFunctions returns the names of the functions and methods of this package, those of
// methods also with the receiver.
func declaredFunctions(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			out[f.Name.Name] = true
			if f.Recv == nil {
				continue
			}
			x := f.Recv.List[0].Type
			if p, ok := x.(*ast.StarExpr); ok {
				x = p.X
			}
			if receiver, ok := x.(*ast.Ident); ok {
				out[receiver.Name+"."+f.Name.Name] = true
			}
		}
	}
	return out
}

// Each field of each table that can have data of a user is erased by a function, or has the reason why it remains, and
// it is exported, or has the reason why not. New row types and fields fail until they have an entry.
func TestEveryUserFieldIsErasedOrRemains(t *testing.T) {
	functions := declaredFunctions(t)
	listed := map[string]bool{}
	for _, x := range UserDataFields {
		if (x.ErasedBy == "") == (x.Remains == "") || (x.ExportedAs == "") == (x.NotExported == "") || x.Kind == "" {
			t.Errorf("%s %s: want either ErasedBy or Remains, either ExportedAs or NotExported, and Kind", x.Row,
				x.Fields)
		}
		if x.NotExported != "" && !slices.Contains(ReasonsNotExported, x.NotExported) {
			t.Errorf("%s %s: %q is not one of ReasonsNotExported", x.Row, x.Fields, x.NotExported)
		}
		if n := max(1, len(strings.Fields(x.Fields))); x.ExportedAs != "" && len(x.Places()) != n {
			t.Errorf("%s %s: %d places in the export for %d fields", x.Row, x.Fields, len(x.Places()), n)
		}
		if x.ErasedBy != "" && !functions[x.ErasedBy] {
			t.Errorf("%s %s: there is no function %s", x.Row, x.Fields, x.ErasedBy)
		}
		listed[x.Row+" "] = true
		for _, f := range strings.Fields(x.Fields) {
			if listed[x.Row+" "+f] {
				t.Errorf("%s %s has two entries", x.Row, f)
			}
			listed[x.Row+" "+f] = true
		}
	}
	r, rows, found := New(1), map[reflect.Type]bool{}, map[string]bool{}
	for _, x := range r.RowTypes() {
		rows[x] = true
	}
	for _, table := range r.allTables {
		x := table.rowType()
		found[x.Name()+" "] = true
		userFields(x, "", rows, func(path string) { found[x.Name()+" "+path] = true })
		sparse, ok := reflect.TypeOf(table).Elem().FieldByName("sparse")
		if !ok {
			t.Fatalf("the table of %v has no map of its rows", x)
		}
		if sparse.Type.Key() == reflect.TypeFor[UserID]() {
			found[x.Name()+" Key"] = true
		}
	}
	for f := range found {
		if !listed[f] {
			t.Errorf("%s is not in UserDataFields: erase it, or give the reason why it remains", f)
		}
	}
	for f := range listed {
		if !found[f] {
			t.Errorf("%s is in UserDataFields, but no table has it", f)
		}
	}
}

// A new fact number is above the pinned maximum and has a rule level. A smaller number lets an older program open newer
// data without refusing it. The commit that adds a number adds it to factLevels.
func TestNewFactNumbers(t *testing.T) {
	// The largest number, and how many types there are, that programs of FirstLevel and ImportLevel know.
	const newestPinned, pinnedTypes = 621, 178
	old := 0
	for n, x := range TypesByNumber() {
		switch {
		case n <= newestPinned:
			old++
		case factLevels[n] <= ImportLevel || factLevels[n] > Level:
			t.Errorf("%v has the number %d, but its level %d is not above %d and at most %d: see factLevels", x, n,
				factLevels[n], ImportLevel, Level)
		}
	}
	if old != pinnedTypes {
		t.Errorf("%d types have numbers up to %d, want %d: a new type takes a number above %d", old, newestPinned,
			pinnedTypes, newestPinned)
	}
	for _, n := range formatNumbers {
		if n > newestPinned && factLevels[n] <= ImportLevel {
			t.Errorf("the change of format %d has no level: see factLevels", n)
		}
	}
}

package realm

import (
	"reflect"
	"strings"
	"testing"
)

// A row's text field that is called Hash, or ends with File, names a file.
func TestRowsSayWhichFilesTheyName(t *testing.T) {
	for _, x := range New(1).RowTypes() {
		row := reflect.New(x)
		want := 0
		for i := range x.NumField() {
			if f := x.Field(i); f.Type.Kind() == reflect.String && (f.Name == "Hash" || strings.HasSuffix(f.Name, "File")) {
				row.Elem().Field(i).SetString("name")
				want++
			}
		}
		if got := len(RowFiles(row.Interface())); got != want {
			t.Errorf("%v has %d fields that name files, RowFiles finds %d of them: add it there, or exports are without its files", x, want, got)
		}
	}
	if done := RowFiles(&Export{Name: "n", Ended: 1}); len(done) != 1 {
		t.Error("a finished export's file is forgotten")
	}
}

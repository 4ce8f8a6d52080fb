package realm

import (
	"reflect"
	"strings"
	"testing"
)

// A row's text field that is called Hash, or ends with File, names a file.
func TestRowFilesFindsEveryFileField(t *testing.T) {
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

// A sweep removes what NamedFiles does not find: it must find what RowFiles finds, and the files of exports under way.
func TestReferencedFilesFindsRowFiles(t *testing.T) {
	kinds := map[string]string{}
	for _, x := range New(1).RowTypes() {
		row := reflect.New(x)
		for i := range x.NumField() {
			if f := x.Field(i); f.Type.Kind() == reflect.String && (f.Name == "Hash" || strings.HasSuffix(f.Name, "File")) {
				row.Elem().Field(i).SetString(x.Name() + " " + f.Name)
			}
		}
		for _, f := range RowFiles(row.Interface()) {
			kinds[*f.Name] = f.Kind
		}
	}
	r := New(1)
	r.org.put(0, &Organization{Next: map[string]int64{"upload": 3 * maxUploadsPerScan}, IconFile: "Organization IconFile", LogoFile: "Organization LogoFile", NightLogoFile: "Organization NightLogoFile"})
	r.users.put(7, &User{ID: 7, AvatarFile: "User AvatarFile"})
	r.small.emoji.put(1, &CustomEmoji{Hash: "CustomEmoji Hash"})
	r.small.uploads.put(3*maxUploadsPerScan, &Upload{Hash: "Upload Hash"})
	for i, e := range []Export{{Name: "under way"}, {Name: "done", Ended: 1}, {Name: "failed", Failed: 1}, {Name: "deleted", Ended: 1, Deleted: 2}} {
		r.small.exports.put(int64(i), &e)
	}
	kinds["under way"], kinds["done"] = ArchiveFile, ArchiveFile
	found := func(kind string, name string) bool {
		steps := 0
		for from := int64(1); from != 0; steps++ {
			var named []string
			if named, from = r.ViewAs(Caller{System: true}, 0).ReferencedFiles(kind, map[string]bool{name: true}, from); len(named) > 0 {
				return true
			}
		}
		if kind == ContentFile && steps < 3 {
			t.Errorf("all uploads were looked at in %d steps", steps)
		}
		return false
	}
	for name, kind := range kinds {
		if !found(kind, name) {
			t.Errorf("%s is not found, and would be removed", name)
		}
	}
	for _, name := range []string{"failed", "deleted"} {
		if found(ArchiveFile, name) {
			t.Errorf("the %s export's file stays", name)
		}
	}
	if found(ContentFile, "nobody's") {
		t.Error("a name nobody has is found")
	}
}

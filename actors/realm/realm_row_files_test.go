package realm

import (
	"reflect"
	"strings"
	"testing"
)

// A text field of a row refers to a file if its name is Hash or ends with File.
func TestRowFilesFindsEveryFileField(t *testing.T) {
	for _, x := range New(1).RowTypes() {
		row := reflect.New(x)
		want := 0
		for i := range x.NumField() {
			if f := x.Field(i); f.Type.Kind() == reflect.String &&
				(f.Name == "Hash" || strings.HasSuffix(f.Name, "File")) {
				row.Elem().Field(i).SetString("name")
				want++
			}
		}
		if got := len(RowFiles(row.Interface())); got != want {
			t.Errorf("%v has %d fields that refer to files, RowFiles finds %d: "+
				"add the missing ones to RowFiles, or exports lack these files", x, want, got)
		}
	}
	if done := RowFiles(&Export{Name: "n", Ended: 1}); len(done) != 1 {
		t.Error("RowFiles does not return the file of a finished export")
	}
}

// A sweep deletes files that ReferencedFiles does not return. So it must find the same files as RowFiles, and the files
// of running exports.
func TestReferencedFilesFindsRowFiles(t *testing.T) {
	kinds := map[string]string{}
	for _, x := range New(1).RowTypes() {
		row := reflect.New(x)
		for i := range x.NumField() {
			if f := x.Field(i); f.Type.Kind() == reflect.String &&
				(f.Name == "Hash" || strings.HasSuffix(f.Name, "File")) {
				row.Elem().Field(i).SetString(x.Name() + " " + f.Name)
			}
		}
		for _, f := range RowFiles(row.Interface()) {
			kinds[*f.Name] = f.Kind
		}
	}
	r := New(1)
	r.org.put(0, &Organization{
		Next: map[string]int64{"upload": 3 * maxUploadsPerScan}, IconFile: "Organization IconFile",
		LogoFile: "Organization LogoFile", NightLogoFile: "Organization NightLogoFile",
	})
	r.users.put(7, &User{ID: 7, AvatarFile: "User AvatarFile"})
	r.small.emoji.put(1, &CustomEmoji{Hash: "CustomEmoji Hash"})
	r.small.uploads.put(3*maxUploadsPerScan, &Upload{Hash: "Upload Hash"})
	for i, e := range []Export{
		{Name: "under way"}, {Name: "done", Ended: 1}, {Name: "failed", Failed: 1},
		{Name: "deleted", Ended: 1, Deleted: 2},
	} {
		r.small.exports.put(int64(i), &e)
	}
	r.small.ownExports.put(7, &OwnExports{List: []OwnExport{{Name: "own deleted", Ended: 1, Deleted: 2},
		{Name: "own failed", Failed: 1}, {Name: "own done", Ended: 1}, {Name: "own under way"}}})
	kinds["under way"], kinds["done"] = ArchiveFile, ArchiveFile
	kinds["own under way"], kinds["own done"] = ArchiveFile, ArchiveFile
	found := func(kind string, name string) bool {
		steps := 0
		for from := int64(1); from != 0; steps++ {
			var named []string
			v := r.ViewAs(Caller{System: true}, 0)
			if named, from = v.ReferencedFiles(kind, map[string]bool{name: true}, from); len(named) > 0 {
				return true
			}
		}
		if kind == ContentFile && steps < 3 {
			t.Errorf("all uploads were searched in %d steps, want at least 3", steps)
		}
		return false
	}
	for name, kind := range kinds {
		if !found(kind, name) {
			t.Errorf("%s is not found, so a sweep would delete it", name)
		}
	}
	for _, name := range []string{"failed", "deleted", "own failed", "own deleted"} {
		if found(ArchiveFile, name) {
			t.Errorf("the file of the %s export is still referenced", name)
		}
	}
	if found(ContentFile, "unknown") {
		t.Error("an unknown name is found")
	}
}

package orgfiles

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/snapshot/files"
)

// A core gives other cores what rows can name, and no other file of its data directory.
func TestFilesForCores(t *testing.T) {
	store, err := files.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	open := ForCores(store)
	saved, err := store.Save("1", strings.NewReader("text"), 100)
	if err != nil {
		t.Fatal(err)
	}
	f, err := open(realm.ContentFile, saved.Hash)
	if err != nil || f.Size() != 4 {
		t.Fatal(f, err)
	}
	f.Close()
	for _, x := range [][2]string{{realm.ContentFile, "none"}, {realm.ContentFile, "../secret"},
		{realm.PictureFile, "../../secret"}, {realm.PictureFile, ""}, {"", saved.Hash}, {"incoming", "x"},
		{realm.ArchiveFile, "../place"}, {realm.ContentFile, strings.Repeat("b", 64)}} {
		if _, err := open(x[0], x[1]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %v", x, err)
		}
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/snapshot/files"
)

// A server removes unreferenced files: files that were replaced, and files that a kill left between a file and its row.
// Files that one of two organizations refers to stay.
func TestUnreferencedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "organization")
	uploads := filepath.Join(data, "uploads")
	p := demo(t, data)
	at := p.serving()
	olive, ann := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org")
	// put uploads a file and returns the paths of the new files.
	put := func(who *account, path string, content io.Reader) (added []string) {
		t.Helper()
		before := filesUnder(t, uploads)
		if status, a, err := who.uploadTo(path, map[string]io.Reader{"a file": content}); err != nil || status != 200 {
			t.Fatalf("%s: %d %v %v", path, status, a, err)
		}
		for _, f := range filesUnder(t, uploads) {
			if !slices.Contains(before, f) {
				added = append(added, f)
			}
		}
		return added
	}
	both := put(ann, "users/me/avatar", pngOf(t, 60, 60))
	plan := ann.uploadText(t, "plan.txt", "the plan")
	p.stop()
	if out, code := runParley("export", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	if out, code := runParley("import", file, "--data", data, "--realm", "copy", "--new-keys"); code != 0 {
		t.Fatal(out)
	}
	again := func() {
		p = startProgram(t, parleyCommand("serve", "--data", data, "--listen", strings.TrimPrefix(at, "http://"),
			"--demo"))
		p.serving()
	}
	again()
	gone := put(ann, "users/me/avatar", pngOf(t, 61, 61))
	gone = append(gone, put(olive, "realm/icon", pngOf(t, 62, 62))...)
	gone = append(gone, put(olive, "realm/logo?night=true", pngOf(t, 63, 63))...)
	for path, side := range map[string]int{"users/me/avatar": 64, "realm/icon": 65, "realm/logo?night=true": 66,
		"realm/emoji/square": 67} {
		put(olive, path, pngOf(t, side, side))
	}
	put(ann, "users/me/avatar", pngOf(t, 68, 68))
	exported := func() []string { return filesUnder(t, filepath.Join(uploads, "exports")) }
	for n := range 2 {
		if _, err := olive.call("POST", "export/realm", nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the export is there", func() bool {
			a, err := olive.call("GET", "export/realm", nil)
			return err == nil && !strings.Contains(fmt.Sprint(a), "pending:true") && len(exported()) == n+1
		})
		if n == 0 {
			gone = append(gone, exported()...)
		}
	}
	if _, err := olive.call("DELETE", "export/realm/1", nil); err != nil {
		t.Fatal(err)
	}
	if len(exported()) != 1 || slices.Contains(exported(), gone[len(gone)-1]) {
		t.Fatalf("a deleted export's file stays: %v", exported())
	}
	p.kill()
	// Files that a killed process leaves: before the row of an upload, and after the row of a deleted export.
	writeFile(t, gone[len(gone)-1], "an export")
	dead, err := files.Open(uploads, nil)
	if err != nil {
		t.Fatal(err)
	}
	orphan := func(text string) string {
		x, err := dead.Save("1", strings.NewReader(text), 100)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(uploads, filepath.FromSlash(files.ContentKey(x.Hash)))
	}
	gone = append(gone, orphan("never answered"))
	old := time.Now().Add(-25 * time.Hour)
	for _, f := range filesUnder(t, uploads) {
		if err := os.Chtimes(f, old, old); err != nil {
			t.Fatal(err)
		}
	}
	orphan("not answered yet")
	want := slices.DeleteFunc(filesUnder(t, uploads), func(f string) bool { return slices.Contains(gone, f) })
	again()
	eventually(t, "the server has removed unreferenced files",
		func() bool { return strings.Contains(p.output(), "removed unreferenced files") })
	if got := filesUnder(t, uploads); !slices.Equal(got, want) {
		t.Errorf("the files are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(both) != 2 || !slices.Contains(want, both[0]) || len(gone) != 7 {
		t.Errorf("unexpected files: %v in both organizations, %v unreferenced", both, gone)
	}
	if ann.download(t, plan) != "the plan" {
		t.Error("a referenced file has another content")
	}
}

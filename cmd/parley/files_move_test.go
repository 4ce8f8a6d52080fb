package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/snapshot/files/s3/s3test"
)

// filesCommand runs parley files and checks its exit code and that its output has the texts.
func filesCommand(t *testing.T, code int, args []string, texts ...string) {
	t.Helper()
	out, got := runParley(append([]string{"files"}, args...)...)
	for _, text := range texts {
		if got != code || !strings.Contains(out, text) {
			t.Errorf("parley files %s: code %d, want %d and %q:\n%s", strings.Join(args, " "), got, code, text, out)
			return
		}
	}
}

// Files are moved to a bucket, first beside the running server and then completely, and back. The server finds them
// after each step, and the old place has none after --remove.
func TestFilesMove(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	bucket := s3test.Start(t)
	to, data := bucket.URL("moved"), filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	paths := map[string]string{}
	upload := func(text string) { paths[ann.uploadText(t, "file.txt", text)] = text }
	check := func() {
		t.Helper()
		for path, text := range paths {
			if got := ann.download(t, path); got != text {
				t.Errorf("%s is %q, want %q", path, got, text)
			}
		}
	}
	restart := func() {
		t.Helper()
		p = demo(t, data)
		ann.url = p.serving()
	}
	upload("one")
	upload("two")
	if status, a, err := ann.uploadTo("users/me/avatar", map[string]io.Reader{"a.png": pngOf(t, 60, 60)}); err != nil ||
		status != 200 {
		t.Fatalf("avatar: %d %v %v", status, a, err)
	}
	filesCommand(t, 0, []string{"move", "--to", to, "--data", data}, "Copied 4 files", "The server still uses the data")
	if n := len(bucket.Objects("moved")); n != 4 {
		t.Errorf("the bucket has %d files, want 2 uploads and 2 pictures", n)
	}
	upload("three")
	check()
	filesCommand(t, exitError, []string{"move", "--to", "s3://no-such-bucket?path-style=true&endpoint=http://" +
		bucket.Address(), "--data", data}, "no bucket no-such-bucket")
	p.stop()
	if out, code := runParley("serve", "--data", data, "--listen", "127.0.0.1:0", "--files", to); code == 0 ||
		!strings.Contains(out, "copy them first with parley files move") {
		t.Errorf("a start with another place: code %d, %s", code, out)
	}
	filesCommand(t, 0, []string{"move", "--to", to, "--data", data, "--remove"}, "Copied 1 files", "4 since an earlier",
		"4 files are referenced, 0 of them are missing", "Removed 5 files from the data directory")
	filesCommand(t, exitError, []string{"move", "--to", to, "--data", data}, "already")
	for _, kind := range []string{"content", "pictures"} {
		if left := filesUnder(t, filepath.Join(data, "uploads", kind)); len(left) != 0 {
			t.Errorf("the data directory still has %v", left)
		}
	}
	restart()
	check()
	upload("four")
	p.stop()
	filesCommand(t, 0, []string{"check", "--data", data}, "5 files are referenced, 0 of them are missing or damaged",
		"The files are in s3://")
	filesCommand(t, 0, []string{"move", "--to", "local", "--data", data, "--remove"}, "Copied 6 files")
	if left := bucket.Objects("moved"); len(left) != 1 || left[0] != "owner" {
		t.Errorf("the bucket still has %v", left)
	}
	restart()
	check()
	p.stop()
	filesCommand(t, 0, []string{"check", "--data", data}, "5 files are referenced, 0 of them are missing or damaged",
		"The files are in the data directory")
}

// parley files check finds a damaged and a missing file, and says for which organization.
func TestFilesCheck(t *testing.T) {
	b := startBucketServer(t)
	b.ann.uploadText(t, "a.txt", "damaged later")
	damaged := b.objects()[0]
	b.ann.uploadText(t, "b.txt", "missing later")
	missing := b.objects()[0]
	if missing == damaged {
		missing = b.objects()[1]
	}
	b.stop()
	b.checkStopped(2)
	writeFile(t, b.s3.Path(b.folder+"/content/"+damaged), "Damaged later")
	if err := os.Remove(b.s3.Path(b.folder + "/content/" + missing)); err != nil {
		t.Fatal(err)
	}
	filesCommand(t, exitError, []string{"check", "--data", b.data}, "missing: content/"+missing,
		"damaged: content/"+damaged, "2 of them are missing or damaged")
	filesCommand(t, exitError, []string{"check", "--data", b.data, "--quick"}, "missing: content/"+missing,
		"1 of them are missing or damaged")
}

// A restored copy of a server has the files of the original in the bucket. It removes none of them until it claims
// them, and the original removes none afterwards.
func TestFilesClaim(t *testing.T) {
	b := startBucketServer(t)
	dir := t.TempDir()
	backup, restored := filepath.Join(dir, "backup.tar"), filepath.Join(dir, "restored")
	paths := []string{b.ann.uploadText(t, "1.txt", "one"), b.ann.uploadText(t, "2.txt", "two"),
		b.ann.uploadText(t, "3.txt", "three")}
	mustRun(t, "backup", backup, "--data", b.data)
	mustRun(t, "restore", backup, restored)
	owner := filepath.Join("uploads", "owner")
	if _, err := os.Stat(filepath.Join(restored, owner)); !os.IsNotExist(err) {
		t.Errorf("the restored copy has the name of the original: %v", err)
	}
	remove := func(s *bucketServer, path string) {
		t.Helper()
		s.ann.must(t, "DELETE", fmt.Sprintf("attachments/%d", s.attachments()[path]), nil)
	}
	const foreign = "unreferenced files will not be removed from the bucket"
	copied := &bucketServer{t: t, s3: b.s3, folder: b.folder, data: restored}
	copied.start()
	eventually(t, "the copy knows that it is not the owner", func() bool {
		return strings.Contains(copied.output(), foreign)
	})
	remove(copied, paths[0])
	if got := b.ann.download(t, paths[0]); got != "one" {
		t.Errorf("the original has lost a file: %q", got)
	}
	copied.stop()
	b.stop()
	filesCommand(t, 0, []string{"claim", "--data", restored}, "now the owner of the files")
	name, err := os.ReadFile(filepath.Join(restored, owner))
	if err != nil {
		t.Fatal(err)
	}
	if inBucket, err := os.ReadFile(b.s3.Path(b.folder + "/owner")); string(inBucket) != string(name) {
		t.Errorf("the bucket belongs to %q, want %q: %v", inBucket, name, err)
	}
	copied.start()
	removed := func() bool { return len(copied.objects()) == 2 }
	eventually(t, "the new owner removes a file", func() bool {
		if id := copied.attachments()[paths[1]]; id != 0 { // the owner is not known at once
			remove(copied, paths[1])
		}
		return removed() || strings.Contains(copied.output(), foreign)
	})
	if strings.Contains(copied.output(), foreign) {
		t.Error("the new owner removes no files")
	}
	b.start()
	eventually(t, "the original knows that it is not the owner any more", func() bool {
		return strings.Contains(b.output(), foreign)
	})
	remove(b, paths[2])
	if got := copied.ann.download(t, paths[2]); got != "three" {
		t.Errorf("the new owner has lost a file: %q", got)
	}
	filesCommand(t, exitError, []string{"claim", "--data", filepath.Join(dir, "none")}, "no other owner")
}

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/cmd/internal/datadir"
)

func TestBackupOfARunningServer(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "backup.tar")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	var acked []string
	send := func(text string) {
		if _, err := ann.send(text); err != nil {
			t.Fatal(err)
		}
		acked = append(acked, text)
	}
	for i := range 20 {
		send(fmt.Sprintf("before %d", i))
	}
	before := len(acked)
	var sending sync.WaitGroup
	stop := make(chan struct{})
	sending.Add(1)
	go func() {
		defer sending.Done()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				send(fmt.Sprintf("meanwhile %d", i))
			}
		}
	}()
	if out, code := runParley("backup", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	close(stop)
	sending.Wait()
	live := digests(t, "realm", "digest", "--data", data)

	verified := digests(t, "verify", file)
	restored := filepath.Join(dir, "restored")
	if at := digests(t, "restore", file, restored); at != verified {
		t.Errorf("the verified and the restored state differ:\n%s\n%s", verified, at)
	}
	again := startProgram(t, parleyCommand("serve", "--data", restored, "--listen", "127.0.0.1:0", "--demo"))
	ann.url = again.serving()
	a, err := ann.call("GET", "messages", map[string][]string{"anchor": {"newest"}, "num_before": {"5000"},
		"num_after": {"0"}, "apply_markdown": {"false"},
		"narrow": {`[["topic","proof"]]`}})
	if err != nil {
		t.Fatal(err)
	}
	list := a["messages"].([]any)
	if len(list) < before || len(list) > len(acked) {
		t.Fatalf("%d messages restored, but %d were sent before and %d until the end", len(list), before, len(acked))
	}
	for i, m := range list {
		if got := m.(map[string]any)["content"]; got != acked[i] {
			t.Fatalf("message %d restored as %v, sent as %q", i, got, acked[i])
		}
	}

	// A backup of a stopped server contains everything.
	p.stop()
	if out, code := runParley("backup", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	if all := digests(t, "verify", file); all != live {
		t.Errorf("the live state and the last backup differ:\n%s\n%s", live, all)
	}
}

// A backup contains files that are deleted while it is taken, if its rows refer to them.
func TestBackupContainsReferencedFiles(t *testing.T) {
	dir := t.TempDir()
	data, file, restored := filepath.Join(dir, "data"), filepath.Join(dir, "backup.tar"), filepath.Join(dir, "restored")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	for n := range 300 {
		ann.uploadText(t, "file.txt", fmt.Sprintf("file %d", n))
	}
	mine := func() []any {
		a, err := ann.call("GET", "attachments", nil)
		if err != nil {
			t.Fatal(err)
		}
		return a["attachments"].([]any)
	}
	var deleting sync.WaitGroup
	deleting.Go(func() {
		for _, x := range mine() {
			if _, err := ann.call("DELETE", fmt.Sprintf("attachments/%v", x.(map[string]any)["id"]), nil); err != nil {
				t.Error(err)
			}
		}
	})
	if out, code := runParley("backup", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	deleting.Wait()
	p.stop()
	digests(t, "restore", file, restored)
	ann.url = startProgram(t, parleyCommand("serve", "--data", restored, "--listen", "127.0.0.1:0", "--demo")).serving()
	there := mine()
	for _, x := range there {
		path := x.(map[string]any)["path_id"].(string)
		if a, err := ann.call("GET", "user_uploads/"+path, nil); err != nil {
			t.Errorf("%s: %v", path, err)
		} else if r, err := http.Get(ann.url + a["url"].(string)); err != nil || r.StatusCode != 200 {
			t.Errorf("%s: %v %v", path, r, err)
		} else {
			r.Body.Close()
		}
	}
	t.Logf("%d of 300 files are in the backup", len(there))
}

func TestRestoreUpToAFact(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "backup.tar")
	p := demo(t, data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	if _, err := ann.send("to keep"); err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`at (\d+):`).FindStringSubmatch(digests(t, "realm", "digest", "--data", data))[1]
	then := digests(t, "realm", "digest", "--data", data)
	if _, err := ann.send("to take back"); err != nil {
		t.Fatal(err)
	}
	if out, code := runParley("backup", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	if got := digests(t, "restore", file, filepath.Join(dir, "earlier"), "--upto", at); got != then {
		t.Errorf("the state at that fact and the restored one differ:\n%s\n%s", then, got)
	}
	// Restore tells the operator that the secret is missing, unless the directory has one.
	for _, there := range []bool{false, true} {
		to := filepath.Join(dir, fmt.Sprint("with secret ", there))
		if there {
			secret, err := os.ReadFile(filepath.Join(data, datadir.SecretFile))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(to, 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(to, datadir.SecretFile), string(secret))
		}
		if out, code := runParley("restore", file, to); code != 0 ||
			strings.Contains(out, "links that lists of invitations show") == there {
			t.Errorf("secret in the directory: %v; code %d: %s", there, code, out)
		}
	}
	if out, code := runParley("restore", file, filepath.Join(dir, "never"), "--upto", "1=99999"); code != exitError ||
		!strings.Contains(out, "can end at") {
		t.Errorf("code %d: %s", code, out)
	}
	if out, code := runParley("restore", file, data); code != exitError ||
		!strings.Contains(out, "already contains a store") {
		t.Errorf("restore over an existing store: code %d: %s", code, out)
	}
}

// A backup that a newer program wrote is refused with the reason, and the directory stays as it is. So is a backup for
// a directory that a newer program has served. A backup without a version, by one of the first programs, is accepted.
func TestBackupOfNewerProgramIsRefused(t *testing.T) {
	dir := t.TempDir()
	file, whole := demoBackup(t, dir)
	version := fmt.Sprintf("%d\n", datadir.Version())
	const beginning = 4096 // bytes: the headers of the first file, and its content
	at := bytes.Index(whole[:beginning], []byte("\x00"+version+"\x00"))
	if first, err := tar.NewReader(bytes.NewReader(whole)).Next(); err != nil || first.Name != "data-version" ||
		at < 0 {
		t.Fatalf("the backup begins with %v, %v", first, err)
	}
	newer := bytes.Clone(whole)
	copy(newer[at+1:], "999\n")
	writeFile(t, file, string(newer))
	refused := func(reason string, args ...string) {
		t.Helper()
		if out, code := runParley(args...); code != exitError || !strings.Contains(out, reason) {
			t.Errorf("%s: code %d: %s", args[0], code, out)
		}
	}
	reason := "the backup is from a newer parley (data version 999, this program has"
	never, there := filepath.Join(dir, "never"), filepath.Join(dir, "there")
	refused(reason, "restore", file, never)
	refused(reason, "verify", file)
	if _, err := os.Stat(never); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused restore created the directory: %v", err)
	}
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(there, datadir.SecretFile)
	writeFile(t, secret, "a secret")
	refused(reason, "restore", file, there)
	if names, err := os.ReadDir(there); err != nil || len(names) != 1 {
		t.Errorf("the refused restore left %v, %v", names, err)
	}
	writeFile(t, file, string(whole))
	writeFile(t, filepath.Join(there, datadir.VersionFile), "999\n")
	refused("was served by a newer parley", "restore", file, there)

	// Without the version: the first file and its row of the manifest are missing.
	writeFile(t, file, withoutVersion(t, whole))
	digests(t, "restore", file, never)
}

// withoutVersion returns a backup as the first programs wrote it.
func withoutVersion(t *testing.T, backup []byte) string {
	t.Helper()
	var out bytes.Buffer
	from, to := tar.NewReader(bytes.NewReader(backup)), tar.NewWriter(&out)
	for {
		h, err := from.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(from)
		if err != nil {
			t.Fatal(err)
		}
		switch h.Name {
		case "data-version":
			continue
		case "manifest":
			lines := slices.DeleteFunc(strings.SplitAfter(string(data), "\n"), func(l string) bool {
				return strings.HasPrefix(l, "file data-version ") || strings.HasPrefix(l, "sum ")
			})
			text := strings.Join(lines, "")
			data = fmt.Appendf(nil, "%ssum %x\n", text, sha256.Sum256([]byte(text)))
			h.Size = int64(len(data))
		}
		if err := to.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	to.Close()
	return out.String()
}

// demoBackup returns the name and the content of a backup of a demo server, below dir.
func demoBackup(t *testing.T, dir string) (file string, content []byte) {
	t.Helper()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "backup.tar")
	p := demo(t, data)
	p.serving()
	p.stop()
	if out, code := runParley("backup", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return file, content
}

func TestDamagedBackupIsRejected(t *testing.T) {
	dir := t.TempDir()
	file, whole := demoBackup(t, dir)
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)/3] ^= 1
	for what, bytes := range map[string][]byte{"damaged": damaged, "cut off": whole[:len(whole)*2/3]} {
		if err := os.WriteFile(file, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := runParley("verify", file); code != exitError ||
			!regexp.MustCompile("damaged|cut off|EOF|header|incomplete").MatchString(out) {
			t.Errorf("%s: code %d, %s", what, code, out)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/cmd/internal/offsite"
	"parley/snapshot/files/s3/s3test"
)

// bucketBackups is a real S3 server with a key for backups.
type bucketBackups struct {
	t    *testing.T
	s3   *s3test.Server
	dir  string
	key  string
	data string
}

func startBucketBackups(t *testing.T) *bucketBackups {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	b := &bucketBackups{t: t, s3: s3test.Start(t), dir: t.TempDir()}
	b.key, b.data = filepath.Join(b.dir, "backup.key"), filepath.Join(b.dir, "data")
	b.must("backup", "--new-key", b.key)
	return b
}

// must runs a command that must succeed, and returns its output.
func (b *bucketBackups) must(args ...string) string {
	b.t.Helper()
	out, code := runParley(args...)
	if code != 0 {
		b.t.Fatalf("parley %s: %s", strings.Join(args, " "), out)
	}
	return out
}

func (b *bucketBackups) to(more ...string) []string {
	return append([]string{"backup", "--to", b.s3.URL("safe"), "--key", b.key, "--data", b.data}, more...)
}

func (b *bucketBackups) from(command string, more ...string) []string {
	return append([]string{command, "--from", b.s3.URL("safe"), "--key", b.key}, more...)
}

var sentFiles = regexp.MustCompile(`(\d+) files, \d+ bytes; (\d+) sent, (\d+) bytes`)

// backUp makes a backup and returns how many files it has, how many were sent, and their bytes.
func (b *bucketBackups) backUp() (files, sent, bytes int) {
	b.t.Helper()
	m := sentFiles.FindStringSubmatch(b.must(b.to()...))
	if m == nil {
		b.t.Fatal("the command does not say what it has sent")
	}
	files, _ = strconv.Atoi(m[1])
	sent, _ = strconv.Atoi(m[2])
	bytes, _ = strconv.Atoi(m[3])
	return files, sent, bytes
}

// largest returns the path of the largest object.
func (b *bucketBackups) largest() (path string) {
	b.t.Helper()
	var size int64
	for _, key := range b.s3.Objects("safe/objects") {
		if info, err := os.Stat(b.s3.Path("safe/objects/" + key)); err == nil && info.Size() > size {
			path, size = b.s3.Path("safe/objects/"+key), info.Size()
		}
	}
	return path
}

// texts returns the messages of a topic.
func (a *account) texts(t *testing.T) (list []string) {
	t.Helper()
	got := a.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"1000"}, "num_after": {"0"},
		"apply_markdown": {"false"}, "narrow": {`[["topic","proof"]]`}})
	for _, m := range got["messages"].([]any) {
		list = append(list, m.(map[string]any)["content"].(string))
	}
	return list
}

// waitForNextSecond returns the next second when it is over. Times of backups and facts are whole seconds.
func waitForNextSecond(t *testing.T) time.Time {
	t.Helper()
	at := time.Now().Truncate(time.Second).Add(time.Second)
	eventually(t, "the next second is over", func() bool { return time.Now().After(at.Add(time.Second)) })
	return at
}

// A backup of a running server in a bucket sends only new objects, and becomes the same organization on an empty
// machine, with uploads and pictures. Nothing in the bucket can be read without the key.
func TestBucketBackup(t *testing.T) {
	b := startBucketBackups(t)
	ann := demoAccount(t, demo(t, b.data).serving(), "ann@example.org")
	const secret = "a text that nobody else may read"
	if _, err := ann.send(secret); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		ann.uploadText(t, "file.txt", fmt.Sprint(secret, " file ", n))
	}
	path := ann.uploadText(t, "file.txt", secret)
	status, body, err := ann.uploadTo("users/me/avatar", map[string]io.Reader{"a.png": pngOf(t, 60, 60)})
	if err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	avatar := body["avatar_url"].(string)
	first, sent, bytes := b.backUp()
	if sent < 20 || sent > first {
		t.Errorf("the first backup has sent %d of %d files", sent, first)
	}
	for _, key := range b.s3.Objects("safe") {
		text, err := os.ReadFile(b.s3.Path("safe/" + key))
		if err != nil || strings.Contains(string(text), "nobody else") {
			t.Errorf("%s can be read in the bucket, %v", key, err)
		}
	}
	if _, err := ann.send("after the first backup"); err != nil {
		t.Fatal(err)
	}
	if _, again, less := b.backUp(); again > 8 || less > bytes {
		t.Errorf("the second backup has sent %d files and %d bytes, the first %d bytes", again, less, bytes)
	}
	live := digests(t, "realm", "digest", "--data", b.data)
	if verified := digests(t, b.from("verify")...); verified != live {
		t.Errorf("the live state and that of the backup differ:\n%s\n%s", live, verified)
	}
	restored := filepath.Join(b.dir, "restored")
	if at := digests(t, b.from("restore", restored)...); at != live {
		t.Errorf("the live state and the restored one differ:\n%s\n%s", live, at)
	}
	p := startProgram(t, parleyCommand("serve", "--data", restored, "--listen", "127.0.0.1:0", "--demo"))
	ann.url = p.serving()
	if texts := ann.texts(t); !slices.Equal(texts, []string{secret, "after the first backup"}) {
		t.Errorf("the restored server has %q", texts)
	}
	if got := ann.download(t, path); got != secret {
		t.Errorf("the upload is %q", got)
	}
	if r, err := http.Get(ann.url + avatar); err != nil || r.StatusCode != 200 {
		t.Errorf("the picture: %v %v", r, err)
	} else {
		r.Body.Close()
	}
	list := b.must(append(b.to()[:5], "--list")...)
	line := regexp.MustCompile(`(?m)^\d{8}T\d{6}Z-[0-9a-f]{8} .* files, \d+ bytes$`)
	if len(line.FindAllString(list, -1)) != 2 {
		t.Errorf("the list of backups is %s", list)
	}
	// Another server may not continue these backups, unless it is said to replace this one.
	out, code := runParley("backup", "--to", b.s3.URL("safe"), "--key", b.key, "--data", restored)
	if code == 0 || !strings.Contains(out, "backups of another server") {
		t.Errorf("a backup of another server: %s", out)
	}
	b.must("backup", "--to", b.s3.URL("safe"), "--key", b.key, "--data", restored, "--take-over")
}

// Objects that were cut, replaced or removed, and those of another key, are refused with a reason, by a restore and by
// verify. The next backup sends them again if it can see the fault.
func TestBucketBackupRefusesFaults(t *testing.T) {
	b := startBucketBackups(t)
	p := demo(t, b.data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	upload := ann.uploadText(t, "file.txt", strings.Repeat("an upload that is larger than any table. ", 10_000))
	p.stop()
	b.backUp()
	object := b.largest()
	whole, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what, reason string, args ...string) {
		t.Helper()
		into := filepath.Join(b.dir, "refused")
		for _, args := range [][]string{append(args, into), append([]string{"verify"}, args[1:]...)} {
			if out, code := runParley(args...); code == 0 || !strings.Contains(out, reason) {
				t.Errorf("%s: %s: %s, want %q", what, args[0], out, reason)
			}
		}
		if _, err := os.Stat(filepath.Join(into, "store")); err == nil {
			t.Errorf("%s: a store was made", what)
		}
	}
	write := func(path string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(object, whole[:len(whole)-1])
	refuse("a cut object", "it was cut, damaged or replaced: it has", b.from("restore")...)
	b.backUp()
	if info, err := os.Stat(object); err != nil || info.Size() != int64(len(whole)) {
		t.Errorf("a backup after an object was cut has not sent it again: %v", err)
	}
	damaged := slices.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	write(object, damaged)
	refuse("a damaged object", "it was cut, damaged or replaced", b.from("restore")...)
	out := b.must(append(b.from("restore", filepath.Join(b.dir, "without")), "--incomplete")...)
	if !strings.Contains(out, "left out because it is missing or damaged in the bucket: beside/uploads/content/") {
		t.Errorf("a restore without the damaged upload: %s", out)
	}
	other := *b
	other.key = filepath.Join(b.dir, "other.key")
	b.must("backup", "--new-key", other.key)
	refuse("another key", "it was encrypted with another key", other.from("restore")...)
	if out, code := runParley(other.to()...); code == 0 || !strings.Contains(out, "use its key, or another folder") {
		t.Errorf("a backup with another key: %s", out)
	}
	if out, code := runParley(other.to("--new-key", b.key)...); code == 0 || !strings.Contains(out, "file exists") {
		t.Errorf("a new key in the file of the old one: %s", out)
	}
	// An object of the same size that another server has sent, with the same key.
	another := *b
	another.data = filepath.Join(b.dir, "another")
	p = demo(t, another.data)
	ann.url = p.serving()
	demoAccount(t, ann.url, "ann@example.org").uploadText(t, "file.txt",
		strings.Repeat("an UPLOAD that is larger than any table. ", 10_000))
	p.stop()
	b.must("backup", "--to", b.s3.URL("another"), "--key", b.key, "--data", another.data)
	for _, key := range b.s3.Objects("another/objects") {
		if text, err := os.ReadFile(b.s3.Path("another/objects/" + key)); err == nil && len(text) == len(whole) {
			write(object, text)
		}
	}
	refuse("a swapped object", "it has the content of another file", b.from("restore")...)
	if err := os.Remove(object); err != nil {
		t.Fatal(err)
	}
	refuse("a missing object", "the bucket does not have objects/", b.from("restore")...)
	if b.backUp(); b.largest() != object {
		t.Error("a backup after an object was removed has not sent it again")
	}
	// The list of a backup is renamed, replaced by one of another server, and cut.
	lists := b.s3.Objects("safe/backups")
	slices.Sort(lists)
	newest := b.s3.Path("safe/backups/" + lists[len(lists)-1])
	list, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	later := b.s3.Path("safe/backups/20990101T000000Z-00000000")
	write(later, list)
	refuse("a renamed list", "it is the backup of", b.from("restore")...)
	write(later, list[:len(list)/2])
	refuse("a cut list", "it was cut, damaged or replaced", b.from("restore")...)
	write(later, []byte("not a list at all"))
	refuse("a foreign list", "cannot be read", b.from("restore")...)
	if _, sent, _ := b.backUp(); sent > 4 { // it finds the last one that can be read
		t.Errorf("beside a damaged list, a backup has sent %d files", sent)
	}
	if err := os.Remove(later); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(b.dir, "restored")
	b.must(b.from("restore", restored)...)
	ann.url = startProgram(t, parleyCommand("serve", "--data", restored, "--listen", "127.0.0.1:0", "--demo")).serving()
	if got := ann.download(t, upload); !strings.HasPrefix(got, "an upload that is larger") {
		t.Errorf("the upload is %.40q", got)
	}
}

// Regular backups: a time between two of them is restored although the server was restarted in between, which puts all
// facts behind the rows. While the bucket is down the attempts are counted in the server's metrics, and afterwards a
// backup is made.
func TestRegularBackups(t *testing.T) {
	b := startBucketBackups(t)
	debug := freeAddress(t)
	serve := func() *program {
		return startProgram(t, parleyCommand("serve", "--demo", "--data", b.data, "--listen", "127.0.0.1:0",
			"--debug-listen", debug))
	}
	p := serve()
	ann := demoAccount(t, p.serving(), "ann@example.org")
	send := func(text string) {
		t.Helper()
		if _, err := ann.send(text); err != nil {
			t.Fatal(err)
		}
	}
	send("before")
	loop := startProgram(t, parleyCommand(b.to("--every", "1h", "--keep", "7d,4w,12m")...))
	newest := func() int64 { return offsite.ReadStatus(b.data).Newest }
	eventually(t, "the first backup is made", func() bool { return newest() > 0 })
	waitForNextSecond(t)
	send("between")
	at := waitForNextSecond(t)
	send("a mistake")
	p.stop()
	p = serve()
	ann.url = p.serving()
	send("after the restart")
	p.stop()
	p = serve()
	ann.url = p.serving()
	waitForNextSecond(t)
	b.backUp() // by hand, beside the regular ones
	if every := offsite.ReadStatus(b.data).Every(); every != time.Hour {
		t.Errorf("after a backup by hand the interval is %v", every)
	}
	restored := filepath.Join(b.dir, "restored")
	b.must(append(b.from("restore", restored), "--at", at.UTC().Format(time.RFC3339))...)
	there := startProgram(t, parleyCommand("serve", "--data", restored, "--listen", "127.0.0.1:0", "--demo"))
	was := *ann
	was.url = there.serving()
	if texts := was.texts(t); !slices.Equal(texts, []string{"before", "between"}) {
		t.Errorf("the restored server has %q", texts)
	}
	future := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	out, code := runParley(append(b.from("restore", restored+"-not"), "--at", future)...)
	if code == 0 || !strings.Contains(out, "it has nothing from after that") {
		t.Errorf("a restore to a time in the future: %s", out)
	}

	loop.kill()
	b.s3.Kill()
	status := offsite.ReadStatus(b.data)
	status.Newest -= 120 // the next one is due
	text, err := json.Marshal(status)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.data, offsite.StatusFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	loop = startProgram(t, parleyCommand(b.to("--every", "1m")...))
	metric := func(name string) int {
		r, err := http.Get("http://" + debug + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, _ := io.ReadAll(r.Body)
		m := regexp.MustCompile(`(?m)^` + name + ` ([0-9.e+]+)$`).FindStringSubmatch(string(text))
		if m == nil {
			t.Fatalf("there is no metric %s", name)
		}
		n, _ := strconv.ParseFloat(m[1], 64)
		return int(n)
	}
	eventually(t, "failures are counted", func() bool { return metric("parley_backup_failures") > 0 })
	if got := metric("parley_backup_newest_timestamp_seconds"); int64(got) != status.Newest {
		t.Errorf("the newest backup is of %d, not %d", got, status.Newest)
	}
	if s := offsite.ReadStatus(b.data); !strings.Contains(s.Error, "cannot be reached") {
		t.Errorf("the recorded error is %q", s.Error)
	}
	b.s3.Resume()
	eventually(t, "the backup is made afterwards", func() bool { return newest() > status.Newest })
	if got := metric("parley_backup_failures"); got != 0 {
		t.Errorf("%d failures are counted after a backup", got)
	}
	loop.stop()
	if out := loop.output(); !strings.Contains(out, "the backup failed: ") {
		t.Errorf("the command has written %s", out)
	}
}

// A backup that is interrupted, by a stop of the server or by kill -9 of the command, leaves nothing behind, and the
// next one needs only the rest.
func TestInterruptedBucketBackup(t *testing.T) {
	b := startBucketBackups(t)
	p := demo(t, b.data)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	for n := range 10 {
		ann.uploadText(t, "file.txt", fmt.Sprint("file ", n))
	}
	proxy := b.s3.Proxy(t)
	interrupted := func() (*program, *s3test.Held) {
		t.Helper()
		held := proxy.HoldBefore("PUT")
		c := startProgram(t, parleyCommand("backup", "--to", proxy.URL("safe"), "--key", b.key, "--data", b.data))
		return c, <-held
	}
	c, held := interrupted()
	if out, code := runParley(b.to()...); code == 0 || !strings.Contains(out, "another backup") {
		t.Errorf("a second backup at the same time: %s", out)
	}
	c.kill()
	held.Release()
	left := func() []string {
		list, _ := filepath.Glob(filepath.Join(b.data, "backup.new*"))
		return list
	}
	eventually(t, "the server removes the files of a killed backup", func() bool { return len(left()) == 0 })
	c, held = interrupted()
	p.stop()
	held.Release()
	if code := c.end(); code == 0 || !strings.Contains(c.output(), "the server was stopped or upgraded") {
		t.Errorf("a backup during which the server stopped ended with %d: %s", code, c.output())
	}
	b.backUp()
	digests(t, b.from("verify")...)
	if list := left(); len(list) > 0 {
		t.Errorf("%v are left", list)
	}
	if _, err := os.Stat(filepath.Join(b.data, "backup.spool")); err == nil {
		t.Error("the spool is left")
	}
}

// The script of the restore drill compares a running server with its backup. It fails if the restored state differs.
func TestRestoreDrill(t *testing.T) {
	b := startBucketBackups(t)
	ann := demoAccount(t, demo(t, b.data).serving(), "ann@example.org")
	if _, err := ann.send("a message"); err != nil {
		t.Fatal(err)
	}
	drill := func(program string) (string, error) {
		c := exec.Command("../../.deploy/restore-drill.sh", b.data, b.s3.URL("safe"), b.key)
		c.Env = append(os.Environ(), runAsParley+"=1", "PARLEY="+program)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := drill(os.Args[0]); err != nil || !strings.Contains(out, "the digests of 1 organizations are equal") {
		t.Errorf("the drill: %v: %s", err, out)
	}
	// A program whose restored state is another one.
	liar := filepath.Join(b.dir, "liar")
	script := fmt.Sprintf("#!/bin/sh\n%s \"$@\" | case \"$*\" in *restored*) sed 's/digest [0-9a-f]*/digest %064d/';; "+
		"*) cat;; esac\n", os.Args[0], 0)
	if err := os.WriteFile(liar, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := drill(liar); err == nil || !strings.Contains(out, "the restored organizations differ") {
		t.Errorf("a drill with another state: %v: %s", err, out)
	}
}

// A backup of any core of a cluster has the files of the others. After all cores are lost, a single server and then a
// new cluster are made of the bucket, of a time between two backups that different cores have made.
func TestClusterBucketBackup(t *testing.T) {
	b := startBucketBackups(t)
	all := startCores(t, "a", "b", "c")
	leader := all.leader(all.list[0])
	follower := all.other(leader)
	ann := demoAccount(t, "http://"+follower.listen, "ann@example.org")
	path := ann.uploadText(t, "file.txt", "a file of the leader")
	if _, err := ann.send("kept"); err != nil {
		t.Fatal(err)
	}
	b.data = follower.data
	b.backUp()
	waitForNextSecond(t)
	if _, err := ann.send("between"); err != nil {
		t.Fatal(err)
	}
	at := waitForNextSecond(t).UTC()
	if _, err := ann.send("a mistake"); err != nil {
		t.Fatal(err)
	}
	b.data = leader.data
	b.backUp()
	for _, c := range all.list {
		c.program.kill()
	}
	restored := filepath.Join(b.dir, "restored")
	b.must(append(b.from("restore", restored), "--at", at.Format(time.RFC3339))...)
	first := &runningCore{name: "x", data: restored, listen: freeAddress(t)}
	again := joinCores(t, b.dir, first, "y")
	ann.url = "http://" + again.list[0].listen
	again.retry("read from the restored cluster", func() error {
		_, err := ann.call("GET", "users/me", nil)
		return err
	})
	if texts := ann.texts(t); !slices.Equal(texts, []string{"kept", "between"}) {
		t.Errorf("the restored cluster has %q", texts)
	}
	if got := ann.download(t, path); got != "a file of the leader" {
		t.Errorf("the upload is %q", got)
	}
}

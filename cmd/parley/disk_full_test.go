package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inMountNamespace is an environment variable that is set in a process that is allowed to mount file systems.
const inMountNamespace = "PARLEY_TEST_MOUNTS"

// smallFileSystem mounts a file system with so many MiB and returns its directory. If this process is not allowed to do
// that, the test is run again in a process that is, and the caller must return.
func smallFileSystem(t *testing.T, size int) (dir string, ok bool) {
	t.Helper()
	if os.Getenv(inMountNamespace) == "" {
		cmd := exec.Command("unshare", "-rm", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v",
			"-test.timeout=2m")
		cmd.Env = append(os.Environ(), inMountNamespace+"=1")
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), "=== RUN") {
			t.Skipf("no small file system can be mounted here: %v %s", err, out)
		}
		if err != nil {
			t.Errorf("%s", out)
		}
		return "", false
	}
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+strconv.Itoa(size)+"m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, true
}

// fullDisk is a server on a small file system.
type fullDisk struct {
	t     *testing.T
	dir   string
	p     *program
	ann   *account
	acked map[int64]string // messages that the server has acknowledged
	rng   *rand.Rand
}

func (d *fullDisk) start() {
	d.t.Helper()
	d.p = demo(d.t, filepath.Join(d.dir, "data"), "--disk-min-free", "20", "--disk-min-free-percent", "0",
		"--disk-read-only", "8", "--disk-ballast", "8", "--rate-limit", "0")
	at := d.p.serving()
	if d.ann == nil {
		d.ann = demoAccount(d.t, at, "ann@example.org")
	}
	d.ann.url = at
}

// free returns the free bytes of the file system.
func (d *fullDisk) free() int64 {
	d.t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		d.t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// fill takes all space but so many bytes.
func (d *fullDisk) fill(left int64) {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.dir, "filler"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	piece := make([]byte, 4096)
	for d.free() > left {
		if _, err := f.Write(piece); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			d.t.Fatal(err)
		}
	}
}

// empty gives the space back that fill has taken.
func (d *fullDisk) empty() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dir, "filler")); err != nil {
		d.t.Fatal(err)
	}
}

// send sends a message that the store cannot compress.
func (d *fullDisk) send(length int) error {
	text := make([]byte, length)
	for i := range text {
		text[i] = byte('a' + d.rng.IntN(26))
	}
	id, err := d.ann.send(string(text))
	if err == nil {
		d.acked[id] = string(text)
	}
	return err
}

// check reads every acknowledged message.
func (d *fullDisk) check(when string) {
	d.t.Helper()
	for id, text := range d.acked {
		a, err := d.ann.call("GET", "messages/"+strconv.FormatInt(id, 10), url.Values{"apply_markdown": {"false"}})
		if err != nil {
			d.t.Fatalf("%s: an acknowledged message is lost: %v", when, err)
		}
		if got := a["message"].(map[string]any)["content"]; got != text {
			d.t.Fatalf("%s: message %d: %.40q instead of %.40q", when, id, got, text)
		}
	}
}

func (d *fullDisk) health() string {
	r, body := getText(d.t, d.ann.url+"/health")
	if r.StatusCode != 200 {
		d.t.Errorf("health: status %d, %s", r.StatusCode, body)
	}
	return body
}

// refused reports whether an error is the refusal of a full disk.
func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "status 507, INSUFFICIENT_STORAGE: The server's disk is ")
}

// waitUntilWritable waits until a message can be sent.
func (d *fullDisk) waitUntilWritable() {
	d.t.Helper()
	for end := time.Now().Add(binaryTimeout); ; time.Sleep(50 * time.Millisecond) {
		err := d.send(100)
		if err == nil {
			return
		}
		if !refused(err) || time.Now().After(end) {
			d.t.Fatalf("with space again: %v", err)
		}
	}
}

// A full disk costs no acknowledged message and does not end the server: first files are refused, then every change.
// Reads and polls go on, and changes too once there is space.
func TestFullDisk(t *testing.T) {
	dir, ok := smallFileSystem(t, 64)
	if !ok {
		return
	}
	d := &fullDisk{t: t, dir: dir, acked: map[int64]string{}, rng: rand.New(rand.NewPCG(1, 1))}
	d.start()
	poller, err := d.ann.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	if status, a, _ := d.ann.upload(map[string]io.Reader{"a.txt": strings.NewReader("first")}); status != 200 {
		t.Fatalf("upload: %d %v", status, a)
	}
	if h := d.health(); h != `{"result":"success","msg":""}`+"\n" {
		t.Errorf("health: %s", h)
	}
	t.Run("files are refused first", func(t *testing.T) { d.t = t; d.filesAreRefused() })
	t.Run("members fill the disk", func(t *testing.T) { d.t = t; d.membersFillTheDisk(poller) })
	t.Run("no byte is left", func(t *testing.T) { d.t = t; d.noByteIsLeft(poller) })
	d.t = t
	d.startOnAFullDisk()
}

func (d *fullDisk) filesAreRefused() {
	status, a := 0, map[string]any(nil)
	// The server refuses before it has read the body. A client that still writes can lose the answer and tries again.
	eventually(d.t, "the refusal of an upload arrives", func() bool {
		status, a, _ = d.ann.upload(map[string]io.Reader{"large.bin": io.LimitReader(zeroReader{}, 24<<20)})
		return status != 0
	})
	if status != 507 || a["code"] != "INSUFFICIENT_STORAGE" {
		d.t.Errorf("upload that would fill the disk: %d %v", status, a)
	}
	if left, _ := filepath.Glob(filepath.Join(d.dir, "data", "uploads", "incoming", "*")); len(left) > 0 {
		d.t.Errorf("a refused upload left %v", left)
	}
	d.fill(18 << 20)
	eventually(d.t, "/health says that the disk is almost full", func() bool {
		return strings.Contains(d.health(), `"disk":"almost full`)
	})
	status, a, _ = d.ann.upload(map[string]io.Reader{"b.txt": strings.NewReader("second")})
	if status != 507 || a["code"] != "INSUFFICIENT_STORAGE" {
		d.t.Errorf("upload to an almost full disk: %d %v", status, a)
	}
	olive := demoAccount(d.t, d.ann.url, "olive@example.org")
	if _, err := olive.call("POST", "export/realm", nil); !refused(err) {
		d.t.Errorf("export on an almost full disk: %v", err)
	}
	if out, code := runParley("backup", "--data", filepath.Join(d.dir, "data"), "-"); code != exitError ||
		!strings.Contains(out, "almost full") {
		d.t.Errorf("backup on an almost full disk: code %d, %.200s", code, out)
	}
	if h := d.health(); !strings.Contains(h, `"disk":"almost full`) {
		d.t.Errorf("health: %s", h)
	}
	if err := d.send(100); err != nil {
		d.t.Errorf("message on an almost full disk: %v", err)
	}
}

func (d *fullDisk) membersFillTheDisk(poller *poller) {
	var err error
	for i := 0; err == nil; i++ {
		if err = d.send(9000); i > 20000 {
			d.t.Fatal("more messages were stored than fit on the disk")
		}
	}
	if !refused(err) {
		d.t.Fatalf("the last message was refused with %v", err)
	}
	eventually(d.t, "/health says that the disk is full", func() bool {
		return strings.Contains(d.health(), `"disk":"full`)
	})
	d.check("on a full disk")
	if _, err := d.ann.call("POST", "register", nil); !refused(err) {
		d.t.Errorf("registration of a queue on a full disk: %v", err)
	}
	if _, err := d.ann.call("POST", "users/me/presence", url.Values{"status": {"active"}}); err != nil {
		d.t.Errorf("presence on a full disk: %v", err)
	}
	for range d.acked { // polls go on
		_, err := poller.callWith(http.DefaultClient, "GET", "events", url.Values{"queue_id": {poller.queue},
			"last_event_id": {"-1"}, "dont_block": {"true"}})
		if err != nil {
			d.t.Fatalf("poll on a full disk: %v", err)
		}
		break
	}
	d.empty()
	d.waitUntilWritable()
	if h := d.health(); strings.Contains(h, `"disk":"full`) {
		d.t.Errorf("health with space again: %s", h)
	}
}

func (d *fullDisk) noByteIsLeft(poller *poller) {
	ballast := filepath.Join(d.dir, "data", "ballast")
	if _, err := os.Stat(ballast); err != nil {
		d.t.Errorf("before: %v", err)
	}
	const before, after = 20, 20 // messages before the disk is filled, and refused ones afterwards
	sending, underWay := make(chan error, 1), make(chan struct{})
	go func() { // messages are under way when the disk becomes full
		var last error
		for i := 0; i < before && last == nil; i++ {
			last = d.send(500)
		}
		close(underWay)
		for refusals := 0; refusals < after && (last == nil || refused(last)); {
			if last = d.send(500); refused(last) {
				refusals++
			}
		}
		sending <- last
	}()
	<-underWay
	d.fill(0)
	if err := <-sending; !refused(err) {
		d.t.Errorf("message without any space: %v", err)
	}
	d.check("without any space")
	d.empty()
	d.waitUntilWritable()
	if _, err := os.Stat(ballast); err != nil {
		d.t.Errorf("with space again: %v", err)
	}
	if _, err := d.ann.send("the last one"); err != nil {
		d.t.Fatal(err)
	}
	if err := poller.pollUntil("the last one"); err != nil {
		d.t.Errorf("poll: %v", err)
	}
}

// startOnAFullDisk kills the server on a full disk and starts it there: with the ballast, and without.
func (d *fullDisk) startOnAFullDisk() {
	d.p.kill()
	d.fill(0)
	d.start()
	d.check("after a start on a full disk")
	d.fill(4 << 20) // the start has found files that it did not need
	var err error
	eventually(d.t, "the server refuses messages after a start on a full disk", func() bool {
		err = d.send(100)
		return err != nil
	})
	if !refused(err) {
		d.t.Errorf("message after a start on a full disk: %v", err)
	}
	d.p.kill()
	data := filepath.Join(d.dir, "data")
	if err := os.Remove(filepath.Join(data, "ballast")); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	d.fill(0)
	p := startProgram(d.t, parleyCommand("serve", "--data", data, "--listen", "127.0.0.1:0"))
	if code := p.end(); code != exitError || !strings.Contains(p.output(), "make space on the file system of "+data) {
		d.t.Errorf("start without any space: code %d, %s", code, p.output())
	}
	d.empty()
	d.start()
	d.waitUntilWritable()
	d.check("after all")
	d.p.stop()
	d.t.Logf("%d messages were stored and none is lost", len(d.acked))
}

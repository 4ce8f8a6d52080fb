package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// smallDisk are the arguments of a core on a small file system.
var smallDisk = []string{"--disk-min-free", "20", "--disk-min-free-percent", "0", "--disk-read-only", "8",
	"--disk-ballast", "8"}

// A leader whose disk is full lets another core lead, so changes go on, and no acknowledged message is lost. With space
// again it has what the others have. FULL=1 also fills the disk of a core that does not lead, which goes on running and
// says so: make full-cluster.
func TestClusterFullDisk(t *testing.T) {
	small, ok := smallFileSystem(t, 160)
	if !ok {
		return
	}
	list := newCores(t, t.TempDir(), []string{"a", "b", "c"}, "--rate-limit", "0")
	list[0].data = filepath.Join(small, "a")
	list[0].args = append(list[0].args, smallDisk...)
	all := startCluster(t, list...)
	if leader := all.leader(list[1]); leader != list[0] {
		t.Fatalf("%s leads", leader.name)
	}
	d := &fullDisk{t: t, dir: small, acked: map[int64]string{}, rng: rand.New(rand.NewPCG(1, 1)),
		ann: demoAccount(t, "http://"+list[1].listen, "ann@example.org")}
	for range 20 {
		if err := d.send(1000); err != nil {
			t.Fatal(err)
		}
	}
	d.fill(4 << 20)
	full := time.Now()
	all.retry("another core leads", func() error {
		if leader := all.leader(list[1]); leader == list[0] {
			return errors.New("a still leads")
		}
		return d.send(1000)
	})
	took := time.Since(full)
	t.Logf("another core leads and stores %v after the disk was full", took.Round(time.Millisecond))
	if took > maxKillGap {
		t.Errorf("no change for %v", took)
	}
	d.check("while the disk of a core is full")
	if os.Getenv("FULL") != "" {
		all.followerHasNoSpace(d, list[0], list[1])
	}
	d.empty()
	emptied := time.Now()
	all.expectEqual()
	took = time.Since(emptied)
	t.Logf("the core has what the others have %v after it had space again", took.Round(time.Millisecond))
	if took > maxKillGap {
		t.Errorf("the core was behind for %v", took)
	}
	d.check("with space again")
}

// fullLimit is a limit for free space, in MiB, that no disk of a test has: with it, a disk counts as full.
const fullLimit = "1000000000"

// The health check of a core that does not lead says what the core does without space on its disk: it refuses neither
// messages nor files, because the leader stores them. TestFullDisk has the texts of a server that stores them itself.
func TestHealthOfFullCores(t *testing.T) {
	list := newCores(t, t.TempDir(), []string{"a", "b", "c"})
	a, full, low := list[0], list[1], list[2]
	full.args = append(full.args, "--disk-read-only", fullLimit)
	low.args = append(low.args, "--disk-min-free", fullLimit)
	all := startCluster(t, list...)
	if leader := all.leader(a); leader != a {
		t.Fatalf("%s leads", leader.name)
	}
	health := func(at *runningCore) string {
		t.Helper()
		r, body := getText(t, "http://"+at.listen+"/health")
		if r.StatusCode != 200 {
			t.Errorf("health of %s: status %d", at.name, r.StatusCode)
		}
		return strings.TrimSpace(body)
	}
	upload := func(at *runningCore) int {
		t.Helper()
		ann := demoAccount(t, "http://"+at.listen, "ann@example.org")
		status, _, err := ann.upload(map[string]io.Reader{"x.txt": strings.NewReader("x")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ann.send("x"); err != nil {
			t.Errorf("a message at %s: %v", at.name, err)
		}
		return status
	}
	const degraded = `{"result":"success","msg":"","health":"degraded","disk":"`
	for _, x := range []struct {
		at   *runningCore
		want string
	}{
		{a, `{"result":"success","msg":""}`},
		{full, degraded + `full: this core stores no change; the leader does"}`},
		{low, degraded + `almost full: this core stores no file; the leader does"}`},
	} {
		if got := health(x.at); got != x.want {
			t.Errorf("the health of %s is %s, want %s", x.at.name, got, x.want)
		}
		if status := upload(x.at); status != 200 {
			t.Errorf("a file at %s: status %d", x.at.name, status)
		}
	}
}

// followerHasNoSpace takes all space of a core that does not lead.
func (all *runningCores) followerHasNoSpace(d *fullDisk, follower, other *runningCore) {
	t := all.t
	t.Helper()
	d.fill(0)
	for range 600 { // more than the ballast, in the log and in the store
		if err := d.send(9000); err != nil {
			t.Fatalf("message while a core that does not lead has no space: %v", err)
		}
	}
	d.ann.url = "http://" + follower.listen
	eventually(t, "the core without space says so", func() bool {
		return strings.Contains(d.health(), `"disk":"full`)
	})
	if !strings.Contains(follower.program.output(), "the log rejects operations until there is space") {
		t.Error("the core without space has stored everything")
	}
	d.ann.url = "http://" + other.listen
}

// While the disks of all cores are full, changes are refused with 503 and reads go on. With space again, changes are
// stored without a restart, and no acknowledged message is lost.
func TestClusterAllDisksFull(t *testing.T) {
	if os.Getenv("FULL") == "" {
		t.Skip("filling the disks of three cores takes 15 s: make full-cluster")
	}
	small, ok := smallFileSystem(t, 250)
	if !ok {
		return
	}
	list := newCores(t, small, []string{"a", "b", "c"}, append([]string{"--rate-limit", "0"}, smallDisk...)...)
	all := startCluster(t, list...)
	d := &fullDisk{t: t, dir: small, acked: map[int64]string{}, rng: rand.New(rand.NewPCG(1, 1)),
		ann: demoAccount(t, "http://"+list[1].listen, "ann@example.org")}
	for range 20 {
		if err := d.send(1000); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range []int64{4 << 20, 0} { // below disk-read-only, and nothing
		d.fill(left)
		var err error
		eventually(t, "a change is refused", func() bool {
			err = d.send(9000)
			return err != nil
		})
		const refusal = "status 503, INSUFFICIENT_STORAGE: The disk of this server"
		// The first leader may hand over before it knows that the others have no space either. The cores share one file
		// system, so the space of a removed ballast has to be filled again.
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			d.fill(left)
			err = d.send(100)
		}
		for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Fatalf("with %d bytes left, a message was answered with %v", left, err)
			}
			d.check("while all disks are full")
			err = d.send(100)
		}
		d.empty()
		all.retry("changes are allowed again", func() error { return d.send(100) })
		all.expectEqual()
		d.check("with space again")
	}
}

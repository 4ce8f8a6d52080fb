package main

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// A leader whose disk is full lets another core lead, so changes go on, and no acknowledged message is lost. With space
// again it has what the others have.
func TestClusterFullDisk(t *testing.T) {
	small, ok := smallFileSystem(t, 160)
	if !ok {
		return
	}
	dir := t.TempDir()
	var list []*runningCore
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, &runningCore{name: name, data: filepath.Join(dir, name), listen: freeAddress(t),
			args: []string{"--rate-limit", "0"}})
	}
	list[0].data = filepath.Join(small, "a")
	list[0].args = append(list[0].args, "--disk-min-free", "20", "--disk-min-free-percent", "0",
		"--disk-read-only", "8", "--disk-ballast", "8")
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
	d.empty()
	all.expectEqual()
	d.check("with space again")
}

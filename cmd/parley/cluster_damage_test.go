package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A core with a flipped bit on its disk stops, or does not start, and names the place. The others go on, and the core
// is replaced as the operator's manual says. Package replicated tests the stream between two cores, each byte of a log
// and, in memory, most of this.
func TestClusterDamage(t *testing.T) {
	if os.Getenv("DAMAGE") == "" {
		t.Skip("replacing two cores takes 20 s: make damage-cluster")
	}
	list := newCores(t, t.TempDir(), []string{"a", "b", "c"}, "--rate-limit", "0")
	all := startCluster(t, list...)
	damaged := all.leader(list[1])
	behind := all.other(damaged)
	ann := demoAccount(t, "http://"+damaged.listen, "ann@example.org")
	send := func(at *runningCore, count int) {
		t.Helper()
		ann.url = "http://" + at.listen
		for i := range count {
			all.retry("send a message", func() error {
				_, err := ann.send(fmt.Sprint("message ", i))
				return err
			})
		}
	}

	behind.program.kill()
	send(damaged, 120) // more than the leader has read already for the core that it cannot reach
	flipBitOfLog(t, damaged.data)
	behind.start(t)
	if code := damaged.program.end(); code != exitFatal ||
		!strings.Contains(damaged.program.output(), "parley: stopped: log entry ") ||
		!strings.Contains(damaged.program.output(), "is damaged: its checksum does not match") {
		t.Errorf("the leader ended with code %d: %s", code, damaged.program.output())
	}
	send(behind, 3)
	all.replace(damaged, "the replicated log is damaged: "+filepath.Join(damaged.data, "raft"))

	damaged = all.other(all.leader(all.list[0]))
	damaged.program.kill()
	tables, err := filepath.Glob(filepath.Join(damaged.data, "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	for _, path := range tables {
		data, err := os.ReadFile(path)
		if err == nil {
			data[len(data)/10] ^= 4
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	send(all.leader(all.other(damaged)), 3)
	all.replace(damaged, ".sst")
}

// A core stops when a request needs a damaged text of its store. Clients of the core and of an edge get the text all
// the same, from the next leader. The core does not start again, and is replaced.
func TestClusterDamagedText(t *testing.T) {
	if os.Getenv("DAMAGE") == "" {
		t.Skip("replacing a core takes 10 s: make damage-cluster")
	}
	list := newCores(t, t.TempDir(), []string{"a", "b", "c"}, "--rate-limit", "0")
	all := startCluster(t, list...)
	damaged := list[0]
	ann := demoAccount(t, "http://"+list[1].listen, "ann@example.org")
	var id int64
	for _, word := range []string{"before0", "before1", "damagedx", "after0", "after1"} {
		var sent int64
		all.retry("send", func() (err error) {
			sent, err = ann.send(longText(word))
			return err
		})
		if word == "damagedx" {
			id = sent
		}
	}
	all.expectEqual()
	damaged.program.stop()
	flipBit(t, damaged.data, longText("damagedx")[4000:4018])
	damaged.start(t)
	damaged.program.serving()
	for all.leader(list[1]) != damaged {
		mustRun(t, "cluster", "move-leader", "--data", list[1].data)
		time.Sleep(200 * time.Millisecond) // the answer leaves before the leader moves
	}
	edge := startProgram(t, parleyCommand("serve", "--data", filepath.Join(t.TempDir(), "edge"), "--node", "edge",
		"--listen", freeAddress(t), "--peer-listen", freeAddress(t), "--join",
		strings.TrimSpace(mustRun(t, "cluster", "token", "--data", list[1].data, "--role", "edge"))))
	began := time.Now()
	answers := make(chan error, 2)
	for _, at := range []string{edge.serving(), "http://" + list[2].listen} {
		x := *ann
		x.url = at
		go func() {
			a, err := x.call("GET", fmt.Sprint("messages/", id), url.Values{"apply_markdown": {"false"}})
			if err == nil && a["message"].(map[string]any)["content"] != longText("damagedx") {
				err = fmt.Errorf("%s answered %.200v", at, a)
			}
			answers <- err
		}()
	}
	for range cap(answers) {
		if err := <-answers; err != nil {
			t.Errorf("the damaged text: %v", err)
		}
	}
	t.Logf("both had the text %v after they asked for it", time.Since(began).Round(time.Millisecond))
	if code := damaged.program.end(); code != exitFatal ||
		!strings.Contains(damaged.program.output(), "parley: stopped: the data of this core is damaged: ") {
		t.Errorf("the core ended with code %d: %s", code, damaged.program.output())
	}
	if edge.stop(); strings.Contains(edge.output(), "damaged") {
		t.Errorf("the edge says: %s", edge.output())
	}
	all.replace(damaged, ".sst")
}

// replace replaces a core that has ended and whose start is refused with a reason.
func (all *runningCores) replace(c *runningCore, reason string) {
	all.t.Helper()
	c.start(all.t)
	if code := c.program.end(); code != exitError || !strings.Contains(c.program.output(), reason) {
		all.t.Errorf("the start of %s ended with code %d: %s", c.name, code, c.program.output())
	}
	var rest []*runningCore
	for _, x := range all.list {
		if x != c {
			rest = append(rest, x)
		}
	}
	all.list = rest
	all.retry("remove the damaged core", func() error {
		if out, code := runParley("cluster", "remove", c.name, "--data", rest[0].data); code != 0 {
			return fmt.Errorf("code %d: %s", code, out)
		}
		return nil
	})
	all.join(&runningCore{name: c.name + "2", data: c.data + "2", listen: freeAddress(all.t), peer: freeAddress(all.t),
		args: c.args})
	all.waitForVotes()
	all.expectEqual()
}

// flipBitOfLog changes a bit of an entry near the end of a core's log.
func flipBitOfLog(t *testing.T, data string) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(data, "raft", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d files of the log, %v", len(logs), err)
	}
	path := logs[len(logs)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := len(b)
	for range 20 { // format and kind of an entry, and an operation that adds to a journal
		at = bytes.LastIndex(b[:at], []byte("\x01oa"))
		if at < 0 {
			t.Fatalf("%s has too few entries", path)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt([]byte{b[at+20] ^ 4}, int64(at+20))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

package snapshot

import (
	"bytes"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// appendMany fills many logs. Each spare is ready before it is needed.
func appendMany(t *testing.T, s *Store, secret string) {
	t.Helper()
	for n := range Seq(200) {
		fact := bytes.Repeat([]byte(secret), 3000/len(secret))
		if err := s.Append([]Entry{{Realm: 1, Epoch: 1, After: n, Facts: [][]byte{fact}}})[0]; err != nil {
			t.Error(err)
			return
		}
		for s.isWritingSpare() {
			runtime.Gosched()
		}
	}
}

// isWritingSpare reports whether a spare is being written.
func (s *Store) isWritingSpare() bool {
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	return s.logs.spare == writingSpare
}

// isSpareReady reports whether the current log was made from a spare.
func (s *Store) isSpareReady() bool {
	s.logs.mu.Lock()
	defer s.logs.mu.Unlock()
	for name, written := range s.logs.written {
		if info, err := s.fs.Stat(name); err == nil && info.Size() > written.Load() {
			return true
		}
	}
	return false
}

func TestLogsReuseZeroedFiles(t *testing.T) {
	var made, renamed atomic.Int32
	disk := vfs.NewCrashableMem()
	s, err := Open("data", crashOptions(errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch {
		case op.Kind == errorfs.OpReuseForWrite:
			t.Errorf("%s is written over", op.Path)
		case op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".log"):
			made.Add(1)
		case op.Kind == errorfs.OpRename && strings.HasSuffix(op.Path, spareFile):
			renamed.Add(1)
			spare := fileOf(t, disk, "data/store/"+spareFile)
			if len(spare) == 0 || strings.Trim(string(spare), "\x00") != "" {
				t.Errorf("a spare of %d bytes is not all zeros", len(spare))
			}
		}
		return nil
	}))))
	if err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, 1)
	appendMany(t, s, "secret")
	want := dumpStore(s)
	// The process crashes here. The next one reads its logs and removes its spare.
	left := disk.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, s)
	if renamed.Load() < 5 {
		t.Errorf("%d logs were made of spares, %d not", renamed.Load(), made.Load())
	}
	if _, err := disk.Stat("data/store/" + spareFile); err == nil {
		t.Error("Close left a spare")
	}
	s, err = Open("data", crashOptions(left))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contents", dumpStore(s), want)
	if _, err := left.Stat("data/store/" + spareFile); err == nil {
		t.Error("the spare of the process before was not removed")
	}
	mustClose(t, s)
}

func fileOf(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	b, err := readFile(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A backup once had the old bytes at one place of a log and new bytes at a later place.
func TestBackupOfAnActiveLog(t *testing.T) {
	var s *Store
	var n Seq
	appends := func(times int) {
		for range times {
			mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: n, Facts: [][]byte{make([]byte, 3000)}})
			n++
			for s.isWritingSpare() {
				runtime.Gosched()
			}
		}
	}
	copying, seen := false, map[string]bool{}
	o := crashOptions(errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileRead && strings.HasPrefix(op.Path, "data/store/") &&
			strings.HasSuffix(op.Path, ".log") &&
			copying {
			if seen[op.Path] {
				appends(20) // longer than one read
			}
			seen[op.Path] = true
		}
		return nil
	})))
	o.MemTable = 1 << 20
	var err error
	if s, err = Open("data", o); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, 1)
	for !s.isSpareReady() {
		appends(1)
	}
	var file bytes.Buffer
	copying = true
	if err := s.Backup(&file); err != nil {
		t.Fatal(err)
	}
	copying = false
	if len(seen) == 0 {
		t.Error("no log was read")
	}
	other := vfs.NewMem()
	if err := restore(&file, "data", nil, smallOptions(other)); err != nil {
		t.Fatal(err)
	}
	same(t, "findings", len(findings(t, other)), 0)
	mustClose(t, s)
}

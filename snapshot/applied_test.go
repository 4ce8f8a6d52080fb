package snapshot

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A backup of a cluster's node becomes a single node when it is restored, and stays a copy when another node installs
// it.
func TestBackupOfReplicatedStore(t *testing.T) {
	s, err := Open("data", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Replicate(1); err != nil {
		t.Fatal(err)
	}
	claim := LogEntry{Index: 5, Ops: []LogOp{{Claim: 1, Seen: AnyEpoch}}}
	add := LogEntry{Index: 6, Ops: []LogOp{{Entry: &Entry{Realm: 1, Epoch: 1, Now: 9, Facts: facts("one", "two")}}}}
	results, err := s.ApplyLog([]LogEntry{claim, add, add})
	if err != nil || results[0][0].Claimed.Epoch != 1 || results[1][0].Err != nil {
		t.Fatal(results, err)
	}
	if _, err := s.Claim(1, AnyEpoch); !errors.Is(err, ErrReplicated) {
		t.Errorf("a claim beside the log returned %v", err)
	}
	var backup bytes.Buffer
	if err := s.Backup(&backup); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	fs := vfs.NewMem()
	if err := restore(bytes.NewReader(backup.Bytes()), "data", nil, Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	single, err := Open("data", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := single.Claim(1, AnyEpoch); err != nil || c.Epoch != 2 || c.Last != 2 || single.Replicated() {
		t.Errorf("a restored single node: %+v, %v, %t", c, err, single.Replicated())
	}
	mustClose(t, single)

	fs = vfs.NewMem()
	if err := UnpackReplacement(bytes.NewReader(backup.Bytes()), "data", Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	if err := Replace("data", Options{FS: fs}); err != nil {
		t.Fatal(err)
	}
	copied, err := Open("data", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	if !copied.Replicated() || copied.Applied() != 6 {
		t.Errorf("an installed copy has the log up to %d", copied.Applied())
	}
	mustClose(t, copied)
}

package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A checkpoint is the store at that moment, whatever is written later, and closing it removes all of it.
func TestCheckpoint(t *testing.T) {
	fs := vfs.NewMem()
	s := newFilledStore(t, fs)
	if err := s.CreateCheckpoint(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, Entry{Realm: 1, Epoch: 1, After: 6, Facts: facts("fact 7")})
	row := Row{Table: 1, Key: []byte("a"), Value: []byte("another row a")}
	if err := s.Snapshot(1, 1, 7, yieldRows(row)); err != nil {
		t.Fatal(err)
	}
	checkpoint, err := OpenCheckpoint(s.dir, Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	rows, last, err := checkpoint.Bounds(1)
	if rows != 3 || last != 6 || err != nil {
		t.Errorf("checkpoint: rows at %d, journal to %d, %v", rows, last, err)
	}
	var have []string
	if err := checkpoint.Rows(1, func(r Row) error { have = append(have, string(r.Value)); return nil }); err != nil {
		t.Error(err)
	}
	err = checkpoint.Tail(1, rows, func(r Record) error {
		have = append(have, string(r.Fact))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(have); got != "[row a row b fact 4 fact 5 fact 6]" {
		t.Errorf("checkpoint: %s", got)
	}
	if _, err := checkpoint.Claim(1, AnyEpoch); !errors.Is(err, ErrReadOnly) {
		t.Errorf("claim what is checkpoint: %v", err)
	}
	if err := checkpoint.CloseCheckpoint(); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(fs.PathJoin(s.dir, checkpointDir)); err == nil {
		t.Error("the checkpoint was not removed")
	}
	have = nil
	if err := s.TableRows(1, 1, func(r Row) error { have = append(have, string(r.Value)); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(have); got != "[another row a]" {
		t.Errorf("rows of one table: %s", got)
	}
	var file bytes.Buffer
	if err := s.Backup(&file); err != nil {
		t.Errorf("backup afterwards: %v", err)
	}
	// The process crashes in between, and the next one removes the checkpoint.
	if err := s.CreateCheckpoint(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, fs)
	if _, err := fs.Stat(fs.PathJoin(s.dir, checkpointDir)); err == nil {
		t.Error("the checkpoint of a crashed process was not removed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// unremovableFS is a file system in which files of one name cannot be removed.
type unremovableFS struct {
	vfs.FS
	name string
}

func (fs unremovableFS) RemoveAll(name string) error {
	if fs.PathBase(name) == fs.name {
		return errors.New("not permitted")
	}
	return fs.FS.RemoveAll(name)
}

// If an old checkpoint cannot be removed, the store opens nevertheless. Only a new checkpoint fails.
func TestLeftoverCheckpointIsHarmless(t *testing.T) {
	fs := unremovableFS{vfs.NewMem(), checkpointDir}
	s := newFilledStore(t, fs.FS)
	if err := s.CreateCheckpoint(); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	s = mustOpen(t, fs)
	if err := s.CreateCheckpoint(); err == nil {
		t.Error("a checkpoint was made over an old one")
	}
	if n := len(tail(t, s, 1, 3)); n != 3 {
		t.Errorf("%d facts in the store", n)
	}
	mustClose(t, s)
}

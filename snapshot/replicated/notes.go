package replicated

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"parley/snapshot"
)

// A Raft snapshot of this node is a note: the store has synced the log up to an index. There is one note, the newest.
// When a node needs entries that are deleted, the leader's note stands for a backup of its store, which it makes then.
// The backup may be of a later moment than the note: the receiver skips the entries that the backup contains.
//
// A received backup is a file beside the note until it is installed. The note says so, and a start finishes the
// installation. Raft itself would take the index of the note, although the store does not have the entries.
const (
	noteFile     = "synced"
	backupPrefix = "backup-"
	spoolFile    = "spool"
)

// note is the content of noteFile.
type note struct {
	Index, Term  uint64
	Servers      []raft.Server
	ServersIndex uint64
	Contains     uint64 `json:",omitempty"` // the last entry that an installed backup contained
	Backup       string `json:",omitempty"` // file that is to be installed
	Before       *note  `json:",omitempty"` // the note that holds if the backup cannot be installed
	// Bytes and number of the entries that were applied before the note and after the log was last shortened.
	LogBytes, LogEntries int64 `json:",omitempty"`
}

// notes is the raft.SnapshotStore of a node.
type notes struct {
	fs     vfs.FS
	dir    string
	backup func(io.Writer) error         // writes a backup of the store
	kept   func() (bytes, entries int64) // applied since the log was shortened
	failed *failure
	space  *spaceWaiter

	index atomic.Uint64 // of the newest note

	mu sync.Mutex
}

// read returns the note; nil if there is none.
func (s *notes) read() (*note, error) {
	data, err := readSealedFile(s.fs, s.fs.PathJoin(s.dir, noteFile))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	n := &note{}
	if err == nil {
		err = json.Unmarshal(data, n)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.fs.PathJoin(s.dir, noteFile), err)
	}
	return n, nil
}

// write replaces the note, and removes backups that no note names.
func (s *notes) write(n *note) error {
	if err := s.failed.get(); err != nil {
		return err
	}
	data, err := json.Marshal(n)
	if err == nil {
		err = s.space.do(func() error { return replaceSealedFile(s.fs, s.dir, noteFile, data) })
	}
	if err != nil {
		return s.failed.fail(fmt.Errorf("write %s: %w", s.fs.PathJoin(s.dir, noteFile), err))
	}
	s.index.Store(n.Index)
	return s.clean(n.Backup)
}

// clean removes all received backups but one.
func (s *notes) clean(keep string) error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, backupPrefix) && name != keep {
			err = errors.Join(err, s.fs.Remove(s.fs.PathJoin(s.dir, name)))
		}
	}
	return err
}

// installed records that the backup of the note is installed, which contains the log up to an index.
func (s *notes) installed(contains uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.read()
	if err != nil || n == nil || n.Backup == "" {
		return err
	}
	n.Backup, n.Before, n.Contains = "", nil, contains
	return s.write(n)
}

// notInstalled goes back to the note before a backup that could not be installed.
func (s *notes) notInstalled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.read()
	if err != nil || n == nil || n.Backup == "" {
		return err
	}
	if n.Before != nil {
		return s.write(n.Before)
	}
	if err := s.fs.Remove(s.fs.PathJoin(s.dir, noteFile)); err != nil {
		return err
	}
	return errors.Join(syncDir(s.fs, s.dir), s.clean(""))
}

func (n *note) meta() *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: strconv.FormatUint(n.Index, 10), Index: n.Index, Term: n.Term,
		Configuration: raft.Configuration{Servers: n.Servers}, ConfigurationIndex: n.ServersIndex,
	}
}

func (s *notes) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.read()
	if err != nil || n == nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{n.meta()}, nil
}

// Create begins a note, or with bytes a backup.
func (s *notes) Create(
	_ raft.SnapshotVersion, index, term uint64, servers raft.Configuration, serversIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	bytes, entries := s.kept()
	return &noteSink{notes: s, note: note{
		Index: index, Term: term, Servers: servers.Servers, ServersIndex: serversIndex,
		LogBytes: bytes, LogEntries: entries,
	}}, nil
}

// Open returns the backup that is to be installed, or makes one of the store. The size must be known before the first
// byte is sent, so the backup is written to a file.
func (s *notes) Open(string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if err := s.failed.get(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.read()
	if err != nil {
		return nil, nil, err
	}
	if n == nil {
		return nil, nil, errors.New("no index is noted yet")
	}
	meta, path := n.meta(), s.fs.PathJoin(s.dir, n.Backup)
	if n.Backup != "" {
		f, err := s.fs.Open(path)
		if err != nil {
			return nil, nil, err
		}
		return sized(meta, f)
	}
	path = s.fs.PathJoin(s.dir, spoolFile)
	f, err := s.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(s.backup(snapshot.NewPacedWriter(f)), f.Close())
	if err == nil {
		f, err = s.fs.Open(path)
	}
	// The file exists until it is closed, so no remains are left after a crash of the process.
	if err = errors.Join(err, s.fs.Remove(path)); err != nil {
		return nil, nil, fmt.Errorf("make a backup for another node: %w", err)
	}
	return sized(meta, f)
}

// sized sets the size of a snapshot to that of a file.
func sized(meta *raft.SnapshotMeta, f vfs.File) (*raft.SnapshotMeta, io.ReadCloser, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	meta.Size = info.Size()
	return meta, f, nil
}

// noteSink makes one note. The backup of another node is written to it.
type noteSink struct {
	notes *notes
	note  note
	file  vfs.File              // nil: no backup
	paced *snapshot.PacedWriter // of file
	done  bool
}

func (k *noteSink) ID() string { return k.note.meta().ID }

func (k *noteSink) Write(p []byte) (int, error) {
	if k.file == nil {
		k.note.Backup = backupPrefix + k.ID()
		f, err := k.notes.fs.Create(k.path(), vfs.WriteCategoryUnspecified)
		if err != nil {
			return 0, err
		}
		k.file, k.paced = f, snapshot.NewPacedWriter(f)
	}
	return k.paced.Write(append([]byte{}, p...)) // a vfs.File may modify the slice it gets
}

func (k *noteSink) path() string { return k.notes.fs.PathJoin(k.notes.dir, k.note.Backup) }

// Close makes the note durable.
func (k *noteSink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	if k.file != nil {
		err := errors.Join(k.file.Sync(), k.file.Close())
		if err == nil {
			err = syncDir(k.notes.fs, k.notes.dir)
		}
		if err != nil {
			return errors.Join(err, k.notes.fs.Remove(k.path()))
		}
	}
	k.notes.mu.Lock()
	defer k.notes.mu.Unlock()
	if k.file != nil {
		before, err := k.notes.read()
		if err != nil {
			return err
		}
		k.note.Before = before
	}
	return k.notes.write(&k.note)
}

func (k *noteSink) Cancel() error {
	if k.done {
		return nil
	}
	k.done = true
	if k.file == nil {
		return nil
	}
	return errors.Join(k.file.Close(), k.notes.fs.Remove(k.path()))
}

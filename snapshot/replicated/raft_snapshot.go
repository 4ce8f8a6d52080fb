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

// A Raft snapshot of this node is a small file: it has the index up to which the store has synced the log. Only the
// newest snapshot exists. When another node needs entries that are deleted, the leader sends its snapshot, and in place
// of the snapshot's content a backup of its store, which it makes at that moment. The backup may contain entries after
// the index of the snapshot: the receiver skips these entries.
//
// A received backup is a second file until it is installed. The snapshot names this file, so that a start can finish an
// interrupted installation. Raft itself would only use the index of the snapshot, although the store does not have the
// entries.
const (
	raftSnapshotFile = "synced"
	backupPrefix     = "backup-"
	spoolFile        = "spool"
)

// raftSnapshot is the content of raftSnapshotFile.
type raftSnapshot struct {
	Index, Term  uint64
	Servers      []raft.Server
	ServersIndex uint64
	Contains     uint64        `json:",omitempty"` // the last entry that an installed backup contained
	Backup       string        `json:",omitempty"` // file that is to be installed
	Before       *raftSnapshot `json:",omitempty"` // the snapshot that is valid if the backup cannot be installed
	// Bytes and number of the entries that were applied after the log was last truncated and before this snapshot.
	LogBytes, LogEntries int64 `json:",omitempty"`
}

// raftSnapshotStore is the raft.SnapshotStore of a node.
type raftSnapshotStore struct {
	fs      vfs.FS
	dir     string
	backup  func(io.Writer) error         // writes a backup of the store
	logSize func() (bytes, entries int64) // applied since the log was truncated
	failed  *failure
	space   *diskFullRetrier

	index atomic.Uint64 // of the newest snapshot

	mu sync.Mutex
}

// read returns the snapshot; nil if there is none.
func (s *raftSnapshotStore) read() (*raftSnapshot, error) {
	data, err := readChecksummedFile(s.fs, s.fs.PathJoin(s.dir, raftSnapshotFile))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	n := &raftSnapshot{}
	if err == nil {
		err = json.Unmarshal(data, n)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.fs.PathJoin(s.dir, raftSnapshotFile), err)
	}
	return n, nil
}

// write replaces the snapshot and removes all received backups that it does not name.
func (s *raftSnapshotStore) write(n *raftSnapshot) error {
	if err := s.failed.get(); err != nil {
		return err
	}
	data, err := json.Marshal(n)
	if err == nil {
		err = s.space.retryUntilSpace(func() error {
			return replaceChecksummedFile(s.fs, s.dir, raftSnapshotFile, data)
		})
	}
	if err != nil {
		return s.failed.fail(fmt.Errorf("write %s: %w", s.fs.PathJoin(s.dir, raftSnapshotFile), err))
	}
	s.index.Store(n.Index)
	return s.removeBackups(n.Backup)
}

// removeBackups removes all received backups except one.
func (s *raftSnapshotStore) removeBackups(keep string) error {
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

// markInstalled records that the backup of the snapshot is installed. contains is the last log entry in the backup.
func (s *raftSnapshotStore) markInstalled(contains uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.read()
	if err != nil || n == nil || n.Backup == "" {
		return err
	}
	n.Backup, n.Before, n.Contains = "", nil, contains
	return s.write(n)
}

// revertInstall restores the snapshot from before a backup that could not be installed.
func (s *raftSnapshotStore) revertInstall() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.read()
	if err != nil || n == nil || n.Backup == "" {
		return err
	}
	if n.Before != nil {
		return s.write(n.Before)
	}
	if err := s.fs.Remove(s.fs.PathJoin(s.dir, raftSnapshotFile)); err != nil {
		return err
	}
	return errors.Join(syncDir(s.fs, s.dir), s.removeBackups(""))
}

func (n *raftSnapshot) meta() *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: strconv.FormatUint(n.Index, 10), Index: n.Index, Term: n.Term,
		Configuration: raft.Configuration{Servers: n.Servers}, ConfigurationIndex: n.ServersIndex,
	}
}

func (s *raftSnapshotStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.read()
	if err != nil || n == nil {
		return nil, err
	}
	return []*raft.SnapshotMeta{n.meta()}, nil
}

// Create begins a snapshot of this node, or the snapshot of another node: then Write receives a backup.
func (s *raftSnapshotStore) Create(
	_ raft.SnapshotVersion, index, term uint64, servers raft.Configuration, serversIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	bytes, entries := s.logSize()
	return &raftSnapshotSink{store: s, snapshot: raftSnapshot{
		Index: index, Term: term, Servers: servers.Servers, ServersIndex: serversIndex,
		LogBytes: bytes, LogEntries: entries,
	}}, nil
}

// Open returns the backup that is to be installed, or makes one of the store. The size must be known before the first
// byte is sent, so the backup is written to a file.
func (s *raftSnapshotStore) Open(string) (*raft.SnapshotMeta, io.ReadCloser, error) {
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
		return nil, nil, errors.New("there is no Raft snapshot yet")
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

// raftSnapshotSink writes one snapshot. Write stores the backup of another node.
type raftSnapshotSink struct {
	store    *raftSnapshotStore
	snapshot raftSnapshot
	file     vfs.File              // nil: no backup
	paced    *snapshot.PacedWriter // of file
	done     bool
}

func (k *raftSnapshotSink) ID() string { return k.snapshot.meta().ID }

func (k *raftSnapshotSink) Write(p []byte) (int, error) {
	if k.file == nil {
		k.snapshot.Backup = backupPrefix + k.ID()
		f, err := k.store.fs.Create(k.path(), vfs.WriteCategoryUnspecified)
		if err != nil {
			return 0, err
		}
		k.file, k.paced = f, snapshot.NewPacedWriter(f)
	}
	return k.paced.Write(append([]byte{}, p...)) // a vfs.File may modify the slice it gets
}

func (k *raftSnapshotSink) path() string { return k.store.fs.PathJoin(k.store.dir, k.snapshot.Backup) }

// Close makes the snapshot durable.
func (k *raftSnapshotSink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	if k.file != nil {
		err := errors.Join(k.file.Sync(), k.file.Close())
		if err == nil {
			err = syncDir(k.store.fs, k.store.dir)
		}
		if err != nil {
			return errors.Join(err, k.store.fs.Remove(k.path()))
		}
	}
	k.store.mu.Lock()
	defer k.store.mu.Unlock()
	if k.file != nil {
		before, err := k.store.read()
		if err != nil {
			return err
		}
		k.snapshot.Before = before
	}
	return k.store.write(&k.snapshot)
}

func (k *raftSnapshotSink) Cancel() error {
	if k.done {
		return nil
	}
	k.done = true
	if k.file == nil {
		return nil
	}
	return errors.Join(k.file.Close(), k.store.fs.Remove(k.path()))
}

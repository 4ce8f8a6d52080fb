package replicated

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"parley/snapshot"
)

const (
	// DefaultSegmentBytes is the size of a file of the log. The log is deleted in whole files.
	DefaultSegmentBytes = 16 << 20
	metaFile            = "meta"
)

// openWAL opens or creates the log in a directory.
func openWAL(
	fs vfs.FS, dir string, segmentBytes int, failed *failure, space *diskFullRetrier,
) (*wal.WAL, error) {
	filer := segment.NewFiler(dir, &walFiles{fs, failed, space})
	meta := &metaStore{fs: fs, failed: failed, space: space}
	if err := finishRotation(dir, filer, meta); err != nil {
		return nil, err
	}
	return wal.Open(dir, wal.WithSegmentFiler(filer), wal.WithMetaStore(meta), wal.WithSegmentSize(segmentBytes),
		wal.WithLogger(quietLogger()))
}

// finishRotation replaces a last segment that has an index already. raft-wal (0.4.1) opens such a segment, but then
// refuses every append with "segment is sealed". This happens if the process ends after the append that completes the
// segment and before the next segment begins, or if a power loss leaves a part of that append. The function copies the
// valid entries, at most those of one segment, to a segment with a new index.
func finishRotation(dir string, filer *segment.Filer, meta *metaStore) error {
	state, err := meta.Load(dir)
	if err != nil || len(state.Segments) == 0 {
		return err
	}
	at := len(state.Segments) - 1
	last := state.Segments[at]
	if !last.SealTime.IsZero() {
		return nil
	}
	w, err := filer.RecoverTail(last)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil // raft-wal makes the file
	}
	if err != nil {
		return err
	}
	defer w.Close()
	sealed, _, err := w.Sealed()
	if err != nil || !sealed {
		return err
	}
	now := time.Now()
	next := func(base uint64) types.SegmentInfo {
		state.NextSegmentID++
		return types.SegmentInfo{ID: state.NextSegmentID - 1, BaseIndex: base, MinIndex: base, Codec: last.Codec,
			CreateTime: now, SizeLimit: last.SizeLimit}
	}
	end := w.LastIndex()
	if end < last.MinIndex { // no entry is valid
		state.Segments[at] = next(last.BaseIndex)
		return meta.CommitState(state)
	}
	whole := next(last.MinIndex)
	if whole.IndexStart, err = copySegment(filer, w, whole, end); err != nil {
		return fmt.Errorf("copy the last segment of the log: %w", err)
	}
	whole.MaxIndex, whole.SealTime = end, now
	state.Segments[at] = whole
	state.Segments = append(state.Segments, next(end+1))
	return meta.CommitState(state)
}

// copySegment makes a segment with the entries of another one up to an index, and returns where its own index is.
func copySegment(filer *segment.Filer, from types.SegmentWriter, to types.SegmentInfo, end uint64) (uint64, error) {
	var list []types.LogEntry
	for i := to.BaseIndex; i <= end; i++ {
		b, err := from.GetLog(i)
		if err != nil {
			return 0, err
		}
		list = append(list, types.LogEntry{Index: i, Data: append([]byte{}, b.Bs...)})
		b.Close()
	}
	// An earlier start that ended here may have left the file.
	if err := filer.Delete(to.BaseIndex, to.ID); err != nil && !errors.Is(err, iofs.ErrNotExist) {
		return 0, err
	}
	w, err := filer.Create(to)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	if err := w.Append(list); err != nil {
		return 0, err
	}
	return w.ForceSeal()
}

// failure is the first failure of a node. After it the node writes nothing, because the content of the disk is unknown.
type failure struct {
	once sync.Once
	err  error
	done chan struct{}
}

func newFailure() *failure { return &failure{done: make(chan struct{})} }

// fail records the reason and returns the first one.
func (f *failure) fail(err error) error {
	f.once.Do(func() {
		f.err = err
		close(f.done)
	})
	return f.get()
}

func (f *failure) get() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

// walFiles lets raft-wal write to the same kind of file system as Pebble, so that one test can cut the power of both.
// The first error of a write or sync is final, except that of a write to a full disk; see diskFullRetrier.
type walFiles struct {
	fs     vfs.FS
	failed *failure
	space  *diskFullRetrier
}

func (w *walFiles) ListDir(dir string) ([]string, error) {
	names, err := w.fs.List(dir)
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	return names, nil
}

// Create makes a file. Its directory is synced with its first sync.
func (w *walFiles) Create(dir, name string, size uint64) (types.WritableFile, error) {
	path := w.fs.PathJoin(dir, name)
	if _, err := w.fs.Stat(path); err == nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: os.ErrExist}
	}
	var f vfs.File
	err := w.space.retryUntilSpace(func() (err error) {
		f, err = w.fs.Create(path, vfs.WriteCategoryUnspecified)
		return err
	})
	if err == nil { // without so much space, the file grows with its entries
		if err = f.Preallocate(0, int64(size)); snapshot.IsFull(err) {
			err = nil
		}
	}
	if err != nil {
		return nil, w.failed.fail(fmt.Errorf("create %s: %w", path, err))
	}
	return &walFile{File: f, w: w, path: path, dir: dir}, nil
}

func (w *walFiles) Delete(dir, name string) error {
	if err := w.fs.Remove(w.fs.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDir(w.fs, dir)
}

func (w *walFiles) OpenReader(dir, name string) (types.ReadableFile, error) {
	return w.fs.Open(w.fs.PathJoin(dir, name))
}

func (w *walFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	path := w.fs.PathJoin(dir, name)
	f, err := w.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &walFile{File: f, w: w, path: path, dir: dir}, nil
}

// walFile is a segment that is written.
type walFile struct {
	vfs.File
	w         *walFiles
	path, dir string
	dirSynced bool // one goroutine writes a segment
}

func (f *walFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.w.failed.get(); err != nil {
		return 0, err
	}
	n := 0
	err := f.w.space.retryOnce(func() (err error) {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	if snapshot.IsFull(err) {
		return n, err // raft-wal writes the next entries to the same place
	}
	if err != nil {
		err = f.w.failed.fail(fmt.Errorf("write %s: %w", f.path, err))
	}
	return n, err
}

func (f *walFile) Sync() error {
	if err := f.w.failed.get(); err != nil {
		return err
	}
	err := f.File.Sync()
	if err == nil && !f.dirSynced {
		err = syncDir(f.w.fs, f.dir)
		f.dirSynced = err == nil
	}
	if err != nil {
		return f.w.failed.fail(fmt.Errorf("sync %s: %w", f.path, err))
	}
	return nil
}

// metaStore stores the list of the log's segments, and the term and vote of this node, in one small file that is
// replaced as a whole. raft-wal's own implementation maps a database file into memory, so tests of power losses could
// not observe its writes.
type metaStore struct {
	fs     vfs.FS
	failed *failure
	space  *diskFullRetrier

	mu    sync.Mutex
	dir   string
	state metaState
}

// metaState is the content of the file.
type metaState struct {
	Log    types.PersistentState
	Values map[string][]byte
}

func (m *metaStore) Load(dir string) (types.PersistentState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dir, m.state = dir, metaState{Values: map[string][]byte{}}
	data, err := readChecksummedFile(m.fs, m.fs.PathJoin(dir, metaFile))
	if errors.Is(err, iofs.ErrNotExist) {
		return types.PersistentState{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m.state)
	}
	if err != nil {
		return types.PersistentState{}, fmt.Errorf("read %s: %w", m.fs.PathJoin(dir, metaFile), err)
	}
	return m.state.Log, nil
}

func (m *metaStore) CommitState(s types.PersistentState) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state.Log = s
	return m.write()
}

func (m *metaStore) GetStable(key []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Values[string(key)], nil
}

func (m *metaStore) SetStable(key, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if value == nil {
		delete(m.state.Values, string(key))
	} else {
		m.state.Values[string(key)] = append([]byte{}, value...)
	}
	return m.write()
}

func (m *metaStore) Close() error { return nil }

// write replaces the file. m.mu is held.
func (m *metaStore) write() error {
	if err := m.failed.get(); err != nil {
		return err
	}
	data, err := json.Marshal(m.state)
	if err == nil {
		err = m.space.retryUntilSpace(func() error { return replaceChecksummedFile(m.fs, m.dir, metaFile, data) })
	}
	if err != nil {
		return m.failed.fail(fmt.Errorf("write %s: %w", m.fs.PathJoin(m.dir, metaFile), err))
	}
	return nil
}

// kindFile is the kind of a small file with a checksum.
const kindFile = 'f'

// replaceChecksummedFile atomically and durably replaces a small file. The file has a checksum.
func replaceChecksummedFile(fs vfs.FS, dir, name string, data []byte) error {
	path := fs.PathJoin(dir, name)
	f, err := fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(encodeEntry(kindFile, data))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// readChecksummedFile reads and verifies a small file.
func readChecksummedFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	kind, content, err := decodeEntry(data)
	if err == nil && kind != kindFile {
		err = errors.New("it is another kind of file")
	}
	return content, err
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir makes a directory durably; its parent exists.
func makeDir(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncDir(fs, fs.PathDir(dir))
}

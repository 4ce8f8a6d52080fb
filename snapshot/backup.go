package snapshot

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"parley/actors/realm"
)

// A backup is a tar file with the version of the program's data first, Pebble's files at one moment, the durability
// manifest from just before that moment, and at the end a manifest. The manifest has the length and SHA-256 of each
// file and of itself, so an incomplete backup is rejected.
const (
	backupManifest = "manifest"
	backupVersion  = "data-version" // missing in backups by the first programs
	backupTitle    = "parley backup 1"
	backupDir      = "backup.new"      // in the data directory, during a backup
	heldDir        = "backup.new-held" // in the data directory, until the files of HoldBackup are released
	extraFilesDir  = "beside"          // in a backup, the parent of directories that are not the store's
	restoreDir     = "restore.new"     // in the data directory, during a restore
)

// Backup writes a backup of everything that was durable at some moment during the call. Appends continue meanwhile.
// beside names other directories of the data directory that are included. A file in them must be written completely
// before the fact that names it, and must never change.
func (s *Store) Backup(w io.Writer, extra ...string) error {
	s.checkpointMu.Lock() // there is one backupDir
	defer s.checkpointMu.Unlock()
	if err := s.acquireReader(); err != nil {
		return err
	}
	defer s.readers.Done()
	list, err := s.checkpointFiles(backupDir)
	defer s.fs.RemoveAll(s.fs.PathJoin(s.dir, backupDir))
	if err != nil {
		return err
	}
	b := NewBackupWriter(w)
	for _, f := range list {
		if f.Path == "" {
			err = b.addBytes(f.Name, f.Data)
		} else {
			path := s.fs.PathJoin(s.dir, f.Path)
			if strings.HasSuffix(f.Name, tableSuffix) {
				err = s.checkTable(path, f.Name)
			}
			if err == nil {
				err = b.addFile(s.fs, path, f.Name)
			}
		}
		if err != nil {
			return fmt.Errorf("backup %s: %w", f.Name, err)
		}
	}
	for _, name := range extra { // after the store, so that every file that its facts name exists
		if err := b.addTree(s.fs, s.fs.PathJoin(s.dir, name), ExtraName(name)); err != nil {
			return fmt.Errorf("backup %s: %w", name, err)
		}
	}
	if err := b.Finish(); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

// BackupFile is one file of a backup.
type BackupFile struct {
	Name string // in the backup
	Path string // in the data directory; "": Data is the content
	Data []byte
}

// checkpointFiles makes a checkpoint of Pebble in a folder of the data directory and returns the files of a backup, in
// their order. The caller removes the folder, also after an error.
func (s *Store) checkpointFiles(folder string) (list []BackupFile, err error) {
	if s.readOnly {
		return nil, ErrReadOnly // Pebble cannot make checkpoints of a read-only store
	}
	level, err := s.Level()
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	dir := s.fs.PathJoin(s.dir, folder)
	if err := s.fs.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	s.mu.Lock()
	mark := s.durablePositions()
	s.mu.Unlock()
	_, err = s.callPebble(func() error { return s.db.Checkpoint(dir, pebble.WithFlushedWAL()) })
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	names, err := s.fs.List(dir)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	sort.Strings(names)
	// The version is first, so that an older program refuses the backup before it writes anything.
	list = []BackupFile{{Name: backupVersion, Data: []byte(strconv.Itoa(int(realm.NewestNumberAt(level))) + "\n")}}
	for _, name := range names {
		list = append(list, BackupFile{Name: subDir + "/" + name, Path: s.fs.PathJoin(folder, name)})
	}
	return append(list, BackupFile{Name: durabilityManifestFile, Data: mark.encode()}), nil
}

// ErrBackupHeld rejects HoldBackup while the files of another backup are held.
var ErrBackupHeld = errors.New("another backup of this data directory is being copied")

// HoldBackup returns the files of a backup of everything that was durable at some moment during the call. They are hard
// links and stay until release, at most until the store is opened again. Appends, other backups and Close do not wait
// for release.
func (s *Store) HoldBackup() (list []BackupFile, release func() error, err error) {
	if !s.held.CompareAndSwap(false, true) {
		return nil, nil, ErrBackupHeld
	}
	release = func() error {
		defer s.held.Store(false)
		return s.fs.RemoveAll(s.fs.PathJoin(s.dir, heldDir))
	}
	s.checkpointMu.Lock() // Pebble makes one checkpoint at a time
	defer s.checkpointMu.Unlock()
	if err = s.acquireReader(); err == nil {
		defer s.readers.Done()
		list, err = s.checkpointFiles(heldDir)
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return list, release, nil
}

// ExtraName returns the name that a file of the data directory, outside the store, has in a backup.
func ExtraName(path string) string { return extraFilesDir + "/" + path }

// BackupWriter writes a backup. Close is not needed: without Finish the result is an incomplete backup, which Restore
// refuses.
type BackupWriter struct {
	tar      *tar.Writer
	now      time.Time
	manifest bytes.Buffer
}

// NewBackupWriter begins a backup.
func NewBackupWriter(w io.Writer) *BackupWriter {
	b := &BackupWriter{tar: tar.NewWriter(w), now: time.Now()}
	fmt.Fprintln(&b.manifest, backupTitle)
	return b
}

func (b *BackupWriter) addFile(fs vfs.FS, path, name string) error {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	return b.Add(name, info.Size(), f)
}

// addTree adds a directory with everything in it. A file that disappears meanwhile was deleted and may be missing.
func (b *BackupWriter) addTree(fs vfs.FS, path, name string) error {
	info, err := fs.Stat(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := b.addFile(fs, path, name); !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		return nil
	}
	names, err := fs.List(path)
	if err != nil {
		return err
	}
	sort.Strings(names)
	for _, n := range names {
		if err := b.addTree(fs, fs.PathJoin(path, n), name+"/"+n); err != nil {
			return err
		}
	}
	return nil
}

func (b *BackupWriter) addBytes(name string, data []byte) error {
	return b.Add(name, int64(len(data)), bytes.NewReader(data))
}

// Add adds a file of a size in bytes.
func (b *BackupWriter) Add(name string, size int64, r io.Reader) error {
	h := &tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: b.now, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if err := b.tar.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(sum, b.tar), r, size); err != nil {
		return err
	}
	fmt.Fprintf(&b.manifest, "file %s %d %x\n", name, size, sum.Sum(nil))
	return nil
}

// Finish adds the manifest, after all files.
func (b *BackupWriter) Finish() error {
	sum := sha256.Sum256(b.manifest.Bytes())
	fmt.Fprintf(&b.manifest, "sum %x\n", sum[:])
	if err := b.addBytes(backupManifest, b.manifest.Bytes()); err != nil {
		return err
	}
	return b.tar.Close()
}

// Restore makes a data directory from a backup. The directory may exist but must not contain a store. upTo sets the
// last fact of some realms; it must not be before the realm's rows in the backup, nor after its last fact. Only facts
// are undone: a body that a later fact replaced or deleted under the same key is not restored.
func Restore(r io.Reader, dir string, upTo map[RealmID]Seq) error {
	return restore(r, dir, upTo, Options{})
}

func restore(r io.Reader, dir string, upTo map[RealmID]Seq, o Options) error {
	return restoreAs(r, dir, upTo, (*Store).LeaveLog, o)
}

// restoreAs makes a data directory from a backup. change is called with the store before the directory has it.
func restoreAs(
	r io.Reader, dir string, upTo map[RealmID]Seq, change func(*Store) error, o Options,
) (err error) {
	o = o.withDefaults()
	fs := o.FS
	backup, err := openBackup(r)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if dir, err = canonicalDir(fs, dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if _, err := fs.Stat(fs.PathJoin(dir, subDir)); err == nil {
		return fmt.Errorf("restore: %s already contains a store: choose a directory that does not exist", dir)
	} else if !errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("restore: %w", err)
	}
	if err := makeDir(fs, dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	lock, err := fs.Lock(fs.PathJoin(dir, lockFile))
	if err != nil {
		if lockHeld(err) {
			return &inUseError{dir}
		}
		return fmt.Errorf("restore: %w", err)
	}
	defer lock.Close()

	fresh := fs.PathJoin(dir, restoreDir)
	if err := fs.RemoveAll(fresh); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer fs.RemoveAll(fresh)
	backup.paced = o.paced
	if err := backup.unpack(fs, fresh); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	s, err := Open(fresh, o)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for realm, n := range upTo {
		if err := s.rewind(realm, n); err != nil {
			return errors.Join(fmt.Errorf("restore: %w", err), s.Close())
		}
	}
	if err := change(s); err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), s.Close())
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := moveExtraFiles(fs, fs.PathJoin(fresh, extraFilesDir), dir); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	// The durability manifest is moved first: a directory that has it without a store is not mistaken for a new one.
	for _, name := range []string{durabilityManifestFile, subDir} {
		if err := fs.Rename(fs.PathJoin(fresh, name), fs.PathJoin(dir, name)); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	return syncDir(fs, dir)
}

// replaceDir is the directory, in the data directory, where Replace unpacks a backup.
const replaceDir = "replace.new"

// UnpackReplacement unpacks and verifies a backup beside the store of a data directory, for Replace. The node continues
// to serve, so the files are written by a PacedWriter.
func UnpackReplacement(r io.Reader, dir string, o Options) error {
	o = o.withDefaults()
	o.paced = true
	fresh := o.FS.PathJoin(dir, replaceDir)
	if err := o.FS.RemoveAll(fresh); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := restoreAs(r, fresh, nil, func(*Store) error { return nil }, o); err != nil {
		return errors.Join(err, o.FS.RemoveAll(fresh))
	}
	return nil
}

// Replace replaces the store of a data directory, which must not be open, with the unpacked backup. After a crash
// before it has returned, the directory may have no store: both steps must be done again.
func Replace(dir string, o Options) error {
	o = o.withDefaults()
	fs, fresh := o.FS, o.FS.PathJoin(dir, replaceDir)
	for _, name := range []string{subDir, durabilityManifestFile} {
		if err := fs.RemoveAll(fs.PathJoin(dir, name)); err != nil {
			return fmt.Errorf("replace the store: %w", err)
		}
	}
	if err := syncDir(fs, dir); err != nil {
		return fmt.Errorf("replace the store: %w", err)
	}
	for _, name := range []string{durabilityManifestFile, subDir} {
		if err := fs.Rename(fs.PathJoin(fresh, name), fs.PathJoin(dir, name)); err != nil {
			return fmt.Errorf("replace the store: %w", err)
		}
	}
	if err := syncDir(fs, dir); err != nil {
		return fmt.Errorf("replace the store: %w", err)
	}
	return fs.RemoveAll(fresh)
}

// backupReader reads a backup from its beginning.
type backupReader struct {
	tar   *tar.Reader
	first *tar.Header  // read by openBackup, but not unpacked yet; nil: none
	have  bytes.Buffer // the manifest of the files read so far
	paced bool         // see Options
}

// maxBackupVersionBytes limits the file with a backup's version.
const maxBackupVersionBytes = 64

// openBackup reads the beginning of a backup. It refuses a backup of a newer program: this one would stop at the first
// fact that it does not know, and would lose fields that it does not know when it writes a row again.
func openBackup(r io.Reader) (*backupReader, error) {
	b := &backupReader{tar: tar.NewReader(r)}
	fmt.Fprintln(&b.have, backupTitle)
	h, err := b.tar.Next()
	if err != nil {
		return nil, fmt.Errorf("read backup: %w", err)
	}
	if h.Name != backupVersion {
		b.first = h
		return b, nil
	}
	text, err := io.ReadAll(io.LimitReader(b.tar, maxBackupVersionBytes))
	if err != nil {
		return nil, fmt.Errorf("read backup: %w", err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || version < 0 {
		return nil, fmt.Errorf("the backup is damaged: its data version is %q", text)
	}
	if known := int(realm.NewestNumber()); version > known {
		return nil, fmt.Errorf("the backup is from a newer parley (data version %d, this program has %d): restore it "+
			"with that version", version, known)
	}
	fmt.Fprintf(&b.have, "file %s %d %x\n", h.Name, len(text), sha256.Sum256(text))
	return b, nil
}

// next returns the header of the next file.
func (b *backupReader) next() (*tar.Header, error) {
	if h := b.first; h != nil {
		b.first = nil
		return h, nil
	}
	return b.tar.Next()
}

// unpack writes the files of a backup and compares them with its manifest.
func (b *backupReader) unpack(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(fs.PathJoin(dir, subDir), 0o700); err != nil {
		return err
	}
	t, have := b.tar, &b.have
	for {
		h, err := b.next()
		if err == io.EOF {
			return errors.New("the backup is incomplete: its manifest is missing")
		}
		if err != nil {
			return fmt.Errorf("read backup: %w", err)
		}
		if h.Name == backupManifest {
			want, err := io.ReadAll(t)
			if err != nil {
				return fmt.Errorf("read backup: %w", err)
			}
			if err := compareManifest(have.Bytes(), want); err != nil {
				return err
			}
			break
		}
		if name, ok := strings.CutPrefix(h.Name, extraFilesDir+"/"); ok && h.Typeflag == tar.TypeReg &&
			isLocalPath(name) {
			path := fs.PathJoin(dir, extraFilesDir, name)
			if err := fs.MkdirAll(fs.PathDir(path), 0o700); err != nil {
				return err
			}
			if err := b.unpackFile(fs, path, h); err != nil {
				return fmt.Errorf("unpack %s: %w", h.Name, err)
			}
			continue
		}
		name, inside := strings.CutPrefix(h.Name, subDir+"/")
		if h.Typeflag != tar.TypeReg || inside && strings.ContainsAny(name, "/\\") ||
			!inside && name != durabilityManifestFile ||
			name == ".." {
			return fmt.Errorf("unknown file %q in the backup", h.Name)
		}
		path := fs.PathJoin(dir, name)
		if inside {
			path = fs.PathJoin(dir, subDir, name)
		}
		if err := b.unpackFile(fs, path, h); err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
	return errors.Join(syncDir(fs, fs.PathJoin(dir, subDir)), syncDir(fs, dir))
}

// moveExtraFiles moves unpacked files to their place. An existing file has the same content and may be replaced.
func moveExtraFiles(fs vfs.FS, from, to string) error {
	info, err := fs.Stat(from)
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fs.Rename(from, to)
	}
	if err := fs.MkdirAll(to, 0o700); err != nil {
		return err
	}
	names, err := fs.List(from)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := moveExtraFiles(fs, fs.PathJoin(from, n), fs.PathJoin(to, n)); err != nil {
			return err
		}
	}
	return syncDir(fs, to)
}

// isLocalPath reports whether a slash-separated name stays inside the directory it is joined to.
func isLocalPath(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." || strings.Contains(part, "\\") {
			return false
		}
	}
	return true
}

// unpackFile writes the current file of the backup.
func (b *backupReader) unpackFile(fs vfs.FS, path string, h *tar.Header) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	sum, to := sha256.New(), io.Writer(f)
	if b.paced {
		to = NewPacedWriter(f)
	}
	n, err := io.Copy(io.MultiWriter(sum, to), b.tar) // hashed first: a vfs.File may modify the slice it gets
	if err == nil {
		err = f.Sync()
	}
	fmt.Fprintf(&b.have, "file %s %d %x\n", h.Name, n, sum.Sum(nil))
	return errors.Join(err, f.Close())
}

func compareManifest(have, want []byte) error {
	sum := sha256.Sum256(have)
	if string(want) == string(have)+fmt.Sprintf("sum %x\n", sum[:]) {
		return nil
	}
	h, w := bufio.NewScanner(bytes.NewReader(have)), bufio.NewScanner(bytes.NewReader(want))
	for h.Scan() {
		if !w.Scan() || h.Text() != w.Text() {
			return fmt.Errorf("the backup is damaged: its manifest has %q, its files %q", w.Text(), h.Text())
		}
	}
	return errors.New("the backup is damaged: its manifest has a wrong checksum")
}

// rewind removes the facts after a number.
func (s *Store) rewind(realm RealmID, to Seq) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.realms[realm]
	if st == nil {
		return fmt.Errorf("the backup has no realm %d", realm)
	}
	if st.damage != nil {
		return st.damage
	}
	if to < st.snapshot.seq || to > st.last {
		return fmt.Errorf("realm %d can end at %d to %d in this backup, not at %d", realm, st.snapshot.seq, st.last, to)
	}
	hash, now, err := s.hashAt(st, to)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	b.DeleteRange(journalKey(realm, to+1), spaceEnd(realm, spaceJournal), nil)
	if err := s.forgetRequests(b, realm, func(n Seq) bool { return n > to }); err != nil {
		return err
	}
	if err := s.commit(b); err != nil {
		return err
	}
	st.last, st.lastHash, st.lastNow = to, hash, now
	return nil
}

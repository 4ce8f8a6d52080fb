package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A truncated log looks like an earlier crash: Pebble cannot tell a lost tail from one that was never written, and it
// silently uses an older manifest instead of a damaged one. So the store writes a file of its own, the durability
// manifest, at every open, snapshot and close, every few megabytes, and a second after a commit. It lists the data that
// is durable by then: the position of each realm, the number of commits, and the lengths of the logs. Opening a store
// that has less than its durability manifest fails. So after a clean close every loss is detected. After a crash, the
// loss of commits after the last durability manifest cannot be detected: those of the last second.
const durabilityManifestFile = "watermark"

// Format 1 has no time. It is still read.
const (
	durabilityManifestTitle1 = "parley watermark 1"
	durabilityManifestTitle2 = "parley watermark 2"
)

type durabilityManifest struct {
	commits uint64
	realms  []position
	files   []durableFile
	at      int64 // when it was written, Unix milliseconds; 0 in format 1
	closed  bool  // the store was closed after it: nothing was committed later
}

type position struct {
	realm    RealmID
	epoch    uint64
	last     Seq
	lastHash chain
	rows     Seq
}

type durableFile struct {
	name string
	size int64
}

// encode returns the text of a durability manifest. It is written each second, with a line for each of thousands of
// realms.
func (w *durabilityManifest) encode() []byte {
	b := make([]byte, 0, 128+len(w.realms)*64+len(w.files)*64)
	if w.at == 0 {
		b = append(b, durabilityManifestTitle1+"\n"...)
	} else {
		b = fmt.Appendf(b, "%s\ntime %d %t\n", durabilityManifestTitle2, w.at, w.closed)
	}
	b = fmt.Appendf(b, "commits %d\n", w.commits)
	for i := range w.realms {
		b = w.realms[i].appendLine(b)
	}
	for _, f := range w.files {
		b = fmt.Appendf(b, "file %s %d\n", f.name, f.size)
	}
	sum := sha256.Sum256(b)
	return fmt.Appendf(b, "sum %x\n", sum[:])
}

// appendLine appends the line of a realm, "realm ID EPOCH LAST HASH ROWS".
func (p *position) appendLine(b []byte) []byte {
	b = strconv.AppendUint(append(b, "realm "...), uint64(p.realm), 10)
	b = strconv.AppendUint(append(b, ' '), p.epoch, 10)
	b = strconv.AppendUint(append(b, ' '), uint64(p.last), 10)
	b = hex.AppendEncode(append(b, ' '), p.lastHash[:])
	b = strconv.AppendUint(append(b, ' '), uint64(p.rows), 10)
	return append(b, '\n')
}

// parseLine parses the fields of a line of appendLine, without its first word.
func (p *position) parseLine(fields []string) error {
	if len(fields) != 5 {
		return errShort
	}
	id, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return err
	}
	p.realm = RealmID(id)
	if p.epoch, err = strconv.ParseUint(fields[1], 10, 64); err != nil {
		return err
	}
	last, err := strconv.ParseUint(fields[2], 10, 64)
	if err != nil {
		return err
	}
	hash, err := hex.DecodeString(fields[3])
	if err != nil || len(hash) != chainLen {
		return errShort
	}
	copy(p.lastHash[:], hash)
	rows, err := strconv.ParseUint(fields[4], 10, 64)
	p.last, p.rows = Seq(last), Seq(rows)
	return err
}

func decodeDurabilityManifest(data []byte) (*durabilityManifest, error) {
	at := bytes.LastIndex(data, []byte("sum "))
	if at < 0 {
		return nil, errShort
	}
	sum := sha256.Sum256(data[:at])
	if string(data[at:]) != "sum "+hex.EncodeToString(sum[:])+"\n" {
		return nil, errChecksum
	}
	w := &durabilityManifest{}
	lines := bufio.NewScanner(bytes.NewReader(data[:at]))
	if !lines.Scan() || lines.Text() != durabilityManifestTitle1 && lines.Text() != durabilityManifestTitle2 {
		return nil, fmt.Errorf("unknown format %q", lines.Text())
	}
	for lines.Scan() {
		line := lines.Text()
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] == "realm" {
			var p position
			if err := p.parseLine(fields[1:]); err != nil {
				return nil, fmt.Errorf("unknown line %q", line)
			}
			w.realms = append(w.realms, p)
			continue
		}
		var f durableFile
		if _, err := fmt.Sscanf(line, "commits %d", &w.commits); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(line, "time %d %t", &w.at, &w.closed); err == nil {
			continue
		}
		if _, err := fmt.Sscanf(line, "file %s %d", &f.name, &f.size); err == nil {
			w.files = append(w.files, f)
			continue
		}
		return nil, fmt.Errorf("unknown line %q", line)
	}
	return w, lines.Err()
}

// writeDurabilityManifest writes the current durability manifest. Commits may continue meanwhile, because they do not
// undo older ones. A manifest lists all realms and needs syncs, and many realms write snapshots at the same time: so the
// calls that wait for the manifest in progress share the next one.
func (s *Store) writeDurabilityManifest() error {
	call := s.manifestCalls.Add(1)
	s.manifestMu.Lock()
	defer s.manifestMu.Unlock()
	if s.manifestAnswered >= call { // a manifest that began after this call is written
		return s.Err()
	}
	answered := s.manifestCalls.Load()
	err := s.writeManifestLocked(s.durableFiles, false)
	s.manifestAnswered = answered
	return err
}

// replaceDurabilityManifest writes the current durability manifest with the lengths of files that list returns. closed
// says that nothing will be committed any more.
func (s *Store) replaceDurabilityManifest(list func() ([]durableFile, error), closed bool) error {
	s.manifestMu.Lock()
	defer s.manifestMu.Unlock()
	return s.writeManifestLocked(list, closed)
}

// writeManifestLocked is replaceDurabilityManifest. s.manifestMu is held.
func (s *Store) writeManifestLocked(list func() ([]durableFile, error), closed bool) error {
	s.mu.Lock()
	if err := s.Err(); err != nil {
		s.mu.Unlock()
		return err
	}
	w := s.durablePositions()
	w.at, w.closed = time.Now().UnixMilli(), closed
	s.bytesSinceManifest = 0
	unsynced := s.replicated && !closed // the positions may be those of commits without a sync
	s.mu.Unlock()
	if s.o.Unsynced {
		return nil // nothing is known to be durable
	}
	if unsynced {
		if err := s.syncLog(); err != nil {
			return err
		}
	}
	files, err := list()
	if err == nil {
		w.files, s.manifestFiles = files, files
		err = s.replaceFile(durabilityManifestFile, w.encode())
	}
	if IsFull(err) { // the last one remains true
		s.fs.Remove(s.fs.PathJoin(s.dir, durabilityManifestFile+".new"))
		s.becomeFull()
		return nil
	}
	if err != nil {
		s.fail(fmt.Errorf("write durability manifest: %w", err))
		return s.Err()
	}
	s.manifestCommits.Store(w.commits)
	return nil
}

// markDurable writes a durability manifest after every interval in which something was committed, until Close. Then at
// most the commits of one interval can be lost without being missed. It also passes rows of SaveRowsUnsynced to the
// disk.
func (s *Store) markDurable(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-s.failed:
			return
		case <-t.C:
		}
		if s.acquireReader() != nil {
			return
		}
		s.markOnce()
		s.readers.Done()
	}
}

func (s *Store) markOnce() {
	if s.unsyncedRows.Swap(false) {
		if s.syncLog() != nil {
			return
		}
	}
	s.mu.Lock()
	commits := s.commits
	s.mu.Unlock()
	if commits == s.manifestCommits.Load() {
		return
	}
	// The lengths of the last manifest with lengths remain true, and the count of commits is enough to miss a log's
	// end. So nothing has to be synced for them.
	s.replaceDurabilityManifest(func() ([]durableFile, error) { return s.manifestFiles, nil }, false)
}

// writeDurabilityManifestLater writes it in the background if enough was committed since the last one. s.mu is held.
func (s *Store) writeDurabilityManifestLater() {
	if s.bytesSinceManifest < s.o.DurabilityManifestBytes || s.acquireReader() != nil {
		return
	}
	s.bytesSinceManifest = 0
	go func() {
		defer s.readers.Done()
		s.writeDurabilityManifest()
	}()
}

// durablePositions returns a durability manifest without files. Every later state of the store is at least as far. s.mu
// is held, so no commit is running.
func (s *Store) durablePositions() *durabilityManifest {
	w := &durabilityManifest{commits: s.commits}
	for _, st := range s.realms {
		if st.damage == nil && st.epoch > 0 {
			w.realms = append(w.realms, position{st.id, st.epoch, st.last, st.lastHash, st.snapshot.seq})
		}
	}
	sort.Slice(w.realms, func(i, j int) bool { return w.realms[i].realm < w.realms[j].realm })
	return w
}

// durableFiles syncs the manifest and the logs and returns the lengths they had before. A file that disappears
// meanwhile is not needed any more.
func (s *Store) durableFiles() ([]durableFile, error) {
	names, err := s.fs.List(s.storeDir())
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var marks []durableFile
	for _, name := range names {
		if !isLog(name) && !isManifest(name) {
			continue
		}
		path := s.fs.PathJoin(s.storeDir(), name)
		f, err := s.fs.Open(path)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		marks = append(marks, durableFile{name, info.Size()})
	}
	return marks, nil
}

func isLog(name string) bool      { return strings.HasSuffix(name, ".log") }
func isManifest(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }

// replaceFile atomically replaces the content of a file in the data directory.
func (s *Store) replaceFile(name string, data []byte) error {
	path := s.fs.PathJoin(s.dir, name)
	f, err := s.fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := s.fs.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(s.fs, s.dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// readDurabilityManifest returns nil if there is none: the directory is new, or the operator removed the file.
func (s *Store) readDurabilityManifest() (*durabilityManifest, error) {
	data, err := readFile(s.fs, s.fs.PathJoin(s.dir, durabilityManifestFile))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read durability manifest: %w", err)
	}
	w, err := decodeDurabilityManifest(data)
	if err != nil {
		return nil, s.damagedFile(durabilityManifestFile,
			err.Error()+" (the store may be undamaged: it can be opened without this file)")
	}
	return w, nil
}

func (s *Store) damagedFile(where, why string) error {
	return &DamageError{Where: where, Why: why, Dir: s.dir}
}

// checkDurableFiles detects logs and manifests that were truncated or damaged, before Pebble opens them and ignores
// that.
func (s *Store) checkDurableFiles(w *durabilityManifest) error {
	if w == nil {
		return nil
	}
	current, err := s.currentManifest()
	if err != nil {
		return err
	}
	if current == "" && w.commits > 0 {
		return s.damagedFile(subDir, "Pebble's store is missing")
	}
	for _, mark := range w.files {
		path := s.fs.PathJoin(s.storeDir(), mark.name)
		where := subDir + "/" + mark.name
		info, err := s.fs.Stat(path)
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open data directory: %w", err)
		}
		if info.Size() < mark.size {
			return s.damagedFile(where, fmt.Sprintf("it has %d bytes; %d were durable", info.Size(), mark.size))
		}
		if mark.name != current {
			continue
		}
		if err := s.checkManifest(path, mark.size); err != nil {
			return s.damagedFile(where, err.Error())
		}
	}
	return nil
}

// currentManifest returns the name of the manifest that Pebble will read; "" if there is no store yet.
func (s *Store) currentManifest() (string, error) {
	if _, err := s.fs.Stat(s.storeDir()); errors.Is(err, iofs.ErrNotExist) {
		return "", nil
	}
	desc, err := pebble.Peek(s.storeDir(), s.fs)
	if err != nil {
		return "", s.pebbleError("open data directory", err)
	}
	if !desc.Exists {
		return "", nil
	}
	return s.fs.PathBase(desc.ManifestFilename), nil
}

// checkManifest reads the records of a Pebble manifest up to the length that was durable. Pebble itself would ignore
// everything after an unreadable record.
func (s *Store) checkManifest(path string, size int64) error {
	f, err := s.fs.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	counted := &countingReader{r: f}
	records := record.NewReader(counted, 0)
	for {
		r, err := records.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err == nil {
			continue
		}
		if err == io.EOF && counted.n >= size {
			return nil
		}
		return fmt.Errorf("manifest is unreadable after %d bytes of %d: %w", records.Offset(), size, err)
	}
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// checkDurablePositions compares the store's positions with those of the durability manifest and returns the losses.
func (s *Store) checkDurablePositions(w *durabilityManifest) (losses []string) {
	if w == nil {
		return nil
	}
	lost := func(format string, args ...any) { losses = append(losses, fmt.Sprintf(format, args...)) }
	if s.commits < w.commits {
		lost("it has %d commits; %d were durable%s", s.commits, w.commits, w.when())
	}
	for _, p := range w.realms {
		st := s.realms[p.realm]
		if st == nil {
			lost("realm %d is missing", p.realm)
			continue
		}
		if st.damage != nil {
			continue
		}
		switch {
		case st.epoch < p.epoch:
			lost("realm %d has epoch %d; epoch %d was durable", p.realm, st.epoch, p.epoch)
		case st.snapshot.seq < p.rows:
			lost("the rows of realm %d are at number %d; %d was durable", p.realm, st.snapshot.seq, p.rows)
		case st.last == p.last && st.lastHash != p.lastHash:
			lost("fact %d of realm %d differs from the durable one", p.last, p.realm)
		}
		if st.last < p.last {
			lost("the journal of realm %d ends at number %d; %d was durable: numbers %d to %d are lost",
				p.realm, st.last, p.last, st.last+1, p.last)
		}
	}
	return losses
}

// when returns the time of the manifest for an error message.
func (w *durabilityManifest) when() string {
	if w.at == 0 {
		return ""
	}
	return " at " + time.UnixMilli(w.at).UTC().Format(time.RFC3339)
}

// LastMark is the last proof of durability in a data directory.
type LastMark struct {
	At     time.Time // facts that were acknowledged until then are missed if they are lost; zero: unknown
	Closed bool      // the store was closed then, so nothing was acknowledged later
}

// ReadLastMark returns the last proof of durability in a data directory. At is zero if there is none.
func ReadLastMark(dir string, o Options) (LastMark, error) {
	o = o.withDefaults()
	w, err := (&Store{dir: dir, o: o, fs: o.FS}).readDurabilityManifest()
	if err != nil || w == nil || w.at == 0 {
		return LastMark{}, err
	}
	return LastMark{At: time.UnixMilli(w.at), Closed: w.closed}, nil
}

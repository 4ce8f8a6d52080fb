package offsite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"filippo.io/age"

	"parley/cmd/internal/orgfiles"
	"parley/snapshot/files"
)

// Folder is a folder of a bucket with the backups of one server.
type Folder struct {
	blobs files.Blobs
	key   *Key
	spool string // directory for encrypted objects before they are sent
	close func()
}

// Place is where backups are.
type Place struct {
	URL         string // s3://BUCKET/FOLDER?...
	Credentials string // file with the keys of the bucket; "": they are in the environment
	Key         string // file with the key that encrypts
}

// spoolDir, in the data directory or in the directory for temporary data, has the objects that are being sent.
const spoolDir = "backup.spool"

// Open opens the backups at a place. dir is a directory with space for the largest file of a backup; "": nothing is
// sent.
func (p Place) Open(dir string, log *slog.Logger) (*Folder, error) {
	if p.Key == "" {
		return nil, errors.New("--key is required: the file with the key that encrypts the backups; " +
			"parley backup --new-key FILE makes one")
	}
	key, err := ReadKey(p.Key)
	if err != nil {
		return nil, err
	}
	place, err := orgfiles.NewPlace(p.URL, p.Credentials)
	if err != nil {
		return nil, err
	}
	bucket, err := orgfiles.OpenBlobs(place, log)
	if err != nil {
		return nil, err
	}
	if bucket == nil {
		return nil, fmt.Errorf("the place of backups must begin with s3://, not %q", p.URL)
	}
	if err := bucket.Probe(); err != nil {
		bucket.Close()
		return nil, err
	}
	f := &Folder{blobs: bucket, key: key, close: bucket.Close}
	if dir != "" {
		f.spool = filepath.Join(dir, spoolDir)
		if err := errors.Join(os.RemoveAll(f.spool), os.MkdirAll(f.spool, 0o700)); err != nil {
			bucket.Close()
			return nil, err
		}
	}
	return f, nil
}

// Close ends the use of the folder.
func (f *Folder) Close() error {
	f.close()
	if f.spool == "" {
		return nil
	}
	return os.RemoveAll(f.spool)
}

// Backups returns the backups, oldest first.
func (f *Folder) Backups() (list []Backup, err error) {
	err = f.blobs.Each(listPrefix, func(b files.BlobInfo) error {
		if x, ok := parseName(b.Key); ok {
			list = append(list, x)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b Backup) int {
		if c := a.Begun.Compare(b.Begun); c != 0 {
			return c
		}
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
	return list, err
}

// sizes returns the sizes of all objects by their keys.
func (f *Folder) sizes() (map[string]int64, error) {
	have := map[string]int64{}
	return have, f.blobs.Each(objectPrefix, func(b files.BlobInfo) error {
		have[b.Key] = b.Size
		return nil
	})
}

// Read returns the list of a backup.
func (f *Folder) Read(b Backup) (*List, error) {
	r, _, err := f.section(listPrefix + b.Name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := f.key.openList(r)
	var l *List
	if err == nil {
		l, err = decodeList(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the backup %s cannot be read: %w", b.Name, err)
	}
	if l.Begun.UTC().Format(listTime) != b.Begun.UTC().Format(listTime) {
		return nil, fmt.Errorf("the backup %s cannot be read: %w: it is the backup of %s", b.Name, ErrDamaged,
			l.Begun.UTC().Format(time.RFC3339))
	}
	return l, nil
}

// section opens an object as it is stored.
func (f *Folder) section(key string) (io.ReadCloser, int64, error) {
	blob, err := f.blobs.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, fmt.Errorf("the bucket does not have %s: %w", key, err)
	}
	if err != nil {
		return nil, 0, err
	}
	r, err := blob.Section(0, blob.Size())
	if err != nil {
		return nil, 0, errors.Join(err, blob.Close())
	}
	return &openSection{r, blob}, blob.Size(), nil
}

// openSection is the content of an object. It is open until the object is closed.
type openSection struct {
	io.ReadCloser
	object io.Closer
}

func (s *openSection) Close() error { return errors.Join(s.ReadCloser.Close(), s.object.Close()) }

// write sends a list and reads it again.
func (f *Folder) write(l *List) (Backup, error) {
	b := newBackup(l.Begun)
	text, err := l.encode()
	if err != nil {
		return b, err
	}
	if len(text) > maxListBytes {
		return b, fmt.Errorf("the list of %d files has %d bytes, more than %d", len(l.Files), len(text), maxListBytes)
	}
	sealed, err := f.key.sealList(text)
	if err != nil {
		return b, err
	}
	sent, err := os.CreateTemp(f.spool, "list-*")
	if err != nil {
		return b, err
	}
	defer os.Remove(sent.Name())
	defer sent.Close()
	if _, err := sent.Write(sealed); err != nil {
		return b, err
	}
	if err := f.blobs.Put(listPrefix+b.Name, sent); err != nil {
		return b, err
	}
	again, err := f.Read(b)
	if err == nil && len(again.Files) != len(l.Files) {
		err = ErrDamaged
	}
	if err != nil {
		return b, fmt.Errorf("the list of the backup differs from what was sent: %w", err)
	}
	return b, nil
}

// put encrypts a content, sends it under the key of its hash, and reads it again. It returns the hash of the content;
// if that is not the expected one, nothing is sent.
func (f *Folder) put(r io.Reader, size int64, expected string) (hash string, sent int64, err error) {
	spooled, err := os.CreateTemp(f.spool, "object-*")
	if err != nil {
		return "", 0, err
	}
	defer os.Remove(spooled.Name())
	defer spooled.Close()
	plain, stored := sha256.New(), sha256.New()
	w, err := age.Encrypt(io.MultiWriter(spooled, stored), f.key.recipient)
	if err != nil {
		return "", 0, err
	}
	n, err := io.Copy(w, io.TeeReader(io.LimitReader(r, size), plain))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return "", 0, err
	}
	if hash = hex.EncodeToString(plain.Sum(nil)); hash != expected {
		return hash, 0, nil
	}
	key := f.key.objectKey(hash)
	if err := f.blobs.Put(key, spooled); err != nil {
		return "", 0, err
	}
	got, bytes, err := f.storedHash(key)
	if err != nil {
		return "", 0, fmt.Errorf("read %s after it was sent: %w", key, err)
	}
	if !hashEqual(got, stored) {
		return "", 0, fmt.Errorf("%s in the bucket differs from what was sent, %d bytes: %w", key, bytes, ErrDamaged)
	}
	return hash, bytes, nil
}

// storedHash returns the SHA-256 of an object as it is stored.
func (f *Folder) storedHash(key string) (sum hash.Hash, size int64, err error) {
	r, size, err := f.section(key)
	if err != nil {
		return nil, 0, err
	}
	sum = sha256.New()
	n, err := io.Copy(sum, r)
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return sum, size, errors.Join(err, r.Close())
}

func hashEqual(a, b hash.Hash) bool { return bytes.Equal(a.Sum(nil), b.Sum(nil)) }

// open returns the content of a file. Its last Read returns an error if the content differs from that of the list.
func (f *Folder) open(file *File) (io.ReadCloser, error) {
	if file.Object == "" {
		return io.NopCloser(bytes.NewReader(file.Data)), nil
	}
	fail := func(err error) error {
		return fmt.Errorf("%s of the backup, object %s: %w", file.Name, file.Object, err)
	}
	r, size, err := f.section(file.Object)
	if err != nil {
		return nil, fail(err)
	}
	if want := f.key.encryptedSize(file.Size); size != want {
		r.Close()
		return nil, fail(fmt.Errorf("%w: it has %d bytes, not %d", ErrDamaged, size, want))
	}
	plain, err := f.key.open(r)
	if err != nil {
		r.Close()
		return nil, fail(err)
	}
	return &checkedReader{plain, r, sha256.New(), file.Hash, fail}, nil
}

// checkedReader compares the hash of a content at its end.
type checkedReader struct {
	io.Reader
	io.Closer
	sum  hash.Hash
	want string
	fail func(error) error
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.sum.Write(p[:n])
	switch {
	case err == io.EOF && hex.EncodeToString(r.sum.Sum(nil)) != r.want:
		return n, r.fail(fmt.Errorf("%w: it has the content of another file", ErrDamaged))
	case err != nil && err != io.EOF && errors.Is(err, files.ErrUnavailable):
		return n, r.fail(err)
	case err != nil && err != io.EOF:
		return n, r.fail(fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	return n, err
}

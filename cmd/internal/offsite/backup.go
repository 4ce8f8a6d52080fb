package offsite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/cmd/internal/backup"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/snapshot/files"
)

const (
	// uploads is how many files of a backup are sent at the same time. Each takes one request to the bucket, and the
	// space of its file in the spool.
	uploads = 8

	retryPause    = 10 * time.Second // after a failed backup; doubled after each further one
	maxRetryPause = 10 * time.Minute
	// MinInterval is the shortest interval of backups: each makes a checkpoint of the store and lists the bucket.
	MinInterval = time.Minute
	// MaxInterval is the longest one: facts stay on the disk for two intervals.
	MaxInterval = 7 * 24 * time.Hour
)

// Options are the options of backups.
type Options struct {
	Data       string // data directory
	Place      Place
	Keep       Keep
	Every      time.Duration // 0: one backup
	Incomplete bool          // see backup.Options
	TakeOver   bool          // continue the backups of another server
	Program    string        // version
	Log        *slog.Logger
}

// Result is the result of one backup.
type Result struct {
	Backup
	Warning string
	Files   int
	Bytes   int64 // of all files
	New     int   // files that were sent
	Sent    int64 // bytes of them, as they are stored
	Removed int   // older backups
}

// Once makes one backup, and removes those that are not kept.
func Once(ctx context.Context, o Options) (r Result, err error) {
	status := ReadStatus(o.Data)
	if o.Every > 0 { // a single backup does not end the regular ones
		if status.Interval == 0 {
			status.Started = time.Now().Unix()
		}
		status.Interval = int64(o.Every / time.Second)
	}
	r, err = o.make(ctx, &status)
	status.Sent += r.Sent
	if err != nil {
		if status.Failures++; status.Failed == 0 {
			status.Failed = time.Now().Unix()
		}
		status.Error = err.Error()
	} else {
		status.Failures, status.Failed, status.Error = 0, 0, ""
		status.Newest, status.Name, status.Place = r.Begun.Unix(), r.Name, o.Place.URL
		status.Files, status.Bytes = int64(r.Files), r.Bytes
	}
	return r, errors.Join(err, status.write(o.Data))
}

// Regularly makes backups until the context ends. It tries again soon after a failure. done is called after each.
func Regularly(ctx context.Context, o Options, done func(Result, error)) error {
	pause := retryPause
	for {
		wait := time.Until(time.Unix(ReadStatus(o.Data).Newest, 0).Add(o.Every))
		if wait <= 0 {
			r, err := Once(ctx, o)
			if ctx.Err() != nil {
				return nil
			}
			if done(r, err); err == nil {
				pause = retryPause
				continue
			}
			wait, pause = min(pause, o.Every), min(2*pause, maxRetryPause)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// make makes a backup.
func (o Options) make(ctx context.Context, status *Status) (r Result, err error) {
	source, err := orgfiles.OwnerName(o.Data)
	if err != nil {
		return r, err
	}
	folder, err := o.Place.Open(o.Data, o.Log)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	earlier, err := folder.Backups()
	if err != nil {
		return r, err
	}
	last, err := o.last(folder, earlier, source)
	if err != nil {
		return r, err
	}
	have, err := folder.sizes()
	if err != nil {
		return r, err
	}
	list := &List{Format: listFormat, Source: source, Begun: time.Now().UTC(), Program: o.Program}
	held, err := backup.Hold(o.Data, backup.Options{Incomplete: o.Incomplete, Every: o.Every})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	r.Warning = held.Warning
	u := newUpload(ctx, folder, last, have)
	defer u.cancel()
	go func() {
		select {
		case <-held.Lost:
			u.fail(errServerEnded)
		case <-u.ctx.Done():
		}
	}()
	if err := u.addStore(o.Data, held.Files); err != nil {
		u.fail(err)
		return r, u.wait()
	}
	if list.Place, err = u.addUploads(o.Data); err != nil {
		u.fail(err)
		return r, u.wait()
	}
	err = u.wait()
	r.New, r.Sent = u.sent, u.sentBytes
	if err != nil {
		return r, err
	}
	list.Files = u.files
	list.Warning = strings.Trim(strings.Join(append([]string{r.Warning}, u.warnings...), "\n"), "\n")
	r.Warning = list.Warning
	for _, f := range list.Files {
		r.Files, r.Bytes = r.Files+1, r.Bytes+f.Size
	}
	if r.Backup, err = folder.write(list); err != nil {
		return r, err
	}
	if r.Removed, err = folder.thin(o.Keep, append(earlier, r.Backup), status); err != nil {
		r.Warning = strings.TrimSpace(r.Warning + "\n" + err.Error()) // the new backup is complete
	}
	return r, nil
}

// last returns the newest backup; nil if there is none that can be read. It refuses a folder of another key or server.
func (o Options) last(f *Folder, earlier []Backup, source string) (*List, error) {
	for i := len(earlier) - 1; i >= 0; i-- {
		l, err := f.Read(earlier[i])
		switch {
		case errors.Is(err, ErrWrongKey):
			return nil, fmt.Errorf("%w: use its key, or another folder", err)
		case errors.Is(err, ErrDamaged), errors.Is(err, fs.ErrNotExist):
			o.Log.Error("an earlier backup is damaged", "err", err)
		case err != nil:
			return nil, err
		case l.Source != source && !o.TakeOver:
			return nil, errors.New("the folder has the backups of another server: use another folder, or add " +
				"--take-over if this server replaces it")
		default:
			return l, nil
		}
	}
	return nil, nil
}

// upload sends the files of one backup.
type upload struct {
	ctx    context.Context
	cancel context.CancelFunc
	folder *Folder
	known  map[string]File // files of the last backup by name
	slots  chan struct{}
	group  sync.WaitGroup

	mu        sync.Mutex
	have      map[string]int64 // sizes of the objects in the bucket
	files     []File
	failed    error
	warnings  []string
	sent      int
	sentBytes int64
}

func newUpload(ctx context.Context, f *Folder, last *List, have map[string]int64) *upload {
	u := &upload{folder: f, known: map[string]File{}, slots: make(chan struct{}, uploads), have: have}
	u.ctx, u.cancel = context.WithCancel(ctx)
	if last != nil {
		for _, f := range last.Files {
			if f.Stamp != "" {
				u.known[f.Name] = f
			}
		}
	}
	return u
}

// fail ends the upload with its first error.
func (u *upload) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil {
		u.failed = err
	}
	u.cancel()
}

// wait returns when all files were sent.
func (u *upload) wait() error {
	u.group.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failed == nil {
		return u.ctx.Err()
	}
	return u.failed
}

// addStore sends the files of the store.
func (u *upload) addStore(data string, list []snapshot.BackupFile) error {
	for _, f := range list {
		if f.Path == "" {
			u.append(File{Name: f.Name, Size: int64(len(f.Data)), Data: f.Data})
			continue
		}
		name := filepath.Join(data, f.Path)
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return errServerEnded
		}
		if err != nil {
			return err
		}
		if info.IsDir() {
			continue
		}
		stamp := fmt.Sprint(info.ModTime().UnixNano())
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			stamp += fmt.Sprint(" ", s.Ino)
		}
		u.add(File{Name: f.Name, Size: info.Size(), Stamp: stamp},
			func() (io.ReadCloser, error) { return openHeld(name) }, func() error { return snapshot.CheckTable(name) })
	}
	return nil
}

// errServerEnded ends a backup whose files were removed: by the server when it starts again.
var errServerEnded = errors.New("the server was stopped or upgraded during the backup")

// openHeld opens a file of the store that is held for the backup.
func openHeld(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errServerEnded
	}
	return f, err
}

// addUploads sends the files that users have uploaded, wherever they are, and returns the place of those in a bucket.
// It is called after the checkpoint, so that every file that the facts name exists.
func (u *upload) addUploads(data string) (bucket string, err error) {
	place, err := orgfiles.ReadPlace(data)
	if err != nil {
		return "", err
	}
	blobs, closeBlobs, err := orgfiles.OpenPlace(data, place)
	if err != nil {
		return "", err
	}
	defer closeBlobs()
	defer u.group.Wait() // they use blobs
	for _, prefix := range files.Prefixes() {
		err := blobs.Each(prefix, func(b files.BlobInfo) error {
			f := File{Name: snapshot.ExtraName("uploads/" + b.Key), Size: b.Size,
				Stamp: fmt.Sprint(b.Modified.UnixNano())}
			if hash := path.Base(b.Key); files.ContentKey(hash) == b.Key {
				f.Hash = hash
			}
			u.add(f, func() (io.ReadCloser, error) { return openBlob(blobs, b) }, nil)
			return u.ctx.Err()
		})
		if err != nil {
			return "", err
		}
	}
	return place.Files, nil
}

// openBlob opens an uploaded file.
func openBlob(blobs files.Blobs, b files.BlobInfo) (io.ReadCloser, error) {
	blob, err := blobs.Open(b.Key)
	if err != nil {
		return nil, err
	}
	r, err := blob.Section(0, b.Size)
	if err != nil {
		return nil, errors.Join(err, blob.Close())
	}
	return blobReader{r, blob}, nil
}

type blobReader struct {
	io.ReadCloser
	blob files.Blob
}

func (r blobReader) Close() error { return errors.Join(r.ReadCloser.Close(), r.blob.Close()) }

// add sends a file, unless the bucket has its content. check is called before a file is sent.
func (u *upload) add(f File, open func() (io.ReadCloser, error), check func() error) {
	n := u.append(f)
	select {
	case u.slots <- struct{}{}:
	case <-u.ctx.Done():
		return
	}
	u.group.Go(func() {
		defer func() { <-u.slots }()
		if err := u.send(&f, open, check); err != nil {
			u.fail(fmt.Errorf("back up %s: %w", f.Name, err))
			return
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		u.files[n] = f
	})
}

// claim reports whether an object must be sent. It reports so once: two objects of one content would differ.
func (u *upload) claim(key string, size int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.have[key] == size {
		return false
	}
	u.have[key] = size
	return true
}

// append adds a file to the list and returns its index.
func (u *upload) append(f File) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.files = append(u.files, f)
	return len(u.files) - 1
}

func (u *upload) send(f *File, open func() (io.ReadCloser, error), check func() error) error {
	if old, ok := u.known[f.Name]; ok && old.Size == f.Size && old.Stamp == f.Stamp {
		f.Hash = old.Hash
	}
	expected := f.Hash
	for {
		if f.Hash != "" {
			f.Object = u.folder.key.objectKey(f.Hash)
			if !u.claim(f.Object, u.folder.key.encryptedSize(f.Size)) {
				return nil
			}
		}
		if check != nil {
			if err := check(); errors.Is(err, fs.ErrNotExist) {
				return errServerEnded
			} else if err != nil {
				return err
			}
		}
		r, err := open()
		if err != nil {
			return err
		}
		if f.Hash == "" {
			h := sha256.New()
			_, err = io.Copy(h, r)
			f.Hash = hex.EncodeToString(h.Sum(nil))
			if err = errors.Join(err, r.Close()); err != nil {
				return err
			}
			continue
		}
		hash, sent, err := u.folder.put(r, f.Size, f.Hash)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		u.mu.Lock()
		if hash == f.Hash {
			u.sent, u.sentBytes = u.sent+1, u.sentBytes+sent
		} else if expected != "" {
			u.warnings = append(u.warnings, f.Name+" is damaged on this machine: its content has another hash")
		}
		u.mu.Unlock()
		if hash == f.Hash {
			return nil
		}
		f.Hash = hash // the file is backed up as it is
	}
}

package files

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/actors/admission"
)

// PartialUpload is an upload that arrives in pieces. Its bytes are on disk, so it survives the process.
type PartialUpload struct {
	ID      string // random; knowing it gives access
	Space   string // as in Save
	Owner   string
	Name    string
	Extra   string // metadata from the client
	Size    int64  // bytes of the whole file
	Expires int64  // Unix seconds
	Answer  string // the answer of FinishUpload; "" before

	Offset int64 `json:"-"` // bytes that have arrived

	busy bool // a call is appending to it or finishing it
}

// Limits of partial uploads, against users that begin uploads without finishing them. An upload takes about 500 bytes
// of memory. Recently finished uploads count in MaxPartialUploads. Clients begin one upload for each file of a message.
const (
	maxPartialUploadsPerUser = 40
	MaxPartialUploads        = 20_000
	partialUploadLifetime    = 24 * time.Hour
	finishedUploadLifetime   = 10 * time.Minute // in which a client can repeat the request that finished it
)

// Errors of partial uploads.
var (
	ErrUnknownUpload  = errors.New("no such upload")
	ErrWrongOffset    = errors.New("wrong offset for the upload")
	ErrUploadBusy     = errors.New("upload is being written to")
	ErrTooManyUploads = errors.New("too many unfinished uploads")
)

func (s *Store) partPath(id string) string     { return filepath.Join(s.dir, "unfinished", id+".part") }
func (s *Store) metadataPath(id string) string { return filepath.Join(s.dir, "unfinished", id+".json") }

// loadPartialUploads loads the uploads of earlier processes and removes incomplete files.
func (s *Store) loadPartialUploads() error {
	list, err := os.ReadDir(filepath.Join(s.dir, "unfinished"))
	if err != nil {
		return err
	}
	for _, f := range list {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue
		}
		text, err := os.ReadFile(s.metadataPath(id))
		if err != nil {
			return err
		}
		u := &PartialUpload{}
		if json.Unmarshal(text, u) != nil || u.ID != id { // its writing was interrupted, so no client knows the upload
			s.removeUpload(id)
			continue
		}
		if info, err := os.Stat(s.partPath(id)); err == nil {
			u.Offset = min(info.Size(), u.Size)
		} else if u.Answer != "" {
			u.Offset = u.Size
		}
		s.partialUploads[id] = u
	}
	for _, f := range list {
		if id, ok := strings.CutSuffix(f.Name(), ".part"); ok && s.partialUploads[id] == nil {
			os.Remove(s.partPath(id)) // it has no metadata
		}
	}
	s.removeExpired()
	return nil
}

// BeginUpload stores an upload without bytes. It expires after partialUploadLifetime.
func (s *Store) BeginUpload(u PartialUpload) (PartialUpload, error) {
	if u.ID == "" || strings.Trim(u.ID, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return u, fmt.Errorf("begin upload: invalid id %q", u.ID)
	}
	if err := errors.Join(s.checkSpace(u.Size), s.blobs.Ready()); err != nil {
		return u, fmt.Errorf("begin upload: %w", err)
	}
	u.Expires = time.Now().Add(partialUploadLifetime).Unix()
	stored, err := s.reserveUpload(u)
	if err != nil {
		return u, err
	}
	f, err := os.OpenFile(s.partPath(u.ID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Close(), s.writeMetadata(&u))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.removeUpload(u.ID)
		return u, fmt.Errorf("begin upload: %w", err)
	}
	stored.busy = false
	s.scheduleExpiry(u.Expires)
	return u, nil
}

// reserveUpload adds an upload that is busy until its files exist. If there are MaxPartialUploads, it removes the
// upload that was finished first.
func (s *Store) reserveUpload(u PartialUpload) (*PartialUpload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.partialUploads[u.ID] != nil {
		return nil, fmt.Errorf("begin upload: id %q is in use", u.ID)
	}
	own, inSpace := 0, 0
	var oldest, oldestInSpace *PartialUpload // of the finished ones
	for _, o := range s.partialUploads {
		if o.Space == u.Space {
			inSpace++
			if o.Answer != "" && !o.busy && (oldestInSpace == nil || o.Expires < oldestInSpace.Expires) {
				oldestInSpace = o
			}
		}
		switch {
		case o.Answer == "" && o.Space == u.Space && o.Owner == u.Owner:
			own++
		case o.Answer != "" && !o.busy && (oldest == nil || o.Expires < oldest.Expires):
			oldest = o
		}
	}
	full := len(s.partialUploads) >= MaxPartialUploads
	if s.several != nil && s.several() && inSpace >= int(admission.Half(MaxPartialUploads)) {
		full, oldest = true, oldestInSpace // the other spaces keep theirs
	}
	if own >= maxPartialUploadsPerUser || full && oldest == nil {
		return nil, ErrTooManyUploads
	}
	if full {
		s.removeUpload(oldest.ID)
	}
	u.busy = true
	s.partialUploads[u.ID] = &u
	return &u, nil
}

// PartialUploads returns the number of partial and recently finished uploads.
func (s *Store) PartialUploads() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.partialUploads))
}

// scheduleExpiry makes removeExpired run soon after the given time. mu is held.
func (s *Store) scheduleExpiry(at int64) {
	if s.expiryTimer != nil && s.nextExpiry <= at {
		return
	}
	if s.expiryTimer != nil {
		s.expiryTimer.Stop()
	}
	s.nextExpiry = at
	s.expiryTimer = time.AfterFunc(time.Until(time.Unix(at, 0)), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.removeExpired()
	})
}

// writeMetadata replaces the metadata of an upload atomically.
func (s *Store) writeMetadata(u *PartialUpload) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Join(s.dir, "incoming"), "about-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return syncAndRename(f, s.metadataPath(u.ID))
}

// removeExpired removes expired uploads and schedules the next run. mu is held.
func (s *Store) removeExpired() {
	s.expiryTimer = nil
	now, next := time.Now().Unix(), int64(0)
	for id, u := range s.partialUploads {
		switch {
		case u.Expires > now || u.busy:
			if at := max(u.Expires, now+1); next == 0 || at < next {
				next = at
			}
		default:
			s.removeUpload(id)
		}
	}
	if next != 0 {
		s.scheduleExpiry(next)
	}
}

// removeUpload removes an upload and its bytes. mu is held.
func (s *Store) removeUpload(id string) {
	os.Remove(s.metadataPath(id)) // first: the next start removes bytes without metadata
	os.Remove(s.partPath(id))
	delete(s.partialUploads, id)
}

// PartialUpload returns the current state of an upload; false if it is unknown or expired.
func (s *Store) PartialUpload(id string) (PartialUpload, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.partialUploads[id]
	if u == nil || u.Expires <= time.Now().Unix() {
		return PartialUpload{}, false
	}
	return *u, true
}

// PartialUploadBytes returns the total size of a space's unfinished uploads, counting each with its whole size.
func (s *Store) PartialUploadBytes(space string) (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.partialUploads {
		if u.Space == space && u.Answer == "" {
			bytes += u.Size
		}
	}
	return bytes
}

// acquireUpload marks an upload as busy, so that the caller may change it until releaseUpload.
func (s *Store) acquireUpload(id string) (*PartialUpload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.partialUploads[id]
	if u == nil || u.Expires <= time.Now().Unix() {
		return nil, ErrUnknownUpload
	}
	if u.busy {
		return nil, ErrUploadBusy
	}
	u.busy = true
	return u, nil
}

func (s *Store) releaseUpload(u *PartialUpload, change func()) PartialUpload {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change != nil {
		change()
	}
	u.busy = false
	return *u
}

// AppendUpload writes the bytes of r at the offset, which must be the upload's, and returns when they are on disk.
// Bytes that arrived before an error of r are stored. Bytes beyond the file's size are an error; the upload is complete
// nevertheless.
func (s *Store) AppendUpload(id string, offset int64, r io.Reader) (PartialUpload, error) {
	u, err := s.acquireUpload(id)
	if err != nil {
		return PartialUpload{}, err
	}
	if offset != u.Offset {
		return s.releaseUpload(u, nil), ErrWrongOffset
	}
	n, err := s.appendBytes(u, r)
	return s.releaseUpload(u, func() { u.Offset += n }), err
}

func (s *Store) appendBytes(u *PartialUpload, r io.Reader) (int64, error) {
	if u.Offset == u.Size {
		return 0, atEnd(r)
	}
	f, err := os.OpenFile(s.partPath(u.ID), os.O_WRONLY, 0)
	if err != nil {
		return 0, fmt.Errorf("continue upload: %w", err)
	}
	defer f.Close()
	n, err := io.CopyBuffer(&limitedWriter{s: s, w: io.NewOffsetWriter(f, u.Offset)},
		io.LimitReader(r, u.Size-u.Offset), make([]byte, copyBuffer))
	if syncErr := f.Sync(); syncErr != nil { // bytes that may not be on disk do not count
		return 0, fmt.Errorf("continue upload: %w", syncErr)
	}
	if err == nil && u.Offset+n == u.Size {
		err = atEnd(r)
	}
	return n, err
}

// atEnd returns ErrTooLarge if r has another byte.
func atEnd(r io.Reader) error {
	if n, _ := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return ErrTooLarge
	}
	return nil
}

// FinishUpload turns a complete upload into content and calls note, which stores it in a row. The answer of note is
// stored, so that a client can repeat a request whose answer it did not receive. If note fails, nothing has changed;
// the upload can be finished later or abandoned.
func (s *Store) FinishUpload(
	id string,
	note func(u PartialUpload, x Saved) (answer string, err error),
) (PartialUpload, error) {
	u, err := s.acquireUpload(id)
	if err != nil {
		return PartialUpload{}, err
	}
	if u.Answer != "" {
		return s.releaseUpload(u, nil), nil
	}
	if u.Offset != u.Size {
		return s.releaseUpload(u, nil), ErrWrongOffset
	}
	answer, err := s.storeContent(*u, note)
	if err != nil {
		return s.releaseUpload(u, nil), err
	}
	done := *u
	done.Answer, done.Expires = answer, time.Now().Add(finishedUploadLifetime).Unix()
	err = s.writeMetadata(&done)
	if err == nil {
		os.Remove(s.partPath(id))
	}
	return s.releaseUpload(u, func() {
		u.Answer, u.Expires = done.Answer, done.Expires
		s.scheduleExpiry(u.Expires)
	}), err
}

func (s *Store) storeContent(u PartialUpload, note func(PartialUpload, Saved) (string, error)) (string, error) {
	f, err := os.OpenFile(s.partPath(u.ID), os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("finish upload: %w", err)
	}
	defer f.Close()
	if err := s.scan(f); err != nil {
		return "", err
	}
	if _, err := clearMetadata(f); err != nil {
		return "", fmt.Errorf("finish upload: %w", err)
	}
	w := &hashingWriter{to: io.Discard, hash: sha256.New()}
	fmt.Fprintf(w.hash, "%q", u.Space)
	if _, err := io.CopyBuffer(w, f, make([]byte, copyBuffer)); err != nil {
		return "", fmt.Errorf("finish upload: %w", err)
	}
	x := Saved{Hash: hex.EncodeToString(w.hash.Sum(nil)), Size: u.Size, Type: contentType(w.head)}
	x.setDimensions(f)
	if err := s.pin(x.Hash); err != nil {
		return "", err
	}
	if err := s.linkContent(u, x.Hash); err != nil {
		return "", errors.Join(err, s.Release(x.Hash, nil))
	}
	return note(u, x) // note releases the content
}

// linkContent gives the bytes of an upload the name of their content. They keep the upload's name until removeUpload.
func (s *Store) linkContent(u PartialUpload, hash string) error {
	name := filepath.Join(s.dir, "incoming", "adopt-"+u.ID)
	os.Remove(name)
	if err := os.Link(s.partPath(u.ID), name); err != nil {
		return fmt.Errorf("finish upload: %w", err)
	}
	defer os.Remove(name)
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("finish upload: %w", err)
	}
	defer f.Close()
	return s.put(u.Space, ContentKey(hash), f)
}

// AbandonUpload removes an upload and its bytes. Content from FinishUpload is stored.
func (s *Store) AbandonUpload(id string) error {
	if _, err := s.acquireUpload(id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeUpload(id)
	return nil
}

// setDimensions sets the size of an image and whether it is animated.
func (x *Saved) setDimensions(r io.ReadSeeker) {
	if !strings.HasPrefix(x.Type, "image/") {
		return
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return
	}
	c, _, err := image.DecodeConfig(bufio.NewReader(r))
	if err != nil {
		return
	}
	x.Width, x.Height = c.Width, c.Height
	if _, err := r.Seek(0, io.SeekStart); err == nil && readOrientation(r).swaps() {
		x.Width, x.Height = c.Height, c.Width // browsers turn the picture, too
	}
	if _, err := r.Seek(0, io.SeekStart); err == nil && x.Type == "image/gif" {
		n, w, h := countFrames(r)
		x.Animated = n > 1 && w*h*n <= maxAnimationPixels
	}
}

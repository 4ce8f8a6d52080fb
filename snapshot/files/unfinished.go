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
)

// Unfinished is an upload that comes in pieces. What came is on disk, and so survives the process.
type Unfinished struct {
	ID      string // nobody guesses it
	Space   string // as for Save
	Owner   string
	Name    string
	Extra   string // whatever the client said of it
	Size    int64  // bytes of the whole file
	Expires int64  // Unix seconds
	Answer  string // what its owner was told when it was finished; "" before

	Offset int64 `json:"-"` // how many bytes came

	busy bool // somebody appends to it or finishes it
}

// Limits of unfinished uploads, against owners who begin without end: so many of one owner, so many of all (about 500 bytes
// of memory each, and those that were finished lately count), and for so long. Clients begin one for each file of a message.
const (
	maxUnfinishedOwn = 40
	MaxUnfinished    = 20_000
	unfinishedLife   = 24 * time.Hour
	finishedLife     = 10 * time.Minute // in which a client may ask again what became of its upload
)

// Errors of unfinished uploads.
var (
	ErrUnknown = errors.New("no such upload")
	ErrOffset  = errors.New("upload stands elsewhere")
	ErrBusy    = errors.New("upload is being written to")
	ErrTooMany = errors.New("too many unfinished uploads")
)

func (s *Store) part(id string) string  { return filepath.Join(s.dir, "unfinished", id+".part") }
func (s *Store) about(id string) string { return filepath.Join(s.dir, "unfinished", id+".json") }

// loadUnfinished finds the uploads of earlier processes.
func (s *Store) loadUnfinished() error {
	list, err := os.ReadDir(filepath.Join(s.dir, "unfinished"))
	if err != nil {
		return err
	}
	for _, f := range list {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue
		}
		text, err := os.ReadFile(s.about(id))
		if err != nil {
			return err
		}
		u := &Unfinished{}
		if json.Unmarshal(text, u) != nil || u.ID != id { // half written: nobody was told of it
			s.forget(id)
			continue
		}
		if info, err := os.Stat(s.part(id)); err == nil {
			u.Offset = min(info.Size(), u.Size)
		} else if u.Answer != "" {
			u.Offset = u.Size
		}
		s.unfinished[id] = u
	}
	for _, f := range list {
		if id, ok := strings.CutSuffix(f.Name(), ".part"); ok && s.unfinished[id] == nil {
			os.Remove(s.part(id)) // nobody knows of it
		}
	}
	s.expire()
	return nil
}

// Begin notes an upload that will come in pieces; its life begins now.
func (s *Store) Begin(u Unfinished) (Unfinished, error) {
	if u.ID == "" || strings.Trim(u.ID, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return u, fmt.Errorf("begin upload: bad id %q", u.ID)
	}
	u.Expires = time.Now().Add(unfinishedLife).Unix()
	kept, err := s.reserve(u)
	if err != nil {
		return u, err
	}
	f, err := os.OpenFile(s.part(u.ID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(f.Close(), s.writeAbout(&u))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.forget(u.ID)
		return u, fmt.Errorf("begin upload: %w", err)
	}
	kept.busy = false
	s.expireAt(u.Expires)
	return u, nil
}

// reserve takes a place for an upload, which is busy until it is on disk. Where there is none left, the upload that was
// finished the longest time ago makes room.
func (s *Store) reserve(u Unfinished) (*Unfinished, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unfinished[u.ID] != nil {
		return nil, fmt.Errorf("begin upload: there is one of id %q", u.ID)
	}
	own := 0
	var oldest *Unfinished // of the finished ones
	for _, o := range s.unfinished {
		switch {
		case o.Answer == "" && o.Space == u.Space && o.Owner == u.Owner:
			own++
		case o.Answer != "" && !o.busy && (oldest == nil || o.Expires < oldest.Expires):
			oldest = o
		}
	}
	full := len(s.unfinished) >= MaxUnfinished
	if own >= maxUnfinishedOwn || full && oldest == nil {
		return nil, ErrTooMany
	}
	if full {
		s.forget(oldest.ID)
	}
	u.busy = true
	s.unfinished[u.ID] = &u
	return &u, nil
}

// Begun is how many uploads are unfinished, or were until lately.
func (s *Store) Begun() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.unfinished))
}

// expireAt sees to it that expire runs not much later than that. mu is held.
func (s *Store) expireAt(at int64) {
	if s.expiry != nil && s.expiresAt <= at {
		return
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.expiresAt = at
	s.expiry = time.AfterFunc(time.Until(time.Unix(at, 0)), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.expire()
	})
}

// writeAbout replaces what is known of an upload, as a whole.
func (s *Store) writeAbout(u *Unfinished) error {
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
	return place(f, s.about(u.ID))
}

// expire forgets what has had its time, and comes back when the next has. mu is held.
func (s *Store) expire() {
	s.expiry = nil
	now, next := time.Now().Unix(), int64(0)
	for id, u := range s.unfinished {
		switch {
		case u.Expires > now || u.busy:
			if at := max(u.Expires, now+1); next == 0 || at < next {
				next = at
			}
		default:
			s.forget(id)
		}
	}
	if next != 0 {
		s.expireAt(next)
	}
}

// forget removes an upload and what came of it. mu is held.
func (s *Store) forget(id string) {
	os.Remove(s.about(id)) // first: a part without it is nobody's and goes at the next start
	os.Remove(s.part(id))
	delete(s.unfinished, id)
}

// Unfinished is an upload as it stands.
func (s *Store) Unfinished(id string) (Unfinished, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unfinished[id]
	if u == nil || u.Expires <= time.Now().Unix() {
		return Unfinished{}, false
	}
	return *u, true
}

// Announced is how many bytes the unfinished uploads of a space will have.
func (s *Store) Announced(space string) (bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.unfinished {
		if u.Space == space && u.Answer == "" {
			bytes += u.Size
		}
	}
	return bytes
}

// take gives the caller an upload alone, until give.
func (s *Store) take(id string) (*Unfinished, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unfinished[id]
	if u == nil || u.Expires <= time.Now().Unix() {
		return nil, ErrUnknown
	}
	if u.busy {
		return nil, ErrBusy
	}
	u.busy = true
	return u, nil
}

func (s *Store) give(u *Unfinished, change func()) Unfinished {
	s.mu.Lock()
	defer s.mu.Unlock()
	if change != nil {
		change()
	}
	u.busy = false
	return *u
}

// Append writes the bytes that follow offset, as many as come, and returns when they are on disk. What came before an error
// of r stays. More bytes than the file has are refused; the file is whole then all the same.
func (s *Store) Append(id string, offset int64, r io.Reader) (Unfinished, error) {
	u, err := s.take(id)
	if err != nil {
		return Unfinished{}, err
	}
	if offset != u.Offset {
		return s.give(u, nil), ErrOffset
	}
	n, err := s.append(u, r)
	return s.give(u, func() { u.Offset += n }), err
}

func (s *Store) append(u *Unfinished, r io.Reader) (int64, error) {
	if u.Offset == u.Size {
		return 0, atEnd(r)
	}
	f, err := os.OpenFile(s.part(u.ID), os.O_WRONLY, 0)
	if err != nil {
		return 0, fmt.Errorf("continue upload: %w", err)
	}
	defer f.Close()
	n, err := io.CopyBuffer(io.NewOffsetWriter(f, u.Offset), io.LimitReader(r, u.Size-u.Offset), make([]byte, copyBuffer))
	if bad := f.Sync(); bad != nil { // what is not on disk did not come
		return 0, fmt.Errorf("continue upload: %w", bad)
	}
	if err == nil && u.Offset+n == u.Size {
		err = atEnd(r)
	}
	return n, err
}

// atEnd refuses bytes beyond a file's end.
func atEnd(r io.Reader) error {
	if n, _ := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return ErrTooLarge
	}
	return nil
}

// Finish turns a whole upload into content and has it noted. What note answers is kept, so that a client that did not hear it
// can ask again; if note fails, nothing has changed, and the upload may be finished later or abandoned.
func (s *Store) Finish(id string, note func(u Unfinished, x Saved) (answer string, err error)) (Unfinished, error) {
	u, err := s.take(id)
	if err != nil {
		return Unfinished{}, err
	}
	if u.Answer != "" {
		return s.give(u, nil), nil
	}
	if u.Offset != u.Size {
		return s.give(u, nil), ErrOffset
	}
	answer, err := s.finish(*u, note)
	if err != nil {
		return s.give(u, nil), err
	}
	done := *u
	done.Answer, done.Expires = answer, time.Now().Add(finishedLife).Unix()
	err = s.writeAbout(&done)
	if err == nil {
		os.Remove(s.part(id))
	}
	return s.give(u, func() {
		u.Answer, u.Expires = done.Answer, done.Expires
		s.expireAt(u.Expires)
	}), err
}

func (s *Store) finish(u Unfinished, note func(Unfinished, Saved) (string, error)) (string, error) {
	f, err := os.Open(s.part(u.ID))
	if err != nil {
		return "", fmt.Errorf("finish upload: %w", err)
	}
	defer f.Close()
	w := &writer{to: io.Discard, hash: sha256.New()}
	fmt.Fprintf(w.hash, "%q", u.Space)
	if _, err := io.CopyBuffer(w, f, make([]byte, copyBuffer)); err != nil {
		return "", fmt.Errorf("finish upload: %w", err)
	}
	x := Saved{Hash: hex.EncodeToString(w.hash.Sum(nil)), Size: u.Size, Type: contentType(w.head)}
	x.measure(f)
	s.pin(x.Hash)
	if err := s.adopt(u.ID, x.Hash); err != nil {
		return "", errors.Join(err, s.Release(x.Hash, nil))
	}
	return note(u, x) // which releases
}

// adopt gives an upload's bytes the name of their content; they keep their own until the upload is forgotten.
func (s *Store) adopt(id, hash string) error {
	name := filepath.Join(s.dir, "incoming", "adopt-"+id)
	os.Remove(name)
	if err := os.Link(s.part(id), name); err != nil {
		return fmt.Errorf("finish upload: %w", err)
	}
	defer os.Remove(name)
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("finish upload: %w", err)
	}
	defer f.Close()
	return place(f, s.Path(hash))
}

// Abandon forgets an upload and what came of it; content that was noted stays.
func (s *Store) Abandon(id string) error {
	if _, err := s.take(id); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(id)
	return nil
}

// measure finds out an image's size.
func (x *Saved) measure(r io.ReadSeeker) {
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
	if _, err := r.Seek(0, io.SeekStart); err == nil && x.Type == "image/gif" {
		n, w, h := frames(r)
		x.Moves = n > 1 && w*h*n <= maxMoving
	}
}

package files

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// movers is how many files Copy copies at the same time. A bucket far away takes some 50 ms for each request, and a
// file takes three.
const movers = 8

// Copied counts the files of a Copier.
type Copied struct {
	Files int64 // copied now and read again
	Bytes int64 // of these
	Known int64 // copied by an earlier run
	Same  int64 // found in the new place with the same content
}

// A Copier copies files from one place to another. It reads each file again at the new place and compares SHA-256. Its
// log has the files that are done, so that an interrupted run can be continued, and a run after the server was stopped
// is short.
type Copier struct {
	From, To Blobs
	// Temp is a folder for the files that are being copied, on the file system of To if that is a directory.
	Temp string
	// Log is the path of the log, and Place its first line: the log of a copy to another place is replaced.
	Log, Place string
	Progress   func(Copied) // called after each file; nil is allowed

	mu     sync.Mutex // guards the fields below
	done   map[string]int64
	out    *os.File
	copied Copied
	err    error
}

// Copy copies all files that the old place has. Files that were removed from it meanwhile are left out.
func (c *Copier) Copy() (result Copied, err error) {
	if err := c.openLog(); err != nil {
		return Copied{}, fmt.Errorf("copy files: %w", err)
	}
	work := make(chan BlobInfo)
	var running sync.WaitGroup
	for range movers {
		running.Go(func() {
			for b := range work {
				if err := c.copyOne(b); err != nil {
					c.fail(fmt.Errorf("copy %s: %w", b.Key, err))
				}
			}
		})
	}
	for _, prefix := range Prefixes() {
		if err == nil {
			err = c.From.Each(prefix, func(b BlobInfo) error {
				work <- b
				return c.failed()
			})
		}
	}
	close(work)
	running.Wait()
	if err == nil {
		err = c.failed()
	}
	return c.copied, errors.Join(err, c.out.Sync(), c.out.Close())
}

func (c *Copier) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *Copier) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// openLog reads the log of an earlier run to the same place, or begins a new one.
func (c *Copier) openLog() (err error) {
	c.done = map[string]int64{}
	c.out, err = os.OpenFile(c.Log, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(c.out)
	if lines.Scan() && lines.Text() == c.Place {
		for lines.Scan() {
			size, key, ok := strings.Cut(lines.Text(), " ")
			n, err := strconv.ParseInt(size, 10, 64)
			if ok && err == nil {
				c.done[key] = n
			}
		}
		if err := lines.Err(); err != nil {
			return err
		}
		_, err = c.out.Seek(0, io.SeekEnd)
		if err == nil {
			_, err = c.out.WriteString("\n") // ends a line that was not written completely
		}
		return err
	}
	if err := c.out.Truncate(0); err != nil {
		return err
	}
	_, err = c.out.WriteAt([]byte(c.Place+"\n"), 0)
	if err == nil {
		_, err = c.out.Seek(0, io.SeekEnd)
	}
	return err
}

// copyOne copies one file unless the log or the new place has it.
func (c *Copier) copyOne(b BlobInfo) error {
	c.mu.Lock()
	size, known := c.done[b.Key]
	if known = known && size == b.Size; known {
		c.copied.Known++
	}
	c.mu.Unlock()
	if known {
		return nil
	}
	f, err := os.CreateTemp(c.Temp, "move-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum, err := hashBlob(c.From, b.Key, f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	there, err := hashBlob(c.To, b.Key, io.Discard)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	same := err == nil && there == sum
	if !same {
		if err := c.To.Put(b.Key, f); err != nil {
			return err
		}
		if there, err = hashBlob(c.To, b.Key, io.Discard); err != nil {
			return err
		}
		if there != sum {
			return fmt.Errorf("the new place returns another content (SHA-256 %s) than was written (%s)", there, sum)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if same {
		c.copied.Same++
	} else {
		c.copied.Files++
		c.copied.Bytes += b.Size
	}
	if c.Progress != nil {
		c.Progress(c.copied)
	}
	_, err = fmt.Fprintf(c.out, "%d %s\n", b.Size, b.Key)
	return err
}

// hashBlob writes a file to w and returns its SHA-256.
func hashBlob(from Blobs, key string, w io.Writer) (string, error) {
	h := sha256.New()
	if err := readBlob(from, key, io.MultiWriter(h, w)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func readBlob(from Blobs, key string, w io.Writer) error {
	b, err := from.Open(key)
	if err != nil {
		return err
	}
	defer b.Close()
	r, err := b.Section(0, b.Size())
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := io.CopyBuffer(w, r, make([]byte, copyBuffer))
	if err == nil && n != b.Size() {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// ErrDamaged is returned by CheckContent for content that has another hash than its name.
var ErrDamaged = errors.New("the content is damaged: its hash is not its name")

// CheckContent reads content and compares it with its name. space is the one it was saved with.
func (s *Store) CheckContent(space, hash string) error {
	h := sha256.New()
	fmt.Fprintf(h, "%q", space)
	if err := readBlob(s.blobs, ContentKey(hash), h); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != hash[:min(len(hash), hashDigits)] {
		return ErrDamaged
	}
	return nil
}

// Exists reports whether there is a file of a kind.
func (s *Store) Exists(kind, file string) (bool, error) {
	b, err := s.blobs.Open(Key(kind, file))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, b.Close()
}

// RemoveAll removes all files of a place, after they were moved. It removes empty folders of a directory, too.
func RemoveAll(from Blobs) (removed int64, err error) {
	for _, prefix := range Prefixes() {
		var keys []string // removed afterwards: a list must not change while it is read
		if err := from.Each(prefix, func(b BlobInfo) error { keys = append(keys, b.Key); return nil }); err != nil {
			return removed, err
		}
		for _, key := range keys {
			if err := from.Remove(key); err != nil {
				return removed, err
			}
			removed++
		}
	}
	if local, ok := from.(localBlobs); ok {
		folders, _ := filepath.Glob(local.path(contentPrefix) + "/*")
		for _, f := range folders {
			os.Remove(f) // only if it is empty
		}
	}
	return removed, nil
}

package migration

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Limits of archives. An archive that exceeds them is refused as a whole.
const (
	maxEntries = 5_000_000 // files of an archive
	// An archive may unpack to maxSmallArchive bytes, or to maxExpansion times its own size if that is more. JSON text
	// compresses to about a tenth.
	maxSmallArchive = 1 << 30
	maxExpansion    = 100
)

// Archive is an opened export.
type Archive struct {
	fs.FS
	Main  string // name of the file that was opened, if it is not an archive
	close func() error
}

// Close closes the archive.
func (a *Archive) Close() error { return a.close() }

// OpenArchive opens a directory, a tar or tar.gz file, a zip file, or a single file beside its data. A tar is unpacked
// into the folder work, which must be empty or have been filled by an earlier call for the same file.
func OpenArchive(file, work string) (*Archive, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return openDirectory(file, "")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 512)
	n, _ := io.ReadFull(f, head)
	head = head[:n]
	limit := max(maxSmallArchive, info.Size()*maxExpansion)
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return openZip(f, info.Size(), limit)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")), len(head) == 512 && string(head[257:262]) == "ustar":
		defer f.Close()
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		dir := filepath.Join(work, "archive")
		if err := unpackOnce(f, head, dir, limit); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", file, err)
		}
		return openDirectory(dir, "")
	}
	f.Close()
	return openDirectory(filepath.Dir(file), filepath.Base(file))
}

// openDirectory opens a directory. Links out of it cannot be followed, and nothing but regular files can be opened.
func openDirectory(dir, main string) (*Archive, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Archive{FS: regularFiles{root.FS()}, Main: main, close: root.Close}, nil
}

// regularFiles refuses devices and pipes: reading them could block for ever.
type regularFiles struct{ fs.FS }

func (r regularFiles) Open(name string) (fs.File, error) {
	info, err := fs.Stat(r.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	return r.FS.Open(name)
}

var errNotRegular = errors.New("not a regular file")

func openZip(f *os.File, size, limit int64) (*Archive, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the zip file: %w", err), f.Close())
	}
	total := int64(0)
	seen := make(map[string]bool, len(z.File))
	for _, e := range z.File {
		name := strings.TrimSuffix(e.Name, "/")
		total += int64(min(e.UncompressedSize64, 1<<60))
		switch {
		case !filepath.IsLocal(name) || strings.Contains(name, `\`):
			err = fmt.Errorf("the archive has a file with the path %q: refused", e.Name)
		case !e.Mode().IsRegular() && !e.Mode().IsDir():
			err = fmt.Errorf("the archive has a link or device %q: refused", e.Name)
		case seen[name]:
			err = fmt.Errorf("the archive has two files %q: refused", e.Name)
		case total > limit || len(seen) > maxEntries:
			err = fmt.Errorf("the archive unpacks to more than %d bytes or %d files: refused", limit, maxEntries)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		seen[name] = true
	}
	return &Archive{FS: z, close: f.Close}, nil
}

// unpackOnce unpacks a tar unless an earlier call has completed it.
func unpackOnce(f *os.File, head []byte, dir string, limit int64) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return err
	}
	var r io.Reader = bufio.NewReaderSize(f, 1<<20)
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = z
	}
	if err := unpack(&limitedReader{r, limit}, part); err != nil {
		return errors.Join(err, os.RemoveAll(part))
	}
	return os.Rename(part, dir)
}

// limitedReader fails after so many bytes.
type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errors.New("the archive unpacks to more bytes than it may: refused")
	}
	return n, err
}

func unpack(r io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(h.Name, "/")
		if name == "." || h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name = filepath.Clean(name)
		if n > maxEntries {
			return fmt.Errorf("the archive has more than %d files: refused", maxEntries)
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("the archive has a file with the path %q: refused", h.Name)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, 0o700)
		case tar.TypeReg:
			err = unpackFile(root, name, t)
		default:
			return fmt.Errorf("the archive has a link or device %q: refused", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, r io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the archive has two files %q: refused", name)
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

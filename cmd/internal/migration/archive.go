package migration

import (
	"archive/tar"
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

	"parley/wire/imports"
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
	// faults are the files that are left out; nil: none.
	faults *imports.Faults
}

// ReadDir lists a folder.
func (a *Archive) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(a.FS, name) }

// Close closes the archive.
func (a *Archive) Close() error { return a.close() }

// maxPacked is how many archives may be inside of each other, as in a zip file that has a tar.gz file.
const maxPacked = 3

// OpenArchive opens a directory, a tar or tar.gz file, a zip file, a compressed file, or a single file beside its data.
// A tar is unpacked into the folder work, which must be empty or have been filled by an earlier call for the same file.
func OpenArchive(file, work string) (*Archive, error) { return openPacked(file, work, 1) }

// openPacked opens an archive that is inside of depth-1 others.
func openPacked(file, work string, depth int) (*Archive, error) {
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
	head := readHead(f)
	limit := max(maxSmallArchive, info.Size()*maxExpansion)
	switch {
	case isZip(head):
		a, err := openZip(f, info.Size(), limit)
		if err != nil {
			return nil, err
		}
		return a.inner(filepath.Join(work, "inner"), limit, depth)
	case isGzip(head), isTar(head):
		defer f.Close()
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		dir := filepath.Join(work, "archive")
		main, err := unpackOnce(f, head, dir, limit)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", file, err)
		}
		if main == "" {
			return openDirectory(dir, "")
		}
		if depth < maxPacked {
			return openPacked(filepath.Join(dir, main), filepath.Join(work, "inner"), depth+1)
		}
		return openDirectory(dir, main)
	}
	f.Close()
	return openDirectory(filepath.Dir(file), filepath.Base(file))
}

// readHead returns the first bytes of a file, by which its type is found out.
func readHead(r io.Reader) []byte {
	head := make([]byte, 512)
	n, _ := io.ReadFull(r, head)
	return head[:n]
}

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte("\x1f\x8b")) }

func isTar(head []byte) bool { return len(head) == 512 && string(head[257:262]) == "ustar" }

// inner returns the archive itself, or the archive in it if it has nothing else. dir is a folder to unpack that one.
func (a *Archive) inner(dir string, limit int64, depth int) (*Archive, error) {
	name := ""
	if err := fs.WalkDir(a, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), "._") {
			return err
		}
		if name != "" {
			name = ""
			return fs.SkipAll
		}
		name = file
		return nil
	}); err != nil || name == "" || depth >= maxPacked {
		return a, err
	}
	f, err := a.Open(name)
	if err != nil {
		return a, nil //nolint:nilerr // the format reports that it cannot read the file
	}
	head := readHead(f)
	f.Close()
	if !isZip(head) && !isGzip(head) && !isTar(head) {
		return a, nil
	}
	defer a.Close()
	if f, err = a.Open(name); err != nil {
		return nil, err
	}
	defer f.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "packed")
	if err := writeFrom(file, &limitedReader{f, limit}); err != nil {
		return nil, err
	}
	return openPacked(file, dir, depth+1)
}

// writeFrom writes a file, or replaces it.
func writeFrom(file string, r io.Reader) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
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

// ReadDir lists a folder without the files that operating systems write.
func (r regularFiles) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(r.FS, name)
	return withoutShadows(list), err
}

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

// singleFile is the name of the content of a compressed file that is no tar.
const singleFile = "export.json"

// unpackOnce unpacks a tar unless an earlier call has completed it. A compressed file that is no tar is unpacked to the
// file main.
func unpackOnce(f *os.File, head []byte, dir string, limit int64) (main string, err error) {
	if _, err := os.Stat(dir); err == nil {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) == 1 && entries[0].Name() == singleFile {
			return singleFile, nil
		}
		return "", nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	if err := os.MkdirAll(part, 0o700); err != nil {
		return "", err
	}
	r := bufio.NewReaderSize(f, 1<<20)
	if isGzip(head) {
		z, err := gzip.NewReader(r)
		if err != nil {
			return "", err
		}
		r = bufio.NewReaderSize(z, 1<<20)
	}
	limited := &limitedReader{r, limit}
	if start, _ := r.Peek(512); isGzip(head) && !isTar(start) && isSingle(start) {
		main, err = singleFile, writeFrom(filepath.Join(part, singleFile), limited)
	} else {
		err = unpack(limited, part)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	return main, os.Rename(part, dir)
}

// isSingle reports whether a compressed file is JSON text or another archive. Old tar files begin with a name.
func isSingle(head []byte) bool {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	return isZip(head) || isGzip(head) || len(text) > 0 && (text[0] == '{' || text[0] == '[')
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

package migration

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/wire/imports"
)

// zipArchive is the content of a zip file under the names that an export has. Programs that pack an export again write
// other names: with backslashes, with "./" in front, with entries for folders, and with files of their own.
type zipArchive struct {
	files   map[string]*zip.File
	folders map[string][]fs.DirEntry // sorted by name; each folder of a file is there
	faults  imports.Faults
}

func openZip(f *os.File, size, limit int64) (*Archive, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the zip file: %w", err), f.Close())
	}
	a := &zipArchive{files: make(map[string]*zip.File, len(z.File)), folders: map[string][]fs.DirEntry{".": nil}}
	total := int64(0)
	for _, e := range z.File {
		total += int64(min(e.UncompressedSize64, 1<<60))
		if total > limit || len(z.File) > maxEntries {
			err = fmt.Errorf("the archive unpacks to more than %d bytes or %d files: refused", limit, maxEntries)
		} else {
			err = a.add(e)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	a.index()
	return &Archive{FS: a, faults: &a.faults, close: f.Close}, nil
}

// add adds an entry. Of two with the same name the later one counts, as in a zip file that was updated.
func (a *zipArchive) add(e *zip.File) error {
	name := strings.ReplaceAll(e.Name, `\`, "/")
	isFolder := strings.HasSuffix(name, "/") || e.Mode().IsDir()
	name = strings.TrimSuffix(name, "/")
	const encrypted = 1 // bit of the flags of an entry
	switch {
	case name == "" || !filepath.IsLocal(name) || strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("the archive has a file with the path %q: refused", e.Name)
	case !e.Mode().IsRegular() && !isFolder:
		return fmt.Errorf("the archive has a link or device %q: refused", e.Name)
	case e.Flags&encrypted != 0:
		return fmt.Errorf("the file %q of the archive is encrypted: unpack it first", e.Name)
	}
	name = path.Clean(name)
	if !utf8.ValidString(name) {
		name = strings.ToValidUTF8(name, "\uFFFD")
	}
	switch old := a.files[name]; {
	case isJunk(name):
	case isFolder:
		a.folders[name] = nil
	case old != nil && (old.CRC32 != e.CRC32 || old.UncompressedSize64 != e.UncompressedSize64):
		a.faults.Add("files", "the archive has another file with the same name after it", name)
		a.files[name] = e
	default:
		a.files[name] = e
	}
	return nil
}

// addFolders adds a folder and those that contain it, if they are missing.
func (a *zipArchive) addFolders(dir string) {
	for ; ; dir = path.Dir(dir) {
		if _, known := a.folders[dir]; !known {
			a.folders[dir] = nil
		}
		if dir == path.Dir(dir) { // the top
			return
		}
	}
}

// index finds the folders and their entries.
func (a *zipArchive) index() {
	for name := range a.files {
		a.addFolders(path.Dir(name))
	}
	for _, name := range slices.Collect(maps.Keys(a.folders)) {
		a.addFolders(name)
	}
	for name, e := range a.files {
		if _, isFolder := a.folders[name]; isFolder {
			if e.UncompressedSize64 > 0 {
				a.faults.Add("files", "the archive has a folder with the same name", name)
			}
			delete(a.files, name)
			continue
		}
		a.addEntry(name, zipInfo{name: path.Base(name), file: e})
	}
	for name := range a.folders {
		if name != "." {
			a.addEntry(name, zipInfo{name: path.Base(name)})
		}
	}
	for dir, list := range a.folders {
		slices.SortFunc(list, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
		a.folders[dir] = withoutShadows(list)
	}
}

func (a *zipArchive) addEntry(name string, info zipInfo) {
	dir := path.Dir(name)
	a.folders[dir] = append(a.folders[dir], fs.FileInfoToDirEntry(info))
}

// Open opens a file or folder.
func (a *zipArchive) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if list, isFolder := a.folders[name]; isFolder {
		return &zipFolder{zipInfo{name: path.Base(name)}, list}, nil
	}
	e := a.files[name]
	if e == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	r, err := e.Open()
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, err)
	}
	return &zipFile{zipInfo{path.Base(name), e}, r, int64(e.UncompressedSize64)}, nil
}

// zipInfo describes an entry; without file it is a folder.
type zipInfo struct {
	name string
	file *zip.File
}

func (i zipInfo) Name() string { return i.name }
func (i zipInfo) IsDir() bool  { return i.file == nil }
func (i zipInfo) Sys() any     { return nil }

func (i zipInfo) Size() int64 {
	if i.file == nil {
		return 0
	}
	return int64(i.file.UncompressedSize64)
}

func (i zipInfo) Mode() fs.FileMode {
	if i.file == nil {
		return fs.ModeDir | 0o500
	}
	return 0o400
}

func (i zipInfo) ModTime() time.Time {
	if i.file == nil {
		return time.Time{}
	}
	return i.file.Modified
}

// zipFile reads a file. It gives no more bytes than the archive names, because only those are limited.
type zipFile struct {
	info zipInfo
	io.ReadCloser
	left int64
}

func (f *zipFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *zipFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.left -= int64(n); f.left < 0 {
		return 0, fmt.Errorf("%w: the file %s is larger than the archive says", imports.ErrDamaged, f.info.name)
	}
	return n, err
}

// zipFolder lists a folder.
type zipFolder struct {
	info zipInfo
	left []fs.DirEntry
}

func (f *zipFolder) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *zipFolder) Close() error               { return nil }

func (f *zipFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: fs.ErrInvalid}
}

func (f *zipFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	list := f.left
	if n > 0 {
		list = list[:min(n, len(list))]
	}
	f.left = f.left[len(list):]
	if n > 0 && len(list) == 0 {
		return nil, io.EOF
	}
	return slices.Clone(list), nil
}

// junk are the files and folders that operating systems write beside the files of their users.
var junk = []string{"__MACOSX", ".DS_Store", ".AppleDouble", ".Spotlight-V100", ".Trashes", ".fseventsd", "Thumbs.db",
	"ehthumbs.db", "desktop.ini", "$RECYCLE.BIN", "System Volume Information", "@eaDir"}

// isJunk reports whether a file was written by an operating system.
func isJunk(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if slices.ContainsFunc(junk, func(j string) bool { return strings.EqualFold(part, j) }) {
			return true
		}
	}
	return false
}

// withoutShadows removes the entries ._NAME that macOS writes beside NAME, and other files of operating systems. The
// entries are sorted.
func withoutShadows(list []fs.DirEntry) []fs.DirEntry {
	return slices.DeleteFunc(slices.Clone(list), func(e fs.DirEntry) bool {
		shadowed, isShadow := strings.CutPrefix(e.Name(), "._")
		if isShadow && !e.IsDir() {
			_, isShadow = slices.BinarySearchFunc(list, shadowed, func(x fs.DirEntry, name string) int {
				return strings.Compare(x.Name(), name)
			})
			return isShadow
		}
		return isJunk(e.Name())
	})
}

package release

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
)

// File is a file of an archive: its content is Data, or that of the file Source.
type File struct {
	Name   string
	Source string
	Data   string
	Mode   int64 // 0: 0644
}

// content returns the bytes of the file.
func (f *File) content() ([]byte, error) {
	if f.Source != "" {
		return os.ReadFile(f.Source)
	}
	return []byte(f.Data), nil
}

// writeArchive writes a compressed tar archive with the files below one folder, sorted by name.
func (r *Release) writeArchive(name, folder string, files []File) (err error) {
	out, err := os.Create(r.path(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	// The header of gzip contains no time and no name.
	zipped, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zipped)
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range files {
		data, err := f.content()
		if err != nil {
			return err
		}
		mode := f.Mode
		if mode == 0 {
			mode = 0o644
		}
		h := tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, f.Name), Size: int64(len(data)), Mode: mode,
			ModTime: r.Time, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zipped.Close())
}

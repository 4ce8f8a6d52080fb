package rocketchat

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"parley/wire/imports"
)

// Folders of the paths of files in records. The id of the file follows.
const (
	pictureFolder = "emoji/"
	uploadFolder  = "upload/"
)

// storedFiles are the files of a GridFS bucket: for each one the positions of its pieces in the dump, some 16 bytes for
// each quarter of a megabyte.
type storedFiles struct {
	source *source
	rows   string // file of the collection with the names; "": none
	pieces string // file of the collection with the pieces
	files  map[string]*storedFile
}

type storedFile struct {
	number uint64 // in the order of the dump
	row    int64  // position in rows; -1: none
	length int64  // in bytes; -1: unknown
	pieces []piece
}

type piece struct {
	at int64 // position of its document
	n  int32 // place in the file
}

// readFiles finds the uploads and the pictures of emoji.
func (s *source) readFiles() (err error) {
	if s.uploads, err = s.findFiles("rocketchat_uploads", true); err == nil {
		s.pictures, err = s.findFiles("custom_emoji", false)
	}
	return err
}

// findFiles finds the files of a bucket. With rows, files are those with a document in the collection bucket itself.
func (s *source) findFiles(bucket string, rows bool) (*storedFiles, error) {
	f := &storedFiles{source: s, pieces: s.collection(bucket + ".chunks"), files: map[string]*storedFile{}}
	find := func(id string) *storedFile {
		x := f.files[id]
		if x == nil {
			x = &storedFile{number: uint64(len(f.files)), row: -1, length: -1}
			f.files[id] = x
		}
		return x
	}
	if rows {
		f.rows = s.collection(bucket)
		if err := s.eachDocument(bucket, s.in, func(d bson.Raw, at position) error {
			find(text(d.Lookup("_id"))).row = at.byte
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if err := s.eachDocument(bucket+".files", s.in, func(d bson.Raw, _ position) error {
		if v := d.Lookup("length"); v.IsNumber() {
			find(text(d.Lookup("_id"))).length = number(v)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	err := s.eachDocument(bucket+".chunks", s.in, func(d bson.Raw, at position) error {
		x := find(text(d.Lookup("files_id")))
		n := number(d.Lookup("n"))
		if n < 0 || n > 1<<30 {
			s.faults.Add("pieces of files", "the number is impossible", at.String())
			return nil
		}
		x.pieces = append(x.pieces, piece{at.byte, int32(n)})
		return nil
	})
	for _, x := range f.files {
		slices.SortStableFunc(x.pieces, func(a, b piece) int { return cmp.Compare(a.n, b.n) })
	}
	return f, err
}

// number returns a number that only this file of the bucket has.
func (f *storedFiles) number(id string) uint64 { return f.files[id].number }

// row returns the document of an upload; false if there is none.
func (f *storedFiles) row(id string) (bson.Raw, bool) {
	x := f.files[id]
	if x == nil || x.row < 0 {
		return nil, false
	}
	in, err := f.source.openAt(f.rows)
	if err != nil {
		return nil, false
	}
	defer in.Close()
	d, err := in.document(x.row, nil)
	return d, err == nil
}

// open returns the content of a file. It wraps fs.ErrNotExist if the dump does not have all of it.
func (f *storedFiles) open(id string) (io.ReadCloser, error) {
	x := f.files[id]
	missing := &fs.PathError{Op: "open", Path: id, Err: fs.ErrNotExist}
	if x == nil || len(x.pieces) == 0 && x.length != 0 {
		return nil, missing
	}
	for i, p := range x.pieces {
		if int(p.n) != i {
			return nil, missing
		}
	}
	in, err := f.source.openAt(f.pieces)
	if err != nil {
		return nil, err
	}
	if x.length >= 0 {
		whole, err := (&pieceReader{in: in, pieces: x.pieces}).size()
		if err == nil && whole != x.length {
			err = missing
		}
		if err != nil {
			return nil, errors.Join(err, in.Close())
		}
	}
	return &pieceReader{in: in, pieces: x.pieces}, nil
}

// pieceReader reads the pieces of a file one after the other.
type pieceReader struct {
	in     *randomFile
	pieces []piece
	buf    []byte
	left   []byte // of the present piece
}

func (r *pieceReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		if len(r.pieces) == 0 {
			return 0, io.EOF
		}
		d, err := r.in.document(r.pieces[0].at, r.buf)
		if err != nil {
			return 0, err
		}
		r.buf, r.pieces = d, r.pieces[1:]
		_, r.left, _ = d.Lookup("data").BinaryOK()
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// size returns the number of bytes in all pieces. It reads them.
func (r *pieceReader) size() (n int64, err error) {
	for _, p := range r.pieces {
		d, err := r.in.document(p.at, r.buf)
		if err != nil {
			return 0, err
		}
		r.buf = d
		_, data, _ := d.Lookup("data").BinaryOK()
		n += int64(len(data))
	}
	return n, nil
}

func (r *pieceReader) Close() error { return r.in.Close() }

// randomFile is a file of documents that is read at any position.
type randomFile struct {
	io.Closer
	at io.ReaderAt
}

// maxExpansion limits the unpacked size of a compressed file of the dump: so many times its size, or minUnpacked.
const (
	maxExpansion = 100
	minUnpacked  = 1 << 30 // bytes
)

// open opens a file of the dump. mongodump can have compressed it.
func (s *source) open(name string) (io.ReadCloser, error) {
	f, err := s.archive.Open(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	packed, err := s.archive.Open(name + ".gz")
	if err != nil {
		return nil, err
	}
	info, err := packed.Stat()
	if err != nil {
		return nil, errors.Join(err, packed.Close())
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s.gz: %w", name, err), packed.Close())
	}
	return &unpacked{io.LimitReader(z, max(minUnpacked, info.Size()*maxExpansion)), packed}, nil
}

// unpacked is a compressed file that is read.
type unpacked struct {
	io.Reader
	io.Closer
}

// openAt opens a file of the dump that is read at any position. A file that is compressed, or inside of an archive, is
// copied once.
func (s *source) openAt(name string) (*randomFile, error) {
	if at := s.copies[name]; at != nil {
		return &randomFile{io.NopCloser(nil), at}, nil
	}
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	if at, ok := f.(io.ReaderAt); ok {
		return &randomFile{f, at}, nil
	}
	defer f.Close()
	to, err := s.o.Temporary()
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(to, f); err != nil && !imports.Damaged(err) {
		return nil, errors.Join(err, to.Close())
	}
	s.copies[name] = to
	return s.openAt(name)
}

func (f *randomFile) document(at int64, buf []byte) (bson.Raw, error) {
	d, err := readDocument(io.NewSectionReader(f.at, at, maxDocument), buf)
	if errors.Is(err, errDocument) || errors.Is(err, errContent) || errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", imports.ErrDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("byte %d: %w", at, err)
	}
	return d, nil
}

// Open opens an upload or the picture of an emoji.
func (s *source) Open(name string) (io.ReadCloser, error) {
	if id, ok := strings.CutPrefix(name, pictureFolder); ok {
		return s.pictures.open(id)
	}
	if id, ok := strings.CutPrefix(name, uploadFolder); ok {
		return s.uploads.open(id)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// maxFileName limits the names of uploads in code points (protocol).
const maxFileName = 100

// fileName returns the name of an upload, made from its id if the name cannot be used.
func fileName(name, id string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	printable := strings.IndexFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) < 0 && utf8.ValidString(name)
	if printable && name != "." && name != "/" && imports.FirstRunes(name, maxFileName) == name {
		return name
	}
	ending := path.Ext(name)
	if len(ending) > 10 || !printable {
		ending = ""
	}
	return "file-" + imports.FirstRunes(id, maxFileName/2) + ending
}

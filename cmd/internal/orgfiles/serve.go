package orgfiles

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/actors/registry"
	"parley/cmd/internal/cluster"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/wire"
	"parley/wire/httpd"
)

// Served gives endpoints the stored files, with the interfaces and the errors of package wire and of the HTTP server.
// An organization uses at most its share of each budget.
type Served struct {
	store *files.Store
	fetch *Fetcher // fetches files from other cores; nil: all files are here, or in a bucket

	decodings *admission.Shares // of files.MaxDecodeRequests
	downloads *admission.Shares // of s3.MaxDownloads
	fetches   *admission.Shares // of cluster.MaxFileFetches
}

// Serve returns the files of a store for endpoints. several reports whether the server has several organizations; nil:
// it never has.
func Serve(store *files.Store, fetch *Fetcher, several func() bool) *Served {
	return &Served{store, fetch, admission.NewShares(files.MaxDecodeRequests, several),
		admission.NewShares(s3.MaxDownloads, several), admission.NewShares(cluster.MaxFileFetches, several)}
}

// Decodings, Downloads and Fetches return the shares of the budgets.
func (f *Served) Decodings() registry.Shares { return f.decodings }
func (f *Served) Downloads() registry.Shares { return f.downloads }
func (f *Served) Fetches() registry.Shares   { return f.fetches }

// fetchFile fetches a file of an organization from another core.
func (f *Served) fetchFile(id realm.ID, kind, name string) error {
	if !f.fetches.Take(Space(id), 1) {
		return wire.ErrFilesUnavailable
	}
	defer f.fetches.Give(Space(id), 1)
	return f.fetch.ForRequest(kind, name)
}

// decode calls fn, which decodes an image of an organization.
func (f *Served) decode(id realm.ID, fn func() (string, error)) (string, error) {
	if !f.decodings.Take(Space(id), 1) {
		return "", files.ErrDecodersBusy
	}
	defer f.decodings.Give(Space(id), 1)
	return fn()
}

func (f *Served) SaveUpload(id realm.ID, r io.Reader, limit int64) (wire.SavedFile, error) {
	x, err := f.store.Save(Space(id), r, limit)
	return wire.SavedFile(x), wireError(err)
}

func (f *Served) Release(hash string, used func() (bool, error)) error {
	return wireError(f.store.Release(hash, used))
}

func (f *Served) SaveAvatar(id realm.ID, r io.Reader, limit int64) (string, error) {
	name, err := f.decode(id, func() (string, error) { return f.store.SaveAvatar(r, limit) })
	return name, wireError(err)
}

func (f *Served) SaveLogo(id realm.ID, r io.Reader, limit int64) (string, error) {
	name, err := f.decode(id, func() (string, error) { return f.store.SaveLogo(r, limit) })
	return name, wireError(err)
}

func (f *Served) Begin(id realm.ID, u wire.UnfinishedUpload) (wire.UnfinishedUpload, error) {
	x, err := f.store.BeginUpload(files.PartialUpload{
		ID: u.ID, Space: Space(id), Owner: u.Owner.String(), Name: u.Name, Extra: u.Metadata, Size: u.Size,
	})
	return unfinished(x), wireError(err)
}

func (f *Served) Unfinished(id realm.ID, u realm.UserID, name string) (wire.UnfinishedUpload, bool) {
	x, ok := f.store.PartialUpload(name)
	return unfinished(x), ok && x.Space == Space(id) && x.Owner == u.String()
}

func (f *Served) Announced(id realm.ID) int64 { return f.store.PartialUploadBytes(Space(id)) }

func (f *Served) Append(name string, offset int64, r io.Reader) (wire.UnfinishedUpload, error) {
	x, err := f.store.AppendUpload(name, offset, r)
	return unfinished(x), wireError(err)
}

func (f *Served) Finish(name string, record func(wire.SavedFile) (string, error)) (wire.UnfinishedUpload, error) {
	x, err := f.store.FinishUpload(name, func(_ files.PartialUpload, s files.Saved) (string, error) {
		return record(wire.SavedFile(s))
	})
	return unfinished(x), wireError(err)
}

func (f *Served) Thumbnail(id realm.ID, hash string, animated bool) (string, error) {
	return f.derive(id, hash, func() (string, error) { return f.store.Thumbnail(hash, animated) })
}

func (f *Served) Still(id realm.ID, hash string) (string, error) {
	return f.derive(id, hash, func() (string, error) { return f.store.FirstFrame(hash) })
}

// derive makes a file from content, which it fetches from another core if this one lacks it.
func (f *Served) derive(id realm.ID, hash string, make func() (string, error)) (path string, err error) {
	path, err = f.decode(id, make)
	if f.fetch != nil && errors.Is(err, fs.ErrNotExist) {
		if err := f.fetchFile(id, realm.ContentFile, hash); err != nil {
			return "", err
		}
		path, err = f.decode(id, make)
	}
	return path, wireError(err)
}

func (f *Served) Abandon(name string) error { return wireError(f.store.AbandonUpload(name)) }

func unfinished(x files.PartialUpload) wire.UnfinishedUpload {
	return wire.UnfinishedUpload{
		ID: x.ID, Name: x.Name, Metadata: x.Extra, Size: x.Size, Offset: x.Offset, Expires: x.Expires, Answer: x.Answer,
	}
}

func (f *Served) Remove(hash string, used func() (bool, error)) error {
	return wireError(f.store.Remove(hash, used))
}

func (f *Served) RemoveExport(name string) error { return f.store.RemoveExport(name) }

// Open opens a file, which it fetches from another core if this one lacks it.
func (f *Served) Open(id realm.ID, kind, name string) (httpd.StoredFile, error) {
	b, err := f.store.Open(kind, name)
	if f.fetch != nil && errors.Is(err, fs.ErrNotExist) {
		if err := f.fetchFile(id, kind, name); err != nil {
			return nil, err
		}
		b, err = f.store.Open(kind, name)
	}
	if err != nil {
		return nil, wireError(err)
	}
	if f.store.IsRemote() {
		return bucketFile{b, f.downloads, Space(id)}, nil
	}
	return localFile{b}, nil
}

type localFile struct{ files.Blob }

func (f localFile) Section(from, bytes int64) (io.ReadCloser, error) {
	r, err := f.Blob.Section(from, bytes)
	return r, wireError(err)
}

type bucketFile struct {
	files.Blob
	downloads    *admission.Shares
	organization string
}

// Section takes a part of the downloads from a bucket until the part of the file is closed.
func (f bucketFile) Section(from, bytes int64) (io.ReadCloser, error) {
	if !f.downloads.Take(f.organization, 1) {
		return nil, wire.ErrFilesUnavailable
	}
	give := func() { f.downloads.Give(f.organization, 1) }
	r, err := f.Blob.Section(from, bytes)
	if err != nil {
		give()
		return nil, wireError(err)
	}
	return &sharedSection{ReadCloser: r, give: give}, nil
}

// sharedSection is a part of a file that takes a part of a budget until it is closed.
type sharedSection struct {
	io.ReadCloser
	once sync.Once
	give func()
}

func (s *sharedSection) Close() error {
	s.once.Do(s.give)
	return s.ReadCloser.Close()
}

// wireError returns the error of package wire that corresponds to an error of package files.
func wireError(err error) error {
	var virus *files.InfectedError
	switch {
	case errors.As(err, &virus):
		return wire.InfectedFile(virus.Name)
	case errors.Is(err, files.ErrNotScanned):
		return wire.ErrFileNotScanned
	case errors.Is(err, files.ErrTooLargeToScan):
		return wire.ErrFileNeverScanned
	case errors.Is(err, wire.ErrNoSpace), snapshot.IsFull(err):
		return wire.ErrNoSpace
	case errors.Is(err, files.ErrUnavailable):
		return wire.ErrFilesUnavailable
	case errors.Is(err, files.ErrTooLarge):
		return wire.ErrFileTooLarge
	case errors.Is(err, files.ErrUnknownUpload):
		return wire.ErrNoUpload
	case errors.Is(err, files.ErrWrongOffset):
		return wire.ErrUploadOffset
	case errors.Is(err, files.ErrUploadBusy):
		return wire.ErrUploadBusy
	case errors.Is(err, files.ErrTooManyUploads):
		return wire.ErrTooManyUploads
	case errors.Is(err, files.ErrDecodersBusy):
		return wire.ErrThumbnailsBusy
	case errors.Is(err, files.ErrNoImage):
		return wire.ErrNotAnImage
	case errors.Is(err, files.ErrPixels):
		return wire.ErrTooManyPixels
	}
	return err
}

package server

import (
	"errors"
	"io"
	"io/fs"
	"sync"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/wire"
	"parley/wire/httpd"
)

// fileStore adapts the store of files to the interface and the errors that endpoints use.
type fileStore struct {
	s *files.Store
	// fetch fetches files from other cores; nil: all files are here, or in a bucket.
	fetch *orgfiles.Fetcher
	parts *fileShares
}

// fileShares are the parts of the budgets of files that organizations have.
type fileShares struct {
	decodings *admission.Shares // of files.MaxDecodeRequests
	downloads *admission.Shares // of s3.MaxDownloads
	fetches   *admission.Shares // of cluster.MaxFileFetches
}

func newFileShares(several func() bool) *fileShares {
	return &fileShares{admission.NewShares(files.MaxDecodeRequests, several),
		admission.NewShares(s3.MaxDownloads, several), admission.NewShares(cluster.MaxFileFetches, several)}
}

// fetch fetches a file of an organization from another core.
func (s *fileShares) fetch(id realm.ID, from *orgfiles.Fetcher, kind, name string) error {
	if !s.fetches.Take(orgfiles.Space(id), 1) {
		return wire.ErrFilesUnavailable
	}
	defer s.fetches.Give(orgfiles.Space(id), 1)
	return from.ForRequest(kind, name)
}

// decode calls fn, which decodes an image of an organization.
func (s *fileShares) decode(id realm.ID, fn func() (string, error)) (string, error) {
	if !s.decodings.Take(orgfiles.Space(id), 1) {
		return "", files.ErrDecodersBusy
	}
	defer s.decodings.Give(orgfiles.Space(id), 1)
	return fn()
}

func (f fileStore) SaveUpload(id realm.ID, r io.Reader, limit int64) (wire.SavedFile, error) {
	x, err := f.s.Save(orgfiles.Space(id), r, limit)
	return wire.SavedFile(x), wireError(err)
}

func (f fileStore) Release(hash string, used func() (bool, error)) error {
	return wireError(f.s.Release(hash, used))
}

func (f fileStore) SaveAvatar(id realm.ID, r io.Reader, limit int64) (string, error) {
	name, err := f.parts.decode(id, func() (string, error) { return f.s.SaveAvatar(r, limit) })
	return name, wireError(err)
}

func (f fileStore) SaveLogo(id realm.ID, r io.Reader, limit int64) (string, error) {
	name, err := f.parts.decode(id, func() (string, error) { return f.s.SaveLogo(r, limit) })
	return name, wireError(err)
}

func (f fileStore) Begin(id realm.ID, u wire.UnfinishedUpload) (wire.UnfinishedUpload, error) {
	x, err := f.s.BeginUpload(files.PartialUpload{
		ID: u.ID, Space: orgfiles.Space(id), Owner: u.Owner.String(), Name: u.Name, Extra: u.Metadata, Size: u.Size,
	})
	return unfinished(x), wireError(err)
}

func (f fileStore) Unfinished(id realm.ID, u realm.UserID, name string) (wire.UnfinishedUpload, bool) {
	x, ok := f.s.PartialUpload(name)
	return unfinished(x), ok && x.Space == orgfiles.Space(id) && x.Owner == u.String()
}

func (f fileStore) Announced(id realm.ID) int64 { return f.s.PartialUploadBytes(orgfiles.Space(id)) }

func (f fileStore) Append(name string, offset int64, r io.Reader) (wire.UnfinishedUpload, error) {
	x, err := f.s.AppendUpload(name, offset, r)
	return unfinished(x), wireError(err)
}

func (f fileStore) Finish(name string, record func(wire.SavedFile) (string, error)) (wire.UnfinishedUpload, error) {
	x, err := f.s.FinishUpload(name, func(_ files.PartialUpload, s files.Saved) (string, error) {
		return record(wire.SavedFile(s))
	})
	return unfinished(x), wireError(err)
}

func (f fileStore) Thumbnail(id realm.ID, hash string, animated bool) (string, error) {
	return f.derive(id, hash, func() (string, error) { return f.s.Thumbnail(hash, animated) })
}

func (f fileStore) Still(id realm.ID, hash string) (string, error) {
	return f.derive(id, hash, func() (string, error) { return f.s.FirstFrame(hash) })
}

// derive makes a file from content, which it fetches from another core if this one lacks it.
func (f fileStore) derive(id realm.ID, hash string, make func() (string, error)) (path string, err error) {
	path, err = f.parts.decode(id, make)
	if f.fetch != nil && errors.Is(err, fs.ErrNotExist) {
		if err := f.parts.fetch(id, f.fetch, realm.ContentFile, hash); err != nil {
			return "", err
		}
		path, err = f.parts.decode(id, make)
	}
	return path, wireError(err)
}

func (f fileStore) Abandon(name string) error { return wireError(f.s.AbandonUpload(name)) }

func unfinished(x files.PartialUpload) wire.UnfinishedUpload {
	return wire.UnfinishedUpload{
		ID: x.ID, Name: x.Name, Metadata: x.Extra, Size: x.Size, Offset: x.Offset, Expires: x.Expires, Answer: x.Answer,
	}
}

func (f fileStore) Remove(hash string, used func() (bool, error)) error {
	return wireError(f.s.Remove(hash, used))
}

func (f fileStore) RemoveExport(name string) error { return f.s.RemoveExport(name) }

// openFiles adapts the store of files to the interface and the errors of the HTTP server.
type openFiles struct {
	s *files.Store
	// fetch fetches files from other cores; nil: all files are here, or in a bucket.
	fetch *orgfiles.Fetcher
	parts *fileShares
}

func (f openFiles) Open(id realm.ID, kind, name string) (httpd.StoredFile, error) {
	b, err := f.s.Open(kind, name)
	if f.fetch != nil && errors.Is(err, fs.ErrNotExist) {
		if err := f.parts.fetch(id, f.fetch, kind, name); err != nil {
			return nil, err
		}
		b, err = f.s.Open(kind, name)
	}
	if err != nil {
		return nil, wireError(err)
	}
	return openFile{b, f, orgfiles.Space(id)}, nil
}

type openFile struct {
	files.Blob
	of           openFiles
	organization string
}

// Section takes a part of the downloads from a bucket until the part of the file is closed.
func (f openFile) Section(from, bytes int64) (io.ReadCloser, error) {
	if !f.of.s.IsRemote() {
		r, err := f.Blob.Section(from, bytes)
		return r, wireError(err)
	}
	if !f.of.parts.downloads.Take(f.organization, 1) {
		return nil, wire.ErrFilesUnavailable
	}
	r, err := f.Blob.Section(from, bytes)
	if err != nil {
		f.of.parts.downloads.Give(f.organization, 1)
		return nil, wireError(err)
	}
	return &sharedSection{ReadCloser: r, give: func() { f.of.parts.downloads.Give(f.organization, 1) }}, nil
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
	switch {
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

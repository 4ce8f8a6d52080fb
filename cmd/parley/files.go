package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"parley/actors/realm"
	"parley/snapshot/files"
	"parley/wire"
)

// fileStore gives the store of files the errors endpoints know.
type fileStore struct{ s *files.Store }

func (f fileStore) SaveUpload(id realm.ID, r io.Reader, limit int64) (wire.SavedFile, error) {
	x, err := f.s.Save(strconv.Itoa(int(id)), r, limit)
	return wire.SavedFile(x), known(err)
}

func (f fileStore) Release(hash string, used func() (bool, error)) error {
	return f.s.Release(hash, used)
}

func (f fileStore) SaveAvatar(r io.Reader, limit int64) (string, error) {
	name, err := f.s.SaveAvatar(r, limit)
	return name, known(err)
}

func (f fileStore) SaveLogo(r io.Reader, limit int64) (string, error) {
	name, err := f.s.SaveLogo(r, limit)
	return name, known(err)
}

func (f fileStore) Begin(id realm.ID, u wire.Unfinished) (wire.Unfinished, error) {
	x, err := f.s.Begin(files.Unfinished{ID: u.ID, Space: strconv.Itoa(int(id)), Owner: u.Owner.String(), Name: u.Name, Extra: u.Extra, Size: u.Size})
	return unfinished(x), known(err)
}

func (f fileStore) Unfinished(id realm.ID, u realm.UserID, name string) (wire.Unfinished, bool) {
	x, ok := f.s.Unfinished(name)
	return unfinished(x), ok && x.Space == strconv.Itoa(int(id)) && x.Owner == u.String()
}

func (f fileStore) Announced(id realm.ID) int64 { return f.s.Announced(strconv.Itoa(int(id))) }

func (f fileStore) Append(name string, offset int64, r io.Reader) (wire.Unfinished, error) {
	x, err := f.s.Append(name, offset, r)
	return unfinished(x), known(err)
}

func (f fileStore) Finish(name string, note func(wire.SavedFile) (string, error)) (wire.Unfinished, error) {
	x, err := f.s.Finish(name, func(_ files.Unfinished, s files.Saved) (string, error) { return note(wire.SavedFile(s)) })
	return unfinished(x), known(err)
}

func (f fileStore) Thumbnail(hash string, moving bool) (string, error) {
	path, err := f.s.Thumbnail(hash, moving)
	return path, known(err)
}

func (f fileStore) Still(hash string) (string, error) {
	path, err := f.s.Still(hash)
	return path, known(err)
}

func (f fileStore) Abandon(name string) error { return known(f.s.Abandon(name)) }

func unfinished(x files.Unfinished) wire.Unfinished {
	return wire.Unfinished{ID: x.ID, Name: x.Name, Extra: x.Extra, Size: x.Size, Offset: x.Offset, Expires: x.Expires, Answer: x.Answer}
}

func (f fileStore) Remove(hash string, used func() (bool, error)) error {
	return f.s.Remove(hash, used)
}

func (f fileStore) RemoveExport(name string) error { return f.s.RemoveExport(name) }

func known(err error) error {
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return wire.ErrFileTooLarge
	case errors.Is(err, files.ErrEmpty):
		return wire.ErrNoFile
	case errors.Is(err, files.ErrUnknown):
		return wire.ErrNoUpload
	case errors.Is(err, files.ErrOffset):
		return wire.ErrUploadOffset
	case errors.Is(err, files.ErrBusy):
		return wire.ErrUploadBusy
	case errors.Is(err, files.ErrTooMany):
		return wire.ErrTooManyUploads
	case errors.Is(err, files.ErrWaiting):
		return wire.ErrThumbnailsBusy
	case errors.Is(err, files.ErrNoImage):
		return wire.ErrNoImage
	case errors.Is(err, files.ErrPixels):
		return wire.ErrPixels
	}
	return err
}

// signer makes marks only this server can make; checker checks them.
func signer(secret []byte) func(string) string {
	return func(text string) string {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte("signed " + text))
		return hex.EncodeToString(mac.Sum(nil))
	}
}

func checker(secret []byte) func(text, mark string) bool {
	sign := signer(secret)
	return func(text, mark string) bool { return hmac.Equal([]byte(sign(text)), []byte(mark)) }
}

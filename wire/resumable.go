package wire

import (
	"errors"
	"io"

	"parley/actors/realm"
)

// Unfinished is an upload that comes in pieces. It belongs to its owner alone, and is forgotten when it expires.
type Unfinished struct {
	ID           string
	Owner        realm.UserID
	Name         string
	Extra        string // what the client said of it, as it said it
	Size, Offset int64  // bytes of the whole file, and of what came
	Expires      int64  // Unix seconds
	Answer       string // what its owner was told when it was finished
}

// The errors of Files about unfinished uploads.
var (
	ErrNoUpload       = errors.New("no such upload")
	ErrUploadOffset   = errors.New("upload stands elsewhere")
	ErrUploadBusy     = errors.New("upload is being written to")
	ErrTooManyUploads = errors.New("too many unfinished uploads")
)

// ResumableStatus is the HTTP status and the words a failed step of an upload in pieces is answered with: this protocol's
// statuses are not those of the rest.
func ResumableStatus(err error) (status int, code, msg string) {
	var r *realm.Refusal
	switch {
	case errors.Is(err, ErrNoUpload):
		return 404, "BAD_REQUEST", "Upload not found"
	case errors.Is(err, ErrUploadOffset):
		return 409, "BAD_REQUEST", "Mismatched offset"
	case errors.Is(err, ErrUploadBusy):
		return 423, "BAD_REQUEST", "Upload is currently locked"
	case errors.Is(err, ErrTooManyUploads):
		return 429, "BAD_REQUEST", "Too many unfinished uploads"
	case errors.Is(err, ErrFileTooLarge):
		return 413, "BAD_REQUEST", "Maximum upload size exceeded"
	case errors.As(err, &r):
		status := statuses[r.Kind]
		if r.Code == "REALM_UPLOAD_QUOTA" {
			status = 413
		}
		return status, r.Code, r.Msg
	}
	return 500, "", "Internal server error"
}

// BeginUpload notes a file that will come in pieces, if it may come at all.
func BeginUpload(c *Call, name, extra string, size int64) (Unfinished, error) {
	if size == 0 {
		return Unfinished{}, realm.Bad(missingFile)
	}
	if size > MaxUpload {
		return Unfinished{}, realm.Refuse(realm.TooLarge, "BAD_REQUEST", "File is larger than this server's configured maximum upload size (100 MiB).")
	}
	announced := c.Tools.Files.Announced(c.Realm)
	_, err := Look(c, func(v realm.View) (any, error) { return nil, v.MayUpload(announced+size, c.Tools.UploadQuota) })
	if err != nil {
		return Unfinished{}, err
	}
	return c.Tools.Files.Begin(c.Realm, Unfinished{ID: c.Tools.Token(32), Owner: c.Caller.User, Name: name, Extra: extra, Size: size})
}

// UnfinishedUpload is one of the caller's own.
func UnfinishedUpload(c *Call, id string) (Unfinished, error) {
	u, ok := c.Tools.Files.Unfinished(c.Realm, c.Caller.User, id)
	if !ok {
		return u, ErrNoUpload
	}
	return u, nil
}

// ContinueUpload writes what follows an offset. The last piece makes the upload a file: then it has an answer.
func ContinueUpload(c *Call, u Unfinished, offset int64, r io.Reader) (Unfinished, error) {
	if u.Answer != "" && offset == u.Size {
		return u, nil // the client did not hear that it was finished
	}
	u, err := c.Tools.Files.Append(u.ID, offset, r)
	if err != nil || u.Offset < u.Size {
		return u, err
	}
	done, err := c.Tools.Files.Finish(u.ID, func(x SavedFile) (string, error) {
		row, err := noteUpload(c, u.Name, x)
		if err != nil {
			return "", err
		}
		return string(Success(uploadAnswer(row), nil)), nil
	})
	var refused *realm.Refusal
	if errors.As(err, &refused) && refused.Kind != realm.Busy { // it will not be taken later either
		return done, errors.Join(err, c.Tools.Files.Abandon(u.ID))
	}
	return done, err
}

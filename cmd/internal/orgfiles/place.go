package orgfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
)

// A data directory records the place of its files in PlaceFile. So commands on a stopped server and a server with a
// restored backup find them, and a start with another place is refused, which would answer that every file is missing.
// Without that file they are in the data directory.

// PlaceFile is the name of that file in a data directory. It has no secrets; a backup contains it.
const PlaceFile = "uploads/place"

// Place is the place of the files of a data directory.
type Place struct {
	Files       string `json:"files"`       // in the form of s3.Place.String; "": in the data directory
	Credentials string `json:"credentials"` // path of the file with the keys; "": from the environment
}

// String returns the place for messages.
func (p Place) String() string {
	if p.Files == "" {
		return "the data directory"
	}
	return p.Files
}

// Local is the value for files in the data directory, where a place is required.
const Local = "local"

// NewPlace parses the settings files and files-credentials.
func NewPlace(place, credentials string) (Place, error) {
	if place == "" || place == Local {
		return Place{}, nil
	}
	p, err := s3.ParsePlace(place)
	if err != nil {
		return Place{}, err
	}
	if credentials != "" {
		if credentials, err = filepath.Abs(credentials); err != nil {
			return Place{}, fmt.Errorf("files-credentials: %w", err)
		}
	}
	return Place{p.String(), credentials}, nil
}

// ReadPlace returns where the files of a data directory are.
func ReadPlace(data string) (p Place, err error) {
	text, err := os.ReadFile(filepath.Join(data, filepath.FromSlash(PlaceFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return p, fmt.Errorf("read the location of the files: %w", err)
	}
	return p, nil
}

// WritePlace records where the files of a data directory are.
func WritePlace(data string, p Place) error {
	path := filepath.Join(data, filepath.FromSlash(PlaceFile))
	if p.Files == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(p)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = datadir.WriteAndSync(path+".new", append(text, '\n'))
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write the location of the files: %w", err)
	}
	return nil
}

// ChoosePlace returns where the files of a data directory are, given the settings. Empty settings mean the recorded
// place. Another place is accepted only if there are no files yet.
func ChoosePlace(data, place, credentials string) (Place, error) {
	recorded, err := ReadPlace(data)
	if err != nil {
		return recorded, err
	}
	if place == "" {
		if credentials != "" && recorded.Files != "" {
			recorded.Credentials = credentials
		}
		return recorded, nil
	}
	wanted, err := NewPlace(place, credentials)
	if err != nil {
		return wanted, err
	}
	if wanted.Files == recorded.Files {
		return wanted, nil
	}
	if recorded.Files == "" {
		hasFiles, err := hasLocalFiles(data)
		if err != nil {
			return wanted, err
		}
		if !hasFiles {
			return wanted, nil
		}
	}
	return wanted, fmt.Errorf("files: the files of this data directory are in %s, not in %s; copy them first with "+
		"parley files move --to '%s' --data %s, or start without the setting", recorded, wanted, place, data)
}

// hasLocalFiles reports whether a data directory has stored files.
func hasLocalFiles(data string) (bool, error) {
	found := errors.New("found")
	local := files.NewLocalBlobs(datadir.UploadsDir(data))
	for _, prefix := range files.Prefixes() {
		err := local.Each(prefix, func(files.BlobInfo) error { return found })
		if errors.Is(err, found) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// OpenBlobs returns the files of a place; nil: they are in the data directory. The caller closes the bucket.
func OpenBlobs(p Place, log *slog.Logger) (*s3.Bucket, error) {
	if p.Files == "" {
		return nil, nil
	}
	place, err := s3.ParsePlace(p.Files)
	if err != nil {
		return nil, err
	}
	return s3.Open(place, p.Credentials, log)
}

// Open opens the files of a stopped server's data directory, wherever they are. close ends the use.
func Open(data string, readOnly bool) (store *files.Store, close func(), err error) {
	p, err := ReadPlace(data)
	if err != nil {
		return nil, nil, err
	}
	b, err := OpenBlobs(p, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	close = func() {}
	var blobs files.Blobs
	if b != nil {
		if err := b.Probe(); err != nil {
			b.Close()
			return nil, nil, err
		}
		blobs, close = b, b.Close
	}
	if readOnly {
		return files.OpenReadOnly(datadir.UploadsDir(data), blobs), close, nil
	}
	if store, err = files.Open(datadir.UploadsDir(data), blobs); err != nil {
		close()
		return nil, nil, err
	}
	if b != nil {
		store.SetForeign(CheckOwner(data, b))
	}
	return store, close, nil
}

// Space returns the name of an organization in the shares of budgets and for its stored files.
func Space(id realm.ID) string { return strconv.Itoa(int(id)) }

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"parley/cmd/internal/datadir"
	"parley/snapshot/files"
	"parley/snapshot/files/s3"
	"parley/snapshot/files/sweep"
)

// A data directory records the place of its files in FilePlaceFile. So commands on a stopped server and a server with a
// restored backup find them, and a start with another place is refused, which would answer that every file is missing.
// Without that file they are in the data directory.

// FilePlaceFile is the name of that file in a data directory. It has no secrets; a backup contains it.
const FilePlaceFile = "uploads/place"

// FilePlace is the place of the files of a data directory.
type FilePlace struct {
	Files       string `json:"files"`       // in the form of s3.Place.String; "": in the data directory
	Credentials string `json:"credentials"` // path of the file with the keys; "": from the environment
}

// String returns the place for messages.
func (p FilePlace) String() string {
	if p.Files == "" {
		return "the data directory"
	}
	return p.Files
}

// LocalFiles is the value for files in the data directory, where a place is required.
const LocalFiles = "local"

// NewFilePlace parses the settings files and files-credentials.
func NewFilePlace(place, credentials string) (FilePlace, error) {
	if place == "" || place == LocalFiles {
		return FilePlace{}, nil
	}
	p, err := s3.ParsePlace(place)
	if err != nil {
		return FilePlace{}, err
	}
	if credentials != "" {
		if credentials, err = filepath.Abs(credentials); err != nil {
			return FilePlace{}, fmt.Errorf("files-credentials: %w", err)
		}
	}
	return FilePlace{p.String(), credentials}, nil
}

// ReadFilePlace returns where the files of a data directory are.
func ReadFilePlace(data string) (p FilePlace, err error) {
	text, err := os.ReadFile(filepath.Join(data, filepath.FromSlash(FilePlaceFile)))
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

// WriteFilePlace records where the files of a data directory are.
func WriteFilePlace(data string, p FilePlace) error {
	path := filepath.Join(data, filepath.FromSlash(FilePlaceFile))
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

// chooseFilePlace returns where the files of a data directory are, given the settings. Empty settings mean the recorded
// place. Another place is accepted only if there are no files yet.
func chooseFilePlace(data, place, credentials string) (FilePlace, error) {
	recorded, err := ReadFilePlace(data)
	if err != nil {
		return recorded, err
	}
	if place == "" {
		if credentials != "" && recorded.Files != "" {
			recorded.Credentials = credentials
		}
		return recorded, nil
	}
	wanted, err := NewFilePlace(place, credentials)
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
func OpenBlobs(p FilePlace, log *slog.Logger) (*s3.Bucket, error) {
	if p.Files == "" {
		return nil, nil
	}
	place, err := s3.ParsePlace(p.Files)
	if err != nil {
		return nil, err
	}
	return s3.Open(place, p.Credentials, log)
}

// OpenFiles opens the files of a stopped server's data directory, wherever they are. close ends the use.
func OpenFiles(data string, readOnly bool) (store *files.Store, close func(), err error) {
	p, err := ReadFilePlace(data)
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
		store.SetForeign(checkFileOwner(data, b))
	}
	return store, close, nil
}

// openFiles opens the files at the place of the settings.
func (s *Server) openFiles() error {
	p, err := chooseFilePlace(s.Data, s.Settings.Files, s.FilesCredentials)
	if err != nil {
		return err
	}
	if s.bucket, err = OpenBlobs(p, s.log); err != nil {
		return err
	}
	var blobs files.Blobs
	if s.bucket != nil {
		blobs = s.bucket
		if s.bucket.Place().Plaintext() {
			s.log.Warn("files: the endpoint is not https, so files cross the network unencrypted", "files", p.Files)
		}
	}
	if s.files, err = files.Open(datadir.UploadsDir(s.Data), blobs); err != nil {
		return err
	}
	if err := WriteFilePlace(s.Data, p); err != nil {
		return err
	}
	s.files.LimitSpace(s.space.CheckSpace)
	if s.bucket == nil && s.node != nil {
		s.log.Warn("files: an uploaded file is stored only on the core that is the leader at that time, until " +
			"another leader needs it; store the files in a bucket (parley files move)")
		s.fetcher = newFileFetcher(s.files, s.log, func(kind, name string) (bool, error) {
			found, err := sweep.Referenced(s.orgs, kind, []string{name})
			return len(found) > 0, err
		})
	}
	if s.bucket != nil && s.node != nil {
		s.files.UseTerms(func() uint64 { return s.coreNode.Term() })
	}
	if s.bucket != nil {
		s.files.SetForeign(errOwnerUnknown)
		s.ownerKnown = make(chan struct{})
		s.bucket.Watch(func() bool {
			known := s.checkFileOwner()
			if known {
				close(s.ownerKnown)
			}
			return known
		})
	}
	return nil
}

// checkFileOwner lets files be removed if they belong to this data directory. It reports false while the bucket cannot
// be reached.
func (s *Server) checkFileOwner() bool {
	err := checkFileOwner(s.Data, s.bucket)
	if errors.Is(err, files.ErrUnavailable) {
		return false
	}
	s.files.SetForeign(err)
	if err != nil {
		s.log.Error("unreferenced files will not be removed from the bucket", "err", err)
	}
	return true
}

// filesState returns the state for the health check; "" is normal.
func (s *Server) filesState() string {
	if s.bucket == nil {
		if n := s.fetcher.Refused(); n > 0 {
			return fmt.Sprintf("some files are only on other cores, because the cluster has no bucket: %d downloads "+
				"were refused since the start; parley backup names the files", n)
		}
		return ""
	}
	since := s.bucket.Down()
	if since.IsZero() {
		return ""
	}
	return "unreachable since " + since.UTC().Format(time.RFC3339) + ": uploads and downloads are refused"
}

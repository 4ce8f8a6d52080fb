package orgfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"parley/actors"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/datadir"
	"parley/snapshot/files"
)

// A sweep removes the files to which no row refers. Two data directories with the same folder of a bucket, such as a
// server and a copy restored for a test, would remove each other's files. So a data directory has a random name, in
// fileOwnerFile, and the folder has the name of the only directory that removes files, in fileOwnerKey. A backup does
// not contain the name, so a restored directory removes nothing until parley files claim.
//
// The cores of a cluster have one name together, and the leader removes files. It looks for references in a view, whose
// answer waits until a majority has confirmed that the node was the leader after the view. So nothing refers to the
// file, and nothing will: names of stored files are new in each term; see files.Store.UseTerms. A removal can therefore
// arrive at any later time, and the bucket does not have to compare anything.
const (
	fileOwnerFile = "uploads/owner"
	fileOwnerKey  = "owner"
	maxOwnerBytes = 100
)

var ErrOwnerUnknown = fmt.Errorf("the owner of the files is not known yet: %w", files.ErrUnavailable)

// OwnerName returns the name of a data directory, or of the cluster to whose cores it belongs.
func OwnerName(data string) (string, error) {
	if !cluster.Exists(data) {
		return directoryName(data)
	}
	d, err := cluster.OpenDirectory(data)
	if err != nil {
		return "", err
	}
	return d.ClusterName()
}

// InheritOwner gives a data directory that leaves its cluster the name of the cluster, so that it continues to
// remove files.
func InheritOwner(data string) error {
	place, err := ReadPlace(data)
	if err != nil || place.Files == "" {
		return err
	}
	name, err := OwnerName(data)
	if err != nil {
		return err
	}
	return datadir.WriteAndSync(filepath.Join(data, filepath.FromSlash(fileOwnerFile)), []byte(name+"\n"))
}

// directoryName returns the name of a data directory, which it makes at the first call.
func directoryName(data string) (string, error) {
	path := filepath.Join(data, filepath.FromSlash(fileOwnerFile))
	text, err := os.ReadFile(path)
	if err == nil && len(text) > 0 {
		return strings.TrimSpace(string(text)), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the owner of files: %w", err)
	}
	name := actors.Token(32)
	if err := datadir.WriteAndSync(path, []byte(name+"\n")); err != nil {
		return "", fmt.Errorf("write the owner of files: %w", err)
	}
	return name, nil
}

// CheckOwner returns an error if the files of a bucket belong to another data directory. This data directory
// becomes the owner of files without one.
func CheckOwner(data string, b files.Blobs) error {
	name, err := OwnerName(data)
	if err != nil {
		return err
	}
	owner, err := readFileOwner(b)
	if err == nil && owner != name {
		// The directory was that of a single server, or belonged to a cluster of an older release.
		var own string
		if own, err = directoryName(data); err == nil && owner == own {
			err = fs.ErrNotExist
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := writeFileOwner(data, b, name); err != nil {
			return err
		}
		owner, err = readFileOwner(b) // another server may have written its own at the same moment
	}
	if err != nil {
		return err
	}
	if owner != name {
		return errors.New("the files belong to another data directory; if that no longer exists, stop the server " +
			"and run parley files claim")
	}
	return nil
}

func readFileOwner(b files.Blobs) (string, error) {
	f, err := b.Open(fileOwnerKey)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := f.Section(0, min(f.Size(), maxOwnerBytes))
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	return strings.TrimSpace(string(text)), err
}

func writeFileOwner(data string, b files.Blobs, name string) error {
	f, err := os.CreateTemp(datadir.UploadsDir(data), "owner-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.WriteString(name + "\n"); err != nil {
		return err
	}
	return b.Put(fileOwnerKey, f)
}

// Claim makes a data directory the owner of the files in its bucket: only it removes files then.
func Claim(data string) error {
	p, err := ReadPlace(data)
	if err != nil {
		return err
	}
	if p.Files == "" {
		return errors.New("the files are in the data directory, so they have no other owner")
	}
	b, err := OpenBlobs(p, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Probe(); err != nil {
		return err
	}
	name, err := OwnerName(data)
	if err != nil {
		return err
	}
	return writeFileOwner(data, b, name)
}

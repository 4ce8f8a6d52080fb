package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parley/actors/realm"
)

// VersionFile is the name of a file in the data directory. It has the version of the newest program that has
// served the directory. The version is the number of the newest kind of fact, so every program that could write
// facts which an older one cannot read has a larger version.
const VersionFile = "version"

// maxVersionBytes limits the part of the file that is read.
const maxVersionBytes = 64

// DataVersion returns the version of this program's data.
func DataVersion() int { return int(realm.NewestNumber()) }

// CheckDataVersion refuses a directory that a newer program has served. An older program would stop at the first
// fact it does not know, and it would drop the fields it does not know from what it writes again.
func CheckDataVersion(data string) error {
	version, err := readDataVersion(data)
	if err == nil && version > DataVersion() {
		err = fmt.Errorf("data directory %s was served by a newer parley (data version %d, this program has %d): "+
			"install that version again, or restore a backup from before the upgrade into an empty directory",
			data, version, DataVersion())
	}
	return err
}

// readDataVersion returns the version of a directory, 0 if it has none.
func readDataVersion(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, VersionFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the data directory: %w", err)
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(text[:min(len(text), maxVersionBytes)])))
	if err != nil || version < 0 {
		return 0, fmt.Errorf("%s has %q, not a version number; if no newer parley has used the directory, remove it",
			filepath.Join(data, VersionFile), text[:min(len(text), maxVersionBytes)])
	}
	return version, nil
}

// recordDataVersion writes the version of the data at a rule level, if the directory does not have it yet. Below the
// program's own level, an older program can continue with the directory.
func recordDataVersion(data string, level uint16) error {
	now := int(realm.NewestNumberAt(level))
	if version, err := readDataVersion(data); err != nil || version >= now {
		return err
	}
	return replaceFile(filepath.Join(data, VersionFile), strconv.Itoa(now)+"\n")
}

// replaceFile writes a small file. A reader finds the old or the new content. It does not sync.
func replaceFile(path, content string) error {
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

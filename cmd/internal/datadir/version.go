package datadir

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

// Version returns the version of this program's data.
func Version() int { return int(realm.NewestNumber()) }

// CheckVersion refuses a directory that a newer program has served. An older program would stop at the first
// fact it does not know, and it would drop the fields it does not know from what it writes again.
func CheckVersion(data string) error {
	version, err := ReadVersion(data)
	if err == nil && version > Version() {
		err = fmt.Errorf("data directory %s was served by a newer parley (data version %d, this program has %d): "+
			"install that version again, or restore a backup from before the upgrade into an empty directory",
			data, version, Version())
	}
	return err
}

// ReadVersion returns the version of a directory, 0 if it has none.
func ReadVersion(data string) (int, error) {
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

// RecordVersion writes the version of the data at a rule level, if the directory does not have it yet. Below the
// program's own level, an older program can continue with the directory.
func RecordVersion(data string, level uint16) error {
	now := int(realm.NewestNumberAt(level))
	if version, err := ReadVersion(data); err != nil || version >= now {
		return err
	}
	return ReplaceFile(filepath.Join(data, VersionFile), strconv.Itoa(now)+"\n")
}

// ReplaceFile writes a small file. A reader finds the old or the new content. It does not sync.
func ReplaceFile(path, content string) error {
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// WriteAndSync writes a small file and waits until it is on the disk.
func WriteAndSync(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

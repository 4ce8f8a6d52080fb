package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkTable verifies every block of a table before a backup contains it, if the owner of the store wants to know of
// damage: a copy of a damaged table at another node would be damaged, too, and in the end no node would have the data.
func (s *Store) checkTable(path, name string) error {
	if s.o.Damaged == nil {
		return nil
	}
	err := checkTableFile(s.fs, path)
	if pebble.IsCorruptionError(err) {
		return s.foundDamage(&DamageError{Where: name, Why: err.Error(), Dir: s.dir, Cause: err})
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", name, err)
	}
	return nil
}

// CheckTable verifies every block of a file of a backup, if it is a table; other files have no checksums of their own.
func CheckTable(path string) error {
	if !strings.HasSuffix(path, tableSuffix) {
		return nil
	}
	if err := checkTableFile(vfs.Default, path); err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	return nil
}

func checkTableFile(fs vfs.FS, path string) error {
	f, err := fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	readable, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	var o pebble.Options
	o.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), readable, o.MakeReaderOptions()) // closes the file if it fails
	if err != nil {
		return err
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

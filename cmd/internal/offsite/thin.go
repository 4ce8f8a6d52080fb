package offsite

import (
	"errors"
	"fmt"
	"time"

	"parley/snapshot/files"
)

const (
	// collectInterval is the time between two removals of objects that no backup needs: each reads all lists.
	collectInterval = 20 * time.Hour
	// unusedAge is the age of an object that is removed when no list has it. A younger one may be of a backup that is
	// not finished.
	unusedAge = 24 * time.Hour
)

// thin removes the backups that are not kept, and at times the objects that only those had. It returns how many backups
// it has removed.
func (f *Folder) thin(k Keep, all []Backup, status *Status) (removed int, err error) {
	now := time.Now()
	stay, remove := k.split(all, now)
	for _, b := range remove {
		if err := f.blobs.Remove(listPrefix + b.Name); err != nil {
			return removed, fmt.Errorf("remove the backup %s: %w", b.Name, err)
		}
		removed++
	}
	if k == (Keep{}) || now.Sub(time.Unix(status.Collected, 0)) < collectInterval {
		return removed, nil
	}
	if err := f.collect(stay, now); err != nil {
		return removed, err
	}
	status.Collected = now.Unix()
	return removed, nil
}

// collect removes the objects that no backup needs. If a list cannot be read, it removes nothing.
func (f *Folder) collect(all []Backup, now time.Time) error {
	used := map[string]bool{}
	for _, b := range all {
		l, err := f.Read(b)
		if err != nil {
			return fmt.Errorf("objects of removed backups stay in the bucket: %w", err)
		}
		for _, file := range l.Files {
			used[file.Object] = true
		}
	}
	var unused []string
	err := f.blobs.Each(objectPrefix, func(b files.BlobInfo) error {
		if !used[b.Key] && now.Sub(b.Modified) > unusedAge {
			unused = append(unused, b.Key)
		}
		return nil
	})
	for _, key := range unused {
		err = errors.Join(err, f.blobs.Remove(key))
	}
	return err
}

package offsite

import (
	"fmt"
	"io"
	"strings"
	"time"

	"parley/snapshot"
)

// Find returns the backup with a name; "": the newest one.
func (f *Folder) Find(name string) (Backup, error) {
	all, err := f.Backups()
	if err != nil {
		return Backup{}, err
	}
	for _, b := range all {
		if b.Name == name {
			return b, nil
		}
	}
	switch {
	case len(all) == 0:
		return Backup{}, fmt.Errorf("the folder has no backup")
	case name != "":
		return Backup{}, fmt.Errorf("the folder has no backup %q; the newest one is %s", name, all[len(all)-1].Name)
	}
	return all[len(all)-1], nil
}

// Around returns the backups before and after a time. There may be none before.
func (f *Folder) Around(at time.Time) (before *Backup, after Backup, err error) {
	all, err := f.Backups()
	if err != nil {
		return nil, after, err
	}
	for i := range all {
		if all[i].Begun.After(at) {
			return before, all[i], nil
		}
		before = &all[i]
	}
	if before == nil {
		return nil, after, fmt.Errorf("the folder has no backup")
	}
	return nil, after, fmt.Errorf("the newest backup, %s, was begun at %s: it has nothing from after that; restore it "+
		"without --at", before.Name, before.Begun.UTC().Format(time.RFC3339))
}

// Reader is the content of a backup as one file, as package snapshot restores it.
type Reader struct {
	*io.PipeReader
	List *List
	// Skipped has the uploaded files that were left out because they are missing or damaged. It is complete at the end.
	Skipped []string
}

// Stream opens a backup. incomplete leaves out uploaded files that are missing or damaged. The caller closes the
// reader. Read returns an error at the first object that is not as it was sent.
func (f *Folder) Stream(b Backup, incomplete bool) (*Reader, error) {
	l, err := f.Read(b)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	reader := &Reader{PipeReader: r, List: l}
	go func() { w.CloseWithError(f.stream(reader, w, incomplete)) }()
	return reader, nil
}

func (f *Folder) stream(r *Reader, w io.Writer, incomplete bool) error {
	to := snapshot.NewBackupWriter(w)
	for i := range r.List.Files {
		file := &r.List.Files[i]
		upload := strings.HasPrefix(file.Name, snapshot.ExtraName(""))
		if incomplete && upload && f.check(file) != nil {
			r.Skipped = append(r.Skipped, file.Name)
			continue
		}
		content, err := f.open(file)
		if err != nil {
			return err
		}
		err = to.Add(file.Name, file.Size, content)
		if err == nil {
			_, err = io.Copy(io.Discard, content) // the end, where the hash is compared
		}
		content.Close()
		if err != nil {
			return err
		}
	}
	return to.Finish()
}

// check returns an error if a file is missing or damaged.
func (f *Folder) check(file *File) error {
	r, err := f.open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

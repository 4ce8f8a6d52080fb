package orgfiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/snapshot"
	"parley/snapshot/files"
)

// Move copies the files of a data directory to another place. While a server runs there, it copies the files
// so far and changes nothing else. On a stopped server it copies the rest, checks that the new place has every file
// to which rows refer, and records the place. With remove it then removes the files from the old place.
func Move(data, to, credentials string, remove bool, out io.Writer) (err error) {
	old, err := ReadPlace(data)
	if err != nil {
		return err
	}
	wanted, err := NewPlace(to, credentials)
	if err != nil {
		return err
	}
	if wanted.Files == old.Files {
		return fmt.Errorf("the files are in %s already", old)
	}
	var store *snapshot.Store
	_, running, _ := control.Send(data, "realm-list", nil)
	if !running {
		if err := datadir.CheckVersion(data); err != nil {
			return err
		}
		if store, err = snapshot.OpenReadOnly(data, snapshot.Options{}); err != nil {
			return datadir.StartError(data, err)
		}
		defer func() { err = errors.Join(err, store.Close()) }()
	}
	from, closeFrom, err := OpenPlace(data, old)
	if err != nil {
		return err
	}
	defer closeFrom()
	dest, closeTo, err := OpenPlace(data, wanted)
	if err != nil {
		return err
	}
	defer closeTo()
	if err := copyFiles(data, from, dest, wanted, out); err != nil {
		return err
	}
	if running {
		_, err := fmt.Fprintf(out, "The server still uses %s. Stop it and run the same command again: it copies "+
			"the rest and records the new place.\n", old)
		return err
	}
	missing, err := Check(snapshot.Disk{Store: store}, files.OpenReadOnly(datadir.UploadsDir(data), dest), false, out)
	if err != nil {
		return err
	}
	if missing > 0 {
		fmt.Fprintf(out, "The old place does not have these files either.\n")
		if cluster.Exists(data) {
			fmt.Fprintf(out, "A core has the files of the time when it led: run the same command at the other cores, "+
				"too.\n")
		}
	}
	if err := WritePlace(data, wanted); err != nil {
		return err
	}
	fmt.Fprintf(out, "The files are in %s now. A setting \"files\" must say the same or be left out.\n", wanted)
	os.Remove(moveLog(data))
	if !remove {
		_, err := fmt.Fprintf(out, "They are still in %s, too; remove them there when a backup of the new place "+
			"exists.\n", old)
		return err
	}
	n, err := files.RemoveAll(from)
	fmt.Fprintf(out, "Removed %d files from %s.\n", n, old)
	return err
}

func moveLog(data string) string { return filepath.Join(datadir.UploadsDir(data), "moved") }

// OpenPlace opens the files of a place and checks that it can be reached.
func OpenPlace(data string, p Place) (files.Blobs, func(), error) {
	b, err := OpenBlobs(p, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	if b == nil {
		return files.NewLocalBlobs(datadir.UploadsDir(data)), func() {}, nil
	}
	if err := b.Probe(); err != nil {
		b.Close()
		return nil, nil, err
	}
	return b, b.Close, nil
}

func copyFiles(data string, from, to files.Blobs, place Place, out io.Writer) error {
	if err := os.MkdirAll(datadir.UploadsDir(data), 0o700); err != nil {
		return err
	}
	// A folder of its own: a server that starts empties the one for incoming files.
	leftovers, err := filepath.Glob(filepath.Join(datadir.UploadsDir(data), "moving-*"))
	if err != nil {
		return err
	}
	for _, dir := range leftovers { // of a run that was killed
		os.RemoveAll(dir)
	}
	temp, err := os.MkdirTemp(datadir.UploadsDir(data), "moving-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	c := &files.Copier{From: from, To: to, Temp: temp, Log: moveLog(data), Place: place.String(),
		Progress: func(c files.Copied) {
			if n := c.Files + c.Same; n%1000 == 0 {
				fmt.Fprintf(out, "%d files\n", n)
			}
		}}
	done, err := c.Copy()
	fmt.Fprintf(out, "Copied %d files (%d bytes) and compared their SHA-256; %d were there already, %d since an "+
		"earlier run.\n", done.Files, done.Bytes, done.Same, done.Known)
	return err
}

// maxShownFiles is how many missing or damaged files Check prints.
const maxShownFiles = 20

// Check checks that the files to which rows refer exist. With content, it also compares the hash of each upload
// with its name. It prints the missing and damaged ones and returns their number.
func Check(disk snapshot.Disk, store *files.Store, content bool, out io.Writer) (bad int, err error) {
	list, checked, err := FindMissing(disk, store, 0, content)
	if err != nil {
		return len(list), err
	}
	_, err = fmt.Fprintf(out, "%s%d files are referenced, %d of them are missing or damaged\n", listMissing(list),
		checked, len(list))
	return len(list), err
}

// FindMissing returns the files that rows of an organization name and that are missing, or damaged; see Check. It
// reads the state of one organization at a time, as a start does. only 0 means all organizations.
func FindMissing(
	disk snapshot.Disk, store *files.Store, only realm.ID, content bool,
) (bad []Missing, checked int, err error) {
	ids, err := disk.Realms()
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if only != 0 && id != only {
			continue
		}
		r, err := snapshot.Recover(disk, id)
		if err != nil {
			return bad, len(seen), err
		}
		var list []realm.RowFile
		r.Realm.EachRow(func(_ uint16, _, row any) { list = append(list, realm.RowFiles(row)...) })
		for _, f := range list {
			m := Missing{realm: id, kind: f.Kind, name: *f.Name}
			m.key = files.Key(f.Kind, files.FilesOf(f.Kind, *f.Name)[0])
			if seen[m.key] {
				continue
			}
			seen[m.key] = true
			ok := true
			if content && f.Kind == realm.ContentFile {
				err = store.CheckContent(Space(id), *f.Name)
				ok = err == nil
				if errors.Is(err, files.ErrDamaged) {
					m.damaged, err = true, nil
				} else if errors.Is(err, fs.ErrNotExist) {
					err = nil
				}
			} else {
				ok, err = store.Has(f.Kind, *f.Name)
			}
			if err != nil {
				return bad, len(seen), fmt.Errorf("check %s: %w", m.key, err)
			}
			if !ok {
				bad = append(bad, m)
			}
		}
	}
	return bad, len(seen), nil
}

// CheckStopped checks the files of a stopped server; see Check.
func CheckStopped(data string, content bool, out io.Writer) (bad int, err error) {
	if err := datadir.CheckVersion(data); err != nil {
		return 0, err
	}
	p, err := ReadPlace(data)
	if err != nil {
		return 0, err
	}
	store, err := snapshot.OpenReadOnly(data, snapshot.Options{})
	if err != nil {
		return 0, datadir.StartError(data, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	uploads, end, err := Open(data, true)
	if err != nil {
		return 0, err
	}
	defer end()
	fmt.Fprintf(out, "The files are in %s.\n", p)
	return Check(snapshot.Disk{Store: store}, uploads, content, out)
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/server"
	"parley/snapshot"
	"parley/snapshot/files"
)

// runExport is `parley runExport FILE`: one organization, of a running or a stopped server, as lines of JSON. Of a running one
// a backup is taken first, into a directory of its own: the export is of one moment, and costs the server no more than that.
func runExport(args []string, out io.Writer) (err error) {
	fs := flag.NewFlagSet("export", flag.ContinueOnError)
	data := fs.String("data", environmentOr("DATA", "./data"), "data directory, of a running or a stopped server")
	name := fs.String("realm", "", "subdomain of the organization; empty is the root organization")
	temp := fs.String("temp", "", "where a running server's data may lie for a moment; default is the system's place")
	names, err := parseMixed(fs, args)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return errors.New("usage: parley export FILE [--realm NAME] [--data DIR]; - is standard output")
	}
	dir := *data
	if _, running, _ := server.RemoteCommand(dir, "realm-list", nil); running {
		copied, err := os.MkdirTemp(*temp, "parley-export-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(copied)
		dir = filepath.Join(copied, "data")
		if err := copyRunning(*data, filepath.Join(copied, "backup"), dir); err != nil {
			return err
		}
	}
	if names[0] == "-" {
		_, err := exportFrom(dir, *name, out)
		return err
	}
	f, err := os.OpenFile(names[0]+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	digest, err := exportFrom(dir, *name, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), names[0]); err != nil {
		return err
	}
	if err := syncDirectory(filepath.Dir(names[0])); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, digest)
	return err
}

// copyRunning makes a data directory of what a running server has now.
func copyRunning(data, file, dir string) error {
	if _, err := backupTo(data, file); err != nil {
		return err
	}
	return errors.Join(restoreFrom(file, nil, dir, nil), os.Remove(file))
}

func exportFrom(dir, name string, out io.Writer) (digest snapshot.Digest, err error) {
	store, err := snapshot.OpenReadOnly(dir, snapshot.Options{})
	if err != nil {
		return digest, server.StartError(dir, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	d := snapshot.Disk{Store: store}
	have, err := findInUse(d)
	if err != nil {
		return digest, err
	}
	id, ok := have.bySubdomain[name]
	if !ok {
		return digest, fmt.Errorf("no organization %q; parley realm list shows them", name)
	}
	kept := files.OpenReadOnly(filepath.Join(dir, "uploads"))
	return snapshot.Export(d, id, func(kind, name string, each func(string, int64, io.Reader) error) error {
		return eachFile(kept, kind, name, each)
	}, out)
}

// eachFile hands over the files a row's name stands for. One that is gone is left out: its address answers as before.
func eachFile(kept *files.Store, kind, name string, each func(string, int64, io.Reader) error) error {
	for _, file := range filesNamed(kind, name) {
		f, err := os.Open(filePath(kept, kind, file))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			err = each(file, info.Size(), f)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

func filesNamed(kind, name string) []string {
	switch kind {
	case realm.PictureFile:
		return []string{name + ".png", name + "-medium.png"}
	case realm.ArchiveFile:
		return []string{name + ".jsonl.gz"}
	}
	return []string{name}
}

func filePath(kept *files.Store, kind, file string) string {
	switch kind {
	case realm.PictureFile:
		return kept.Picture(file)
	case realm.ArchiveFile:
		return kept.Export(file)
	}
	return kept.Path(file)
}

// inUse is what a data directory has that another organization may not have too.
type inUse struct {
	bySubdomain map[string]realm.ID
	byKeyHash   map[[32]byte]realm.ID
	unused      map[realm.ID]bool // numbers that were claimed for an organization that never came
}

func findInUse(d snapshot.Disk) (inUse, error) {
	k := inUse{map[string]realm.ID{}, map[[32]byte]realm.ID{}, map[realm.ID]bool{}}
	ids, err := d.Realms()
	if err != nil {
		return k, err
	}
	for _, id := range ids {
		x, err := snapshot.Recover(d, id)
		if err != nil {
			return k, err
		}
		if !x.Realm.Founded() {
			k.unused[id] = x.Realm.Seq() == 0
			continue
		}
		k.bySubdomain[x.Realm.Org().StringID] = id
		x.Realm.EachUser(func(u *realm.User) {
			for _, h := range u.Keys {
				k.byKeyHash[h] = id
			}
		})
	}
	return k, nil
}

// runImport is `parley import FILE`: the organization of an export becomes one of a stopped server's, or of a new data
// directory. The whole file is read and verified before anything is written, and what is written is an organization at
// one moment; before it, nobody can tell it was tried.
func runImport(args []string, in io.Reader, out io.Writer) error {
	fs := flag.NewFlagSet("import", flag.ContinueOnError)
	data := fs.String("data", environmentOr("DATA", "./data"), "data directory of a stopped server, or a new one")
	name := fs.String("realm", "", "another subdomain than the exported one; . is the root organization")
	newKeys := fs.Bool("new-keys", false, "take back all API keys: whoever used one logs in again")
	names, err := parseMixed(fs, args)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return errors.New("usage: parley import FILE [--realm NAME] [--data DIR]; - is standard input")
	}
	if n := *name; n != "." {
		if err := server.CheckSubdomain(n); err != nil {
			return err
		}
	}
	f, done, err := seekable(names[0], in)
	if err != nil {
		return err
	}
	defer done()
	// Nothing is made before the file is known to be right: not even a directory.
	if _, err := snapshot.ReadExport(f, 1, discardFile, nil); err != nil {
		return fmt.Errorf("import %s: %w", names[0], err)
	}
	store, err := snapshot.Open(*data, snapshot.Options{})
	if err != nil {
		return server.StartError(*data, err)
	}
	i := importer{d: snapshot.Disk{Store: store}, dir: *data, name: *name, newKeys: *newKeys}
	digest, err := i.run(f)
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("import %s: %w", names[0], err)
	}
	_, err = fmt.Fprintln(out, digest)
	return err
}

func discardFile(_, name string, content io.Reader) (string, error) {
	_, err := io.Copy(io.Discard, content)
	return name, err
}

// seekable is a file that can be read seekable: standard input is written down first.
func seekable(name string, in io.Reader) (f *os.File, done func(), err error) {
	if name != "-" {
		f, err = os.Open(name)
		return f, func() { f.Close() }, err
	}
	if f, err = os.CreateTemp("", "parley-import-"); err != nil {
		return nil, nil, err
	}
	done = func() {
		f.Close()
		os.Remove(f.Name())
	}
	if _, err = io.Copy(f, in); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		done()
	}
	return f, done, err
}

type importer struct {
	d       snapshot.Disk
	dir     string
	name    string
	newKeys bool
	written []string // files that were not there before
}

func (i *importer) run(f *os.File) (digest snapshot.Digest, err error) {
	have, err := findInUse(i.d)
	if err != nil {
		return digest, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return digest, err
	}
	x, err := snapshot.ReadExport(f, 1, discardFile, nil)
	if err != nil {
		return digest, err
	}
	id, err := i.chooseID(x, have)
	if err != nil {
		return digest, err
	}
	kept, err := files.Open(filepath.Join(i.dir, "uploads"))
	if err != nil {
		return digest, err
	}
	epoch, _, _, err := i.d.Claim(id)
	if err != nil {
		return digest, err
	}
	defer func() {
		if err != nil {
			for _, path := range i.written {
				os.Remove(path)
			}
			i.d.ClearEmptyRealm(uint32(id)) // a store that failed clears it at the next import
		}
	}()
	if err := i.d.ClearEmptyRealm(uint32(id)); err != nil {
		return digest, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return digest, err
	}
	text, flush := i.d.TextWriter(id, epoch)
	x, err = snapshot.ReadExport(f, id, func(kind, name string, content io.Reader) (string, error) {
		return i.save(kept, id, kind, name, content)
	}, text)
	if err == nil {
		err = flush()
	}
	if err != nil {
		return digest, err
	}
	i.applyOptions(x)
	if err := i.addLinkTokens(x, id); err != nil {
		return digest, err
	}
	want := snapshot.StateDigest(x.Realm)
	if err := x.Install(i.d, id, epoch); err != nil {
		return digest, err
	}
	again, err := snapshot.Recover(i.d, id)
	if err != nil {
		return digest, err
	}
	if digest = snapshot.StateDigest(again.Realm); digest != want {
		return digest, fmt.Errorf("read back it is\n%s, written\n%s", digest, want)
	}
	return digest, nil
}

// chooseID decides under which number the organization may come: its own if that is free, else the next.
func (i *importer) chooseID(x *snapshot.Imported, have inUse) (realm.ID, error) {
	i.applyOptions(x)
	if id, taken := have.bySubdomain[x.Realm.Org().StringID]; taken {
		return 0, fmt.Errorf("organization %q exists already, as number %d; --realm gives another name", x.Realm.Org().StringID, id)
	}
	var clash error
	x.Realm.EachUser(func(u *realm.User) {
		for _, h := range u.Keys {
			if id, taken := have.byKeyHash[h]; taken {
				clash = fmt.Errorf("API keys of the export belong to organization %d of this server; --new-keys takes back those of the export", id)
			}
		}
	})
	if clash != nil {
		return 0, clash
	}
	used := map[realm.ID]bool{}
	last := realm.ID(0)
	for _, id := range have.bySubdomain {
		used[id], last = true, max(last, id)
	}
	if id := x.Head.Realm; id > 0 && !used[id] {
		return id, nil
	}
	return last + 1, nil
}

// applyOptions makes the changes that were asked for.
func (i *importer) applyOptions(x *snapshot.Imported) {
	x.Realm.EachRow(func(_ uint16, _, row any) {
		switch r := row.(type) {
		case *realm.Organization:
			if i.name != "" {
				r.StringID = strings.TrimPrefix(i.name, ".")
			}
		case *realm.User:
			if i.newKeys {
				r.Keys = nil
				r.KeyEpoch++
			}
		}
	})
}

// addLinkTokens makes the links that lists of invitations show good here: what a link ends in follows from the server's secret.
// The links that were sent go on.
func (i *importer) addLinkTokens(x *snapshot.Imported, id realm.ID) error {
	secret, err := server.LoadSecret(i.dir)
	if err != nil {
		return err
	}
	x.Realm.EachRow(func(_ uint16, _, row any) {
		if r, ok := row.(*realm.Invite); ok && r.Multi {
			if h := actors.HashKey(actors.LinkToken(secret, id, r.ID)); !slices.Contains(r.Tokens, h) {
				r.Tokens = append(r.Tokens, h)
			}
		}
	})
	return nil
}

// maxImportedFile is how large one file may be, in bytes: beyond what any upload limit allows.
const maxImportedFile = 1 << 40

// save writes a file and returns the name rows have for it.
func (i *importer) save(kept *files.Store, id realm.ID, kind, name string, content io.Reader) (string, error) {
	path := filePath(kept, kind, name)
	if kind != realm.ContentFile {
		i.rememberFile(path)
		return name, kept.Put(path, content)
	}
	saved, err := kept.Save(strconv.Itoa(int(id)), content, maxImportedFile)
	if err == nil { // no other organization has content of that name: the number was free
		i.written = append(i.written, kept.Path(saved.Hash))
	}
	return saved.Hash, err
}

// rememberFile remembers a file that was not there before.
func (i *importer) rememberFile(path string) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		i.written = append(i.written, path)
	}
}

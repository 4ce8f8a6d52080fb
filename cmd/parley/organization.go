package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/moving"
	"parley/cmd/internal/server"
	"parley/snapshot"
	"parley/snapshot/files"
)

func newExportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Write an organization of a running or a stopped server as JSON lines, or for a Zulip server",
		Long: "Write an organization of a running or a stopped server to FILE; - is standard output. " +
			"Of a running " +
			"server a backup is taken first, so the export is the state at one moment.",
		Args: exactArgs(1, "- is standard output"),
	}
	c.AddCommand(newExportPersonCommand())
	data := dataFlag(c, anyServer)
	subdomain := c.Flags().String("realm", "", realmFlag.Meaning)
	temp := c.Flags().String("temp", "", "folder for temporary data (default: the system's)")
	format := c.Flags().String(
		"format",
		"parley",
		"parley (JSON lines), or zulip (a tar.gz file that Zulip servers import)",
	)
	migrations := c.Flags().String("migrations", "", "zulip: file migration_status.json of the Zulip server that will "+
		"import; it accepts only its own")
	c.RunE = func(c *cobra.Command, args []string) error {
		write := exportFrom
		switch *format {
		case "parley":
		case "zulip":
			write = zulipWriter(*migrations, *temp)
		default:
			return fmt.Errorf("--format must be parley or zulip, not %q", *format)
		}
		return export(data(), *subdomain, args[0], *temp, write, c.OutOrStdout())
	}
	return c
}

func newExportPersonCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "person EMAIL|ID",
		Short: "Write the data of one user of a running or a stopped server as a zip file, for them to take away",
		Long: "Write the profile, settings, logins, subscriptions, messages, reactions, drafts and files of a user as " +
			"a zip file of JSON and of the files as they are. It has the messages that the user sent, and all of " +
			"their direct conversations. It has no passwords and keys, and no deleted messages; about.json has the " +
			"number of those that the retention archive still has.",
		Args: exactArgs(1, "an email address, or the id that parley user list shows"),
	}
	data := dataFlag(c, anyServer)
	subdomain := c.Flags().String("realm", "", realmFlag.Meaning)
	temp := c.Flags().String("temp", "", "folder for temporary data (default: the system's)")
	file := c.Flags().String("out", "", "zip file to write; - is standard output")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *file == "" {
			return errors.New("--out is required: the zip file to write")
		}
		write := func(dir, subdomain string, out io.Writer) (moving.PersonCounts, error) {
			return withOrganization(dir, subdomain,
				func(d snapshot.Disk, uploads *files.Store, id realm.ID) (moving.PersonCounts, error) {
					return moving.ExportPerson(d, uploads, id, args[0], out)
				})
		}
		return export(data(), *subdomain, *file, *temp, write, c.OutOrStdout())
	}
	return c
}

// export writes an organization, or a part of it, to a file and prints the summary that write returns. The file gets
// its name when it is complete.
func export[T any](
	dir, subdomain, file, temp string, write func(dir, subdomain string, out io.Writer) (T, error), out io.Writer,
) error {
	if _, running, _ := server.RemoteCommand(dir, "realm-list", nil); running {
		copied, err := os.MkdirTemp(temp, "parley-export-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(copied)
		running := dir
		dir = filepath.Join(copied, "data")
		if err := copyRunning(running, filepath.Join(copied, "backup"), dir); err != nil {
			return err
		}
	}
	if file == "-" {
		_, err := write(dir, subdomain, out)
		return err
	}
	f, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	summary, err := write(dir, subdomain, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	if err := syncDirectory(filepath.Dir(file)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, summary)
	return err
}

// copyRunning makes the data directory dir from a running server's data; file is a temporary name for the backup.
func copyRunning(data, file, dir string) error {
	if _, err := backupTo(data, file); err != nil {
		return err
	}
	return errors.Join(restoreFrom(file, nil, dir, restoreEnd{}), os.Remove(file))
}

// exportFrom exports an organization from the data directory of a stopped server.
func exportFrom(dir, subdomain string, out io.Writer) (snapshot.Digest, error) {
	return withOrganization(dir, subdomain,
		func(d snapshot.Disk, uploads *files.Store, id realm.ID) (snapshot.Digest, error) {
			return snapshot.Export(d, id, func(kind, name string, each func(string, int64, io.Reader) error) error {
				return eachFile(uploads, kind, name, each)
			}, out)
		})
}

// zulipWriter returns a function that exports an organization for a Zulip server.
func zulipWriter(migrations, temp string) func(string, string, io.Writer) (snapshot.Digest, error) {
	return func(dir, subdomain string, out io.Writer) (snapshot.Digest, error) {
		var status []byte
		if migrations != "" {
			var err error
			if status, err = os.ReadFile(migrations); err != nil {
				return snapshot.Digest{}, err
			}
		}
		return withOrganization(dir, subdomain,
			func(d snapshot.Disk, uploads *files.Store, id realm.ID) (snapshot.Digest, error) {
				return moving.ExportZulip(d, uploads, id, status, temp, out)
			})
	}
}

// withOrganization calls fn with an organization in the data directory of a stopped server, and returns its result.
func withOrganization[T any](
	dir, subdomain string, fn func(d snapshot.Disk, uploads *files.Store, id realm.ID) (T, error),
) (result T, err error) {
	if err := server.CheckDataVersion(dir); err != nil {
		return result, err
	}
	store, err := snapshot.OpenReadOnly(dir, snapshot.Options{})
	if err != nil {
		return result, server.StartError(dir, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	d := snapshot.Disk{Store: store}
	have, err := findInUse(d)
	if err != nil {
		return result, err
	}
	id, ok := have.bySubdomain[subdomain]
	if !ok {
		return result, fmt.Errorf("no organization %q; parley realm list shows them", subdomain)
	}
	uploads, end, err := server.OpenFiles(dir, true)
	if err != nil {
		return result, err
	}
	defer end()
	return fn(d, uploads, id)
}

// eachFile calls each with the files that the name in a row refers to. A missing file is left out: requests for it
// answer as before.
func eachFile(store *files.Store, kind, name string, each func(string, int64, io.Reader) error) error {
	for _, file := range filesNamed(kind, name) {
		f, err := store.Open(kind, file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		r, err := f.Section(0, f.Size())
		if err == nil {
			err = errors.Join(each(file, f.Size(), r), r.Close())
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// filesNamed returns the names of the files that the name in a row refers to.
func filesNamed(kind, name string) []string {
	switch kind {
	case realm.PictureFile:
		return []string{name + ".png", name + "-medium.png"}
	case realm.ArchiveFile:
		return []string{name + ".jsonl.gz"}
	}
	return []string{name}
}

// inUse has the names, keys and numbers of a data directory that no other organization may have.
type inUse struct {
	bySubdomain map[string]realm.ID
	byKeyHash   map[[32]byte]realm.ID
	unused      map[realm.ID]bool // numbers that were claimed but have no organization
}

// findInUse reads all organizations of a data directory.
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
			for _, h := range keyHashes(u) {
				k.byKeyHash[h] = id
			}
		})
	}
	return k, nil
}

// keyHashes returns the hashes of all API keys of a user.
func keyHashes(u *realm.User) [][32]byte {
	out := slices.Clone(u.Keys)
	for _, k := range u.KeyInfo {
		out = append(out, k.Hash)
	}
	return out
}

func newImportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Add an exported organization to a stopped server's data directory, or to a new one",
		Long: "Add the organization of the export FILE to the data directory of a stopped server, or to a new " +
			"directory; - is " +
			"standard input.\nThe whole file is checked before anything is written. An import that is interrupted " +
			"leaves nothing.",
		Args: exactArgs(1, "- is standard input"),
	}
	for _, format := range moving.Formats() {
		c.AddCommand(newMoveInCommand(format))
	}
	data := dataFlag(c, "data directory of a stopped server, or a new one")
	subdomain := c.Flags().String("realm", "", "subdomain instead of the exported one; . is the root organization")
	newKeys := c.Flags().Bool("new-keys", false, "revoke all API keys: their users have to log in again")
	c.RunE = func(c *cobra.Command, args []string) error {
		i := importer{dir: data(), subdomain: *subdomain, newKeys: *newKeys}
		return i.importFile(args[0], c.InOrStdin(), c.OutOrStdout())
	}
	return c
}

// importFile imports the organization of an export and prints its digest. The file is read and checked before anything
// is written, not even a directory. The organization becomes visible at one moment; before, nothing shows that an
// import ran.
func (i *importer) importFile(file string, in io.Reader, out io.Writer) error {
	if i.subdomain != "." {
		if err := server.CheckSubdomain(i.subdomain); err != nil {
			return err
		}
	}
	f, done, err := seekable(file, in)
	if err != nil {
		return err
	}
	defer done()
	if _, err := snapshot.ReadExport(f, 1, discardFile, nil); err != nil {
		return fmt.Errorf("import %s: %w", file, err)
	}
	if err := server.CheckDataVersion(i.dir); err != nil {
		return err
	}
	if err := server.CheckStoppedImport(i.dir); err != nil {
		return fmt.Errorf("import %s: %w", file, err)
	}
	store, err := snapshot.Open(i.dir, snapshot.Options{})
	if err != nil {
		return server.StartError(i.dir, err)
	}
	i.disk = snapshot.Disk{Store: store}
	digest, err := i.run(f)
	if err = errors.Join(err, store.Close()); err != nil {
		return fmt.Errorf("import %s: %w", file, err)
	}
	_, err = fmt.Fprintln(out, digest)
	return err
}

// discardFile reads a file of an export and stores nothing.
func discardFile(_, name string, content io.Reader) (string, error) {
	_, err := io.Copy(io.Discard, content)
	return name, err
}

// seekable opens a file that can be read twice. Standard input is copied to a temporary file, which done removes.
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

// importer adds an exported organization to a data directory.
type importer struct {
	dir       string
	subdomain string // instead of the exported one; . is the root organization, "" keeps the exported one
	newKeys   bool   // revoke all API keys

	disk    snapshot.Disk
	created []string // files that did not exist before
}

// run writes the organization of a checked file. On an error it removes the files it has created.
func (i *importer) run(f *os.File) (digest snapshot.Digest, err error) {
	have, err := findInUse(i.disk)
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
	uploads, end, err := server.OpenFiles(i.dir, false)
	if err != nil {
		return digest, err
	}
	defer end()
	claimed, err := i.disk.Claim(id, realm.AnyEpoch)
	if err != nil {
		return digest, err
	}
	defer func() {
		if err != nil {
			uploads.DiscardNew(i.created)
			i.disk.ClearEmptyRealm(uint32(id)) // if the store fails here, the next import clears it
		}
	}()
	if err := i.disk.ClearEmptyRealm(uint32(id)); err != nil {
		return digest, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return digest, err
	}
	text, flush := i.disk.TextWriter(id, claimed.Epoch)
	x, err = snapshot.ReadExport(f, id, func(kind, name string, content io.Reader) (string, error) {
		return i.save(uploads, id, kind, name, content)
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
	if err := x.Install(i.disk, id, claimed.Epoch); err != nil {
		return digest, err
	}
	again, err := snapshot.Recover(i.disk, id)
	if err != nil {
		return digest, err
	}
	if digest = snapshot.StateDigest(again.Realm); digest != want {
		return digest, fmt.Errorf("the stored organization is\n%s, but the imported one is\n%s", digest, want)
	}
	return digest, nil
}

// chooseID returns the number for the organization: its own if that is free, otherwise the next one.
func (i *importer) chooseID(x *snapshot.Imported, have inUse) (realm.ID, error) {
	i.applyOptions(x)
	if id, taken := have.bySubdomain[x.Realm.Org().StringID]; taken {
		return 0, fmt.Errorf("organization %q exists already, as number %d; choose another name with --realm",
			x.Realm.Org().StringID, id)
	}
	var clash error
	x.Realm.EachUser(func(u *realm.User) {
		for _, h := range keyHashes(u) {
			if id, taken := have.byKeyHash[h]; taken {
				clash = fmt.Errorf("API keys of the export belong to organization %d of this server; revoke those "+
					"of the export with --new-keys", id)
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

// applyOptions changes the rows as the options of the import say.
func (i *importer) applyOptions(x *snapshot.Imported) {
	x.Realm.EachRow(func(_ uint16, _, row any) {
		switch r := row.(type) {
		case *realm.Organization:
			if i.subdomain != "" {
				r.StringID = strings.TrimPrefix(i.subdomain, ".")
			}
		case *realm.User:
			if i.newKeys {
				r.Keys, r.KeyInfo = nil, nil
				r.KeyEpoch++
			}
		}
	})
}

// addLinkTokens makes the links valid that lists of invitations show on this server: the token of a link is derived
// from the server's secret. Links that were sent stay valid.
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

// maxImportedFile limits one file in bytes; it is larger than every upload limit.
const maxImportedFile = 1 << 40

// save writes a file and returns the name that rows use for it.
func (i *importer) save(store *files.Store, id realm.ID, kind, name string, content io.Reader) (string, error) {
	if kind != realm.ContentFile {
		stored, err := store.Put(kind, name, content)
		if stored {
			i.created = append(i.created, files.Key(kind, name))
		}
		return name, err
	}
	saved, err := store.Save(strconv.Itoa(int(id)), content, maxImportedFile)
	if err == nil { // the number was free, so no other organization has this file
		i.created = append(i.created, files.ContentKey(saved.Hash))
	}
	return saved.Hash, err
}

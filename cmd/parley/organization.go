package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley/actors/realm"
	"parley/cmd/internal/backup"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/imports"
	"parley/cmd/internal/migration"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
	"parley/snapshot/files"
)

func newExportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Write an organization of a running or a stopped server as JSON lines, or for a Zulip server",
		Long: "Write an organization of a running or a stopped server to FILE; - is standard output. " +
			"The command takes a backup of a running server first, so the export has the state at one moment.",
		Args: exactArgs(1, "- is standard output"),
	}
	c.AddCommand(newExportPersonCommand(), newExportComplianceCommand())
	data := dataFlag(c, anyServer)
	subdomain := c.Flags().String("realm", "", realmFlag.Meaning)
	temp := c.Flags().String("temp", "", "folder for temporary data (default: the system's)")
	format := c.Flags().String(
		"format",
		"parley",
		"parley (JSON lines), or zulip (a tar.gz file that Zulip servers import)",
	)
	incomplete := incompleteExportFlag(c)
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
		return export(data(), *subdomain, args[0], *temp, *incomplete, write, c.OutOrStdout())
	}
	return c
}

// incompleteExportFlag declares the flag of exports that lack files.
func incompleteExportFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("incomplete", false,
		"write the export of a core although it lacks files that no reachable core has")
}

func newExportPersonCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "person EMAIL|ID",
		Short: "Write the data of one user of a running or a stopped server as a zip file for this user",
		Long: "Write the profile, settings, logins, subscriptions, invitations, messages, edits, reactions, votes, " +
			"drafts and files of a user as a zip file with JSON and the original files. It contains the messages " +
			"that the user sent and all of their direct conversations, but no passwords, keys or deleted messages. " +
			"about.json has the number of deleted messages that are still in the retention archive.",
		Args: exactArgs(1, "an email address, or the id that parley user list shows"),
	}
	data := dataFlag(c, anyServer)
	subdomain := c.Flags().String("realm", "", realmFlag.Meaning)
	temp := c.Flags().String("temp", "", "folder for temporary data (default: the system's)")
	incomplete := incompleteExportFlag(c)
	file := c.Flags().String("out", "", "zip file to write; - is standard output")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *file == "" {
			return errors.New("--out is required: the zip file to write")
		}
		write := func(dir, subdomain string, out io.Writer) (exported, error) {
			return withOrganization(dir, subdomain,
				func(d snapshot.Disk, f *files.Store, id realm.ID) (exported, error) {
					n, err := migration.ExportPerson(d, f, id, args[0], out)
					return exported{n.String(), n.Missing}, err
				})
		}
		return export(data(), *subdomain, *file, *temp, *incomplete, write, c.OutOrStdout())
	}
	return c
}

// exported is the output of an export.
type exported struct {
	summary string
	missing []string // files that are not in it, because the server does not have them
}

// warnMissing names the files that are missing.
func (x exported) warnMissing(to io.Writer) {
	if len(x.missing) > 0 {
		warn(to, fmt.Sprintf("files that are not in the export, because this server does not have them: %d.\n%s",
			len(x.missing), strings.Join(x.missing, "\n")))
	}
}

// export writes an organization, or a part of it, to a file and prints the summary that write returns. The file gets
// its name when it is complete. The export of a core that would lack files is refused, unless incomplete is set.
func export(
	dir, subdomain, file, temp string, incomplete bool,
	write func(dir, subdomain string, out io.Writer) (exported, error), out io.Writer,
) error {
	if _, running, _ := control.Send(dir, "realm-list", nil); running {
		copied, err := os.MkdirTemp(temp, "parley-export-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(copied)
		running := dir
		dir = filepath.Join(copied, "data")
		o := backup.Options{Incomplete: incomplete, Only: &subdomain}
		if err := copyRunning(running, filepath.Join(copied, "backup"), dir, o); err != nil {
			return err
		}
	} else {
		note, err := backup.CheckStopped(dir)
		if err != nil {
			return err
		}
		warn(os.Stderr, note)
		if err := backup.CheckStoppedFiles(dir, subdomain); err != nil && !incomplete {
			return err
		}
	}
	if file == "-" {
		x, err := write(dir, subdomain, out)
		if err == nil {
			x.warnMissing(os.Stderr)
		}
		return err
	}
	f, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	x, err := write(dir, subdomain, f)
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
	x.warnMissing(os.Stderr)
	_, err = fmt.Fprintln(out, x.summary)
	return err
}

// copyRunning makes the data directory dir from a running server's data; file is a temporary name for the backup.
func copyRunning(data, file, dir string, o backup.Options) error {
	if _, _, err := backupTo(data, file, o); err != nil {
		return err
	}
	return errors.Join(restoreFrom(file, nil, dir, restoreEnd{}), os.Remove(file))
}

// exportFrom exports an organization from the data directory of a stopped server.
func exportFrom(dir, subdomain string, out io.Writer) (exported, error) {
	return withOrganization(dir, subdomain, func(d snapshot.Disk, f *files.Store, id realm.ID) (x exported, err error) {
		digest, err := snapshot.Export(d, id, func(kind, name string, each func(string, int64, io.Reader) error) error {
			found, err := eachFile(f, kind, name, each)
			if err == nil && !found {
				x.missing = append(x.missing, files.Key(kind, files.FilesOf(kind, name)[0]))
			}
			return err
		}, out)
		x.summary = digest.String()
		return x, err
	})
}

// zulipWriter returns a function that exports an organization for a Zulip server.
func zulipWriter(migrations, temp string) func(string, string, io.Writer) (exported, error) {
	return func(dir, subdomain string, out io.Writer) (exported, error) {
		var status []byte
		if migrations != "" {
			var err error
			if status, err = os.ReadFile(migrations); err != nil {
				return exported{}, err
			}
		}
		return withOrganization(dir, subdomain, func(d snapshot.Disk, f *files.Store, id realm.ID) (exported, error) {
			digest, missing, err := migration.ExportZulip(d, f, id, status, temp, out)
			return exported{digest.String(), missing}, err
		})
	}
}

// withOrganization calls fn with an organization in the data directory of a stopped server, and returns its result.
func withOrganization[T any](
	dir, subdomain string, fn func(d snapshot.Disk, uploads *files.Store, id realm.ID) (T, error),
) (result T, err error) {
	if err := datadir.CheckVersion(dir); err != nil {
		return result, err
	}
	store, err := snapshot.OpenReadOnly(dir, snapshot.Options{})
	if err != nil {
		return result, datadir.StartError(dir, err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	d := snapshot.Disk{Store: store}
	have, err := migration.FindOrganizations(d)
	if err != nil {
		return result, err
	}
	id, ok := have.BySubdomain[subdomain]
	if !ok {
		return result, fmt.Errorf("no organization %q; parley realm list shows them", subdomain)
	}
	uploads, end, err := orgfiles.Open(dir, true)
	if err != nil {
		return result, err
	}
	defer end()
	return fn(d, uploads, id)
}

// eachFile calls each with the files that the name in a row refers to, and reports whether there are any. A missing
// file is left out: requests for it answer as before.
func eachFile(
	store *files.Store, kind, name string, each func(string, int64, io.Reader) error,
) (found bool, err error) {
	for _, file := range files.FilesOf(kind, name) {
		f, err := store.Open(kind, file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return found, err
		}
		found = true
		r, err := f.Section(0, f.Size())
		if err == nil {
			err = errors.Join(each(file, f.Size(), r), r.Close())
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return found, err
		}
	}
	return found, nil
}

func newImportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Add an exported organization to a running or a stopped server, or to a new data directory",
		Long: "Add the organization of the export FILE to a running or a stopped server, or to a new data directory; " +
			"- is standard input.\nIn a cluster, run the command at a running core: all cores get the organization. " +
			"The whole file is checked before anything is written. An interrupted import leaves nothing behind.",
		Args: exactArgs(1, "- is standard input"),
	}
	for _, format := range migration.Formats() {
		c.AddCommand(newImportArchiveCommand(format))
	}
	data := dataFlag(c, anyServer+", or a new one")
	subdomain := c.Flags().String("realm", "", "subdomain instead of the exported one; . is the root organization")
	newKeys := c.Flags().Bool("new-keys", false, "revoke all API keys: their users have to log in again")
	c.RunE = func(c *cobra.Command, args []string) error {
		o := imports.OwnImport{Dir: data(), Subdomain: *subdomain, NewKeys: *newKeys}
		o.Progress = func(p migration.Progress) { fmt.Fprintln(c.ErrOrStderr(), progressText(p)) }
		return importFile(o, args[0], c.InOrStdin(), c.OutOrStdout())
	}
	return c
}

// importFile imports the organization of an export and prints its digest.
func importFile(o imports.OwnImport, file string, in io.Reader, out io.Writer) error {
	f, done, err := openSeekable(file, in)
	if err != nil {
		return err
	}
	defer done()
	if o.File, err = filepath.Abs(f.Name()); err != nil {
		return err
	}
	digest, err := imports.RunOwn(o)
	if err != nil {
		return fmt.Errorf("import %s: %w", file, err)
	}
	_, err = fmt.Fprintln(out, digest)
	return err
}

// openSeekable opens a file that can be read twice. Standard input is copied to a temporary file, which done removes.
func openSeekable(name string, in io.Reader) (f *os.File, done func(), err error) {
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

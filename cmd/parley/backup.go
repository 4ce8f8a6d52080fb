package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/actors/realm"
	"parley/cmd/internal/backup"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/offsite"
	"parley/cmd/internal/orgfiles"
	"parley/snapshot"
)

func newBackupCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup FILE | backup --to PLACE",
		Short: "Write a backup of a running or a stopped server",
		Long: "Write a backup of a running or a stopped server to FILE, - is standard output, or to a bucket.\n" +
			"A running server continues to serve. The backup contains neither the search index nor the file \"" +
			datadir.SecretFile + "\". If the files are in a bucket, a backup in a FILE has only their names and " +
			"hashes.\n" +
			"A backup in a bucket is encrypted, has the files of users too, and sends only what the bucket does not " +
			"have. With --every the command continues until it is stopped, and the server keeps the changes between " +
			"two backups, so that parley restore --at can restore any time in between.",
	}
	data := dataFlag(c, anyServer)
	place := placeFlags(c, "to")
	incomplete := c.Flags().Bool("incomplete", false,
		"write the backup of a core although it lacks files that no reachable core has")
	every := c.Flags().Duration("every", 0, "with --to: interval of backups, such as 1h (default: one backup)")
	keep := c.Flags().String("keep", "", "with --to: backups that stay, besides those of the last day: the newest of "+
		"each of so many days, weeks and months, such as 7d,4w,12m (default: all)")
	takeOver := c.Flags().Bool("take-over", false,
		"with --to: continue the backups of another server that this one replaces")
	newKey := c.Flags().String("new-key", "", "write a new key for --key to this file, and do nothing else")
	list := c.Flags().Bool("list", false, "with --to: list the backups, and do nothing else")
	c.Args = func(c *cobra.Command, args []string) error {
		if place().URL != "" || *newKey != "" {
			return exactArgs(0, "")(c, args)
		}
		return exactArgs(1, "- is standard output")(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		switch to := place(); {
		case *newKey != "":
			return newBackupKey(*newKey, c.OutOrStdout())
		case to.URL == "" && (*every != 0 || *keep != "" || *takeOver || *list):
			return errors.New("--every, --keep, --take-over and --list are for backups in a bucket: add --to PLACE")
		case to.URL == "":
			return writeBackup(data(), args[0], *incomplete, c.OutOrStdout(), c.ErrOrStderr())
		case *list:
			return listBackups(to, c.OutOrStdout())
		default:
			o := offsite.Options{Data: data(), Place: to, Every: *every, Incomplete: *incomplete, TakeOver: *takeOver}
			return backUp(o, *keep, c.OutOrStdout(), c.ErrOrStderr())
		}
	}
	return c
}

func writeBackup(data, file string, incomplete bool, out, warnings io.Writer) error {
	if file == "-" {
		note, err := backup.Write(data, out, backup.Options{Incomplete: incomplete})
		warn(warnings, note)
		return err
	}
	size, note, err := backupTo(data, file, backup.Options{Incomplete: incomplete})
	if err != nil {
		return err
	}
	warn(warnings, note)
	fmt.Fprintf(out, "%s: %d bytes\n", file, size)
	place, err := orgfiles.ReadPlace(data)
	if err == nil && place.Files != "" {
		_, err = fmt.Fprintf(out, "The backup has the names and hashes of the files, but not the files: they are in "+
			"%s.\n", place)
	}
	return err
}

// warn prints a warning, unless it is "".
func warn(to io.Writer, warning string) {
	if warning != "" {
		fmt.Fprintln(to, "warning:", warning)
	}
}

// backupTo writes a backup to a file and returns its size; see backup.Write. It uses a temporary name first, so
// that a file with the final name is a complete backup that is on the disk.
func backupTo(data, name string, o backup.Options) (size int64, note string, err error) {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, "", err
	}
	note, err = backup.Write(data, f, o)
	if err == nil {
		err = f.Sync()
	}
	if info, statErr := f.Stat(); statErr == nil {
		size = info.Size()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, "", errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return 0, "", err
	}
	return size, note, syncDirectory(filepath.Dir(name))
}

// syncDirectory makes the names of new files in a directory durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func newRestoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore FILE DIR | restore --from PLACE DIR",
		Short: "Restore a backup into a new data directory",
		Long: "Restore the backup FILE, - is standard input, or one of a bucket into the new data directory DIR. " +
			"It has the state at the end of the backup, or after the fact --upto, or at the time --at. " +
			"The backup of a core becomes the directory of a single server; parley cluster init makes it the first " +
			"core of a new cluster.",
	}
	from := bucketBackupFlags(c)
	c.Args = func(c *cobra.Command, args []string) error {
		if from().place.URL != "" {
			return exactArgs(1, "")(c, args)
		}
		return exactArgs(2, "- is standard input")(c, args)
	}
	upto := c.Flags().String("upto", "",
		"discard facts after this number; N is for organization 1, REALM=N for others, comma-separated")
	at := c.Flags().String("at", "", "discard changes after this time, such as 2026-01-31T12:00:00Z")
	whole := c.Flags().String("whole", "", "with --at: numbers of organizations, comma-separated, that are restored "+
		"as they are in the backup because it does not say when their last changes were made")
	c.RunE = func(c *cobra.Command, args []string) error {
		end := restoreEnd{whole: map[realm.ID]bool{}}
		var err error
		if end.facts, err = parseEnds(*upto); err != nil {
			return err
		}
		if *at != "" {
			t, err := time.Parse(time.RFC3339, *at)
			if err != nil || *upto != "" {
				return fmt.Errorf("--at must be a time such as 2026-01-31T12:00:00Z, without --upto, not %q", *at)
			}
			end.at = t.Unix()
		}
		for _, text := range strings.FieldsFunc(*whole, func(c rune) bool { return c == ',' }) {
			id, err := strconv.ParseUint(text, 10, 32)
			if err != nil || *at == "" {
				return fmt.Errorf("--whole must be numbers of organizations such as 2,5, with --at, not %q", *whole)
			}
			end.whole[realm.ID(id)] = true
		}
		if b := from(); b.place.URL != "" {
			from := func(dir string) error { return b.restore(dir, end, c.OutOrStdout()) }
			return restore(args[0], from, c.OutOrStdout())
		}
		return restore(args[1], func(dir string) error { return restoreFrom(args[0], c.InOrStdin(), dir, end) },
			c.OutOrStdout())
	}
	return c
}

// restoreEnd says which facts of a backup are restored. Zero: all of them.
type restoreEnd struct {
	facts map[realm.ID]snapshot.Seq // the last fact, by organization
	at    int64                     // Unix seconds; 0: any time
	whole map[realm.ID]bool         // organizations that are restored whole, despite at
}

// restore makes a data directory with a function that restores a backup, and checks it.
func restore(dir string, from func(dir string) error, out io.Writer) error {
	if err := datadir.CheckVersion(dir); err != nil {
		return err
	}
	if err := from(dir); err != nil {
		return err
	}
	if err := replayJournal(journalRange{dir: dir}, out); err != nil {
		return err
	}
	checkRestoredFiles(dir, out)
	secret := filepath.Join(dir, datadir.SecretFile)
	if _, err := os.Stat(secret); errors.Is(err, os.ErrNotExist) {
		_, err = fmt.Fprintf(out, secretNotice, secret)
		return err
	}
	return nil
}

// checkRestoredFiles reports whether the bucket has the files of a restored backup. The rows are restored
// in any case.
func checkRestoredFiles(dir string, out io.Writer) {
	place, err := orgfiles.ReadPlace(dir)
	if err != nil || place.Files == "" {
		return
	}
	fmt.Fprintf(out, "\nThe files are not in the backup: they are in %s.\n", place)
	if _, err := orgfiles.CheckStopped(dir, false, out); err != nil {
		fmt.Fprintf(out, "They were not checked: %v.\n", err)
	}
	fmt.Fprintf(out, "parley files check --data %s compares their content with their hashes.\n", dir)
}

// secretNotice is printed after a restore. A backup does not contain the secret that API keys are derived from, so that
// a stolen backup does not contain them either.
const secretNotice = `
The server's secret is not in a backup. If you have the old server's secret, put it at %s
before the first start. Without it, API keys in use and invitation links that were sent stay valid. But users who log in
get a new API key, and the links that lists of invitations show from before do not work: revoke those invitations and
invite again.
The account at the push bouncer is not in a backup either. Copy push-account.json from the old data directory, or run
parley push register on the running server.
`

// parseEnds parses the value of --upto: the last fact to keep, by organization.
func parseEnds(text string) (map[realm.ID]snapshot.Seq, error) {
	if text == "" {
		return nil, nil
	}
	ends := map[realm.ID]snapshot.Seq{}
	for _, part := range strings.Split(text, ",") {
		id, number, ok := strings.Cut(part, "=")
		if !ok {
			id, number = "1", part
		}
		r, err := strconv.ParseUint(id, 10, 32)
		n, err2 := strconv.ParseUint(number, 10, 64)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("--upto must be N or REALM=N, not %q", part)
		}
		ends[realm.ID(r)] = realm.Seq(n)
	}
	return ends, nil
}

// restoreFrom restores a backup from a file; - is in.
func restoreFrom(file string, in io.Reader, dir string, end restoreEnd) error {
	if file == "-" {
		return restoreStream(in, dir, end)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(restoreStream(f, dir, end), f.Close())
}

func restoreStream(r io.Reader, dir string, end restoreEnd) error {
	if end.at == 0 {
		return snapshot.Restore(r, dir, end.facts)
	}
	err := snapshot.RestoreAt(r, dir, end.at, end.whole)
	var unknown *snapshot.TimeUnknownError
	if errors.As(err, &unknown) {
		list := strings.ReplaceAll(strings.Trim(fmt.Sprint(unknown.Realms), "[]"), " ", ",")
		err = fmt.Errorf("%w: add --whole %s to restore these as they are in the backup, or take another "+
			"backup", err, list)
	}
	return err
}

func newVerifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify FILE | verify --from PLACE",
		Short: "Check that a backup is complete and can be restored",
	}
	from := bucketBackupFlags(c)
	c.Args = func(c *cobra.Command, args []string) error {
		if from().place.URL != "" {
			return exactArgs(0, "")(c, args)
		}
		return exactArgs(1, "- is standard input")(c, args)
	}
	temp := c.Flags().String("temp", "", "folder for temporary data (default: the system's)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if b := from(); b.place.URL != "" {
			return verify(b.place.URL, func(dir string) error { return b.restore(dir, restoreEnd{}, c.OutOrStdout()) },
				*temp, c.OutOrStdout())
		}
		return verify(args[0], func(dir string) error { return restoreFrom(args[0], c.InOrStdin(), dir, restoreEnd{}) },
			*temp, c.OutOrStdout())
	}
	return c
}

// verify restores a backup with a function into a temporary directory, checks every checksum and replays each
// organization. It also
// writes a snapshot of the replayed state and checks that the state loaded from it is the same.
func verify(file string, from func(dir string) error, temp string, out io.Writer) error {
	dir, err := os.MkdirTemp(temp, "parley-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := from(dir); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := checkJournal(journalRange{dir: dir}, io.Discard); err != nil {
		return err
	}
	store, err := snapshot.Open(dir, snapshot.Options{})
	if err != nil {
		return err
	}
	disk := snapshot.Disk{Store: store}
	ids, err := disk.Realms()
	for _, id := range ids {
		if err == nil {
			err = verifyRealm(disk, id, out)
		}
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	if err = verifyFiles(file, dir, out); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out,
		"%s: every checksum and the chain of facts are right; replayed and loaded states are the same\n", file)
	return err
}

// verifyFiles prints the files that a backup lacks, and returns an error if there are any. It does not look into a
// bucket, whose files are not part of a backup.
func verifyFiles(file, dir string, out io.Writer) error {
	place, err := orgfiles.ReadPlace(dir)
	if err != nil || place.Files != "" {
		return err
	}
	missing, err := orgfiles.CheckStopped(dir, false, out)
	if err == nil && missing > 0 {
		err = fmt.Errorf("%s lacks %d files: the backup can be restored without them; in a cluster, start the core "+
			"that has them and back up again", file, missing)
	}
	return err
}

// verifyRealm checks that an organization is the same when it is replayed and when it is loaded from a snapshot.
func verifyRealm(disk snapshot.Disk, id realm.ID, out io.Writer) error {
	state, replayed, err := rebuild(disk, id, 0)
	if err != nil {
		return err
	}
	if !state.Founded() && state.Seq() == 0 {
		return nil // the number of an import that was not finished
	}
	digest := snapshot.StateDigest(state)
	claimed, err := disk.Claim(id, realm.AnyEpoch)
	if err != nil {
		return err
	}
	var rows []realm.EncodedRow
	iterator := state.BeginSnapshot(func(table uint16, key, row any) {
		rows = append(rows, disk.EncodeRow(table, key, row))
	})
	iterator.NextRows(func() bool { return false })
	if err := disk.WriteRows(id, claimed.Epoch, claimed.Last, rows); err != nil {
		return err
	}
	loaded, _, err := rebuild(disk, id, 0)
	if err != nil {
		return err
	}
	if again := snapshot.StateDigest(loaded); again != digest {
		return fmt.Errorf("realm %d: the replayed state is\n%s\nbut the state loaded from a snapshot is\n%s",
			id, digest, again)
	}
	_, err = fmt.Fprintf(out, "%s (%d facts replayed)\n", digest, replayed)
	return err
}

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/cmd/internal/server"
	"parley/snapshot"
)

// parseMixed parses flags that may stand before, between and behind the other arguments, which it returns.
func parseMixed(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
}

// runBackup is `parley runBackup FILE`: of a running server, which goes on, or of a stopped one.
func runBackup(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("backup", flag.ContinueOnError)
	data := fs.String("data", environmentOr("DATA", "./data"), "data directory, of a running or a stopped server")
	files, err := parseMixed(fs, args)
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return errors.New("usage: parley backup FILE [--data DIR]; - is standard output")
	}
	if files[0] == "-" {
		return server.WriteBackup(*data, out)
	}
	size, err := backupTo(*data, files[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %d bytes\n", files[0], size)
	return err
}

// backupTo writes a runBackup under another name first: a file with the right name is a whole runBackup, on stable storage.
func backupTo(data, name string) (size int64, err error) {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	err = server.WriteBackup(data, f)
	if err == nil {
		err = f.Sync()
	}
	if info, statErr := f.Stat(); statErr == nil {
		size = info.Size()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return 0, err
	}
	return size, syncDirectory(filepath.Dir(name))
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// runRestore is `parley runRestore FILE DIR [--upto N]`.
func runRestore(args []string, in io.Reader, out io.Writer) error {
	fs := flag.NewFlagSet("restore", flag.ContinueOnError)
	upto := fs.String("upto", "", "take back what came after this fact; of organization 1, or REALM=NUMBER, several with commas")
	names, err := parseMixed(fs, args)
	if err != nil {
		return err
	}
	if len(names) != 2 {
		return errors.New("usage: parley restore FILE DIR [--upto N]; - is standard input")
	}
	ends, err := parseEnds(*upto)
	if err != nil {
		return err
	}
	if err := restoreFrom(names[0], in, names[1], ends); err != nil {
		return err
	}
	if err := replayJournal(journalRange{dir: names[1]}, out); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(names[1], server.SecretFile)); errors.Is(err, os.ErrNotExist) {
		_, err = fmt.Fprintf(out, restoreNotice, filepath.Join(names[1], server.SecretFile))
		return err
	}
	return nil
}

// restoreNotice is what an operator may not expect of a directory that was restored: a backup does not carry what API keys
// follow from, so that who finds one cannot make them.
const restoreNotice = `
The server's secret is not in a backup. If you have the old server's, put it at %s
before the first start. Without it API keys in use and invitation links that were sent go on, but who logs in gets
a new key, and the links that lists of invitations show from before are dead: revoke those invitations, and invite anew.
`

func parseEnds(text string) (map[uint32]snapshot.Seq, error) {
	if text == "" {
		return nil, nil
	}
	ends := map[uint32]snapshot.Seq{}
	for _, part := range strings.Split(text, ",") {
		id, number, ok := strings.Cut(part, "=")
		if !ok {
			id, number = "1", part
		}
		r, err := strconv.ParseUint(id, 10, 32)
		n, err2 := strconv.ParseUint(number, 10, 64)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("--upto: %q is neither N nor REALM=N", part)
		}
		ends[uint32(r)] = n
	}
	return ends, nil
}

func restoreFrom(file string, in io.Reader, dir string, ends map[uint32]snapshot.Seq) error {
	if file == "-" {
		return snapshot.Restore(in, dir, ends)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(snapshot.Restore(f, dir, ends), f.Close())
}

// runVerify is `parley runVerify FILE`: the backup is restored into a directory of its own, every checksum is verified, each
// organization is replayed, and what a snapshot of the replayed state loads to must be the same state.
func runVerify(args []string, in io.Reader, out io.Writer) error {
	fs := flag.NewFlagSet("verify", flag.ContinueOnError)
	temp := fs.String("temp", "", "where to restore the backup for a moment; default is the system's place")
	names, err := parseMixed(fs, args)
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return errors.New("usage: parley verify FILE")
	}
	dir, err := os.MkdirTemp(*temp, "parley-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := restoreFrom(names[0], in, dir, nil); err != nil {
		return fmt.Errorf("%s: %w", names[0], err)
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
	_, err = fmt.Fprintf(out, "%s: every checksum and the chain of facts are right, replayed and loaded states agree\n", names[0])
	return err
}

func verifyRealm(disk snapshot.Disk, id realm.ID, out io.Writer) error {
	state, replayed, err := rebuild(disk, id, 0)
	if err != nil {
		return err
	}
	digest := snapshot.StateDigest(state)
	epoch, last, _, err := disk.Claim(id)
	if err != nil {
		return err
	}
	var rows []realm.EncodedRow
	cut := state.BeginSnapshot(func(table uint16, key, row any) { rows = append(rows, disk.EncodeRow(table, key, row)) })
	cut.NextRows(func() bool { return false })
	if err := disk.Snapshot(id, epoch, last, rows); err != nil {
		return err
	}
	loaded, _, err := rebuild(disk, id, 0)
	if err != nil {
		return err
	}
	if again := snapshot.StateDigest(loaded); again != digest {
		return fmt.Errorf("realm %d: replayed it is\n%s\nbut loaded from the rows of a snapshot\n%s", id, digest, again)
	}
	_, err = fmt.Fprintf(out, "%s (%d facts replayed)\n", digest, replayed)
	return err
}

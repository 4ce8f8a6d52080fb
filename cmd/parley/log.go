package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/snapshot"
	"parley/snapshot/replicated"
)

// newLogCommand returns `parley log`, which reads the data directory of a stopped server and does not change it.
func newLogCommand() *cobra.Command {
	return newGroupCommand("log", "Inspect the journal of a stopped server",
		newJournalCommand("print", "Print facts: organization, number, type and fields", printJournal),
		newJournalCommand("check", "Verify all checksums, the hash chain of the facts and all texts", checkJournal),
		newJournalCommand("replay", "Rebuild the state of each organization and print its digest", replayJournal),
	)
}

func newJournalCommand(name, short string, run func(journalRange, io.Writer) error) *cobra.Command {
	c := &cobra.Command{Use: name + " DIR", Short: short, Args: exactArgs(1, "")}
	var r journalRange
	c.Flags().Uint64Var(&r.realm, "realm", 0, "number of the organization; 0: all")
	c.Flags().Uint64Var(&r.from, "from", 0, "first fact for log print; the other commands ignore it")
	c.Flags().Uint64Var(&r.to, "to", 0, "last fact for log print and log replay; 0: the newest")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.dir = args[0]
		return run(r, c.OutOrStdout())
	}
	return c
}

// journalRange selects facts of a data directory. A number of 0 selects all organizations, or no limit.
type journalRange struct {
	dir             string
	realm, from, to uint64
}

// each opens the directory for reading and calls fn with each selected organization.
func (r journalRange) each(fn func(d snapshot.Disk, id realm.ID) error) error {
	if err := datadir.CheckVersion(r.dir); err != nil {
		return err
	}
	store, err := snapshot.OpenReadOnly(r.dir, snapshot.Options{})
	if err != nil {
		return datadir.StartError(r.dir, err)
	}
	d := snapshot.Disk{Store: store}
	ids, err := d.Realms()
	if r.realm != 0 {
		if !slices.Contains(ids, realm.ID(r.realm)) {
			err = errors.Join(err, fmt.Errorf("no organization %d; the directory has %v", r.realm, ids))
		}
		ids = []realm.ID{realm.ID(r.realm)}
	}
	for _, id := range ids {
		if err == nil {
			err = fn(d, id)
		}
	}
	return errors.Join(err, store.Close())
}

// printJournal prints a line for each fact: organization, number, type, fields.
func printJournal(r journalRange, out io.Writer) error {
	return r.each(func(d snapshot.Disk, id realm.ID) error {
		rows, _, err := d.Bounds(id)
		if err != nil {
			return err
		}
		if rows > 0 {
			fmt.Fprintf(out, "realm %d: facts 1 to %d are in the snapshot's rows\n", id, rows)
		}
		return d.Tail(id, rows, func(x realm.Record) error {
			seq, f := x.Seq, x.Fact
			if uint64(seq) < r.from {
				return nil
			}
			if r.to != 0 && uint64(seq) > r.to {
				return nil
			}
			fields, err := json.Marshal(f)
			if err != nil {
				return fmt.Errorf("realm %d, number %d: %w", id, seq, err)
			}
			_, err = fmt.Fprintf(out, "%d %d %s %s\n", id, seq, reflect.TypeOf(f).Elem().Name(), fields)
			return err
		})
	})
}

// checkJournal verifies every checksum of a data directory and the chain of facts.
func checkJournal(r journalRange, out io.Writer) error {
	if err := datadir.CheckVersion(r.dir); err != nil {
		return err
	}
	found := 0
	err := snapshot.Check(r.dir, snapshot.Options{}, func(f snapshot.Finding) {
		found++
		fmt.Fprintln(out, f)
	})
	if err != nil {
		return err
	}
	entries, err := replicated.CheckLog(r.dir)
	if err != nil {
		found++
		fmt.Fprintln(out, err)
	}
	texts, err := checkTexts(r, out)
	if found += texts; err != nil && found == 0 {
		return err // after damage, the state often cannot be rebuilt
	}
	if found > 0 {
		return fmt.Errorf("%d damaged places in %s; restore a backup (parley restore), or continue "+
			"without lost messages (parley serve --accept-data-loss)", found, r.dir)
	}
	fmt.Fprintf(out, "%s: every checksum and the chain of facts are right\n", r.dir)
	if entries > 0 {
		fmt.Fprintf(out, "the replicated log: every checksum of %d entries is right\n", entries)
	}
	return printUndetectable(r.dir, out)
}

// printUndetectable prints which losses a check cannot detect.
func printUndetectable(dir string, out io.Writer) error {
	mark, err := snapshot.ReadLastMark(dir, snapshot.Options{})
	switch {
	case err != nil:
		return err
	case mark.Closed:
		_, err = fmt.Fprintln(out, "the server stopped cleanly: nothing that was acknowledged is missing")
	case mark.At.IsZero():
		_, err = fmt.Fprintln(out, "there is no time mark: a loss of the newest messages cannot be detected")
	default:
		_, err = fmt.Fprintf(out, "the server did not stop cleanly: nothing acknowledged until %s is missing; "+
			"a loss of messages acknowledged later, at most %v before its end, cannot be detected\n",
			mark.At.UTC().Format("2006-01-02T15:04:05.000Z"), snapshot.DefaultMarkInterval)
	}
	return err
}

// checkTexts reads the text of every message and prints the messages whose texts are damaged or missing. The checksums
// alone identify only places: a damaged block of the store does not say which texts were in it.
func checkTexts(r journalRange, out io.Writer) (found int, err error) {
	err = r.each(func(d snapshot.Disk, id realm.ID) error {
		state, _, err := rebuild(d, id, 0)
		if err != nil || !state.Founded() { // an import that was interrupted has no organization yet
			return err
		}
		state.EachText(func(ref realm.BodyRef) bool {
			_, ok, err := d.Text(id, ref)
			if err == nil && !ok {
				err = errors.New("it is missing")
			}
			if err != nil {
				found++
				fmt.Fprintf(out, "realm %d, text of message %d, version %d: %v\n", id, ref.Message, ref.Version, err)
			}
			return true
		})
		return nil
	})
	return found, err
}

// replayJournal builds each organization from its rows and its journal, as a start does, and prints the digest.
func replayJournal(r journalRange, out io.Writer) error {
	return r.each(func(d snapshot.Disk, id realm.ID) error {
		state, replayed, err := rebuild(d, id, realm.Seq(r.to))
		if err != nil {
			return err
		}
		if !state.Founded() && state.Seq() == 0 {
			return nil // the number of an import that was not finished
		}
		digest := snapshot.StateDigest(state)
		_, err = fmt.Fprintf(out, "%s (%d facts replayed)\n", digest, replayed)
		return err
	})
}

// errStopReplay ends a replay before the last fact.
var errStopReplay = errors.New("stop the replay")

// rebuild returns an organization as it was after fact number upto (0: the newest), and how many facts were replayed.
// It loads the rows of the last snapshot and applies the facts after it.
func rebuild(d snapshot.Disk, id realm.ID, upto realm.Seq) (r *realm.Realm, replayed int, err error) {
	rows, last, err := d.Bounds(id)
	if err != nil {
		return nil, 0, err
	}
	if upto == 0 {
		upto = last
	}
	if upto < rows || upto > last {
		return nil, 0, fmt.Errorf("realm %d can be replayed to a fact from %d to %d, not to %d", id, rows, last, upto)
	}
	r = realm.New(id)
	if _, err := d.Load(id, r, presence.New()); err != nil {
		return nil, 0, fmt.Errorf("load realm %d: %w", id, err)
	}
	r.SetSeq(rows, realm.RunSequentially)
	err = d.Tail(id, rows, func(x realm.Record) error {
		if x.Seq > upto {
			return errStopReplay
		}
		replayed++
		r.ReplayAt(x.Fact, x.Now, x.Level)
		return nil
	})
	if err != nil && !errors.Is(err, errStopReplay) {
		return nil, 0, fmt.Errorf("replay realm %d: %w", id, err)
	}
	return r, replayed, nil
}

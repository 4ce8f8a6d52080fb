package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"parley/actors/realm"
	"parley/cmd/internal/datadir"
	"parley/snapshot"
	"parley/snapshot/search"
	"parley/wire"
)

// newSearchCommand returns `parley search`.
func newSearchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rebuild DIR",
		Short: "Rebuild the full-text indexes of a stopped server from the message texts",
		Args:  exactArgs(1, ""),
	}
	var r journalRange
	c.Flags().Uint64Var(&r.realm, "realm", 0, "number of the organization; 0: all")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.dir = args[0]
		return rebuildSearch(r, c.OutOrStdout())
	}
	return newGroupCommand("search", "Rebuild full-text indexes", c)
}

// rebuildSearch rebuilds the full-text index of each selected organization.
func rebuildSearch(r journalRange, out io.Writer) error {
	return r.each(func(d snapshot.Disk, id realm.ID) error {
		_, last, err := d.Bounds(id)
		if err != nil {
			return err
		}
		log := slog.New(slog.DiscardHandler)
		count, err := search.Rebuild(datadir.SearchDir(r.dir), d, wire.SearchText, log, id, last)
		if err != nil {
			return fmt.Errorf("realm %d: %w", id, err)
		}
		_, err = fmt.Fprintf(out, "realm %d: %d messages can be found\n", id, count)
		return err
	})
}

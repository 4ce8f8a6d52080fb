package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"

	"parley/actors/realm"
	"parley/cmd/internal/server"
	"parley/snapshot"
	"parley/snapshot/search"
	"parley/wire"
)

const searchUsage = "usage: parley search rebuild [flags] DIR"

// runSearchRebuild is `parley search rebuild DIR`: the full-text indexes of a stopped server are made anew from the texts.
func runSearchRebuild(args []string, out io.Writer) error {
	if len(args) == 0 || args[0] != "rebuild" {
		return errors.New(searchUsage)
	}
	var r journalRange
	fs := flag.NewFlagSet("search rebuild", flag.ContinueOnError)
	fs.Uint64Var(&r.realm, "realm", 0, "number of the organization; 0 is all")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return errors.New(searchUsage)
	}
	r.dir = fs.Arg(0)
	return r.each(func(d snapshot.Disk, id realm.ID) error {
		_, last, err := d.Bounds(id)
		if err != nil {
			return err
		}
		count, err := search.Rebuild(server.SearchDir(r.dir), d, wire.SearchText, slog.New(slog.DiscardHandler), id, last)
		if err != nil {
			return fmt.Errorf("realm %d: %w", id, err)
		}
		_, err = fmt.Fprintf(out, "realm %d: %d messages can be found\n", id, count)
		return err
	})
}

package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"parley/actors/realm"
	"parley/cmd/internal/migration"
	"parley/cmd/internal/server"
	"parley/snapshot"
	"parley/snapshot/files"
)

func newExportComplianceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compliance",
		Short: "Write messages of a running or a stopped server with their changes and deletions as a zip file",
		Long: "Write the messages that meet all criteria as a zip file: with earlier texts, moves, deletions and " +
			"their times, with messages of the retention archive and with legal holds. about.json has the criteria " +
			"and the counts. Files of messages are named and not contained. The audit log gets an entry before the " +
			"export begins.",
		Args: noArgs,
	}
	data := dataFlag(c, anyServer)
	subdomain := c.Flags().String("realm", "", realmFlag.Meaning)
	temp := c.Flags().String("temp", "", "folder for temporary data (default: the system's)")
	incomplete := incompleteExportFlag(c)
	file := c.Flags().String("out", "", "zip file to write; - is standard output")
	var x migration.ComplianceCriteria
	c.Flags().StringArrayVar(&x.Persons, "person", nil, "email address or id of a user: their messages and their "+
		"direct conversations; can be repeated")
	c.Flags().StringArrayVar(&x.Channels, "channel", nil, "name or id of a channel: messages that are or were in it; "+
		"can be repeated")
	from := c.Flags().String("from", "", "first day (UTC), such as 2026-01-31")
	to := c.Flags().String("to", "", "last day (UTC)")
	c.Flags().StringVar(&x.Search, "search", "", "text that a message, an earlier text of it or its topic contains")
	c.Flags().StringVar(&x.Format, "format", migration.ComplianceJSON, "jsonl, csv or eml")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if *file == "" {
			return errors.New("--out is required: the zip file to write")
		}
		if x.From, err = dayFlag("from", *from, 0); err != nil {
			return err
		}
		if x.To, err = dayFlag("to", *to, 1); err != nil {
			return err
		}
		if x.From != 0 && x.To != 0 && x.From >= x.To {
			return fmt.Errorf("--to %s must not be before --from %s", *to, *from)
		}
		if err := x.Check(); err != nil {
			return err
		}
		_, err = server.Command(data(), "audit-export", map[string]string{"realm": *subdomain, "criteria": x.String()})
		if err != nil {
			return err
		}
		write := func(dir, subdomain string, out io.Writer) (exported, error) {
			return withOrganization(dir, subdomain,
				func(d snapshot.Disk, _ *files.Store, id realm.ID) (exported, error) {
					n, err := migration.ExportCompliance(d, id, x, time.Now(), out)
					return exported{summary: n.String()}, err
				})
		}
		return export(data(), *subdomain, *file, *temp, *incomplete, write, c.OutOrStdout())
	}
	return c
}

// dayFlag returns the beginning of a day in Unix seconds, later by a number of days; 0 for no day.
func dayFlag(name, text string, later int) (int64, error) {
	if text == "" {
		return 0, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0, fmt.Errorf("--%s must be a day such as 2026-01-31, not %q", name, text)
	}
	return day.AddDate(0, 0, later).Unix(), nil
}

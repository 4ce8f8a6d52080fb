package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
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
	run := complianceRun{criteria: &x, realm: subdomain}
	c.Flags().BoolVar(&run.ask, "ask", false,
		"write no file: ask the owners of the organization, two of whom must approve")
	c.Flags().IntVar(&run.request, "request", 0, "number of an approved request, which has the criteria")
	c.Flags().BoolVar(&run.force, "force", false,
		"export without the two owners that the organization demands; the audit log says so")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
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
		// The value of a variable that is not set must not choose all messages.
		for name, value := range map[string]string{"from": *from, "to": *to, "search": x.Search} {
			if c.Flags().Changed(name) && value == "" {
				return fmt.Errorf("--%s must not be empty; leave it out to choose all messages", name)
			}
		}
		if run.ask {
			return run.askOwners(data(), c.OutOrStdout())
		}
		if *file == "" {
			return errors.New("--out is required: the zip file to write")
		}
		for _, name := range []string{"person", "channel", "from", "to", "search", "format"} {
			if run.request != 0 && c.Flags().Changed(name) {
				return fmt.Errorf("--request has the criteria, so --%s cannot be given", name)
			}
		}
		if err := run.note(data()); err != nil {
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

// complianceRun is the part of `parley export compliance` that is about the owners of the organization.
type complianceRun struct {
	criteria   *migration.ComplianceCriteria
	realm      *string
	ask, force bool
	request    int
}

// askOwners asks the owners to approve the export, and prints the number of the request.
func (x *complianceRun) askOwners(data string, out io.Writer) error {
	args := map[string]string{"realm": *x.realm}
	for name, v := range map[string]any{"persons": x.criteria.Persons, "channels": x.criteria.Channels,
		"criteria": realm.ComplianceCriteria{From: x.criteria.From, To: x.criteria.To, Search: x.criteria.Search,
			Format: x.criteria.Format},
	} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		args[name] = string(text)
	}
	a, err := server.Command(data, "compliance-ask", args)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "request %v waits for two owners; then use --request %[1]v\n", a["request"])
	return nil
}

// note adds the entry to the audit log, or returns the refusal. It takes over the criteria of a request.
func (x *complianceRun) note(data string) error {
	a, err := server.Command(data, "audit-export", map[string]string{"realm": *x.realm,
		"criteria": x.criteria.String(), "request": strconv.Itoa(x.request), "force": strconv.FormatBool(x.force)})
	if err != nil || x.request == 0 {
		return err
	}
	text, _ := a["criteria"].(string)
	var c realm.ComplianceCriteria
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return fmt.Errorf("criteria of the request: %w", err)
	}
	*x.criteria = migration.ComplianceCriteria{UserIDs: c.Persons, ChannelIDs: c.Channels, From: c.From, To: c.To,
		Search: c.Search, Format: c.Format}
	return nil
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

package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/syslog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/migration"
	"parley/cmd/internal/server"
)

// auditColumns are the columns of the audit log, in the order in which tables have them.
var auditColumns = []string{"id", "time", "kind", "by", "by_id", "via", "client", "address", "user", "user_id",
	"channel", "channel_id", "group_id", "name", "old", "new", "count"}

// auditPollInterval is how often --follow asks for new entries.
const auditPollInterval = time.Second

// auditExport is the arguments of `parley audit list`.
type auditExport struct {
	data, realm, kind, format, out string
	after                          int64
	follow, syslog                 bool
}

func newAuditCommand() *cobra.Command {
	return newGroupCommand("audit", "Print who changed what, and set how long this is kept", newAuditListCommand(),
		(&operatorCommand{Group: "audit", Name: "keep", Meaning: "Set for how many days the audit log is kept",
			Flags: []operatorFlag{{Name: "days", Meaning: "days, at most ten years"}}}).command())
}

func newAuditListCommand() *cobra.Command {
	var x auditExport
	c := &cobra.Command{
		Use:   "list",
		Short: "Print the audit log, the oldest entry first",
		Long: "Print the audit log, the oldest entry first. With --follow the command continues with new entries " +
			"until it is stopped; with --out too it continues after the last entry of the file.",
		Args: noArgs,
	}
	data := dataFlag(c, anyServer)
	c.Flags().StringVar(&x.realm, "realm", "", realmFlag.Meaning)
	c.Flags().StringVar(&x.kind, "kind", "",
		"only entries of this kind, such as user.role, or group of kinds, such as user")
	c.Flags().Int64Var(&x.after, "after", 0, "only entries with larger numbers")
	c.Flags().StringVar(&x.format, "format", "text", "text, csv or json (one JSON object for each line)")
	c.Flags().StringVar(&x.out, "out", "", "file to which the entries are appended (default: standard output)")
	c.Flags().BoolVar(&x.follow, "follow", false, "continue with new entries")
	c.Flags().BoolVar(&x.syslog, "syslog", false, "send each entry as JSON to the system's log")
	c.RunE = func(c *cobra.Command, _ []string) error {
		x.data = data()
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return x.run(ctx, c.OutOrStdout())
	}
	return c
}

// run prints the entries until all are printed, or with follow until ctx ends.
func (x *auditExport) run(ctx context.Context, stdout io.Writer) (err error) {
	out, file := stdout, (*os.File)(nil)
	switch {
	case x.syslog:
		if out, err = syslog.New(syslog.LOG_AUTHPRIV|syslog.LOG_NOTICE, "parley-audit"); err != nil {
			return fmt.Errorf("connect to the system's log: %w", err)
		}
		x.format = "json"
	case x.out != "":
		if file, err = os.OpenFile(x.out, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		if x.follow {
			if x.format = "json"; x.after == 0 {
				if x.after, err = lastAuditEntry(file); err != nil {
					return fmt.Errorf("%s: %w", x.out, err)
				}
			}
		}
		if _, err := file.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		out = file
	}
	write, err := auditWriter(x.format, out)
	if err != nil {
		return err
	}
	for {
		more, err := x.next(write)
		if err != nil {
			return err
		}
		if file != nil {
			if err := file.Sync(); err != nil {
				return err
			}
		}
		switch {
		case more:
		case !x.follow:
			return nil
		default:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(auditPollInterval):
			}
		}
	}
}

// next writes the entries after x.after, as many as one answer has, and reports whether there are more.
func (x *auditExport) next(write func(map[string]any) error) (more bool, err error) {
	answer, err := server.Command(x.data, "audit-list", map[string]string{"realm": x.realm, "kind": x.kind,
		"after": strconv.FormatInt(x.after, 10)})
	if err != nil {
		return false, err
	}
	list, _ := answer["entries"].([]any)
	for _, e := range list {
		row, _ := e.(map[string]any)
		if err := write(row); err != nil {
			return false, err
		}
		id, _ := row["id"].(float64)
		x.after = int64(id)
	}
	more, _ = answer["more"].(bool)
	return more, nil
}

// lastAuditEntry returns the number of the last entry in a file of JSON lines, or 0. An incomplete last line, which a
// crash can leave, is removed.
func lastAuditEntry(f *os.File) (last int64, err error) {
	lines, end := bufio.NewReader(f), int64(0)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return last, f.Truncate(end)
		}
		if err != nil {
			return 0, err
		}
		var e struct{ ID int64 }
		if err := json.Unmarshal(line, &e); err != nil {
			return 0, fmt.Errorf("not a file of the audit log: %w", err)
		}
		last, end = e.ID, end+int64(len(line))
	}
}

// auditWriter returns a function that writes an entry in a format.
func auditWriter(format string, out io.Writer) (func(map[string]any) error, error) {
	switch format {
	case "json":
		return func(row map[string]any) error {
			line, err := json.Marshal(row)
			if err == nil {
				_, err = out.Write(append(line, '\n'))
			}
			return err
		}, nil
	case "csv":
		w := csv.NewWriter(out)
		w.Write(auditColumns)
		return func(row map[string]any) error {
			cells := make([]string, 0, len(auditColumns))
			for _, name := range auditColumns {
				cells = append(cells, migration.SafeCell(fmt.Sprint(row[name])))
			}
			w.Write(cells)
			w.Flush()
			return w.Error()
		}, nil
	case "text":
		return func(row map[string]any) error {
			var parts []string
			for _, name := range auditColumns {
				if text := fmt.Sprint(row[name]); text != "" {
					parts = append(parts, fmt.Sprintf("%s=%s", name, strconv.Quote(text)))
				}
			}
			_, err := fmt.Fprintln(out, strings.Join(parts, " "))
			return err
		}, nil
	}
	return nil, fmt.Errorf("--format must be text, csv or json, not %q", format)
}

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/migration"
	"parley/cmd/internal/server"
)

// archiveDescriptions describes the archive of each format.
var archiveDescriptions = map[string]string{
	"zulip":      "a Zulip export: a tar.gz file or its folder",
	"slack":      "a Slack export: a zip file or its folder",
	"rocketchat": "a Rocket.Chat dump: a folder that mongodump has written, or a zip or tar file of it",
	"mattermost": "a Mattermost bulk export: a zip file, its folder or a JSONL file",
	"teams":      "a Microsoft Teams export: a folder with teams and users, or a zip or tar file of it",
}

// newImportArchiveCommand returns the command that imports an organization of another chat server.
func newImportArchiveCommand(format string) *cobra.Command {
	c := &cobra.Command{
		Use:   format + " FILE",
		Short: "Import " + archiveDescriptions[format],
		Long: "Import " + archiveDescriptions[format] + ".\nThe archive becomes a new organization of a running or a " +
			"stopped server. It becomes visible only when everything is stored. To continue an interrupted import, " +
			"run the same command again. Users get access to their accounts by resetting their passwords.",
		Args: exactArgs(1, ""),
	}
	o := migration.Options{Format: format}
	data := dataFlag(c, anyServer+", or a new one")
	c.Flags().StringVar(&o.Realm, "realm", "", "subdomain of the new organization; empty: the root organization")
	report := c.Flags().String("report", "", "file for the report: counts, and everything that was left out or changed")
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "read everything and report, but store nothing")
	c.Flags().BoolVar(&o.Restart, "restart", false, "discard what an interrupted import has stored, and start again")
	memory := c.Flags().Int64("memory", migration.DefaultMemory>>20, "memory limit in MiB")
	switch format {
	case "mattermost":
		c.Flags().StringVar(&o.Team, "team", "", "import only this team, as the organization itself; without it, "+
			"each team becomes an organization NAME-TEAM")
	case "slack":
		c.Flags().BoolVar(&o.Threads, "threads", true, "make each thread a topic")
		c.Flags().StringVar(&o.Files, "files", "", "folder of downloaded files, named by their ids")
		c.Flags().StringVar(&o.Token, "token", "", "token of the Slack workspace, to fetch files")
	case "teams":
		c.Flags().BoolVar(&o.Threads, "threads", true, "make each post with a subject or replies a topic; without it, "+
			"each channel is one topic")
		c.Flags().StringVar(&o.Token, "token", "", "token for Microsoft Graph, to get roles, members of private "+
			"channels, and pictures")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if *memory < minImportMemory {
			return fmt.Errorf("--memory must be at least %d MiB, not %d", minImportMemory, *memory)
		}
		o.File, o.Memory = args[0], *memory<<20
		o.Progress = func(p migration.Progress) { fmt.Fprintln(c.ErrOrStderr(), progressText(p)) }
		setImportMemory(o.Memory)
		reports, err := server.Import(data(), o)
		if err != nil {
			return err
		}
		if *report != "" {
			if err := migration.WriteReports(*report, reports); err != nil {
				return err
			}
		}
		for _, r := range reports {
			fmt.Fprintf(c.OutOrStdout(),
				"%q: %d users, %d channels, %d active subscriptions, %d messages (%d direct), %d reactions, "+
					"%d attachments\n",
				r.Organization, r.Users, r.Channels, r.Subscribed, r.Messages, r.DirectMessages, r.Reactions,
				r.Attachments)
			for _, rule := range r.Retention {
				fmt.Fprintln(c.OutOrStdout(), "  "+retentionText(rule))
			}
			for _, d := range r.Dropped {
				fmt.Fprintf(c.OutOrStdout(), "  left out: %d %s: %s%s\n", d.Count, d.Kind, d.Reason, placesText(d))
			}
		}
		return nil
	}
	return c
}

// retentionText describes a rule that deletes messages.
func retentionText(r migration.Retention) string {
	place := "direct messages"
	if r.Channel != "" {
		place = fmt.Sprintf("messages of channel %q", r.Channel)
	}
	return fmt.Sprintf("retention: %s are deleted after %d days; %d of %d are older and are deleted at the first start",
		place, r.Days, r.Due, r.Messages)
}

// minImportMemory is the smallest memory limit of an import in MiB.
const minImportMemory = 64

func progressText(p migration.Progress) string {
	text := fmt.Sprintf("%q: %s %d", p.Organization, p.Step, p.Done)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %d", p.Total)
	}
	if p.Left > 0 {
		text += ", about " + (time.Duration(p.Left) * time.Second).String() + " left"
	}
	return text
}

// placesText names the first place of things that were left out. The file of the report names more.
func placesText(c migration.Count) string {
	if len(c.Places) == 0 {
		return ""
	}
	text := " (" + c.Places[0]
	if c.Count > 1 {
		text += fmt.Sprintf(", and %d more", c.Count-1)
	}
	return text + ")"
}

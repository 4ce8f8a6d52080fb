package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/control"
	"parley/cmd/internal/server"
)

// operatorFlag is a flag of an operator's command. Its value is an argument of the command that the server executes.
type operatorFlag struct {
	Name    string
	Default string
	Meaning string
	Switch  bool // true or false without a value
}

// operatorCommand is a command that a running server executes, or this process on the directory of a stopped one.
type operatorCommand struct {
	Group   string // name of the group, such as retention hold
	Name    string
	Meaning string
	Flags   []operatorFlag
}

// Flags of several commands.
var (
	realmFlag = operatorFlag{Name: "realm", Meaning: "subdomain of the organization; empty: the root organization"}
	emailFlag = operatorFlag{Name: "email", Meaning: "email address of the user"}
)

// operatorCommands lists the commands below `parley push`, `parley realm`, `parley retention` and `parley user`.
var operatorCommands = []operatorCommand{
	{Group: "channel", Name: "list", Meaning: "List the channels"},
	{Group: "channel", Name: "archive",
		Meaning: "Archive a channel: its messages remain, nothing is sent to it any more",
		Flags:   []operatorFlag{{Name: "channel", Meaning: "name of the channel"}}},
	{Group: "channel", Name: "owners",
		Meaning: "List the users and groups that administer a channel, after one was added or removed",
		Flags: []operatorFlag{
			{Name: "channel", Meaning: "name of the channel"},
			{Name: "add", Meaning: "email address of a user who is added"},
			{Name: "remove", Meaning: "email address of a user who is removed"},
		}},
	{Group: "invite", Name: "list", Meaning: "List the open invitations"},
	{Group: "invite", Name: "revoke", Meaning: "Revoke an invitation: its links stop working", Flags: []operatorFlag{
		{Name: "id", Meaning: "number of the invitation"},
		{Name: "link", Meaning: "it is a reusable link, not an invitation by email", Switch: true},
	}},
	{Group: "mail", Name: "test", Meaning: "Send a test email as the server sends all others", Flags: []operatorFlag{
		{Name: "to", Meaning: "email address that gets it"},
	}},
	{Group: "push", Name: "register", Meaning: "Register the server at the push bouncer, or renew its registration",
		Flags: []operatorFlag{
			{Name: "contact", Meaning: "email address at which the bouncer's operator reaches you"},
			{Name: "hostname", Meaning: "hostname of the server; empty: that of the running server"},
			{Name: "bouncer", Meaning: "URL of the bouncer; empty: the one in use, else the vendor's"},
			{Name: "agree", Meaning: "agree to the terms of service of the bouncer's operator", Switch: true},
			{Name: "rotate", Meaning: "replace the key by a new one", Switch: true},
			{Name: "transfer", Meaning: "take over the registration of the hostname if its key is lost: the " +
				"running server proves that it has the hostname", Switch: true},
		}},
	{Group: "push", Name: "status", Meaning: "Upload the organizations and print what the push bouncer allows each"},
	{Group: "push", Name: "test", Meaning: "Show a test notification on the devices of a user", Flags: []operatorFlag{
		emailFlag,
	}},
	{Group: "realm", Name: "create", Meaning: "Create an organization with two channels", Flags: []operatorFlag{
		{Name: "name", Meaning: "name of the organization"},
		{Name: "owner", Meaning: "email address of its first owner, who gets a random password and an API key"},
		{Name: "allow-reserved", Switch: true,
			Meaning: "allow a subdomain where users expect a service of the server, such as mail or support"},
	}},
	{Group: "realm", Name: "list", Meaning: "List the organizations"},
	{Group: "realm", Name: "digest", Meaning: "Print digests of the whole state, to compare servers"},
	{Group: "realm", Name: "slowest", Meaning: "List the ten kinds of requests that blocked the organization longest"},
	{Group: "realm", Name: "close", Meaning: "Deactivate the organization: its users can no longer log in"},
	{Group: "realm", Name: "reopen", Meaning: "Reactivate the organization"},
	{Group: "retention", Name: "list", Meaning: "List the archives of deleted messages, by day, channel and cause"},
	{Group: "retention", Name: "restore", Meaning: "Restore deleted messages with everything that belongs to them",
		Flags: []operatorFlag{
			{Name: "archive", Meaning: "name of an archive: all its messages"},
			{Name: "message", Meaning: "id of one message"},
		}},
	{Group: "retention hold", Name: "add", Meaning: "Keep deleted messages of a user or channel in the archive",
		Flags: []operatorFlag{
			{Name: "email", Meaning: "email address of a user: messages from them, and their direct messages"},
			{Name: "channel", Meaning: "name of a channel"},
			{Name: "reason", Meaning: "note for the list of holds"},
		}},
	{Group: "retention hold", Name: "list", Meaning: "List the legal holds"},
	{Group: "retention hold", Name: "remove", Meaning: "End a legal hold", Flags: []operatorFlag{
		{Name: "hold", Meaning: "number of the hold"},
	}},
	{Group: "scim token", Name: "create", Meaning: "Make a token with which a login provider manages accounts; it is " +
		"printed once", Flags: []operatorFlag{
		{Name: "name", Meaning: "name of the provider, for the list of tokens"},
		{Name: "scope", Default: "users,groups", Meaning: "what the token may change: users, groups, both, or read"},
		{Name: "expires-in", Default: "8760h", Meaning: "lifetime of the token, or never"},
	}},
	{Group: "scim token", Name: "list", Meaning: "List the tokens without their secrets"},
	{Group: "scim token", Name: "revoke", Meaning: "Revoke a token", Flags: []operatorFlag{
		{Name: "id", Meaning: "number of the token"},
	}},
	{Group: "user", Name: "create", Meaning: "Create a user and print an API key", Flags: []operatorFlag{
		emailFlag,
		{Name: "name", Meaning: "full name"},
		{Name: "role", Default: "member", Meaning: "owner, administrator, moderator, member or guest"},
		{Name: "password", Meaning: "password; - reads it from standard input"},
	}},
	{Group: "user", Name: "list", Meaning: "List the users"},
	{Group: "user", Name: "role", Meaning: "Change the role of a user", Flags: []operatorFlag{
		emailFlag,
		{Name: "role", Meaning: "owner, administrator, moderator, member or guest"},
	}},
	{Group: "user", Name: "rename", Meaning: "Change the name of a user", Flags: []operatorFlag{
		emailFlag,
		{Name: "name", Meaning: "new full name"},
	}},
	{Group: "user", Name: "deactivate", Meaning: "End the access of a user; their messages remain",
		Flags: []operatorFlag{emailFlag}},
	{Group: "user", Name: "reactivate", Meaning: "Let a deactivated user log in again",
		Flags: []operatorFlag{emailFlag}},
	{Group: "user", Name: "api-key", Meaning: "Print a new API key of a user", Flags: []operatorFlag{
		emailFlag,
		{Name: "only", Meaning: "revoke every other key of the user", Switch: true},
	}},
	{Group: "user", Name: "keys", Meaning: "List the additional API keys of a user, or add or revoke one",
		Flags: []operatorFlag{
			emailFlag,
			{Name: "add", Meaning: "label of a key to add; it is printed once"},
			{Name: "expires-in", Meaning: "lifetime of the added key, such as 720h; empty: it does not expire"},
			{Name: "rights", Meaning: "limit the added key to these rights, such as read,send; also react, edit, " +
				"upload, remind, mark and manage"},
			{Name: "channels", Meaning: "limit it to these channels and topics, such as \"general,design>logo\""},
			{Name: "direct", Meaning: "allow direct messages beside --channels", Switch: true},
			{Name: "endpoints", Meaning: "limit it to these endpoints, such as \"GET /messages,GET /events\""},
			{Name: "networks", Meaning: "limit it to these networks, such as 192.0.2.0/24,2001:db8::/64"},
			{Name: "revoke", Meaning: "id of the key to revoke"},
		}},
	{Group: "user", Name: "password", Meaning: "Set the password of a user", Flags: []operatorFlag{
		emailFlag,
		{Name: "password", Default: "-", Meaning: "password; - reads it from standard input"},
		{Name: "keep-keys", Meaning: "do not revoke the API keys of the user", Switch: true},
	}},
	{Group: "user", Name: "sessions", Meaning: "List the logins of a user in browsers, and end them",
		Flags: []operatorFlag{
			emailFlag,
			{Name: "end", Meaning: "end the session with this id, or all"},
		}},
	{Group: "user", Name: "help", Meaning: "Log in as a user who asked for help, for a limited time",
		Flags: []operatorFlag{
			emailFlag,
			{Name: "reason", Meaning: "why; the user and the audit log have it"},
			{Name: "for", Default: "30m", Meaning: "when the login ends, at most 4h"},
			{Name: "end", Meaning: "end these logins of the user now", Switch: true},
		}},
	{Group: "user", Name: "factor", Meaning: "Show whether a user has a second factor, or remove it if it is lost",
		Flags: []operatorFlag{
			emailFlag,
			{Name: "remove", Meaning: "remove the second factor; the user gets a message", Switch: true},
		}},
	{Group: "user", Name: "grant", Meaning: "Set the special rights of a user", Flags: []operatorFlag{
		emailFlag,
		{Name: "create-users", Default: "false", Meaning: "true: may create users through the API"},
		{Name: "change-emails", Default: "false", Meaning: "true: may change email addresses of other users"},
	}},
}

// newOperatorGroup returns a group of commands, such as `parley realm`. A group whose name has several words is below
// another one.
func newOperatorGroup(group string) *cobra.Command {
	var subcommands []*cobra.Command
	if group == "retention" {
		subcommands = append(subcommands, newOperatorGroup("retention hold"))
	}
	if group == "scim" {
		subcommands = append(subcommands, newOperatorGroup("scim token"))
	}
	if group == "user" {
		subcommands = append(subcommands, newUserEraseCommand())
	}
	for i := range operatorCommands {
		if x := &operatorCommands[i]; x.Group == group {
			subcommands = append(subcommands, x.command())
		}
	}
	short := map[string]string{
		"channel":        "List and archive channels, and change who administers them",
		"invite":         "List and revoke invitations",
		"mail":           "Check whether emails are delivered",
		"push":           "Register at a push bouncer, and check whether notifications are delivered",
		"realm":          "Create, list and close organizations",
		"retention":      "Restore deleted messages, and manage legal holds",
		"retention hold": "Add, list and end legal holds",
		"scim":           "Let login providers make and deactivate accounts (SCIM 2.0)",
		"scim token":     "Make, list and revoke tokens of SCIM",
		"user":           "Create users, and set passwords, keys and rights; list and end sessions",
	}
	name := group[strings.LastIndexByte(group, ' ')+1:]
	return newGroupCommand(name, short[group], subcommands...)
}

// command returns the command line of an operator's command.
func (x *operatorCommand) command() *cobra.Command {
	c := &cobra.Command{Use: x.Name, Short: x.Meaning, Args: noArgs}
	data := dataFlag(c, anyServer)
	for _, f := range append([]operatorFlag{realmFlag}, x.Flags...) {
		if f.Switch {
			c.Flags().Bool(f.Name, false, f.Meaning)
		} else {
			c.Flags().String(f.Name, f.Default, f.Meaning)
		}
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		args := map[string]string{}
		for _, f := range append([]operatorFlag{realmFlag}, x.Flags...) {
			args[f.Name] = c.Flags().Lookup(f.Name).Value.String()
		}
		if args["password"] == "-" {
			password, err := readPassword(c.InOrStdin(), c.ErrOrStderr())
			if err != nil {
				return err
			}
			args["password"] = password
		}
		answer, err := server.Command(data(), strings.ReplaceAll(x.Group, " ", "-")+"-"+x.Name, args)
		if err != nil {
			return err
		}
		printAnswer(c.OutOrStdout(), answer)
		return nil
	}
	return c
}

// printAnswer prints the answer to an operator's command: a line for each element of a list, else a line for each
// field.
func printAnswer(out io.Writer, answer map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(answer)) {
		list, ok := answer[k].([]any)
		if !ok {
			fmt.Fprintf(out, "%s: %v\n", k, answer[k])
			continue
		}
		for _, x := range list {
			row, _ := x.(map[string]any)
			var fields []string
			for _, f := range slices.Sorted(maps.Keys(row)) {
				fields = append(fields, fmt.Sprintf("%s=%v", f, row[f]))
			}
			fmt.Fprintln(out, strings.Join(fields, "  "))
		}
	}
}

// upgradeTimeout is how long `parley upgrade` waits for the successor to serve.
const upgradeTimeout = 2 * time.Minute

func newUpgradeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Replace a running server by the current program file, without interrupting clients",
		Args:  noArgs,
	}
	data := dataFlag(c, "data directory of a running server")
	c.RunE = func(c *cobra.Command, _ []string) error { return upgrade(data(), c.OutOrStdout()) }
	return c
}

// upgrade starts a successor of the server that runs in a data directory, and returns when the successor serves.
func upgrade(data string, out io.Writer) error {
	began := time.Now()
	answer, ran, err := control.Send(data, "upgrade", nil)
	if !ran {
		return fmt.Errorf("no server is running in %s", data)
	}
	if err != nil {
		return err
	}
	for time.Since(began) < upgradeTimeout {
		info, ran, err := control.Send(data, "server-info", nil)
		if ran && err == nil && info["pid"] == answer["pid"] {
			_, err := fmt.Fprintf(out, "process %v, version %v, serves %.2f s after the command\n",
				info["pid"], info["version"], time.Since(began).Seconds())
			return err
		}
		if ran && err == nil && info["successor"] == false {
			return errors.New("the successor ended before it took over; " +
				"the old server continues, and its log has the reason")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("process %v did not take over within %v", answer["pid"], upgradeTimeout)
}

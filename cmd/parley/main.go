package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"parley/actors/registry"
	"parley/bench"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/cmd/internal/server"
	"parley/wire"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		raiseTimerSlack()
	}
	root := newRootCommand()
	root.SetArgs(normalizeFlags(root, os.Args[1:]))
	command, err := root.ExecuteC()
	if err = errors.Join(err, giveToOwner(command)); err != nil {
		fmt.Fprintln(os.Stderr, "parley: "+err.Error())
		os.Exit(exitError)
	}
}

// The groups of commands in the help text.
const (
	serverGroup = "server"
	orgGroup    = "organizations"
	dataGroup   = "data"
	toolGroup   = "tools"
)

// newRootCommand returns the command parley with all its subcommands. Input and output are those of the process until
// the caller sets others.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Realtime team-chat server that speaks the Zulip API",
		Args:  unknownCommand,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("no command; parley --help lists them")
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(os.Stdin)
	root.SetOut(os.Stdout)
	root.SetErr(os.Stderr)
	root.AddGroup(
		&cobra.Group{ID: serverGroup, Title: "Server:"},
		&cobra.Group{ID: orgGroup, Title: "Organizations and users:"},
		&cobra.Group{ID: dataGroup, Title: "Data:"},
		&cobra.Group{ID: toolGroup, Title: "Tools:"},
	)
	root.SetHelpCommandGroupID(toolGroup)
	root.SetCompletionCommandGroupID(toolGroup)
	addAll(root, serverGroup, newServeCommand(), newUpgradeCommand(), newDoctorCommand(), newPlacesCommand(),
		newClusterCommand(),
		newAuthCommand(), newVersionCommand())
	addAll(root, orgGroup, newAuditCommand(), newOperatorGroup("channel"), newOperatorGroup("invite"),
		newOperatorGroup("mail"), newOperatorGroup("push"), newOperatorGroup("realm"),
		newOperatorGroup("retention"), newOperatorGroup("scim"), newOperatorGroup("user"))
	addAll(root, dataGroup, newBackupCommand(), newVerifyCommand(), newRestoreCommand(), newFilesCommand(),
		newExportCommand(),
		newImportCommand(), newLogCommand(), newSearchCommand())
	addAll(root, toolGroup, newIntegrationsCommand(), newIntegrationCommand(), newOpenAPICommand(), newBenchCommand(),
		newDocsCommand(),
		newLicensesCommand())
	return root
}

func addAll(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		root.AddCommand(c)
	}
}

// version is the version of this program. A release sets it: go build -ldflags "-X main.version=v1.2.3".
var version string

// buildVersion returns the version of this program: the one set by the linker, or the one of the module, or the commit.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "commit " + s.Value
		}
	}
	return "development build"
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program and of the protocol",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "parley %s\n%s\n", buildVersion(), wire.Protocol)
			return err
		},
	}
}

func newOpenAPICommand() *cobra.Command {
	var onlySchemas bool
	c := &cobra.Command{
		Use:   "openapi",
		Short: "Print the API that the server accepts as an OpenAPI 3.1 document",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			document := wire.OpenAPI
			if onlySchemas {
				document = wire.OpenAPISchemas
			}
			_, err := c.OutOrStdout().Write(document())
			return err
		},
	}
	c.Flags().BoolVar(&onlySchemas, "schemas", false, "print only the schemas, for generators of types")
	return c
}

// newBenchCommand returns the load harness. It parses its own flags.
func newBenchCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "bench [COMMAND | SCENARIO] [flags]",
		Short: "Load a server, check its answers and measure it",
		Long: "Load a Zulip-compatible server, check its answers and measure it. parley bench help " +
			"lists the commands.",
		DisableFlagParsing: true,
		Run: func(c *cobra.Command, args []string) {
			os.Exit(bench.Main(args, c.OutOrStdout(), c.ErrOrStderr()))
		},
	}
}

// newGroupCommand returns a command that only has subcommands.
func newGroupCommand(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: unknownCommand}
	c.AddCommand(subcommands...)
	var names []string
	for _, s := range c.Commands() {
		names = append(names, s.Name())
	}
	c.RunE = func(*cobra.Command, []string) error {
		return fmt.Errorf("usage: parley %s %s", use, strings.Join(names, "|"))
	}
	return c
}

// unknownCommand rejects arguments of a command that only has subcommands.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q; %s --help lists the commands", args[0], c.CommandPath())
	}
	return nil
}

// noArgs rejects arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// exactArgs rejects a number of arguments other than the one of the command's usage line. The error ends with the hint.
func exactArgs(n int, hint string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return errors.New("usage: " + strings.TrimSuffix(c.UseLine()+"; "+hint, "; "))
	}
}

// dataFlagName is the name of the flag with the data directory.
const dataFlagName = "data"

// dataFlag adds the flag --data to a command and returns a function that returns its value.
func dataFlag(c *cobra.Command, meaning string) func() string {
	c.Flags().String(dataFlagName, server.DefaultSettings().Data, meaning)
	c.MarkFlagDirname(dataFlagName)
	return func() string { return dataDirectory(c) }
}

// dataDirectory returns the data directory of a command: the flag --data, else the environment variable PARLEY_DATA,
// else ./data.
func dataDirectory(c *cobra.Command) string {
	f := c.Flags().Lookup(dataFlagName)
	if fromEnv := os.Getenv(registry.EnvironmentPrefix + "DATA"); fromEnv != "" && !f.Changed {
		return fromEnv
	}
	return f.Value.String()
}

// giveToOwner gives the files that a command of root has made in its data directory to the owner of that directory.
func giveToOwner(c *cobra.Command) error {
	if c.Name() == "serve" || c.Flags().Lookup(dataFlagName) == nil {
		return nil
	}
	dir := dataDirectory(c)
	// A running server makes the files in the folders itself; a command can only have made one beside them.
	conn, err := net.Dial("unix", filepath.Join(dir, control.SocketName))
	if err == nil {
		conn.Close()
	}
	return datadir.GiveToOwner(dir, err != nil)
}

// anyServer is the meaning of --data for commands that work on a running and on a stopped server.
const anyServer = "data directory of a running or a stopped server"

// stoppedServer is the meaning of --data for commands that work on a stopped server only.
const stoppedServer = "data directory of a stopped server"

// normalizeFlags gives long flags that are written with one dash a second one. Go's flag package, which older versions
// of this program used, accepts both; cobra would read -data as the short flags -d -a -t -a.
func normalizeFlags(root *cobra.Command, args []string) []string {
	c, out := root, []string{}
	for len(args) > 0 {
		sub, _, err := c.Find(args[:1])
		if err != nil || sub == c {
			break
		}
		c, out, args = sub, append(out, args[0]), args[1:]
	}
	if c.DisableFlagParsing {
		return append(out, args...)
	}
	for len(args) > 0 && args[0] != "--" {
		arg := args[0]
		args = args[1:]
		name, _, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		f := c.Flags().Lookup(name)
		if arg[:min(1, len(arg))] != "-" || len(name) < 2 || f == nil && name != "help" {
			out = append(out, arg)
			continue
		}
		out = append(out, "--"+strings.TrimLeft(arg, "-"))
		// the next argument is the value, whatever it looks like
		if f != nil && f.NoOptDefVal == "" && !hasValue && len(args) > 0 {
			out, args = append(out, args[0]), args[1:]
		}
	}
	return append(out, args...)
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/cmd/internal/operator"
	"parley/cmd/internal/server"
	"parley/wire/peer"
)

// newClusterCommand returns `parley cluster`.
func newClusterCommand() *cobra.Command {
	return newGroupCommand("cluster", "Run one server on several machines",
		newClusterInitCommand(),
		newClusterTokenCommand(),
		newClusterStatusCommand(),
		newClusterOperatorCommand("verify", "Compare the state of every organization on all nodes"),
		newClusterOperatorCommand("move-leader", "Make another core the leader"),
		newClusterRemoveCommand(),
		newClusterDissolveCommand(),
		newClusterOperatorCommand("level", "Raise the rule level of the cluster after all nodes were upgraded"),
	)
}

func newClusterInitCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "init",
		Short: "Make a new or stopped server the first node of a cluster",
		Args:  noArgs,
	}
	data := dataFlag(c, "data directory: a new one, or that of a stopped server")
	node := c.Flags().String("node", "", "id of the node: lower-case letters, digits and dashes")
	listen := c.Flags().String("peer-listen", "",
		"address at which the other nodes reach this one, such as 10.0.0.1:9992")
	place := c.Flags().String("files", "", "bucket for uploaded files, as for parley serve; all cores use it")
	credentials := c.Flags().String("files-credentials", "", "file with the keys of the bucket, as for parley serve")
	c.RunE = func(c *cobra.Command, _ []string) error {
		p, err := operator.ClusterInit(data(), *node, *listen, *place, *credentials)
		if err != nil {
			return err
		}
		if p.Files == "" {
			fmt.Fprintln(c.ErrOrStderr(), localFilesWarning)
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s is node %s of a new cluster; start it with parley serve --data %s\n",
			data(), *node, data())
		return err
	}
	return c
}

// localFilesWarning is printed for a cluster without a bucket.
const localFilesWarning = "warning: uploaded files will be only on the core that leads when they are uploaded, and " +
	"cannot be downloaded while another one leads: keep them in a bucket, with --files or parley files move"

func newClusterTokenCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Print a token with which one node can join in the next hour",
		Args:  noArgs,
	}
	data := dataFlag(c, "data directory of a running or stopped core")
	role := c.Flags().String("role", string(peer.Edge), "role of the new node: core or edge")
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := server.Command(data(), "cluster-token", map[string]string{"role": *role})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(c.OutOrStdout(), answer["token"])
		return err
	}
	return c
}

func newClusterRemoveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "remove NODE",
		Short: "Remove a node from the cluster permanently",
		Args:  exactArgs(1, "NODE is the id of a node"),
	}
	data := dataFlag(c, "data directory of any core")
	yes := c.Flags().Bool("yes", false, "do not ask, even if only one core with a vote remains")
	c.RunE = func(c *cobra.Command, args []string) error {
		ask := map[string]string{"node": args[0], "yes": strconv.FormatBool(*yes)}
		answer, err := server.Command(data(), "cluster-remove", ask)
		if err != nil && strings.Contains(err.Error(), operator.LastVoterText) && isTerminal(c.InOrStdin()) {
			fmt.Fprintf(c.ErrOrStderr(), "%v\nRemove node %s? [y/N] ", err, args[0])
			line, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
			if line = strings.ToLower(strings.TrimSpace(line)); line != "y" && line != "yes" {
				return fmt.Errorf("node %s was not removed", args[0])
			}
			ask["yes"] = "true"
			answer, err = server.Command(data(), "cluster-remove", ask)
		}
		if err != nil {
			return err
		}
		printAnswer(c.OutOrStdout(), answer)
		return nil
	}
	return c
}

// isTerminal reports whether a person may answer a question on in.
func isTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func newClusterDissolveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "dissolve",
		Short: "Turn the stopped last core of a cluster into a single server",
		Args:  noArgs,
	}
	data := dataFlag(c, "data directory of the stopped core")
	accept := c.Flags().Bool("accept-loss", false,
		"continue although other cores have a vote; changes that only they have on disk are lost")
	c.RunE = func(c *cobra.Command, _ []string) error {
		applied, err := operator.ClusterDissolve(data(), *accept)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s is the data directory of a single server, with %d entries from the "+
			"replicated log; start it with parley serve --data %s\n", data(), applied, data())
		return err
	}
	return c
}

// errNoLeader ends parley cluster status with an exit code other than 0. The answer before it says why.
var errNoLeader = errors.New("no leader of the cluster answers; this is the view of this node")

func newClusterStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "List the nodes, with their roles, lag and queues",
		Long: "List the nodes, with their roles, lag and queues. Without a leader, this prints at once how the node " +
			"sees the cluster: its state, when it last heard a leader, and which cores it can reach. The exit code " +
			"is then 1, and with --json the answer has the field no_leader instead of nodes.",
		Args: noArgs,
	}
	data := dataFlag(c, "data directory of any running node")
	asJSON := c.Flags().Bool("json", false,
		"print JSON for programs: a list nodes, each with node, role, leader, voter")
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := server.Command(data(), "cluster-status", nil)
		if err != nil {
			return err
		}
		_, noLeader := answer["no_leader"]
		switch {
		case *asJSON:
			e := json.NewEncoder(c.OutOrStdout())
			e.SetIndent("", "  ")
			err = e.Encode(answer)
		case noLeader:
			printAnswer(c.OutOrStdout(), answer)
		default:
			err = printNodes(c.OutOrStdout(), answer)
		}
		if noLeader {
			err = errors.Join(err, errNoLeader)
		}
		return err
	}
	return c
}

// nodeColumns are the columns of the table that parley cluster status prints, as fields of cluster.NodeStatus.
var nodeColumns = []string{"node", "role", "leader", "voter", "connected", "address", "program", "level", "known_level",
	"realms", "asleep", "waking", "next_due", "queues", "polls", "facts_behind", "seconds_behind", "sent_bytes",
	"received_bytes", "queued_bytes"}

// printNodes prints a table of the nodes. A field that the leader has not sent is "-".
func printNodes(out io.Writer, answer map[string]any) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(nodeColumns, "\t")))
	list, _ := answer["nodes"].([]any)
	for _, x := range list {
		row, _ := x.(map[string]any)
		var cells []string
		for _, name := range nodeColumns {
			cells = append(cells, nodeCell(row[name]))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// nodeCell returns a value as a cell of the table. No cell is empty.
func nodeCell(x any) string {
	switch x := x.(type) {
	case bool:
		if x {
			return "yes"
		}
		return "no"
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case string:
		if x != "" {
			return x
		}
	}
	return "-"
}

// newClusterOperatorCommand returns a command without arguments that a running node executes.
func newClusterOperatorCommand(name, short string) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: noArgs}
	data := dataFlag(c, "data directory of any running core")
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := server.Command(data(), "cluster-"+name, nil)
		if err != nil {
			return err
		}
		printAnswer(c.OutOrStdout(), answer)
		return nil
	}
	return c
}

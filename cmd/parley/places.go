package main

import (
	"cmp"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/actors/registry"
	"parley/cmd/internal/server"
)

func newPlacesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "places",
		Short: "List each place to which data goes, and what ends it",
		Long: "List each place outside this machine to which the server, or the clients of its users, send data: " +
			"what goes there, whether the settings use it, and the settings that end it. Settings are those of " +
			"--config and of the environment, as for parley serve.",
		Args: noArgs,
	}
	file := c.Flags().String("config", "", "configuration file (TOML) of parley serve")
	c.MarkFlagFilename("config", "toml")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := *file
		if !c.Flags().Changed("config") {
			path = os.Getenv(registry.EnvironmentPrefix + "CONFIG")
		}
		settings, _, err := readSettings(path, nil)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "PLACE\tWHERE\tDATA\tSWITCHES")
		for _, x := range server.Services() {
			if x.Unlisted == "" {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Name, cmp.Or(x.Where(&settings), "off"), x.Data, x.Switches)
			}
		}
		return w.Flush()
	}
	return c
}

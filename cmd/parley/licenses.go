package main

import (
	"io"

	"github.com/spf13/cobra"

	"parley/cmd/internal/licenses"
)

func newLicensesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "licenses",
		Short: "Print the licenses of the third-party code in this program",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), licenses.Notices)
			return err
		},
	}
}

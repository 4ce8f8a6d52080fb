package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"parley/cmd/internal/orgfiles"
)

func newFilesCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "files",
		Short: "Move and check uploaded files, pictures and exports",
		Args:  unknownCommand,
	}
	c.AddCommand(newFilesMoveCommand(), newFilesCheckCommand(), newFilesClaimCommand())
	return c
}

func newFilesMoveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "move",
		Short: "Move the files between the data directory and a bucket",
		Long: "Copy all files to another location, read each of them again and compare SHA-256. While a server runs, " +
			"the command copies the present files and changes nothing else. Then stop the server and run it again: " +
			"it copies the rest, checks that no file is missing and records the new location. After an interruption, " +
			"run it again.",
		Args: exactArgs(0, ""),
	}
	data := dataFlag(c, anyServer)
	to := c.Flags().String("to", "",
		"new location: s3://BUCKET/FOLDER?endpoint=https://HOST&region=NAME&path-style=true, or local for the data "+
			"directory")
	credentials := c.Flags().String("credentials", "",
		"file with the keys for the bucket, in the format of ~/.aws/credentials (default: from the environment)")
	remove := c.Flags().Bool("remove", false, "remove the files from the old location at the end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *to == "" {
			return errors.New("--to is required: the new location of the files")
		}
		return orgfiles.Move(data(), *to, *credentials, *remove, c.OutOrStdout())
	}
	return c
}

func newFilesCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check",
		Short: "Check that no file of a stopped server is missing or damaged",
		Long: "Check that every file to which the data of a stopped server refers exists in the data directory or in " +
			"the bucket, and that the content of each upload matches its hash. Use it after a restore: a backup does " +
			"not contain the files in a bucket.",
		Args: exactArgs(0, ""),
	}
	data := dataFlag(c, stoppedServer)
	quick := c.Flags().Bool("quick", false, "do not read the content")
	c.RunE = func(c *cobra.Command, _ []string) error {
		bad, err := orgfiles.CheckStopped(data(), !*quick, c.OutOrStdout())
		if err == nil && bad > 0 {
			err = fmt.Errorf("%d files are missing or damaged", bad)
		}
		return err
	}
	return c
}

func newFilesClaimCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "claim",
		Short: "Make a data directory the owner of the files in its bucket",
		Long: "Only one data directory, the owner of the files, removes files from a bucket, so that a restored copy " +
			"does not remove files of the original server. Make this directory the owner if the original no longer " +
			"exists.",
		Args: exactArgs(0, ""),
	}
	data := dataFlag(c, stoppedServer)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := orgfiles.Claim(data()); err != nil {
			return err
		}
		_, err := fmt.Fprintln(c.OutOrStdout(), "This data directory is now the owner of the files in the bucket.")
		return err
	}
	return c
}

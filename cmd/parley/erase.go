package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"parley/cmd/internal/server"
)

// newUserEraseCommand returns the command that deletes the data of one person.
func newUserEraseCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "erase",
		Short: "Delete the data of a user permanently, and write a certificate of what was removed",
		Long: "Delete the messages, reactions, files, settings, logins and all other data of a user permanently, on " +
			"a running or a stopped server, also from the bytes on the disk. An empty account \"Deleted user\" " +
			"remains, because messages of others refer to it. This cannot be undone: if the user wants the data, run " +
			"`parley export person` first. A user under a legal hold is not deleted. After an interruption, run the " +
			"command again with --id, because the account no longer has an address. Earlier backups and exports " +
			"still contain the data.",
		Args: noArgs,
	}
	data := dataFlag(c, anyServer)
	subdomain := c.Flags().String("realm", "", realmFlag.Meaning)
	email := c.Flags().String("email", "", emailFlag.Meaning)
	id := c.Flags().String("id", "", "id of the user, instead of the address")
	file := c.Flags().String("certificate", "", "file for the certificate, as JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *file == "" {
			return errors.New("--certificate is required: the file for the certificate")
		}
		out, err := os.OpenFile(*file, os.O_WRONLY|os.O_CREATE, 0o600) // before anything is deleted
		if err != nil {
			return err
		}
		defer out.Close()
		args := map[string]string{"realm": *subdomain, "email": *email, "id": *id}
		for {
			answer, err := server.Command(data(), "user-erase", args)
			if err != nil {
				return err
			}
			if answer["done"] == true {
				return writeCertificate(out, answer["certificate"], c.OutOrStdout())
			}
			args["email"], args["id"] = "", fmt.Sprint(answer["user_id"])
			fmt.Fprintf(c.ErrOrStderr(), "user %v: %v messages are left\n", answer["user_id"], answer["messages_left"])
		}
	}
	return c
}

// writeCertificate writes a certificate to a file and prints its counts.
func writeCertificate(file *os.File, certificate any, out io.Writer) error {
	text, err := json.MarshalIndent(certificate, "", "  ")
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.Write(append(text, '\n'))
	}
	if err := errors.Join(err, file.Sync()); err != nil {
		return err
	}
	fields, _ := certificate.(map[string]any)
	removed, _ := fields["removed"].(map[string]any)
	for _, kind := range slices.Sorted(maps.Keys(removed)) {
		fmt.Fprintf(out, "removed: %v %s\n", removed[kind], kind)
	}
	kept, _ := fields["kept"].([]any)
	for _, x := range kept {
		k, _ := x.(map[string]any)
		fmt.Fprintf(out, "kept: %v: %v\n", k["kind"], k["reason"])
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"parley/actors/registry"
	"parley/wire/signon"
)

// newAuthCommand returns `parley auth`.
func newAuthCommand() *cobra.Command {
	test := &cobra.Command{
		Use:   "test NAME",
		Short: "Ask a login provider for everything that a login needs before a person is involved",
		Args:  exactArgs(1, "NAME is the name of a provider in the file of --auth-config"),
	}
	file := test.Flags().String("auth-config", os.Getenv(registry.EnvironmentPrefix+"AUTH_CONFIG"),
		"file with the login providers, as for parley serve")
	test.RunE = func(c *cobra.Command, args []string) error {
		return testProvider(c.OutOrStdout(), *file, args[0])
	}
	return newGroupCommand("auth", "Check the logins at other providers", test)
}

// testProvider prints the steps of the check of a provider. The error of a step says what to do.
func testProvider(out io.Writer, file, name string) error {
	if file == "" {
		return errors.New("auth-config is missing: name the file with the login providers")
	}
	providers, err := signon.Open(file)
	if err != nil {
		return err
	}
	e := providers.FindByName(name)
	if e == nil {
		return fmt.Errorf("%s has no provider %q; it has: %s", file, name, strings.Join(providers.Names(), ", "))
	}
	fmt.Fprintf(out, "ok: the configuration of %s is complete (%s, %s)\n", e.Name, e.Type, e.Issuer)
	limit := signon.MaxStep
	if e.Directory != nil { // it reads all users
		limit = signon.MaxSync
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err = e.Check(ctx, func(step string) { fmt.Fprintln(out, "ok: "+step) })
	var failed *signon.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("%s (%w)", failed.Reason, failed.Err)
	}
	if err != nil {
		return err
	}
	if e.Directory != nil {
		return nil
	}
	fmt.Fprintf(out, "Register this address at the provider, for each organization: URL/complete/%s/\n", e.Type)
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"parley/actors/registry"
	"parley/cmd/internal/doctor"
	"parley/cmd/internal/orgfiles"
	"parley/cmd/internal/server"
	"parley/snapshot/files/s3"
)

func newDoctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the machine, the network and the settings, and name faults with their remedies",
		Long: "Examine the machine, the network and the settings, and name faults with their remedies. The settings " +
			"are those of --config and of the environment, as for parley serve. The exit code is 1 if there is a " +
			"fault.",
		Args: noArgs,
	}
	data := dataFlag(c, anyServer)
	file := c.Flags().String("config", "", "configuration file (TOML) of parley serve")
	c.MarkFlagFilename("config", "toml")
	backups := c.Flags().String("backups", "", "folder or file of the backups, whose age is examined")
	c.RunE = func(c *cobra.Command, _ []string) error {
		path := *file
		if !c.Flags().Changed("config") {
			path = os.Getenv(registry.EnvironmentPrefix + "CONFIG")
		}
		settings, _, err := readSettings(path, nil)
		if c.Flags().Changed("data") || settings.Data == "" {
			settings.Data = data()
		}
		config := doctorConfig(&settings, err)
		config.Backups = *backups
		if n := doctor.Report(c.OutOrStdout(), doctor.Examine(c.Context(), config)); n > 0 {
			return fmt.Errorf("%d faults", n)
		}
		return nil
	}
	return c
}

// doctorConfig returns the examined settings. refused is the reason why the server would not start with them, or nil.
func doctorConfig(s *server.Settings, refused error) doctor.Config {
	c := doctor.Config{
		Data: s.Data, URL: s.URL, Listen: s.Listen, DebugListen: s.DebugListen, TrustedProxies: s.TrustedProxies,
		TLSCert: s.TLS.TLSCert, TLSKey: s.TLS.TLSKey, ACME: s.TLS.ACME,
		SMTPHost: s.SMTPHost, SMTPPort: s.SMTPPort, SMTPUser: s.SMTPUser, SMTPPassword: s.SMTPPassword,
		SMTPFrom: s.SMTPFrom, APNsKey: s.APNsKey, FCMAccount: s.FCMAccount, Bouncer: s.Bouncer,
		MinFree: uint64(s.Space.DiskMinFree) << 20, Demo: s.Demo || s.DemoCrowd != "", SettingsError: refused,
	}
	if u, err := url.Parse(s.URL); err == nil {
		name, text, err := s.DKIMRecord(u.Hostname())
		if err != nil && refused == nil {
			c.SettingsError = err
		}
		c.DKIMName, c.DKIMText = name, text
	}
	place, err := orgfiles.ChoosePlace(s.Data, s.Files, s.FilesCredentials)
	if err != nil && refused == nil {
		c.SettingsError = err
	}
	if err == nil && place.Files != "" {
		c.Bucket = func(context.Context) error { return tryBucket(place) }
	}
	return c
}

// tryBucket writes, reads and removes an object of the bucket.
func tryBucket(place orgfiles.Place) (err error) {
	p, err := s3.ParsePlace(place.Files)
	if err != nil {
		return err
	}
	b, err := s3.Open(p, place.Credentials, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer b.Close()
	f, err := os.CreateTemp("", "parley-doctor")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	const key, text = "doctor", "parley doctor"
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := b.Put(key, f); err != nil {
		return err
	}
	o, err := b.Open(key)
	if err != nil {
		return err
	}
	defer o.Close()
	section, err := o.Section(0, o.Size())
	if err != nil {
		return err
	}
	defer section.Close()
	if got, err := io.ReadAll(section); err != nil || string(got) != text {
		return fmt.Errorf("the object was read as %q: %w", got, err)
	}
	return b.Remove(key)
}

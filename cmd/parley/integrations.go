package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/cmd/internal/server"
	"parley/wire/integrations"
)

// newIntegrationsCommand returns `parley integrations`.
func newIntegrationsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "integrations",
		Short: "List the integrations: services whose webhook requests become messages",
		Args:  noArgs,
	}
	dir := c.Flags().String("integrations", "", "folder with files of your own, as for parley serve")
	c.RunE = func(c *cobra.Command, _ []string) error {
		set, err := server.ReadIntegrations(*dir)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "NAME\tSERVICE\tADDRESS")
		for _, name := range set.Names() {
			s := set.Find(name)
			address := "/api/v1/external/" + name + "?api_key=KEY&stream=CHANNEL"
			for _, o := range s.Options {
				address += "&" + o.Key + "="
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", name, s.Display, address)
		}
		return w.Flush()
	}
	return c
}

// newIntegrationCommand returns `parley integration`.
func newIntegrationCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "test FILE PAYLOAD",
		Short: "Print the messages that an integration makes of a request",
		Long: "Print the messages that an integration makes of a request. FILE is the file of an integration, or " +
			"the name of an included one. PAYLOAD is a file with the body of a request; - is standard input.",
		Args: exactArgs(2, "PAYLOAD may be - for standard input"),
	}
	headers := c.Flags().StringArray("header", nil, "header of the request, NAME=VALUE; can be repeated")
	params := c.Flags().StringArray("param", nil, "parameter of the address, NAME=VALUE; can be repeated")
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := testRequest(*headers, *params)
		if err != nil {
			return err
		}
		if r.Body, err = readPayload(args[1], c.InOrStdin()); err != nil {
			return err
		}
		s, err := readIntegration(args[0])
		if err != nil {
			return err
		}
		return showIntegration(s, r, c.OutOrStdout())
	}
	return newGroupCommand("integration", "Test the files of integrations", c)
}

// testRequest returns a request with the headers and parameters of flags.
func testRequest(headers, params []string) (integrations.Request, error) {
	h, p := http.Header{}, url.Values{}
	for _, line := range headers {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return integrations.Request{}, fmt.Errorf("--header must be NAME=VALUE, not %s", line)
		}
		h.Set(name, value)
	}
	for _, line := range params {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return integrations.Request{}, fmt.Errorf("--param must be NAME=VALUE, not %s", line)
		}
		p.Set(name, value)
	}
	return integrations.Request{ContentType: cmp.Or(h.Get("Content-Type"), "application/json"), Header: h.Get,
		Params: p}, nil
}

func readPayload(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// readIntegration returns the service of a file, or the included one of that name.
func readIntegration(name string) (*integrations.Service, error) {
	set, err := integrations.Included()
	if err != nil {
		return nil, err
	}
	if file, isFile := strings.CutSuffix(filepath.Base(name), ".toml"); isFile {
		if set, err = set.One(os.DirFS(filepath.Dir(name)), filepath.Base(name)); err != nil {
			return nil, err
		}
		name = file
	}
	if s := set.Find(name); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no integration %q; the name of a file must end with .toml", name)
}

// showIntegration prints the messages of a request, or the reason for which there is none.
func showIntegration(s *integrations.Service, r integrations.Request, out io.Writer) error {
	result, err := s.Handle(r, integrations.Filter{})
	if err != nil {
		return err
	}
	if len(result.Messages) == 0 {
		_, err := fmt.Fprintf(out, "No message: the integration ignores the event %q.\n", result.Event)
		return err
	}
	for _, m := range result.Messages {
		if _, err := fmt.Fprintf(out, "Event: %s\nTopic: %s\n\n%s\n\n", cmp.Or(result.Event, "(any)"), m.Topic,
			m.Text); err != nil {
			return err
		}
	}
	return nil
}

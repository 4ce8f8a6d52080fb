package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/actors/registry"
	"parley/cmd/internal/server"
)

// place is another machine to which data can go.
type place struct {
	name     string
	where    string // address, or "" if the settings do not use it
	data     string // that goes there
	switches string // the settings and commands that end it
	settings []string
}

// places returns every place to which a server with these settings, or the clients of its users, send data. Places that
// organizations decide about have the address "each organization".
func places(s *server.Settings) []place {
	mailServer := ""
	if s.SMTPHost != "" {
		mailServer = net.JoinHostPort(s.SMTPHost, strconv.Itoa(s.SMTPPort))
	}
	apple, google := "", ""
	if s.APNsKey != "" {
		apple = "api.push.apple.com"
	}
	if s.FCMAccount != "" {
		google = "fcm.googleapis.com"
	}
	authority := ""
	if s.TLS.ACME != "" {
		authority = s.TLS.ACMEDirectory
	}
	proxied := "each organization"
	if s.ImageProxy {
		proxied = "each organization, by way of this server"
	}
	const organizations = "each organization"
	return []place{
		{"mail server", mailServer, "addresses, names, texts of missed messages and digests",
			"smtp-host; allow_message_emails and message_content_allowed_in_email_notifications of each organization",
			[]string{"smtp-host", "smtp-port"}},
		{"mailbox", s.IMAPHost, "nothing; replies and mails to channels are read there", "imap-host",
			[]string{"imap-host", "imap-port"}},
		{"Apple's push service", apple, "senders, channels, topics and texts of notifications",
			"push-apns-key; allow_mobile_push of each organization",
			[]string{"push-apns-key"}},
		{"Google's push service", google, "senders, channels, topics and texts of notifications",
			"push-fcm-account; allow_mobile_push of each organization",
			[]string{"push-fcm-account"}},
		{"push bouncer", s.Bouncer, "numbers of users and messages, notifications (encrypted for newer apps), " +
			"number of accounts", "push-bouncer; parley push status; allow_mobile_push of each organization",
			[]string{"push-bouncer"}},
		{"push services of browsers", "each user's browser", "encrypted notifications",
			"notifications of the browser, a choice of each user; allow_browser_push of each organization",
			[]string{"web-push-contact"}},
		{"bucket", s.Files, "uploaded files, pictures, exports", "files; parley files move", []string{"files"}},
		{"virus scanner", s.Antivirus, "uploaded files", "antivirus", []string{"antivirus"}},
		{"other nodes", s.Join, "everything", "join; parley cluster remove", []string{"join"}},
		{"certificate authority", authority, "host names and tls-acme-email", "tls-acme", []string{"tls-acme",
			"tls-acme-directory"}},
		{"login providers", s.AuthConfig, "that a user logs in; addresses come from there", "auth-config",
			[]string{"auth-config"}},
		{"pages of links", organizations, "addresses in messages, which the server fetches for previews",
			"inline_url_embed_preview", nil},
		{"pictures of others", proxied, "without image-proxy, network addresses of readers, whose clients load " +
			"pictures in messages", "image-proxy; allow_external_pictures", []string{"image-proxy"}},
		{"Gravatar", organizations, "hashes of email addresses, from clients that load pictures there",
			"default_avatar_source", nil},
		{"video calls", organizations, "names of calls, from clients that open them",
			"video_chat_provider, jitsi_server_url", nil},
		{"LiveKit", s.LiveKitURL, "pictures and voices of users in calls, their names and ids", "livekit-url; " +
			"allow_livekit_calls, can_start_calls_group", []string{"livekit-url"}},
		{"services of bots", organizations, "messages to outgoing-webhook bots",
			"allow_outgoing_webhooks; permission to create bots; webhooks-allow for private networks",
			[]string{"webhooks-allow"}},
		{"vectors of texts", s.EmbedURL, "texts of all messages, and words that users search for",
			"embed-url; meaning_search_enabled of each organization", []string{"embed-url"}},
		{"GIF provider", s.GIFProvider, "words that users search; keys of official clients, which ask it themselves",
			"gif-provider; gif_rating_policy of each organization",
			[]string{"gif-provider", "gif-key-file", "gif-url"}},
		{"language model", s.AssistURL, "texts and senders of topics that users have " +
			"summarized; texts that they have translated, without translate-url",
			"assist-url; assistant_enabled of each organization", []string{"assist-url"}},
		{"translations", s.TranslateURL, "texts of messages that users have translated",
			"translate-url; assistant_enabled of each organization", []string{"translate-url"}},
	}
}

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
		for _, p := range places(&settings) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.name, cmp.Or(p.where, "off"), p.data, p.switches)
		}
		return w.Flush()
	}
	return c
}

package server

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/cmd/internal/offsite"
	"parley/snapshot/files/s3"
	"parley/wire"
)

// anyHost is the host of places whose hosts users choose.
const anyHost = "*"

// Addresses of services whose hosts the settings do not have.
const (
	ofOrganizations = "each organization"
	ofBrowsers      = "each user's browser"
)

// Service is a service outside this machine to which data can go. The table of services is the only one: parley places
// lists it for operators, and GET /places is made from it for the owners of an organization.
type Service struct {
	Name     string   // as parley places lists it
	Data     string   // that goes there
	Switches string   // the settings and commands that end it
	Settings []string // names of the settings that lead there

	// Unlisted is the reason why parley places does not list the service. Then the fields above and Where are not set.
	Unlisted string

	// Where returns the address that the settings have, or "" if they do not use the service.
	Where func(*Settings) string

	// Places are the names that the service has for organizations, one for each kind of data.
	Places []realm.Place

	// use returns how a running server uses the service for an organization, and false if it does not. Without it, the
	// host is that of Where.
	use func(*Server, wire.Site) (wire.ConfiguredPlace, bool)
}

// Services returns every service to which a server, or the clients of its users, send data, in the order of parley
// places.
func Services() []Service {
	return []Service{
		{
			Name: "mail server", Data: "addresses, names, texts of missed messages and digests",
			Switches: "smtp-host; allow_message_emails and message_content_allowed_in_email_notifications of each " +
				"organization",
			Settings: []string{"smtp-host", "smtp-port"},
			Where: func(s *Settings) string {
				return ifSet(s.SMTPHost, net.JoinHostPort(s.SMTPHost, strconv.Itoa(s.SMTPPort)))
			},
			Places: []realm.Place{
				realm.PlaceMessageEmails, realm.PlaceMessageEmailContent, realm.PlaceAccountEmails,
			},
		},
		{
			Name: "mailbox", Data: "nothing; replies and mails to channels are read there", Switches: "imap-host",
			Settings: []string{"imap-host", "imap-port"},
			Where:    func(s *Settings) string { return s.IMAPHost },
			Places:   []realm.Place{realm.PlaceIncomingEmail}, use: (*Server).useIncomingMail,
		},
		{
			Name: "Apple's push service", Data: "senders, channels, topics and texts of notifications",
			Switches: "push-apns-key; allow_mobile_push of each organization",
			Settings: []string{"push-apns-key"},
			Where:    func(s *Settings) string { return ifSet(s.APNsKey, "api.push.apple.com") },
			Places:   []realm.Place{realm.PlaceMobilePush},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) {
				return at(s.push.Bouncer == nil && s.APNsKey != "", "api.push.apple.com")
			},
		},
		{
			Name: "Google's push service", Data: "senders, channels, topics and texts of notifications",
			Switches: "push-fcm-account; allow_mobile_push of each organization",
			Settings: []string{"push-fcm-account"},
			Where:    func(s *Settings) string { return ifSet(s.FCMAccount, "fcm.googleapis.com") },
			Places:   []realm.Place{realm.PlaceMobilePush},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) {
				return at(s.push.Bouncer == nil && s.FCMAccount != "", "fcm.googleapis.com")
			},
		},
		{
			Name: "push bouncer", Data: "numbers of users and messages, notifications (encrypted for newer apps), " +
				"number of accounts",
			Switches: "push-bouncer; parley push status; allow_mobile_push of each organization",
			Settings: []string{"push-bouncer"},
			Where:    func(s *Settings) string { return s.Bouncer },
			Places:   []realm.Place{realm.PlaceMobilePush},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) {
				if s.push.Bouncer == nil {
					return at(false)
				}
				return at(true, s.push.Bouncer.Account().URL)
			},
		},
		{
			Name: "push services of browsers", Data: "encrypted notifications",
			Switches: "notifications of the browser, a choice of each user; allow_browser_push of each organization",
			Settings: []string{"web-push-contact"},
			Where:    func(*Settings) string { return ofBrowsers },
			Places:   []realm.Place{realm.PlaceBrowserPush},
		},
		{
			Name: "bucket", Data: "uploaded files, pictures, exports", Switches: "files; parley files move",
			Settings: []string{"files"},
			Where:    func(s *Settings) string { return s.Files },
			Places:   []realm.Place{realm.PlaceFileBucket},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) {
				if s.bucket == nil {
					return at(false)
				}
				return at(true, s.bucket.Place().Endpoint)
			},
		},
		{
			Unlisted: "no setting of the server names it: parley backup --to does",
			Places:   []realm.Place{realm.PlaceBackupBucket}, use: (*Server).useBackups,
		},
		{
			Name: "virus scanner", Data: "uploaded files", Switches: "antivirus", Settings: []string{"antivirus"},
			Where:  func(s *Settings) string { return s.Antivirus },
			Places: []realm.Place{realm.PlaceVirusScanner},
		},
		{
			Name: "other nodes", Data: "everything", Switches: "join; parley cluster remove",
			Settings: []string{"join"},
			Where:    func(s *Settings) string { return s.Join },
			Places:   []realm.Place{realm.PlaceOtherNodes},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) {
				if s.node == nil {
					return at(false)
				}
				return at(true, s.node.CoreAddresses()...)
			},
		},
		{
			Name: "certificate authority", Data: "host names and tls-acme-email", Switches: "tls-acme",
			Settings: []string{"tls-acme", "tls-acme-directory"},
			Where:    func(s *Settings) string { return ifSet(s.TLS.ACME, s.TLS.ACMEDirectory) },
			Places:   []realm.Place{realm.PlaceCertificates},
		},
		{
			Name: "login providers", Data: "that a user logs in; addresses come from there", Switches: "auth-config",
			Settings: []string{"auth-config"},
			Where:    func(s *Settings) string { return s.AuthConfig },
			Places:   []realm.Place{realm.PlaceLoginProviders}, use: (*Server).useLoginProviders,
		},
		{
			Unlisted: "nothing is sent there: user directories connect to the server",
			Places:   []realm.Place{realm.PlaceUserDirectories},
			use: func(*Server, wire.Site) (wire.ConfiguredPlace, bool) {
				return at(false) // the organization knows its tokens
			},
		},
		{
			Name: "pages of links", Data: "addresses in messages, which the server fetches for previews",
			Switches: "inline_url_embed_preview",
			Where:    func(*Settings) string { return ofOrganizations },
			Places:   []realm.Place{realm.PlaceLinkPreviews},
		},
		{
			Name: "pictures of others", Data: "without image-proxy, network addresses of readers, whose clients load " +
				"pictures in messages",
			Switches: "image-proxy; allow_external_pictures", Settings: []string{"image-proxy"},
			Where: func(s *Settings) string {
				if s.ImageProxy {
					return ofOrganizations + ", by way of this server"
				}
				return ofOrganizations
			},
			Places: []realm.Place{realm.PlaceExternalPictures},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) { // without it, the server sends nothing
				return at(s.ImageProxy, anyHost)
			},
		},
		{
			Name: "Gravatar", Data: "hashes of email addresses, from clients that load pictures there",
			Switches: "default_avatar_source",
			Where:    func(*Settings) string { return ofOrganizations },
			Places:   []realm.Place{realm.PlaceProfilePictures},
			use:      func(*Server, wire.Site) (wire.ConfiguredPlace, bool) { return at(true, wire.GravatarHost) },
		},
		{
			Name: "video calls", Data: "names of calls, from clients that open them",
			Switches: "video_chat_provider, jitsi_server_url",
			Where:    func(*Settings) string { return ofOrganizations },
			Places:   []realm.Place{realm.PlaceJitsi},
		},
		{
			Name: "LiveKit", Data: "pictures and voices of users in calls, their names and ids",
			Switches: "livekit-url; allow_livekit_calls, can_start_calls_group", Settings: []string{"livekit-url"},
			Where:  func(s *Settings) string { return s.LiveKitURL },
			Places: []realm.Place{realm.PlaceCallRooms},
		},
		{
			Name: "services of bots", Data: "messages to outgoing-webhook bots",
			Switches: "allow_outgoing_webhooks; permission to create bots; webhooks-allow for private networks",
			Settings: []string{"webhooks-allow"},
			Where:    func(*Settings) string { return ofOrganizations },
			Places:   []realm.Place{realm.PlaceOutgoingWebhooks},
		},
		{
			Name: "vectors of texts", Data: "texts of all messages, and words that users search for",
			Switches: "embed-url; meaning_search_enabled of each organization", Settings: []string{"embed-url"},
			Where:  func(s *Settings) string { return s.EmbedURL },
			Places: []realm.Place{realm.PlaceVectors},
		},
		{
			Name: "GIF provider", Data: "words that users search; keys of official clients, which ask it themselves",
			Switches: "gif-provider; gif_rating_policy of each organization",
			Settings: []string{"gif-provider", "gif-key-file", "gif-url"},
			Where:    func(s *Settings) string { return s.GIFProvider },
			Places:   []realm.Place{realm.PlaceGIFs},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) {
				return at(s.GIFProvider != "", s.gifs.Address())
			},
		},
		{
			Name: "language model", Data: "texts and senders of topics that users have summarized; texts that they " +
				"have translated, without translate-url",
			Switches: "assist-url; assistant_enabled of each organization", Settings: []string{"assist-url"},
			Where:  func(s *Settings) string { return s.AssistURL },
			Places: []realm.Place{realm.PlaceModels},
		},
		{
			Name: "translations", Data: "texts of messages that users have translated",
			Switches: "translate-url; assistant_enabled of each organization", Settings: []string{"translate-url"},
			Where:  func(s *Settings) string { return s.TranslateURL },
			Places: []realm.Place{realm.PlaceTranslations},
			use: func(s *Server, _ wire.Site) (wire.ConfiguredPlace, bool) {
				if s.TranslateURL != "" {
					return at(true, s.TranslateURL)
				}
				return at(s.AssistURL != "", s.AssistURL) // the model translates
			},
		},
	}
}

// ifSet returns the address of a service if a setting is set.
func ifSet(setting, address string) string {
	if setting == "" {
		return ""
	}
	return address
}

// at returns a service that the server uses at these addresses. Hosts are without user names, passwords and keys.
func at(used bool, addresses ...string) (wire.ConfiguredPlace, bool) {
	hosts := []string{}
	for _, a := range addresses {
		hosts = append(hosts, hostOf(a))
	}
	return wire.ConfiguredPlace{Hosts: hosts}, used
}

// places returns the places outside the server that the operator has configured for an organization. A place that
// several services have gets the hosts of all.
func (s *Server) places(site wire.Site) map[realm.Place]wire.ConfiguredPlace {
	out := map[realm.Place]wire.ConfiguredPlace{}
	for _, x := range Services() {
		c, used := x.usedBy(s, site)
		if !used {
			continue
		}
		for _, p := range x.Places {
			hosts := append(append([]string{}, out[p].Hosts...), c.Hosts...)
			out[p] = wire.ConfiguredPlace{Hosts: hosts, LastUsed: max(out[p].LastUsed, c.LastUsed)}
		}
	}
	return out
}

// usedBy returns how a server uses the service for an organization, and false if it does not.
func (x *Service) usedBy(s *Server, site wire.Site) (wire.ConfiguredPlace, bool) {
	if x.use != nil {
		return x.use(s, site)
	}
	switch where := x.Where(&s.Settings); where {
	case ofOrganizations, ofBrowsers:
		return at(true, anyHost)
	default:
		return at(where != "", where)
	}
}

// useIncomingMail returns the mailbox, or no host if mail servers connect to this server.
func (s *Server) useIncomingMail(wire.Site) (wire.ConfiguredPlace, bool) {
	if s.IMAPHost != "" {
		return at(true, net.JoinHostPort(s.IMAPHost, strconv.Itoa(s.IMAPPort)))
	}
	return at(s.MailListen != "")
}

// useBackups returns the bucket of the backups, with the time of the newest one.
func (s *Server) useBackups(wire.Site) (wire.ConfiguredPlace, bool) {
	b := offsite.ReadStatus(s.Data)
	p, err := s3.ParsePlace(b.Place)
	if b.Place == "" || err != nil {
		return at(false)
	}
	return wire.ConfiguredPlace{Hosts: []string{p.Endpoint}, LastUsed: b.Newest}, true
}

// useLoginProviders returns the login providers of an organization.
func (s *Server) useLoginProviders(site wire.Site) (wire.ConfiguredPlace, bool) {
	entries := s.signOn.Of(site.Name)
	var addresses []string
	for _, e := range entries {
		addresses = append(addresses, e.Addresses()...)
	}
	return at(len(entries) > 0, addresses...)
}

// hostOf returns the host, with the port if it is given, of an address, or of a host without a scheme. The path of a
// socket is returned as it is.
func hostOf(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "" // settings are checked at the start
	}
	return u.Host
}

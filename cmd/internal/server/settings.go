package server

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/acme"

	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/cmd/internal/certificates"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/machine"
	"parley/snapshot/diskspace"
	"parley/snapshot/replicated"
	"parley/wire"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
)

// Settings are the values an operator can set. Each field is described by the row of AllSettings that points to it.
// Start from DefaultSettings: the zero value is not a valid configuration.
type Settings struct {
	Data      string
	URL       string
	Demo      bool
	DemoCrowd string
	NoSync    bool

	UpgradeTimeout time.Duration
	AcceptDataLoss bool

	Listen         string
	TrustedProxies string
	AllowedHosts   string
	DebugListen    string
	MaxConnections int
	MaxPerAddress  int
	ReadTimeout    time.Duration
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration

	TLS certificates.Settings

	RateLimit          int
	AnonymousRateLimit int
	LoginLimit         int
	MaxBody            int
	UploadQuota        int
	DeliveryLag        time.Duration
	ElectionTimeout    time.Duration
	CheckpointInterval time.Duration
	MaxReplicas        int
	ReplicaMemory      int
	DailyInvites       int
	Space              diskspace.Settings
	Files              string
	FilesCredentials   string
	ArchiveDays        int
	MemoryLimit        int
	AnswerMemory       int
	UnackedMemory      int

	MaxChannels          int
	DailyChannels        int
	RequestChannels      int
	RequestSubscriptions int
	MaxGroups            int
	DailyGroups          int
	MaxBots              int
	RegistrationSize     int

	OpenOrganizations bool

	JWTKeys       string
	WebhooksAllow string

	WebPushContact string
	Integrations   string
	PreviewsAllow  string

	WebDir         string
	WebDirAnyLevel bool

	SMTPHost     string
	SMTPPort     int
	SMTPUser     string
	SMTPPassword string
	SMTPFrom     string
	SMTPTLS      string
	MailListen   string
	MailDomain   string

	APNsKey    string
	APNsKeyID  string
	APNsTeam   string
	FCMAccount string
	Bouncer    string
	BouncerOrg string
	BouncerKey string

	LogLevel string
	LogJSON  bool

	Node       string
	PeerListen string
	Join       string
}

// Type is the type of a setting's value. It decides how text is parsed and what documentation calls the value.
type Type string

// The types of settings.
const (
	Text     Type = "text"
	Number   Type = "number" // a whole number, not negative
	Switch   Type = "switch" // true or false
	Duration Type = "time"   // such as 30s or 2m, not negative
)

// Setting describes one setting. Its name is the flag (--name) and the key of the TOML file; the environment variable
// is Env.
type Setting struct {
	Name    string
	Type    Type
	Default string // as an operator writes it; empty is the zero value
	Group   string // heading in the help text and on the reference page
	Meaning string
	field   func(*Settings) any // returns a pointer to the field; its Go type corresponds to Type
}

// The groups of settings, in the order in which help and documentation show them.
const (
	groupGeneral = "General"
	groupNetwork = "Network"
	groupTLS     = "TLS"
	groupLimits  = "Limits"
	groupAccess  = "Access"
	groupMail    = "Mail"
	groupPush    = "Push notifications"
	groupCluster = "Several machines"
	groupLog     = "Log"
)

// SettingGroups returns the groups in the order in which they are shown.
func SettingGroups() []string {
	return []string{groupGeneral, groupNetwork, groupTLS, groupLimits, groupAccess, groupMail, groupPush,
		groupCluster, groupLog}
}

// parkDefaults are the timeouts and limits of the HTTP server that no setting changes.
var parkDefaults = park.Config{}.WithDefaults()

// AllSettings describes every setting of a server. Flags, the TOML file, environment variables, the help text and the
// reference page are made from it.
var AllSettings = []Setting{
	{
		Name: "data", Type: Text, Default: "./data", Group: groupGeneral,
		Meaning: "data directory",
		field:   func(s *Settings) any { return &s.Data },
	},
	{
		Name: "url", Type: Text, Group: groupGeneral,
		Meaning: "external URL, such as https://chat.example.org (default: http:// or https:// and the listen address)",
		field:   func(s *Settings) any { return &s.URL },
	},
	{
		Name: "demo", Type: Switch, Default: "false", Group: groupGeneral,
		Meaning: "create a demo organization in an empty data directory, allow development logins, " +
			"and switch off rate limits that are not set",
		field: func(s *Settings) any { return &s.Demo },
	},
	{
		Name: "demo-crowd", Type: Text, Group: groupGeneral,
		Meaning: "like demo, with generated users, channels and messages for load tests: " +
			"users=N,channels=M,zipf=Z,hundred=H,room=L,messages=K,realms=R,seed=S",
		field: func(s *Settings) any { return &s.DemoCrowd },
	},
	{
		Name: "unsafe-no-sync", Type: Switch, Default: "false", Group: groupGeneral,
		Meaning: "acknowledge before data is on disk: A CRASH LOSES ACKNOWLEDGED MESSAGES; for measurements only",
		field:   func(s *Settings) any { return &s.NoSync },
	},

	{
		Name: "upgrade-timeout", Type: Duration, Default: "30s", Group: groupGeneral,
		Meaning: "how long a new program may take, during an upgrade, until it sends its first request to the " +
			"running server; one that hangs is ended then, and the running server continues",
		field: func(s *Settings) any { return &s.UpgradeTimeout },
	},
	{
		Name: "accept-data-loss", Type: Switch, Default: "false", Group: groupGeneral,
		Meaning: "start although stored messages are missing; parley log check lists them, and a backup may have them",
		field:   func(s *Settings) any { return &s.AcceptDataLoss },
	},
	{
		Name: "listen", Type: Text, Default: "127.0.0.1:9991", Group: groupNetwork,
		Meaning: "address to listen on",
		field:   func(s *Settings) any { return &s.Listen },
	},
	{
		Name: "debug-listen", Type: Text, Group: groupNetwork,
		Meaning: "address for metrics (Prometheus text) and Go profiles; it requires no login, so keep it private",
		field:   func(s *Settings) any { return &s.DebugListen },
	},
	{
		Name: "trusted-proxies", Type: Text, Group: groupNetwork,
		Meaning: "addresses or networks, comma-separated, whose X-Forwarded-For header is trusted",
		field:   func(s *Settings) any { return &s.TrustedProxies },
	},
	{
		Name: "allowed-hosts", Type: Text, Group: groupNetwork,
		Meaning: "further host names, comma-separated, at which browsers get the pages of the root organization, " +
			"such as an old name of the server; *: any. The hosts of url and tls-acme, IP addresses and names " +
			"without a dot are always allowed",
		field: func(s *Settings) any { return &s.AllowedHosts },
	},
	{
		Name: "max-connections", Type: Number, Default: "0", Group: groupNetwork,
		Meaning: "maximum number of open connections; 0: the process's limit of open files, less a reserve",
		field:   func(s *Settings) any { return &s.MaxConnections },
	},
	{
		Name: "max-address-connections", Type: Number, Default: "4096", Group: groupNetwork,
		Meaning: "maximum number of open connections from one IPv4 address or IPv6 /64, so that one client " +
			"cannot take all; 0: no limit. Loopback addresses and trusted-proxies are not limited",
		field: func(s *Settings) any { return &s.MaxPerAddress },
	},
	{
		Name: "read-timeout", Type: Duration, Default: formatDuration(parkDefaults.ReadTimeout), Group: groupNetwork,
		Meaning: "maximum time to receive a request's headers; a body may pause for twice as long",
		field:   func(s *Settings) any { return &s.ReadTimeout },
	},
	{
		Name: "write-timeout", Type: Duration, Default: formatDuration(parkDefaults.WriteTimeout), Group: groupNetwork,
		Meaning: "maximum time for a client to receive a response",
		field:   func(s *Settings) any { return &s.WriteTimeout },
	},
	{
		Name: "idle-timeout", Type: Duration, Default: formatDuration(parkDefaults.IdleTimeout), Group: groupNetwork,
		Meaning: "maximum time that a connection stays open between two requests",
		field:   func(s *Settings) any { return &s.IdleTimeout },
	},

	{
		Name: "tls-cert", Type: Text, Group: groupTLS,
		Meaning: "certificate file; with tls-key the server itself accepts TLS connections",
		field:   func(s *Settings) any { return &s.TLS.TLSCert },
	},
	{
		Name: "tls-key", Type: Text, Group: groupTLS,
		Meaning: "key file of the certificate",
		field:   func(s *Settings) any { return &s.TLS.TLSKey },
	},
	{
		Name: "tls-acme", Type: Text, Group: groupTLS,
		Meaning: "host names, comma-separated, to get certificates for by ACME (TLS-ALPN: the public port 443 must " +
			"lead to listen); the server itself then accepts TLS connections",
		field: func(s *Settings) any { return &s.TLS.ACME },
	},
	{
		Name: "tls-acme-email", Type: Text, Group: groupTLS,
		Meaning: "contact address for the certificate authority",
		field:   func(s *Settings) any { return &s.TLS.ACMEEmail },
	},
	{
		Name: "tls-acme-directory", Type: Text, Default: acme.LetsEncryptURL, Group: groupTLS,
		Meaning: "directory URL of the certificate authority",
		field:   func(s *Settings) any { return &s.TLS.ACMEDirectory },
	},

	{
		Name: "rate-limit", Type: Number, Default: strconv.Itoa(httpd.DefaultUserLimit), Group: groupLimits,
		Meaning: "requests per minute for one account at each node; 0 switches rate limits off",
		field:   func(s *Settings) any { return &s.RateLimit },
	},
	{
		Name: "anonymous-rate-limit", Type: Number, Default: strconv.Itoa(httpd.DefaultVisitorLimit),
		Group: groupLimits,
		Meaning: "requests per minute for one IP address without a login or with a failed one, at each node; " +
			"0: no limit",
		field: func(s *Settings) any { return &s.AnonymousRateLimit },
	},
	{
		Name: "login-limit", Type: Number, Default: strconv.Itoa(httpd.DefaultLoginLimit), Group: groupLimits,
		Meaning: "failed logins of one account from one IP address in half an hour; from all addresses " +
			"together ten times as many; 0: no limit",
		field: func(s *Settings) any { return &s.LoginLimit },
	},
	{
		Name: "max-body", Type: Number, Default: strconv.Itoa(1 << 20), Group: groupLimits,
		Meaning: "maximum bytes of one request body; uploads have limits of their own",
		field:   func(s *Settings) any { return &s.MaxBody },
	},
	{
		Name: "upload-quota", Type: Number, Default: "0", Group: groupLimits,
		Meaning: "MiB of uploaded files per organization; 0: no limit",
		field:   func(s *Settings) any { return &s.UploadQuota },
	},
	{
		Name: "delivery-lag", Type: Duration, Default: delivery.DefaultDeliveryLag.String(), Group: groupLimits,
		Meaning: "how long events may wait for their delivery before further requests of their organization wait; " +
			"0: they never wait",
		field: func(s *Settings) any { return &s.DeliveryLag },
	},
	{
		Name: "daily-invites", Type: Number, Default: "100", Group: groupLimits,
		Meaning: "email invitations per organization and day; 0: no limit",
		field:   func(s *Settings) any { return &s.DailyInvites },
	},
	{
		Name: "files", Type: Text, Group: groupGeneral,
		Meaning: "where uploaded files, pictures and exports are: s3://BUCKET/FOLDER?endpoint=https://HOST&" +
			"region=NAME&path-style=true (default: the recorded place, at first the data directory)",
		field: func(s *Settings) any { return &s.Files },
	},
	{
		Name: "files-credentials", Type: Text, Group: groupGeneral,
		Meaning: "file with the keys for the bucket, in the format of ~/.aws/credentials (default: " +
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment)",
		field: func(s *Settings) any { return &s.FilesCredentials },
	},
	{
		Name: "disk-min-free", Type: Number, Default: "256", Group: groupLimits,
		Meaning: "MiB of free disk space below which no files are stored (uploads, exports, thumbnails, backups); " +
			"messages are still stored",
		field: func(s *Settings) any { return &s.Space.DiskMinFree },
	},
	{
		Name: "disk-min-free-percent", Type: Number, Default: "1", Group: groupLimits,
		Meaning: "the same as a percentage of the file system; the larger of both counts",
		field:   func(s *Settings) any { return &s.Space.DiskMinFreePercent },
	},
	{
		Name: "disk-read-only", Type: Number, Default: "64", Group: groupLimits,
		Meaning: "MiB of free disk space below which every change is refused with status 507, or 503 by a core of " +
			"several, until there is space; reads and polls continue; 0: only after a write has found no space",
		field: func(s *Settings) any { return &s.Space.DiskReadOnly },
	},
	{
		Name: "disk-ballast", Type: Number, Default: "32", Group: groupLimits,
		Meaning: "MiB of a file that is removed when the disk is full, so that writes in progress can finish; 0: none",
		field:   func(s *Settings) any { return &s.Space.DiskBallast },
	},
	{
		Name: "archive-days", Type: Number, Default: "30", Group: groupLimits,
		Meaning: "days for which deleted messages can be restored; 0: they are deleted permanently at once",
		field:   func(s *Settings) any { return &s.ArchiveDays },
	},
	{
		Name: "memory-limit", Type: Number, Default: "0", Group: groupLimits,
		Meaning: "MiB of memory that the server tries not to exceed; 0: GOMEMLIMIT, or nine tenths of the smallest " +
			"limit of its control groups and the machine's memory",
		field: func(s *Settings) any { return &s.MemoryLimit },
	},
	{
		Name: "answer-memory", Type: Number, Default: "0", Group: groupLimits,
		Meaning: "MiB of memory for answers that are being built or that clients have not received; one account can " +
			"use an eighth; 0: an eighth of memory-limit, at most 128",
		field: func(s *Settings) any { return &s.AnswerMemory },
	},
	{
		Name: "unacked-memory", Type: Number, Default: "0", Group: groupLimits,
		Meaning: "MiB of memory for events that clients have not acknowledged; one organization can use half, " +
			"one account a sixteenth; 0: a quarter of memory-limit, at most 1024",
		field: func(s *Settings) any { return &s.UnackedMemory },
	},
	{
		Name: "max-channels", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.Channels), Group: groupLimits,
		Meaning: "channels of one organization, archived ones included; 0: no limit",
		field:   func(s *Settings) any { return &s.MaxChannels },
	},
	{
		Name: "daily-channels", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.ChannelsPerDay),
		Group: groupLimits,
		Meaning: "channels that one user, with the user's bots, creates in 24 hours; administrators have no limit; " +
			"0: no limit",
		field: func(s *Settings) any { return &s.DailyChannels },
	},
	{
		Name: "request-channels", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.ChannelsPerCall),
		Group:   groupLimits,
		Meaning: "channels that one request creates; 0: no limit",
		field:   func(s *Settings) any { return &s.RequestChannels },
	},
	{
		Name: "request-subscriptions", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.JoinsPerCall),
		Group:   groupLimits,
		Meaning: "subscriptions that one request adds or removes: users times channels; 0: no limit",
		field:   func(s *Settings) any { return &s.RequestSubscriptions },
	},
	{
		Name: "max-groups", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.Groups), Group: groupLimits,
		Meaning: "user groups of one organization, deactivated ones included; 0: no limit",
		field:   func(s *Settings) any { return &s.MaxGroups },
	},
	{
		Name: "daily-groups", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.GroupsPerDay),
		Group:   groupLimits,
		Meaning: "user groups that one user creates in 24 hours; administrators have no limit; 0: no limit",
		field:   func(s *Settings) any { return &s.DailyGroups },
	},
	{
		Name: "max-bots", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.BotsPerUser), Group: groupLimits,
		Meaning: "bots of one user, deactivated ones included; 0: no limit",
		field:   func(s *Settings) any { return &s.MaxBots },
	},
	{
		Name: "registration-size", Type: Number, Default: strconv.Itoa(realm.DefaultLimits.RegistrationSize >> 20),
		Group: groupLimits,
		Meaning: "MiB of a registration that all users of an organization share: channels, accounts, groups and " +
			"smaller lists; requests that would exceed it are refused; 0: no limit",
		field: func(s *Settings) any { return &s.RegistrationSize },
	},

	{
		Name: "open-organizations", Type: Switch, Default: "false", Group: groupAccess,
		Meaning: "every visitor can create an organization with a subdomain of their choice",
		field:   func(s *Settings) any { return &s.OpenOrganizations },
	},
	{
		Name: "jwt-keys", Type: Text, Group: groupAccess,
		Meaning: "keys that sign login tokens (JWT, HS256): subdomain=key, comma-separated; for the root " +
			"organization the subdomain before the = is empty",
		field: func(s *Settings) any { return &s.JWTKeys },
	},
	{
		Name: "webhooks-allow", Type: Text, Group: groupAccess,
		Meaning: "private networks, comma-separated, that outgoing-webhook bots and notifications of browsers may use",
		field:   func(s *Settings) any { return &s.WebhooksAllow },
	},
	{
		Name: "integrations", Type: Text, Group: groupAccess,
		Meaning: "folder with files of integrations (TOML) besides the included ones",
		field:   func(s *Settings) any { return &s.Integrations },
	},
	{
		Name: "previews-allow", Type: Text, Group: groupAccess,
		Meaning: "private networks, comma-separated, whose pages the server is allowed to fetch for link previews",
		field:   func(s *Settings) any { return &s.PreviewsAllow },
	},
	{
		Name: "web-dir", Type: Text, Group: groupGeneral,
		Meaning: "directory with an unpacked official release, whose web app is the start page of every organization",
		field:   func(s *Settings) any { return &s.WebDir },
	},
	{
		Name: "web-dir-any-level", Type: Switch, Default: "false", Group: groupGeneral,
		Meaning: "serve the web app of web-dir even if this server does not know its feature level; it may not load",
		field:   func(s *Settings) any { return &s.WebDirAnyLevel },
	},

	{
		Name: "smtp-host", Type: Text, Group: groupMail,
		Meaning: "SMTP server for outgoing email; if empty, emails are written to the outbox folder in the data " +
			"directory",
		field: func(s *Settings) any { return &s.SMTPHost },
	},
	{
		Name: "smtp-port", Type: Number, Default: "587", Group: groupMail,
		Meaning: "port of the SMTP server, 1 to 65535",
		field:   func(s *Settings) any { return &s.SMTPPort },
	},
	{
		Name: "smtp-user", Type: Text, Group: groupMail,
		Meaning: "user name at the SMTP server, if it requires a login",
		field:   func(s *Settings) any { return &s.SMTPUser },
	},
	{
		Name: "smtp-password", Type: Text, Group: groupMail,
		Meaning: "password at the SMTP server",
		field:   func(s *Settings) any { return &s.SMTPPassword },
	},
	{
		Name: "smtp-from", Type: Text, Group: groupMail,
		Meaning: "sender of outgoing email (default: noreply at the external URL's host)",
		field:   func(s *Settings) any { return &s.SMTPFrom },
	},
	{
		Name: "smtp-tls", Type: Text, Default: mail.StartTLS, Group: groupMail,
		Meaning: "starttls, tls (from the first byte) or none",
		field:   func(s *Settings) any { return &s.SMTPTLS },
	},
	{
		Name: "mail-listen", Type: Text, Group: groupMail,
		Meaning: "address to receive email for channels at, by SMTP; if empty, channels receive no email",
		field:   func(s *Settings) any { return &s.MailListen },
	},
	{
		Name: "mail-domain", Type: Text, Group: groupMail,
		Meaning: "domain of the email addresses of channels (default: the external URL's host)",
		field:   func(s *Settings) any { return &s.MailDomain },
	},

	{
		Name: "push-apns-key", Type: Text, Group: groupPush,
		Meaning: "key file (.p8) for Apple's push service",
		field:   func(s *Settings) any { return &s.APNsKey },
	},
	{
		Name: "push-apns-key-id", Type: Text, Group: groupPush,
		Meaning: "ID of that key",
		field:   func(s *Settings) any { return &s.APNsKeyID },
	},
	{
		Name: "push-apns-team", Type: Text, Group: groupPush,
		Meaning: "Apple team that the key belongs to",
		field:   func(s *Settings) any { return &s.APNsTeam },
	},
	{
		Name: "push-fcm-account", Type: Text, Group: groupPush,
		Meaning: "credentials file (JSON) of the service account for Google's push service",
		field:   func(s *Settings) any { return &s.FCMAccount },
	},
	{
		Name: "push-bouncer", Type: Text, Group: groupPush,
		Meaning: "URL of a push bouncer: a server that forwards push notifications for this server",
		field:   func(s *Settings) any { return &s.Bouncer },
	},
	{
		Name: "push-bouncer-org", Type: Text, Group: groupPush,
		Meaning: "ID of this server at the push bouncer",
		field:   func(s *Settings) any { return &s.BouncerOrg },
	},
	{
		Name: "push-bouncer-key", Type: Text, Group: groupPush,
		Meaning: "key of this server at the push bouncer",
		field:   func(s *Settings) any { return &s.BouncerKey },
	},
	{
		Name: "web-push-contact", Type: Text, Group: groupPush,
		Meaning: "address of the operator (email or https) for push services of browsers; empty: the server's",
		field:   func(s *Settings) any { return &s.WebPushContact },
	},

	{
		Name: "node", Type: Text, Group: groupCluster,
		Meaning: "id of this node in its cluster: lower-case letters, digits and dashes",
		field:   func(s *Settings) any { return &s.Node },
	},
	{
		Name: "peer-listen", Type: Text, Group: groupCluster,
		Meaning: "address at which the other nodes of the cluster reach this one (default: the one of the last start)",
		field:   func(s *Settings) any { return &s.PeerListen },
	},
	{
		Name: "election-timeout", Type: Duration, Default: replicated.DefaultElectionTimeout.String(),
		Group:   groupCluster,
		Meaning: "how long a core waits for the leader before it asks for votes; longer if hosts or links are slow",
		field:   func(s *Settings) any { return &s.ElectionTimeout },
	},
	{
		Name: "checkpoint-interval", Type: Duration, Default: replicated.DefaultCheckpointInterval.String(),
		Group:   groupCluster,
		Meaning: "time between two comparisons of the logs of all cores",
		field:   func(s *Settings) any { return &s.CheckpointInterval },
	},
	{
		Name: "max-replicas", Type: Number, Default: strconv.Itoa(cluster.DefaultMaxReplicas), Group: groupCluster,
		Meaning: "organizations that an edge has in memory at most; beyond it those without clients are unloaded, " +
			"and if all have clients, requests for others are answered 503",
		field: func(s *Settings) any { return &s.MaxReplicas },
	},
	{
		Name: "replica-memory", Type: Number, Default: "0", Group: groupCluster,
		Meaning: "MiB of loaded rows of all organizations that an edge has in memory, beyond which it loads no other " +
			"one; 0: a quarter of memory-limit",
		field: func(s *Settings) any { return &s.ReplicaMemory },
	},
	{
		Name: "join", Type: Text, Group: groupCluster,
		Meaning: "token of parley cluster token, with which a new node joins a cluster; ignored once it has joined",
		field:   func(s *Settings) any { return &s.Join },
	},

	{
		Name: "log-level", Type: Text, Default: "info", Group: groupLog,
		Meaning: "debug, info, warn or error",
		field:   func(s *Settings) any { return &s.LogLevel },
	},
	{
		Name: "log-json", Type: Switch, Default: "false", Group: groupLog,
		Meaning: "write the log as JSON lines",
		field:   func(s *Settings) any { return &s.LogJSON },
	},
}

// EnvironmentPrefix begins the name of every environment variable that sets a setting.
const EnvironmentPrefix = "PARLEY_"

// Env returns the name of the environment variable: the prefix and the name in capitals, with _ for -.
func (x *Setting) Env() string {
	return EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(x.Name, "-", "_"))
}

// Field returns a pointer to the setting's field in s: *string, *int, *bool or *time.Duration.
func (x *Setting) Field(s *Settings) any { return x.field(s) }

// Set parses text and stores the value in s. It does not check the range; Check does that for all sources of values.
func (x *Setting) Set(s *Settings, text string) error {
	switch field := x.field(s).(type) {
	case *string:
		*field = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		*field = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		*field = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 30s", text)
		}
		*field = d
	default:
		panic(fmt.Sprintf("BUG: setting %s has a field of type %T", x.Name, field))
	}
	return nil
}

// DefaultSettings returns the value of every setting that no file, variable or flag changes.
func DefaultSettings() Settings {
	var s Settings
	for i := range AllSettings {
		if x := &AllSettings[i]; x.Default != "" {
			if err := x.Set(&s, x.Default); err != nil {
				panic(fmt.Sprintf("BUG: default of setting %s: %v", x.Name, err))
			}
		}
	}
	return s
}

// formatDuration writes a duration as an operator would: 2m, not 2m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

// minElectionTimeout is the shortest election-timeout: a shorter one would depose leaders while the process waits for a
// processor.
const minElectionTimeout = 100 * time.Millisecond

// minCheckpointInterval is the shortest checkpoint-interval: a checkpoint is an entry of the log, and each core reads
// the entries before it again.
const minCheckpointInterval = time.Second

// Check rejects values that are out of range or contradict each other, and completes values that follow from others.
// given reports whether an operator has set a setting.
func (s *Settings) Check(given func(name string) bool) error {
	for i := range AllSettings {
		x := &AllSettings[i]
		switch field := x.field(s).(type) {
		case *int:
			if *field < 0 {
				return fmt.Errorf("%s must not be negative: %d", x.Name, *field)
			}
		case *time.Duration:
			if *field < 0 {
				return fmt.Errorf("%s must not be negative: %s", x.Name, formatDuration(*field))
			}
		}
	}
	if s.ElectionTimeout < minElectionTimeout {
		return fmt.Errorf("election-timeout must be at least %s, not %s", formatDuration(minElectionTimeout),
			formatDuration(s.ElectionTimeout))
	}
	if s.CheckpointInterval < minCheckpointInterval {
		return fmt.Errorf("checkpoint-interval must be at least %s, not %s", formatDuration(minCheckpointInterval),
			formatDuration(s.CheckpointInterval))
	}
	if s.MaxReplicas < 1 {
		return fmt.Errorf("max-replicas must be at least 1, not %d", s.MaxReplicas)
	}
	if s.SMTPHost != "" && (s.SMTPPort < 1 || s.SMTPPort > 65535) {
		return fmt.Errorf("smtp-port must be between 1 and 65535, not %d", s.SMTPPort)
	}
	if s.Demo || s.DemoCrowd != "" { // for trials and load tests: no limits unless they are set
		if !given("rate-limit") {
			s.RateLimit = 0
		}
		if !given("anonymous-rate-limit") {
			s.AnonymousRateLimit = 0
		}
		if !given("daily-channels") {
			s.DailyChannels = 0
		}
		if !given("daily-groups") {
			s.DailyGroups = 0
		}
	}
	if err := s.TLS.Check(); err != nil {
		return err
	}
	if s.URL == "" {
		scheme := "http://"
		if s.TLS.TLSCert != "" || s.TLS.ACME != "" {
			scheme = "https://"
		}
		s.URL = scheme + s.Listen
	}
	s.URL = strings.TrimSuffix(s.URL, "/")
	return nil
}

// memory returns how much memory the process should use at most.
func (s *Settings) memory() machine.MemoryLimit { return machine.ChooseMemoryLimit(s.MemoryLimit) }

// newSites returns the table of the server's organizations and hosts.
func (s *Settings) newSites() *siteTable {
	t := newSiteTable(s.URL)
	t.allowHosts(strings.Split(s.AllowedHosts+","+s.TLS.ACME, ","), s.TrustedProxies != "")
	return t
}

// realmLimits returns the limits of the objects that users of an organization create.
func (s *Settings) realmLimits() realm.Limits {
	limit := func(n int) int {
		if n == 0 {
			return math.MaxInt32 // no limit
		}
		return n
	}
	return realm.Limits{
		Channels:         limit(s.MaxChannels),
		ChannelsPerDay:   limit(s.DailyChannels),
		ChannelsPerCall:  limit(s.RequestChannels),
		JoinsPerCall:     limit(s.RequestSubscriptions),
		Groups:           limit(s.MaxGroups),
		GroupsPerDay:     limit(s.DailyGroups),
		BotsPerUser:      limit(s.MaxBots),
		RegistrationSize: limit(min(s.RegistrationSize, math.MaxInt32>>20) << 20),
	}
}

// minJWTKeyBytes is the minimum length of a key: as long as an HS256 signature.
const minJWTKeyBytes = 32

// parseJWTKeys returns the keys of jwt-keys by subdomain.
func (s *Settings) parseJWTKeys() (map[string]string, error) {
	keys := map[string]string{}
	for _, pair := range strings.Split(s.JWTKeys, ",") {
		if pair == "" {
			continue
		}
		subdomain, key, ok := strings.Cut(pair, "=")
		if !ok || len(key) < minJWTKeyBytes {
			return nil, fmt.Errorf("jwt-keys must be subdomain=key, with keys of at least %d bytes", minJWTKeyBytes)
		}
		keys[strings.TrimSpace(subdomain)] = key
	}
	return keys, nil
}

// setListenAddress stores the address that the server really listens on: port 0 means any free port.
func (s *Settings) setListenAddress(addr string) {
	if strings.HasSuffix(s.Listen, ":0") {
		s.URL = strings.Replace(s.URL, s.Listen, addr, 1)
		s.Listen = addr
	}
}

// parkConfig returns the configuration of the HTTP connections.
func (s *Settings) parkConfig() park.Config {
	return park.Config{
		BodyLimit:    bodyLimit(s.MaxBody),
		MaxBody:      s.MaxBody,
		MaxConns:     s.MaxConnections,
		ReadTimeout:  s.ReadTimeout,
		WriteTimeout: s.WriteTimeout,
		IdleTimeout:  s.IdleTimeout,

		MaxConnsPerIP: s.MaxPerAddress,
		MaxAnswers:    s.memory().Answers(s.AnswerMemory),
	}
}

// Limits in bytes of bodies that are larger than ordinary forms: a file with the rest of its multipart body; the
// whole storage of a bot, whose ten million characters take up to twelve bytes each when they are escaped.
const (
	uploadBody  = wire.MaxUploadBytes + 64<<10
	pictureBody = wire.MaxAvatarBytes + 64<<10
	storageBody = 130 << 20
)

// largeBodies lists the endpoints that accept larger bodies than the setting max-body. Paths are prefixes.
var largeBodies = []struct {
	method, path string
	bytes        int
}{
	{"POST", "/user_uploads", uploadBody},
	{"POST", "/users/me/avatar", pictureBody},
	{"POST", "/realm/emoji/", pictureBody},
	{"POST", "/realm/icon", pictureBody},
	{"POST", "/realm/logo", pictureBody},
	{"POST", "/bots", pictureBody},
	{"PATCH", "/bots/", pictureBody},
	{"PUT", "/bot_storage", storageBody},
	{"POST", "/tus", uploadBody},
	{"PATCH", "/tus/", uploadBody},
}

// bodyLimit returns a function that returns the maximum bytes of a request's body.
func bodyLimit(ordinary int) func(method, target []byte) int {
	return func(method, target []byte) int {
		for _, prefix := range []string{"/api/v1", "/json"} {
			path, ok := strings.CutPrefix(string(target), prefix)
			for _, l := range largeBodies {
				if ok && string(method) == l.method && strings.HasPrefix(path, l.path) {
					return l.bytes
				}
			}
		}
		return ordinary
	}
}

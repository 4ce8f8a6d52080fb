package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/actors/delivery"
	"parley/actors/realm"
	"parley/actors/registry"
	"parley/cmd/internal/certificates"
	"parley/cmd/internal/cluster"
	"parley/cmd/internal/handover"
	"parley/cmd/internal/logs"
	"parley/cmd/internal/machine"
	"parley/cmd/internal/orgfiles"
	"parley/cmd/internal/sites"
	"parley/snapshot"
	"parley/snapshot/diskspace"
	"parley/snapshot/replicated"
	"parley/wire"
	"parley/wire/assist"
	"parley/wire/calls"
	"parley/wire/gifs"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
	"parley/wire/push"
	"parley/wire/signon"
	"parley/wire/webapp"
)

// Settings are the values an operator can set. Table describes them. Start from DefaultSettings: the zero value is not
// a valid configuration.
type Settings struct {
	Data          string
	URL           string
	Demo          bool
	DemoContent   bool
	DemoCrowd     string
	Listen        string
	DebugListen   string
	AllowedHosts  string
	WebhooksAllow string
	Integrations  string
	PreviewsAllow string

	storeSettings
	upgradeSettings
	fileSettings
	webAppSettings
	rateSettings
	signOnSettings
	connectionSettings
	endpointSettings
	deliverySettings
	memorySettings
	realmSettings
	mailSettings
	pushSettings
	assistSettings
	gifSettings
	callSettings
	nodeSettings
	replicationSettings
	logSettings
	TLS   certificates.Settings
	Space diskspace.Settings
}

// The settings that are declared beside their subject.
type (
	storeSettings       = snapshot.Settings
	upgradeSettings     = handover.Settings
	fileSettings        = orgfiles.Settings
	webAppSettings      = webapp.Settings
	rateSettings        = httpd.Settings
	signOnSettings      = signon.Settings
	connectionSettings  = park.Settings
	endpointSettings    = wire.Settings
	deliverySettings    = delivery.Settings
	memorySettings      = machine.Settings
	realmSettings       = realm.Settings
	mailSettings        = mail.Settings
	pushSettings        = push.Settings
	assistSettings      = assist.Settings
	gifSettings         = gifs.Settings
	callSettings        = calls.Settings
	nodeSettings        = cluster.Settings
	replicationSettings = replicated.Settings
	logSettings         = logs.Settings
)

// Table describes every setting of a server, with pointers to the values of s. It is in the order of the reference
// page, within a group.
func (s *Settings) Table() []registry.Setting {
	return slices.Concat(s.ownTable(), s.storeSettings.Table(), s.upgradeSettings.Table(), s.fileSettings.Table(),
		s.webAppSettings.Table(), s.rateSettings.Table(), s.connectionSettings.Table(), s.TLS.Table(),
		s.endpointSettings.Table(), s.signOnSettings.Table(), s.deliverySettings.Table(), s.Space.Table(),
		s.memorySettings.Table(), s.realmSettings.Table(), s.mailSettings.Table(), s.pushSettings.Table(),
		s.assistSettings.Table(), s.gifSettings.Table(), s.callSettings.Table(), s.nodeSettings.Table(),
		s.replicationSettings.Table(), s.logSettings.Table())
}

// ownTable describes the settings of the server as a whole.
func (s *Settings) ownTable() []registry.Setting {
	return []registry.Setting{
		{
			Name: "data", Default: "./data", Group: registry.General, Value: &s.Data,
			Meaning: "data directory",
		},
		{
			Name: "url", Group: registry.General, Value: &s.URL,
			Meaning: "external URL, such as https://chat.example.org (default: http:// or https:// and the listen " +
				"address)",
		},
		{
			Name: "demo", Default: "false", Group: registry.General, Value: &s.Demo,
			Meaning: "create a demo organization in an empty data directory, allow development logins, " +
				"and switch off rate limits that are not set",
		},
		{
			Name: "demo-content", Default: "true", Group: registry.General, Value: &s.DemoContent,
			Meaning: "fill the demo organization with some days of conversations; false: only three messages, " +
				"for tests",
		},
		{
			Name: "demo-crowd", Group: registry.General, Value: &s.DemoCrowd,
			Meaning: "like demo, with generated users, channels and messages for load tests: " +
				"users=N,channels=M,zipf=Z,hundred=H,room=L,messages=K,realms=R,seed=S",
		},
		{
			Name: "listen", Default: "127.0.0.1:9991", Group: registry.Network, Value: &s.Listen,
			Meaning: "address to listen on",
		},
		{
			Name: "debug-listen", Group: registry.Network, Value: &s.DebugListen,
			Meaning: "address for metrics (Prometheus text) and Go profiles; it requires no login, so keep it private",
		},
		{
			Name: "allowed-hosts", Group: registry.Network, Value: &s.AllowedHosts,
			Meaning: "further host names, comma-separated, at which browsers get the pages of the root organization, " +
				"such as an old name of the server; *: any. The hosts of url and tls-acme, IP addresses and names " +
				"without a dot are always allowed",
		},
		{
			Name: "webhooks-allow", Group: registry.Access, Value: &s.WebhooksAllow,
			Meaning: "private networks, comma-separated, that outgoing-webhook bots and notifications of browsers " +
				"may use",
		},
		{
			Name: "integrations", Group: registry.Access, Value: &s.Integrations,
			Meaning: "folder with files of integrations (TOML) besides the included ones",
		},
		{
			Name: "previews-allow", Group: registry.Access, Value: &s.PreviewsAllow,
			Meaning: "private networks, comma-separated, whose pages the server is allowed to fetch for link previews",
		},
	}
}

// DefaultSettings returns the value of every setting that no file, variable or flag changes.
func DefaultSettings() Settings {
	var s Settings
	registry.SetDefaults(s.Table())
	return s
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
	for _, x := range s.Table() {
		if err := x.CheckNegative(); err != nil {
			return err
		}
	}
	if s.ElectionTimeout < minElectionTimeout {
		return fmt.Errorf("election-timeout must be at least %s, not %s", registry.FormatDuration(minElectionTimeout),
			registry.FormatDuration(s.ElectionTimeout))
	}
	if s.CheckpointInterval < minCheckpointInterval {
		return fmt.Errorf("checkpoint-interval must be at least %s, not %s",
			registry.FormatDuration(minCheckpointInterval), registry.FormatDuration(s.CheckpointInterval))
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

// openWebApp reads the web app of the setting web-dir. It returns nil if the setting is empty.
func (s *Settings) openWebApp() (*webapp.Release, error) {
	if s.WebDir == "" {
		return nil, nil
	}
	app, err := webapp.Open(s.WebDir, s.WebDirAnyLevel)
	if err != nil {
		return nil, fmt.Errorf("web-dir %s: %w", s.WebDir, err)
	}
	return app, nil
}

// memory returns how much memory the process should use at most.
func (s *Settings) memory() machine.MemoryLimit { return machine.ChooseMemoryLimit(s.MemoryLimit) }

// newSites returns the table of the server's organizations and hosts.
func (s *Settings) newSites() *sites.Table {
	t := sites.New(s.URL)
	t.AllowHosts(strings.Split(s.AllowedHosts+","+s.TLS.ACME, ","), s.TrustedProxies != "")
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
		Users:            limit(s.MaxUsers),
		ShortListFrom:    limit(s.ShortUserList),
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
		MaxHTTP2:     s.MaxHTTP2,
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

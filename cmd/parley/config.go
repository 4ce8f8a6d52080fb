package main

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"golang.org/x/crypto/acme"

	"parley/wire"
	"parley/wire/httpd"
	"parley/wire/httpd/park"
	"parley/wire/mail"
)

// config is everything a server can be told. It comes from defaults, then the file, then the environment, then flags:
// the later wins. A key of the file is the name in the toml tag; its environment variable is PARLEY_ and the name in
// capitals.
type config struct {
	Data      string `toml:"data" help:"data directory"`
	Listen    string `toml:"listen" help:"address to listen on"`
	URL       string `toml:"url" help:"external URL, such as https://chat.example.org (default: http:// and the listen address)"`
	Demo      bool   `toml:"demo" help:"make a demo organization in an empty data directory, and allow development logins"`
	DemoCrowd string `toml:"demo-crowd" help:"like demo, with a seeded crowd for load tests: users=N,channels=M,zipf=Z,hundred=H,messages=K,realms=R,seed=S"`
	NoSync    bool   `toml:"unsafe-no-sync" help:"acknowledge before anything is on disk: A CRASH LOSES ACKNOWLEDGED MESSAGES; for measurements only"`
	LogLevel  string `toml:"log-level" help:"debug, info, warn or error"`
	LogJSON   bool   `toml:"log-json" help:"log as JSON lines"`
	TLSCert   string `toml:"tls-cert" help:"certificate file; with tls-key the server speaks TLS itself"`
	TLSKey    string `toml:"tls-key" help:"key file of the certificate"`

	ACME          string `toml:"tls-acme" help:"names, comma-separated, to get certificates for by ACME (TLS-ALPN: the world's port 443 must lead to listen); the server then speaks TLS itself"`
	ACMEEmail     string `toml:"tls-acme-email" help:"address the authority may write to"`
	ACMEDirectory string `toml:"tls-acme-directory" help:"directory URL of the authority"`

	DebugListen    string `toml:"debug-listen" help:"address for metrics (Prometheus text) and Go profiles; asks no login, so keep it private"`
	TrustedProxies string `toml:"trusted-proxies" help:"addresses or networks, comma-separated, whose X-Forwarded-For is believed"`

	WebhooksAllow string `toml:"webhooks-allow" help:"networks inside, comma-separated, that outgoing-webhook bots may call nevertheless"`

	PreviewsAllow string `toml:"previews-allow" help:"networks inside, comma-separated, whose pages may be fetched nevertheless to preview links to them"`

	JWTKeys string `toml:"jwt-keys" help:"who may log people in with a signed token (HS256): subdomain=key, comma-separated; the root organization has no name before the ="`

	RateLimit      int           `toml:"rate-limit" help:"requests a minute of one account; 0 switches rate limits off"`
	AnonymousLimit int           `toml:"anonymous-rate-limit" help:"requests a minute of one address without login, or with one that fails"`
	LoginLimit     int           `toml:"login-limit" help:"failed logins of one account in half an hour"`
	MaxBody        int           `toml:"max-body" help:"bytes of one request's body, uploads apart"`
	UploadQuota    int           `toml:"upload-quota" help:"MiB of one organization's uploaded files; 0: no limit"`
	MaxConnections int           `toml:"max-connections" help:"open connections; 0: what the process may open"`
	ReadTimeout    time.Duration `toml:"read-timeout" help:"time a client may take to send a request's head; a body may pause for twice as long"`
	WriteTimeout   time.Duration `toml:"write-timeout" help:"time a client may take to read an answer"`
	IdleTimeout    time.Duration `toml:"idle-timeout" help:"time a connection may rest between requests"`

	DailyInvites int    `toml:"daily-invites" help:"people an organization may invite by mail in a day; 0: any number"`
	SMTPHost     string `toml:"smtp-host" help:"server that takes the letters we send; without one they go to the outbox folder in the data directory"`
	SMTPPort     int    `toml:"smtp-port" help:"its port"`
	SMTPUser     string `toml:"smtp-user" help:"account there, if it asks for one"`
	SMTPPassword string `toml:"smtp-password" help:"password of the account"`
	SMTPFrom     string `toml:"smtp-from" help:"sender of our letters (default: noreply at the external URL's host)"`
	SMTPTLS      string `toml:"smtp-tls" help:"starttls, tls (from the first byte) or none"`

	MailListen string `toml:"mail-listen" help:"address to take mail for channels at, by SMTP; none: channels get no mail"`
	MailDomain string `toml:"mail-domain" help:"domain of channels' mail addresses (default: the external URL's host)"`

	APNsKey    string `toml:"push-apns-key" help:"key file (.p8) for Apple's push service"`
	APNsKeyID  string `toml:"push-apns-key-id" help:"id of that key"`
	APNsTeam   string `toml:"push-apns-team" help:"team the key belongs to"`
	FCMAccount string `toml:"push-fcm-account" help:"credentials file (JSON) of the service account for Google's push service"`
	Bouncer    string `toml:"push-bouncer" help:"URL of a server that passes push notifications on for us"`
	BouncerOrg string `toml:"push-bouncer-org" help:"our id there"`
	BouncerKey string `toml:"push-bouncer-key" help:"our key there"`
}

func defaults() config {
	p := park.Config{}.WithDefaults()
	return config{ReadTimeout: p.ReadTimeout, WriteTimeout: p.WriteTimeout, IdleTimeout: p.IdleTimeout, Data: "./data", Listen: "127.0.0.1:9991", LogLevel: "info", MaxBody: 1 << 20, RateLimit: httpd.DefaultUserLimit, AnonymousLimit: httpd.DefaultVisitorLimit, LoginLimit: httpd.DefaultLoginLimit,
		ACMEDirectory: acme.LetsEncryptURL, DailyInvites: 100, SMTPPort: 587, SMTPTLS: mail.StartTLS}
}

// environmentPrefix is the prefix of variables.
const environmentPrefix = "PARLEY_"

// eachSetting calls fn with every setting of a config.
func (c *config) eachSetting(fn func(name, help string, v reflect.Value) error) error {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if err := fn(f.Tag.Get("toml"), f.Tag.Get("help"), v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// settingText is a setting as one writes it.
func settingText(v reflect.Value) string {
	text := fmt.Sprint(v.Interface())
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

func setSetting(v reflect.Value, text string) error {
	switch v.Interface().(type) {
	case string:
		v.SetString(text)
	case bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		v.SetBool(b)
	case int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetInt(int64(n))
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a time such as 30s", text)
		}
		v.SetInt(int64(d))
	}
	return nil
}

// readConfig puts defaults, file, environment and flags together.
func readConfig(args []string) (config, error) {
	c := defaults()
	file, given, err := c.parseFlags(args)
	if err != nil {
		return c, err
	}
	chosen := map[string]bool{} // settings that are not left to their defaults
	if file != "" {
		if err := c.readFile(file, chosen); err != nil {
			return c, err
		}
	}
	if err := c.override(given, chosen); err != nil {
		return c, err
	}
	if c.Demo || c.DemoCrowd != "" { // a rig to try things in and to load: it does not brake unless it is told to
		if !chosen["rate-limit"] {
			c.RateLimit = 0
		}
		if !chosen["anonymous-rate-limit"] {
			c.AnonymousLimit = 0
		}
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return c, errors.New("tls-cert and tls-key go together")
	}
	if err := c.checkACME(); err != nil {
		return c, err
	}
	if c.URL == "" {
		scheme := "http://"
		if c.TLSCert != "" || c.ACME != "" {
			scheme = "https://"
		}
		c.URL = scheme + c.Listen
	}
	c.URL = strings.TrimSuffix(c.URL, "/")
	return c, nil
}

// parseFlags returns which file to read, and the settings given as flags, as they were written: they count last.
func (c *config) parseFlags(args []string) (file string, given map[string]string, err error) {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	fs.StringVar(&file, "config", os.Getenv(environmentPrefix+"CONFIG"), "configuration file (TOML)")
	given = map[string]string{}
	c.eachSetting(func(name, help string, v reflect.Value) error {
		note := func(text string) error {
			given[name] = text
			return nil
		}
		if v.Kind() == reflect.Bool {
			fs.BoolFunc(name, help, note)
			return nil
		}
		if d := settingText(v); d != "" {
			help += " (default " + d + ")"
		}
		fs.Func(name, help, note)
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return "", nil, err
	}
	if fs.NArg() > 0 {
		return "", nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return file, given, nil
}

func (c *config) readFile(file string, chosen map[string]bool) error {
	meta, err := toml.DecodeFile(file, c)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("%s: unknown setting %q", file, unknown[0].String())
	}
	for _, k := range meta.Keys() {
		chosen[k.String()] = true
	}
	return nil
}

// override takes what the environment and then the flags say.
func (c *config) override(given map[string]string, chosen map[string]bool) error {
	return c.eachSetting(func(name, _ string, v reflect.Value) error {
		env := environmentPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if text, ok := os.LookupEnv(env); ok {
			chosen[name] = true
			if err := setSetting(v, text); err != nil {
				return fmt.Errorf("%s: %w", env, err)
			}
		}
		if text, ok := given[name]; ok {
			chosen[name] = true
			if err := setSetting(v, text); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
		if v.CanInt() && v.Int() < 0 {
			return fmt.Errorf("%s: %s is less than nothing", name, settingText(v))
		}
		return nil
	})
}

// minJWTKey is how long a key of HS256 must be, in bytes: as long as what it makes.
const minJWTKey = 32

// jwtKeys reads the keys of those who may log people in, by subdomain.
func (c *config) jwtKeys() (map[string]string, error) {
	keys := map[string]string{}
	for _, pair := range strings.Split(c.JWTKeys, ",") {
		if pair == "" {
			continue
		}
		name, key, ok := strings.Cut(pair, "=")
		if !ok || len(key) < minJWTKey {
			return nil, fmt.Errorf("jwt-keys: want subdomain=key with keys of at least %d bytes", minJWTKey)
		}
		keys[strings.TrimSpace(name)] = key
	}
	return keys, nil
}

// setListenAddress notes where the server really listens: port 0 means any that is free.
func (c *config) setListenAddress(addr string) {
	if strings.HasSuffix(c.Listen, ":0") {
		c.URL = strings.Replace(c.URL, c.Listen, addr, 1)
		c.Listen = addr
	}
}

func (c *config) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return nil, fmt.Errorf("log-level: %q is not debug, info, warn or error", c.LogLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	if c.LogJSON {
		return slog.New(newLimitedHandler(slog.NewJSONHandler(os.Stderr, o))), nil
	}
	return slog.New(newLimitedHandler(slog.NewTextHandler(os.Stderr, o))), nil
}

func (c *config) park() park.Config {
	return park.Config{BodyLimit: bodyLimit(c.MaxBody), MaxBody: c.MaxBody, MaxConns: c.MaxConnections, ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout, IdleTimeout: c.IdleTimeout}
}

// Bodies larger than ordinary forms, in bytes: a file and the rest of its multipart body; a bot's whole storage, whose
// ten million characters take up to twelve bytes each when they are escaped.
const (
	uploadBody  = wire.MaxUploadBytes + 64<<10
	pictureBody = wire.MaxAvatarBytes + 64<<10
	storageBody = 130 << 20
)

// bodyLimit allows some endpoints larger bodies than the rest.
func bodyLimit(ordinary int) func(method, target []byte) int {
	large := []struct {
		method, path string
		bytes        int
	}{{"POST", "/user_uploads", uploadBody}, {"POST", "/users/me/avatar", pictureBody}, {"POST", "/realm/emoji/", pictureBody}, {"POST", "/realm/icon", pictureBody}, {"POST", "/realm/logo", pictureBody}, {"POST", "/bots", pictureBody}, {"PATCH", "/bots/", pictureBody},
		{"PUT", "/bot_storage", storageBody}, {"POST", "/tus", uploadBody}, {"PATCH", "/tus/", uploadBody}}
	return func(method, target []byte) int {
		path := string(target)
		for _, prefix := range []string{"/api/v1", "/json"} {
			rest, ok := strings.CutPrefix(path, prefix)
			for _, l := range large {
				if ok && string(method) == l.method && strings.HasPrefix(rest, l.path) {
					return l.bytes
				}
			}
		}
		return ordinary
	}
}

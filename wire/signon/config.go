package signon

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"parley/actors/realm"
)

// The types of providers.
const (
	OIDC   = "oidc"
	GitHub = "github"
	LDAP   = realm.DirectoryType
	SAML   = "saml"
)

// Limits of the configuration.
const (
	// MaxProviders limits the providers of a server: a login page has a button for each.
	MaxProviders = 50
	// maxSecretBytes limits the file with the secret of a client.
	maxSecretBytes = 4096
	// maxDisplayName limits the name of a provider on the login page, in bytes.
	maxDisplayName = 60
	// maxIcon limits the picture of a button, in bytes: each login page loads it.
	maxIcon = 64 << 10
)

// Config is one provider of the configuration file.
type Config struct {
	Name        string `toml:"name"`         // part of addresses, unique among the providers of a type
	Type        string `toml:"type"`         // OIDC, GitHub, LDAP or SAML
	Preset      string `toml:"preset"`       // of presets: values for the keys that the file does not have
	DisplayName string `toml:"display_name"` // on the login page
	// IconFile is the path of the picture on the button of the login page.
	IconFile string `toml:"icon_file"`
	Issuer   string `toml:"issuer"`
	ClientID string `toml:"client_id"`
	// ClientSecretFile is the path of a file with the secret of the client. It is relative to the folder of the
	// configuration file.
	ClientSecretFile string   `toml:"client_secret_file"`
	Scopes           []string `toml:"scopes"`
	// AllowInsecure allows plain HTTP, to loopback addresses only.
	AllowInsecure bool `toml:"allow_insecure"`
	// Organizations are the subdomains of the organizations that use the provider; "" is the root organization. Without
	// the key, all do.
	Organizations []string `toml:"organizations"`
	// Networks are private networks in which the hosts of the provider may be.
	Networks []string `toml:"networks"`
	// CAFile is the path of a PEM file with the certificates that sign those of the provider.
	CAFile string `toml:"ca_file"`
	// TrustEmail says that the provider gives its users only addresses that they own, although it does not say so in
	// the claim email_verified.
	TrustEmail bool `toml:"trust_email"`
	// Rules give roles and groups to people with some claims.
	Rules []Rule `toml:"rule"`
	DirectoryConfig
	SAMLConfig

	secret   string
	networks []netip.Prefix
	roots    *x509.CertPool // nil: those of the system
	icon     []byte         // nil: none
}

// Rules are the rules of the configuration file for the logins of an organization.
type Rules struct {
	// Subdomain is that of the organization, "" for the root organization, or "*" for all that have no rules.
	Subdomain string `toml:"subdomain"`
	// SecondFactor is the lowest role that needs a second factor: one of the keys of factorRoles.
	SecondFactor string `toml:"second_factor"`
	// SessionIdle and SessionLifetime are how long a browser session lasts after its last use, and after the login.
	SessionIdle     string `toml:"session_idle"`
	SessionLifetime string `toml:"session_lifetime"`
}

// allOthers are the organizations without rules of their own.
const allOthers = "*"

// factorRoles are the values of second_factor with the lowest role that needs one.
var factorRoles = map[string]realm.Role{"": 0, "none": 0, "owners": realm.Owner, "administrators": realm.Administrator,
	"moderators": realm.Moderator, "members": realm.Member, "everyone": realm.Guest}

// minSession is the shortest time of a session: each use is recorded four times in it.
const minSession = 5 * time.Minute

// policy checks the rules.
func (r *Rules) policy() (p realm.LoginPolicy, err error) {
	role, ok := factorRoles[r.SecondFactor]
	if !ok {
		return p, fmt.Errorf("second_factor must be one of %s, not %q",
			strings.Join(slices.Sorted(maps.Keys(factorRoles))[1:], ", "), r.SecondFactor)
	}
	p.FactorUpTo = role
	for _, x := range []struct {
		key, text string
		value     *int64
	}{{"session_idle", r.SessionIdle, &p.SessionIdle}, {"session_lifetime", r.SessionLifetime, &p.SessionLifetime}} {
		if x.text == "" {
			continue
		}
		d, err := time.ParseDuration(x.text)
		if err != nil || d < minSession {
			return p, fmt.Errorf("%s must be a time of at least %s such as 8h, not %q", x.key, minSession, x.text)
		}
		*x.value = int64(d / time.Second)
	}
	return p, nil
}

// preset is the values of a well-known provider.
type preset struct {
	typ, issuer, display string
}

// presets are the well-known providers. Those without an issuer have one for each customer.
var presets = map[string]preset{
	"google":    {OIDC, "https://accounts.google.com", "Google"},
	"microsoft": {OIDC, "", "Microsoft"},
	"gitlab":    {OIDC, "https://gitlab.com", "GitLab"},
	"keycloak":  {OIDC, "", "Keycloak"},
	"okta":      {OIDC, "", "Okta"},
	"github":    {GitHub, "https://github.com", "GitHub"},

	"active-directory": {LDAP, "", "Active Directory"},
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// read reads and checks the configuration file.
func read(path string) ([]*Config, map[string]realm.LoginPolicy, error) {
	var file struct {
		Provider     []*Config `toml:"provider"`
		Organization []Rules   `toml:"organization"`
	}
	meta, err := toml.DecodeFile(path, &file)
	if err != nil {
		return nil, nil, fmt.Errorf("read auth-config: %w", err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, nil, fmt.Errorf("%s: unknown key %q", path, unknown[0].String())
	}
	if len(file.Provider) > MaxProviders {
		return nil, nil, fmt.Errorf("%s: %d providers, the limit is %d", path, len(file.Provider), MaxProviders)
	}
	seen := map[string]bool{}
	for i, c := range file.Provider {
		if err := c.complete(filepath.Dir(path)); err != nil {
			return nil, nil, fmt.Errorf("%s: provider %d (%q): %w", path, i+1, c.Name, err)
		}
		if seen[c.Type+"/"+c.Name] {
			return nil, nil, fmt.Errorf("%s: two providers have the name %q", path, c.Name)
		}
		seen[c.Type+"/"+c.Name] = true
	}
	policies := map[string]realm.LoginPolicy{}
	for _, r := range file.Organization {
		p, err := r.policy()
		if _, twice := policies[r.Subdomain]; err == nil && twice {
			err = errors.New("it has rules twice")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: organization %q: %w", path, r.Subdomain, err)
		}
		policies[r.Subdomain] = p
	}
	return file.Provider, policies, nil
}

// complete checks a provider, and fills in the values that follow from others. folder is that of the file.
func (c *Config) complete(folder string) error {
	if c.Preset != "" {
		p, ok := presets[c.Preset]
		if !ok {
			return fmt.Errorf("unknown preset %q", c.Preset)
		}
		c.Type, c.Issuer = orElse(c.Type, p.typ), orElse(c.Issuer, p.issuer)
		c.DisplayName = orElse(c.DisplayName, p.display)
	}
	c.DisplayName = orElse(c.DisplayName, c.Name)
	if c.Type == GitHub {
		c.Issuer = orElse(c.Issuer, presets["github"].issuer)
	}
	c.Issuer = strings.TrimSpace(c.Issuer)
	switch {
	case !namePattern.MatchString(c.Name):
		return fmt.Errorf("name must be letters, digits, dots, dashes and underscores, at most 40, not %q", c.Name)
	case !slices.Contains(types, c.Type):
		return fmt.Errorf("type must be one of %s, not %q", strings.Join(types, ", "), c.Type)
	case len(c.DisplayName) > maxDisplayName:
		return fmt.Errorf("display_name has %d bytes, the limit is %d", len(c.DisplayName), maxDisplayName)
	}
	if err := c.checkRules(); err != nil {
		return err
	}
	if err := c.parseNetworks(); err != nil {
		return err
	}
	if err := c.readFiles(folder); err != nil {
		return err
	}
	if c.Type == LDAP {
		return c.completeDirectory(folder)
	}
	if c.Type == SAML {
		return c.completeSAML(folder)
	}
	return c.completeClient()
}

// types are the types of providers.
var types = []string{OIDC, GitHub, LDAP, SAML}

// completeClient checks the keys of a provider of which the server is a client by OAuth.
func (c *Config) completeClient() error {
	switch {
	case c.Issuer == "":
		return errors.New("issuer is missing")
	case c.ClientID == "":
		return errors.New("client_id is missing")
	case c.Type == GitHub && c.secret == "":
		return errors.New("client_secret_file is missing")
	}
	return c.checkIssuer()
}

func orElse(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

// checkIssuer refuses issuers that are no address, or whose address is not encrypted where it must be.
func (c *Config) checkIssuer() error {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("issuer must be an address such as https://login.example.org, not %q", c.Issuer)
	case c.AllowInsecure && !isLoopback(u.Hostname()):
		return fmt.Errorf("allow_insecure is only for providers on this machine, not for %q", u.Host)
	case u.Scheme != "https" && !(u.Scheme == "http" && c.AllowInsecure):
		return fmt.Errorf("issuer must begin with https://, not %q; allow_insecure allows http:// on this machine",
			c.Issuer)
	}
	return nil
}

// isLoopback reports whether a host is a name or address of this machine for itself.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// loopback are the networks of this machine.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func (c *Config) parseNetworks() error {
	for _, text := range c.Networks {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("networks: %w", err)
		}
		c.networks = append(c.networks, p.Masked())
	}
	if c.AllowInsecure {
		c.networks = append(c.networks, loopback...)
	}
	return nil
}

// readFiles reads the secret and the certificates.
func (c *Config) readFiles(folder string) error {
	if c.ClientSecretFile != "" {
		text, err := os.ReadFile(inFolder(folder, c.ClientSecretFile))
		if err != nil {
			return fmt.Errorf("client_secret_file: %w", err)
		}
		if c.secret = strings.TrimSpace(string(text)); c.secret == "" || len(c.secret) > maxSecretBytes {
			return fmt.Errorf("client_secret_file: %s must have 1 to %d bytes of text, not %d", c.ClientSecretFile,
				maxSecretBytes, len(c.secret))
		}
	}
	if c.IconFile != "" {
		icon, err := os.ReadFile(inFolder(folder, c.IconFile))
		if err != nil {
			return fmt.Errorf("icon_file: %w", err)
		}
		if typ := http.DetectContentType(icon); !strings.HasPrefix(typ, "image/") || len(icon) > maxIcon {
			return fmt.Errorf("icon_file: %s must be a picture such as PNG of at most %d bytes; it is %s with %d bytes",
				c.IconFile, maxIcon, typ, len(icon))
		}
		c.icon = icon
	}
	if c.CAFile != "" {
		text, err := os.ReadFile(inFolder(folder, c.CAFile))
		if err != nil {
			return fmt.Errorf("ca_file: %w", err)
		}
		c.roots = x509.NewCertPool()
		if !c.roots.AppendCertsFromPEM(text) {
			return fmt.Errorf("ca_file: %s has no certificate in PEM form", c.CAFile)
		}
	}
	return nil
}

func inFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

package signon

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"
)

// DirectoryConfig is the keys of a provider that only directories have.
type DirectoryConfig struct {
	// URLs are the addresses of servers with the same entries; the first that answers is used.
	URLs             []string `toml:"urls"`
	StartTLS         bool     `toml:"start_tls"`
	BindDN           string   `toml:"bind_dn"` // "" searches without a login
	BindPasswordFile string   `toml:"bind_password_file"`
	BaseDN           string   `toml:"base_dn"`
	// UserFilter finds a user by the name that they enter, which replaces %s.
	UserFilter string `toml:"user_filter"`
	// IDAttribute never changes and never belongs to another user: entryUUID, or objectGUID in Active Directory.
	IDAttribute     string `toml:"id_attribute"`
	EmailAttribute  string `toml:"email_attribute"`
	NameAttribute   string `toml:"name_attribute"`
	AvatarAttribute string `toml:"avatar_attribute"` // "": pictures are not read
	// ProfileFields has the attributes of custom profile fields, by the name of the field.
	ProfileFields map[string]string `toml:"profile_fields"`
	// GroupFilter finds the groups of a user, whose DN replaces %s; "": groups are not searched.
	GroupFilter        string `toml:"group_filter"`
	GroupBaseDN        string `toml:"group_base_dn"`
	GroupNameAttribute string `toml:"group_name_attribute"`
	// SyncEvery is how often the accounts are compared with the directory, such as 10m; "never".
	SyncEvery string `toml:"sync_every"`

	bindPassword string
	syncEvery    time.Duration
}

const (
	// defaultSync is how often accounts are compared with a directory.
	defaultSync = 10 * time.Minute
	// minSync is the shortest time between two comparisons: each reads the whole directory.
	minSync = 2 * time.Second
	// maxURLs limits the servers of a directory.
	maxURLs = 10
)

// activeDirectory are the values of the preset for Active Directory. The filter leaves out disabled accounts, so that
// the next comparison deactivates them.
var activeDirectory = DirectoryConfig{
	UserFilter: "(&(objectCategory=person)(objectClass=user)(|(sAMAccountName=%s)(userPrincipalName=%s)(mail=%s))" +
		"(!(userAccountControl:1.2.840.113556.1.4.803:=2)))",
	IDAttribute: "objectGUID", NameAttribute: "displayName", AvatarAttribute: "thumbnailPhoto",
}

// directoryIssuer is the beginning of the issuer of a directory; its name follows. A directory can move to another
// address.
const directoryIssuer = "ldap:"

// completeDirectory checks the keys of a directory. folder is that of the file.
func (c *Config) completeDirectory(folder string) error {
	d := &c.DirectoryConfig
	if c.Preset == "active-directory" {
		d.UserFilter = orElse(d.UserFilter, activeDirectory.UserFilter)
		d.IDAttribute = orElse(d.IDAttribute, activeDirectory.IDAttribute)
		d.NameAttribute = orElse(d.NameAttribute, activeDirectory.NameAttribute)
		d.AvatarAttribute = orElse(d.AvatarAttribute, activeDirectory.AvatarAttribute)
	}
	c.Issuer = orElse(c.Issuer, directoryIssuer+c.Name)
	d.UserFilter = orElse(d.UserFilter, "(&(objectClass=person)(uid=%s))")
	d.IDAttribute = orElse(d.IDAttribute, "entryUUID")
	d.EmailAttribute, d.NameAttribute = orElse(d.EmailAttribute, "mail"), orElse(d.NameAttribute, "cn")
	d.GroupBaseDN, d.GroupNameAttribute = orElse(d.GroupBaseDN, d.BaseDN), orElse(d.GroupNameAttribute, "cn")
	if len(d.URLs) == 0 || len(d.URLs) > maxURLs {
		return fmt.Errorf("urls must have 1 to %d addresses such as ldaps://ldap.example.org, not %d", maxURLs,
			len(d.URLs))
	}
	for _, address := range d.URLs {
		if err := c.checkDirectoryURL(address); err != nil {
			return err
		}
	}
	if err := d.checkFilters(); err != nil {
		return err
	}
	if d.syncEvery = defaultSync; d.SyncEvery == "never" {
		d.syncEvery = 0
	} else if d.SyncEvery != "" {
		every, err := time.ParseDuration(d.SyncEvery)
		if err != nil || every < minSync {
			return fmt.Errorf("sync_every must be a time of at least %s such as 10m, or never, not %q", minSync,
				d.SyncEvery)
		}
		d.syncEvery = every
	}
	if d.BindPasswordFile == "" {
		return nil
	}
	text, err := os.ReadFile(inFolder(folder, d.BindPasswordFile))
	if err != nil {
		return fmt.Errorf("bind_password_file: %w", err)
	}
	d.bindPassword = strings.TrimRight(string(text), "\r\n")
	return nil
}

// checkDirectoryURL refuses addresses that are not encrypted where they must be. A directory is an address that the
// operator has chosen, and no address of its answers is used, so it can be in any network.
func (c *Config) checkDirectoryURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "ldap" && u.Scheme != "ldaps":
		return fmt.Errorf("urls must have addresses such as ldaps://ldap.example.org, not %q", address)
	case c.AllowInsecure && !isLoopback(u.Hostname()):
		return fmt.Errorf("allow_insecure is only for providers on this machine, not for %q", u.Host)
	case u.Scheme == "ldap" && !c.StartTLS && !c.AllowInsecure:
		return errors.New("passwords need encryption: use ldaps://, or start_tls = true")
	}
	return nil
}

func (d *DirectoryConfig) checkFilters() error {
	for _, x := range []struct{ key, dn string }{{"base_dn", d.BaseDN}, {"group_base_dn", d.GroupBaseDN},
		{"bind_dn", d.BindDN}} {
		if _, err := ldap.ParseDN(x.dn); err != nil {
			return fmt.Errorf("%s: %w", x.key, err)
		}
	}
	if d.BaseDN == "" {
		return errors.New("base_dn is missing")
	}
	if (d.BindDN == "") != (d.BindPasswordFile == "") {
		return errors.New("bind_dn and bind_password_file belong together")
	}
	if d.GroupFilter != "" && !strings.Contains(d.GroupFilter, "%s") {
		return fmt.Errorf("group_filter must contain %%s, which is the DN of the user, not %q", d.GroupFilter)
	}
	if !strings.Contains(d.UserFilter, "%s") {
		return fmt.Errorf("user_filter must contain %%s, which is the name that the user enters, not %q", d.UserFilter)
	}
	for key, filter := range map[string]string{"user_filter": d.filterOf("x"),
		"group_filter": strings.ReplaceAll(orElse(d.GroupFilter, "(cn=*)"), "%s", "x")} {
		if _, err := ldap.CompileFilter(filter); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// filterOf returns the filter for a name. Characters with a meaning in filters are escaped.
func (d *DirectoryConfig) filterOf(name string) string {
	return strings.ReplaceAll(d.UserFilter, "%s", ldap.EscapeFilter(name))
}

// everyone returns the filter for all users.
func (d *DirectoryConfig) everyone() string { return strings.ReplaceAll(d.UserFilter, "%s", "*") }

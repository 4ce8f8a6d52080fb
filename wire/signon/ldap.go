package signon

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/go-ldap/ldap/v3"
)

// Limits of the requests to a directory.
const (
	// maxPassword limits the password that is sent to a directory, in bytes.
	maxPassword = 1024
	// maxUsername limits the name that is searched in a directory, in bytes.
	maxUsername = 254
	// pageSize is the number of entries that a directory returns at a time; Active Directory returns at most 1,000.
	pageSize = 500
	// MaxDirectoryEntries limits the entries of one directory; a comparison has about 100 bytes for each in memory.
	MaxDirectoryEntries = 500_000
	// MaxSync is how long the comparison of all entries with the accounts may take.
	MaxSync = 5 * time.Minute
	// maxLoginBytes and maxSyncBytes limit the bytes that a directory sends in one connection.
	maxLoginBytes = 64 << 20
	maxSyncBytes  = 4 << 30
	// maxEntryBytes limits one entry: one with a picture and some thousand groups is smaller.
	maxEntryBytes = 16 << 20
	// maxGroupsOfPerson limits the groups of one person that are read from a directory.
	maxGroupsOfPerson = 5000
	// groupsClaim is the claim with the names of the groups that group_filter finds.
	groupsClaim = "groups"
)

func init() { ber.MaxPacketLengthBytes = maxEntryBytes } // the library has no limit for each connection

// Directory is a directory of users. It has no page of its own: its users enter their names and passwords in the login
// form. All methods are safe for concurrent use.
type Directory struct{ config *Config }

// DirectoryEntry is a person of a directory.
type DirectoryEntry struct {
	Identity
	// Version changes with the entry; "" if the directory does not say.
	Version string
	dn      string
	claims  Claims
}

// attributes returns the attributes that describe a person, without the picture, which is large.
func (d *Directory) attributes() []string {
	c := &d.config.DirectoryConfig
	list := []string{c.IDAttribute, c.EmailAttribute, c.NameAttribute, "modifyTimestamp", "whenChanged"}
	for _, a := range c.ProfileFields {
		list = append(list, a)
	}
	for _, r := range d.config.Rules {
		if r.Claim != groupsClaim || c.GroupFilter == "" {
			list = append(list, r.Claim)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// limitedConn is a connection whose reader fails after a number of bytes.
type limitedConn struct {
	net.Conn
	rest int64
}

func (c *limitedConn) Read(p []byte) (int, error) {
	if c.rest <= 0 {
		return 0, errTooLarge
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.rest)])
	c.rest -= int64(n)
	return n, err
}

// open connects to the first address that answers, and binds as the program that searches. The connection ends with
// the context, which must have a deadline.
func (d *Directory) open(ctx context.Context, limit int64) (c *ldap.Conn, err error) {
	for _, address := range d.config.URLs {
		if c, err = d.connect(ctx, address, limit); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if err := d.bindSearcher(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (d *Directory) connect(ctx context.Context, address string, limit int64) (*ldap.Conn, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, requestError(err)
	}
	security := &tls.Config{RootCAs: d.config.roots, MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	port := orElse(u.Port(), map[string]string{"ldap": "389", "ldaps": "636"}[u.Scheme])
	raw, err := (&net.Dialer{Timeout: maxDial}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, requestError(err)
	}
	until, _ := ctx.Deadline()
	raw.SetDeadline(until)
	raw = &limitedConn{raw, limit}
	if u.Scheme == "ldaps" {
		raw = tls.Client(raw, security)
	}
	c := ldap.NewConn(raw, u.Scheme == "ldaps")
	c.SetTimeout(time.Until(until))
	c.Start()
	if d.config.StartTLS && u.Scheme == "ldap" {
		if err := c.StartTLS(security); err != nil {
			c.Close()
			return nil, requestError(fmt.Errorf("StartTLS: %w", err))
		}
	}
	return c, nil
}

// bindSearcher logs in as the program that searches.
func (d *Directory) bindSearcher(c *ldap.Conn) error {
	dn := d.config.BindDN
	if dn == "" {
		return nil
	}
	err := c.Bind(dn, d.config.bindPassword)
	if ldap.IsErrorWithCode(err, ldap.LDAPResultInvalidCredentials) {
		return fail("The login provider has a wrong configuration.", fmt.Errorf("bind as %s: %w", dn, err))
	}
	if err != nil {
		return requestError(fmt.Errorf("bind as %s: %w", dn, err))
	}
	return nil
}

// ErrNoEntry says that a directory has no user with a name and a password.
var ErrNoEntry = errors.New("the directory has no user with this name and password")

// LogIn returns the user with a name and a password, or ErrNoEntry.
func (d *Directory) LogIn(ctx context.Context, name, password string) (Identity, error) {
	// A bind with an empty password is an anonymous one, which succeeds for every name (RFC 4513, 5.1.2). Programs in C
	// read a password up to its first zero byte.
	if name == "" || password == "" || len(name) > maxUsername || len(password) > maxPassword ||
		!utf8.ValidString(name) || strings.ContainsRune(name+password, 0) {
		return Identity{}, ErrNoEntry
	}
	c, err := d.open(ctx, maxLoginBytes)
	if err != nil {
		return Identity{}, err
	}
	defer c.Close()
	found, err := c.Search(d.request(d.config.filterOf(name), 2, d.attributes()))
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded), err == nil && len(found.Entries) > 1:
		return Identity{}, fail("The login provider has several users with this name.", errors.New("several entries"))
	case err != nil:
		return Identity{}, requestError(fmt.Errorf("search: %w", err))
	case len(found.Entries) == 0:
		return Identity{}, ErrNoEntry
	}
	e, err := d.entry(found.Entries[0])
	if err == nil {
		err = d.addGroups(c, &e)
	}
	if err != nil {
		return Identity{}, err
	}
	if err := c.Bind(e.dn, password); err != nil {
		if ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultUnwillingToPerform,
			ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultConstraintViolation) {
			return Identity{}, ErrNoEntry
		}
		return Identity{}, requestError(fmt.Errorf("bind: %w", err))
	}
	return e.Identity, nil
}

// request returns a search below base_dn.
func (d *Directory) request(filter string, limit int, attributes []string) *ldap.SearchRequest {
	return ldap.NewSearchRequest(d.config.BaseDN, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, limit, 0, false,
		filter, attributes, nil)
}

// entry returns the person of an entry, without the groups that group_filter finds.
func (d *Directory) entry(e *ldap.Entry) (DirectoryEntry, error) {
	c := &d.config.DirectoryConfig
	id := subjectOf(e.GetEqualFoldRawAttributeValue(c.IDAttribute))
	if id == "" || len(id) > maxSubject {
		return DirectoryEntry{}, fail("The login provider sent an identity that is not valid. Please try again.",
			fmt.Errorf("%s has %d bytes in %s", quoted(e.DN), len(id), c.IDAttribute))
	}
	email := e.GetEqualFoldAttributeValue(c.EmailAttribute)
	out := DirectoryEntry{dn: e.DN, claims: Claims{}, Identity: Identity{Issuer: d.config.Issuer, Subject: id,
		Email: email, Verified: email != "", Name: e.GetEqualFoldAttributeValue(c.NameAttribute)},
		Version: e.GetEqualFoldAttributeValue("modifyTimestamp") + e.GetEqualFoldAttributeValue("whenChanged")}
	if len(c.ProfileFields) > 0 {
		out.Fields = map[string]string{}
	}
	for field, attribute := range c.ProfileFields {
		out.Fields[field] = strings.ToValidUTF8(e.GetEqualFoldAttributeValue(attribute), "\uFFFD")
	}
	for _, r := range d.config.Rules {
		out.claims[r.Claim] = e.GetEqualFoldAttributeValues(r.Claim)
	}
	out.Rules = d.config.matching(out.claims)
	return out, nil
}

// addGroups adds the groups that group_filter finds to a person.
func (d *Directory) addGroups(c *ldap.Conn, e *DirectoryEntry) error {
	if d.config.GroupFilter == "" {
		return nil
	}
	found, err := c.Search(ldap.NewSearchRequest(d.config.GroupBaseDN, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases,
		maxGroupsOfPerson, 0, false, strings.ReplaceAll(d.config.GroupFilter, "%s", ldap.EscapeFilter(e.dn)),
		[]string{d.config.GroupNameAttribute}, nil))
	if err != nil {
		return requestError(fmt.Errorf("search of groups: %w", err))
	}
	var names []string
	for _, g := range found.Entries {
		names = append(names, g.GetEqualFoldAttributeValues(d.config.GroupNameAttribute)...)
	}
	e.claims[groupsClaim] = names
	e.Rules = d.config.matching(e.claims)
	return nil
}

// subjectOf returns the subject of an identifier. One that is not text, such as an objectGUID, becomes hexadecimal. An
// identifier of 16 bytes is always binary: some objectGUIDs are text by chance, and an entryUUID has 36.
func subjectOf(raw []byte) string {
	text := string(raw)
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	printable := utf8.ValidString(text) && strings.IndexFunc(text, isControl) < 0
	if len(raw) != guidBytes && printable {
		return text
	}
	return "hex:" + hex.EncodeToString(raw)
}

// guidBytes is the length of an objectGUID.
const guidBytes = 16

// Each calls fn for each person of the directory. It reads the groups of those for which wanted returns true; fn gets
// only these. It returns the number of all people. An error of fn ends it.
func (d *Directory) Each(
	ctx context.Context, wanted func(subject string) bool, fn func(DirectoryEntry, *Session) error,
) (all int, err error) {
	c, err := d.open(ctx, maxSyncBytes)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	page := ldap.NewControlPaging(pageSize)
	for {
		r := d.request(d.config.everyone(), 0, d.attributes())
		r.Controls = []ldap.Control{page}
		found, err := c.Search(r)
		if err != nil {
			return all, requestError(fmt.Errorf("search of all users: %w", err))
		}
		for _, x := range found.Entries {
			e, err := d.entry(x)
			if err != nil {
				return all, err // not skipped: the account of the person would be deactivated
			}
			if all++; all > MaxDirectoryEntries {
				return all, fmt.Errorf("the directory has more than %d users", MaxDirectoryEntries)
			}
			if !wanted(e.Subject) {
				continue
			}
			if err = d.addGroups(c, &e); err == nil {
				err = fn(e, &Session{d, c})
			}
			if err != nil {
				return all, err
			}
		}
		next, _ := ldap.FindControl(found.Controls, ldap.ControlTypePaging).(*ldap.ControlPaging)
		if next == nil || len(next.Cookie) == 0 {
			return all, nil
		}
		page.SetCookie(next.Cookie)
	}
}

// Session is a connection to a directory.
type Session struct {
	d *Directory
	c *ldap.Conn
}

// Picture returns the picture of a person, nil if there is none.
func (s *Session) Picture(e DirectoryEntry) ([]byte, error) {
	attribute := s.d.config.AvatarAttribute
	if attribute == "" {
		return nil, nil
	}
	found, err := s.c.Search(ldap.NewSearchRequest(e.dn, ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 0, false,
		"(objectClass=*)", []string{attribute}, nil))
	if err != nil {
		return nil, requestError(fmt.Errorf("picture: %w", err))
	}
	if len(found.Entries) == 0 {
		return nil, nil
	}
	return found.Entries[0].GetEqualFoldRawAttributeValue(attribute), nil
}

// HasPictures reports whether the directory has pictures of people.
func (d *Directory) HasPictures() bool { return d.config.AvatarAttribute != "" }

// SyncEvery returns how often the directory is compared with the accounts; 0: never.
func (d *Directory) SyncEvery() time.Duration { return d.config.syncEvery }

// Issuer returns the issuer of the identities of the directory.
func (d *Directory) Issuer() string { return d.config.Issuer }

// Check connects and searches all users. It calls report after each step.
func (d *Directory) Check(ctx context.Context, report func(string)) error {
	c, err := d.open(ctx, maxLoginBytes)
	if err != nil {
		return err
	}
	c.Close()
	report("a server answers, and accepts the login of the program that searches")
	var first DirectoryEntry
	all, err := d.Each(ctx, func(string) bool { return first.dn == "" }, func(e DirectoryEntry, _ *Session) error {
		first = e
		return nil
	})
	if err != nil {
		return err
	}
	if all == 0 {
		return fail("The login provider has a wrong configuration.", errors.New(
			"no user is found: check base_dn and user_filter, and what the program may read"))
	}
	report(fmt.Sprintf("it has %d users for %s", all, d.config.everyone()))
	for _, x := range []struct{ value, key string }{{first.Email, d.config.EmailAttribute},
		{first.Name, d.config.NameAttribute}} {
		if x.value == "" {
			return fail("The login provider has a wrong configuration.",
				fmt.Errorf("%s has no attribute %s that the program may read", quoted(first.dn), x.key))
		}
	}
	report(fmt.Sprintf("the first one is %s: %s <%s>, %d rules are about them", quoted(first.dn), quoted(first.Name),
		quoted(first.Email), len(first.Rules)))
	return nil
}

// Package sites maps organizations to their URLs and hosts, and gives endpoints the organizations of a server.
package sites

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire"
	"parley/wire/signon"
)

// Table maps organizations to their URLs and hosts: the host of the external URL is the root organization, its
// subdomains are the others.
type Table struct {
	Orgs   *actors.Server // set once the organizations are loaded
	Logins *signon.Public // nil: there are neither login providers nor rules for logins

	scheme, host string
	suffix       string // of the organizations' hosts: a dot and the server's own host, without a port

	anyHost bool     // the server has no name of its own: pages are shown at any address
	allowed []string // further host names at which pages are shown, in lower case
}

// New returns the table of a server with an external URL.
func New(url string) *Table {
	scheme, host, ok := strings.Cut(url, "://")
	if !ok {
		scheme, host = "http", url
	}
	t := &Table{scheme: scheme, host: strings.TrimSuffix(host, "/")}
	t.suffix = "." + strings.ToLower(t.Site("").Host)
	own := t.Site("").Host
	t.anyHost = !isLocalHost(own) && (!strings.Contains(own, ".") || hostAddress(own).IsValid())
	return t
}

// AllowHosts shows pages also at further host names; * is any. A server whose URL is a loopback address has no name of
// its own if there are proxies: they pass on the names that browsers use.
func (t *Table) AllowHosts(names []string, proxies bool) {
	for _, name := range names {
		if name = strings.ToLower(strings.TrimSpace(name)); name == "*" {
			t.anyHost = true
		} else if name != "" {
			t.allowed = append(t.allowed, name)
		}
	}
	t.anyHost = t.anyHost || proxies && isLocalHost(t.Site("").Host)
}

// IsForeign reports whether a Host header, in lower case, is a name that the server does not have. Anybody can lead a
// domain to the address of a server, and its pages must not look like those of that domain's owner. IP addresses, names
// without a dot and a missing header are no such names: health checks, proxies and local networks use them.
func (t *Table) IsForeign(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(host, ".")
	switch {
	case t.anyHost, !strings.Contains(host, "."), isLocalHost(host), hostAddress(host).IsValid():
		return false
	case host == t.suffix[1:], strings.HasSuffix(host, t.suffix):
		return false
	}
	return !slices.Contains(t.allowed, host)
}

// hostAddress returns the IP address that a host is, or the zero value if it is a name.
func hostAddress(host string) netip.Addr {
	a, _ := netip.ParseAddr(strings.Trim(host, "[]"))
	return a
}

// isLocalHost reports whether a host is a name or address of this machine for itself.
func isLocalHost(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || hostAddress(host).IsLoopback()
}

// Site returns the site of the organization with a subdomain; the root organization has the subdomain "".
func (t *Table) Site(subdomain string) wire.Site {
	host := t.host
	if subdomain != "" {
		host = subdomain + "." + host
	}
	withoutPort := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		withoutPort = h
	}
	site := wire.Site{URL: t.scheme + "://" + host, Host: withoutPort, Name: subdomain}
	if t.Logins != nil {
		t.Logins.Complete(&site)
	}
	return site
}

// ByID returns the site of the organization with an id.
func (t *Table) ByID(id realm.ID) wire.Site {
	if subdomain, ok := t.Orgs.StringID(id); ok {
		return t.Site(subdomain)
	}
	return t.Site("")
}

// ByHost returns the organization of a Host header; an unknown host means the root organization. If the organization
// does not exist, the site has only its name.
func (t *Table) ByHost(host string) (realm.ID, wire.Site) {
	subdomain := t.Subdomain(host)
	id, site, ok := t.Orgs.RealmByName(subdomain)
	if !ok {
		site.Name = subdomain
	}
	return id, site
}

// Subdomain returns the subdomain of a Host header; that of an unknown host is the root organization's.
func (t *Table) Subdomain(host string) string {
	if strings.IndexByte(host, ':') >= 0 {
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
	}
	if s, ok := strings.CutSuffix(host, t.suffix); ok && s != "www" {
		return s
	}
	return ""
}

package server

import (
	"net"
	"strings"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire"
)

// siteTable maps organizations to their URLs and hosts: the host of the external URL is the root organization, its
// subdomains are the others.
type siteTable struct {
	scheme, host string
	suffix       string         // of the organizations' hosts: a dot and the server's own host, without a port
	orgs         *actors.Server // set once the organizations are loaded
}

// newSiteTable returns the table of a server with an external URL.
func newSiteTable(url string) *siteTable {
	scheme, host, ok := strings.Cut(url, "://")
	if !ok {
		scheme, host = "http", url
	}
	t := &siteTable{scheme: scheme, host: strings.TrimSuffix(host, "/")}
	t.suffix = "." + t.site("").Host
	return t
}

// site returns the site of the organization with a subdomain; the root organization has the subdomain "".
func (t *siteTable) site(subdomain string) wire.Site {
	host := t.host
	if subdomain != "" {
		host = subdomain + "." + host
	}
	withoutPort := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		withoutPort = h
	}
	return wire.Site{URL: t.scheme + "://" + host, Host: withoutPort, Name: subdomain}
}

// byID returns the site of the organization with an id.
func (t *siteTable) byID(id realm.ID) wire.Site {
	for subdomain, r := range t.orgs.Realms() {
		if r == id {
			return t.site(subdomain)
		}
	}
	return t.site("")
}

// ByHost returns the organization of a Host header; an unknown host means the root organization. If the organization
// does not exist, the site has only its name.
func (t *siteTable) ByHost(host string) (realm.ID, wire.Site) {
	subdomain := t.subdomain(host)
	id, site, ok := t.orgs.RealmByName(subdomain)
	if !ok {
		site.Name = subdomain
	}
	return id, site
}

// subdomain returns the subdomain of a Host header; that of an unknown host is the root organization's.
func (t *siteTable) subdomain(host string) string {
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

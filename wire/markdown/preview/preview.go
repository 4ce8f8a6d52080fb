package preview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/wire/markdown"

	"golang.org/x/net/html"
)

const (
	maxTime      = 10 * time.Second // for one page, including redirects
	maxDial      = 3 * time.Second  // for one connection
	maxRedirects = 3
	maxBody      = 512 << 10 // bytes read of a page: the metadata is in its head
	maxHeader    = 64 << 10  // bytes of the answer's header
	maxTitle     = 300       // bytes
	maxText      = 1000      // bytes of a description
	maxAddress   = 2000      // bytes
	userAgent    = "Parley link preview"
)

// ErrRefused means that previews may not be fetched from an address.
var ErrRefused = errors.New("address refused")

// ErrNoPreview means that a page was fetched but contains no metadata.
var ErrNoPreview = errors.New("no preview")

// A Fetcher fetches previews. It is safe for concurrent use.
type Fetcher struct {
	client *http.Client
}

// New returns a Fetcher for public pages at the usual ports, and for pages inside the given networks at any port.
func New(inside ...netip.Prefix) *Fetcher {
	return newFetcher(func(at netip.AddrPort) bool {
		return within(at.Addr(), inside) || Public(at.Addr()) && (at.Port() == 80 || at.Port() == 443)
	})
}

// Reachable reports whether the server may connect to an address: it belongs to the public internet, or to one of the
// networks inside.
func Reachable(ip netip.Addr, inside []netip.Prefix) bool { return within(ip, inside) || Public(ip) }

func within(ip netip.Addr, networks []netip.Prefix) bool {
	ip = ip.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

func newFetcher(allowed func(netip.AddrPort) bool) *Fetcher {
	dialer := &net.Dialer{
		Timeout: maxDial,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !allowed(at) {
				return fmt.Errorf("%w: %s", ErrRefused, address)
			}
			return nil
		},
	}
	transport := &http.Transport{
		Proxy:                  nil, // a proxy would connect instead of us, without the check
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    maxDial,
		ResponseHeaderTimeout:  maxTime,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
	}
	return &Fetcher{&http.Client{
		Transport: transport,
		Timeout:   maxTime,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return fmt.Errorf("%w: too many redirects", ErrRefused)
			}
			return checkURL(r.URL)
		},
	}}
}

// Public reports whether an address belongs to the public internet.
func Public(ip netip.Addr) bool {
	ip = ip.Unmap()
	if !ip.IsValid() || !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() ||
		ip.Zone() != "" {
		return false
	}
	for _, p := range reserved {
		if p.Contains(ip) {
			return false
		}
	}
	return true
}

// reserved are networks that are not public although they look so, or that embed other addresses.
var reserved = func() (list []netip.Prefix) {
	for _, s := range []string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
		"198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10"} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
}()

func checkURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(u.String()) > maxAddress {
		return fmt.Errorf("%w: %s", ErrRefused, u.Redacted())
	}
	return nil
}

// Fetch returns the preview of a page.
func (f *Fetcher) Fetch(ctx context.Context, address string) (markdown.Preview, error) {
	u, err := url.Parse(address)
	if err != nil {
		return markdown.Preview{}, fmt.Errorf("%w: %s", ErrRefused, address)
	}
	if err := checkURL(u); err != nil {
		return markdown.Preview{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return markdown.Preview{}, fmt.Errorf("fetch preview: %w", err)
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", "text/html")
	answer, err := f.client.Do(r)
	if err != nil {
		return markdown.Preview{}, fmt.Errorf("fetch preview: %w", err)
	}
	defer answer.Body.Close()
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode != http.StatusOK || kind != "text/html" && kind != "application/xhtml+xml" {
		return markdown.Preview{}, fmt.Errorf("%w: %s of type %q", ErrNoPreview, answer.Status, kind)
	}
	p := parsePage(io.LimitReader(answer.Body, maxBody), answer.Request.URL)
	if p.Title == "" && p.Description == "" {
		return markdown.Preview{}, ErrNoPreview
	}
	return p, nil
}

// parsePage parses the metadata in the head of a page: Open Graph first, then the plain title and description.
func parsePage(body io.Reader, base *url.URL) (p markdown.Preview) {
	var title, description, image string
	z := html.NewTokenizer(body)
	z.SetMaxBuf(maxBody)
	inTitle := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			p.Title, p.Description = firstNonEmpty(p.Title, title), firstNonEmpty(p.Description, description)
			p.Title, p.Description = clip(p.Title, maxTitle), clip(p.Description, maxText)
			p.Image = resolve(base, firstNonEmpty(p.Image, image))
			return p
		case html.TextToken:
			if inTitle {
				title += string(z.Text())
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			inTitle = inTitle && string(name) != "title"
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			switch t.Data {
			case "title":
				inTitle = t.Type == html.StartTagToken && title == ""
			case "meta":
				key, content := meta(t)
				switch key {
				case "og:title":
					p.Title = firstNonEmpty(p.Title, content)
				case "og:description":
					p.Description = firstNonEmpty(p.Description, content)
				case "og:image", "og:image:url", "og:image:secure_url":
					p.Image = firstNonEmpty(p.Image, content)
				case "description", "twitter:description":
					description = firstNonEmpty(description, content)
				case "twitter:image":
					image = firstNonEmpty(image, content)
				}
			}
		}
	}
}

func meta(t html.Token) (key, content string) {
	for _, a := range t.Attr {
		switch a.Key {
		case "property", "name":
			key = firstNonEmpty(key, strings.ToLower(a.Val))
		case "content":
			content = strings.TrimSpace(a.Val)
		}
	}
	return key, content
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// clip shortens s to at most n bytes of whole characters, without white space at its ends.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "")
	if len(s) <= n {
		return s
	}
	return strings.TrimSpace(strings.ToValidUTF8(s[:n], ""))
}

func resolve(base *url.URL, image string) string {
	if image == "" {
		return ""
	}
	u, err := base.Parse(image)
	if err != nil || checkURL(u) != nil {
		return ""
	}
	return u.String()
}

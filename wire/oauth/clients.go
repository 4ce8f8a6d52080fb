package oauth

import (
	"encoding/json"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a client. Its id has all of it, and is part of an address.
const (
	MaxRegistration = 16 << 10 // bytes of a request to register
	maxRedirects    = 5
	maxRedirect     = 300 // bytes
	maxName         = 60  // characters, as many as the label of a key
	// MaxClientID is the length of a sealed text in bytes: a client_id or a code.
	MaxClientID = 3000
)

// Error is a refusal with a code of the standards.
type Error struct {
	Status      int    `json:"-"`
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Description }

func refuse(code, description string) *Error { return &Error{400, code, description} }

// Client is an app that has registered. The app has chosen its own name.
type Client struct {
	Name      string   `json:"n"`
	Redirects []string `json:"r"`
	Made      int64    `json:"t"` // Unix seconds
}

// Register checks a request of RFC 7591 and returns the client.
func Register(body []byte, now int64) (Client, *Error) {
	var r struct {
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Grants    []string `json:"grant_types"`
		Responses []string `json:"response_types"`
	}
	switch {
	case len(body) > MaxRegistration:
		return Client{}, refuse("invalid_client_metadata", "The request is too large.")
	case json.Unmarshal(body, &r) != nil:
		return Client{}, refuse("invalid_client_metadata", "The request is not a JSON object.")
	case len(r.Redirects) == 0 || len(r.Redirects) > maxRedirects:
		return Client{}, refuse("invalid_redirect_uri", "A client has one to five redirect_uris.")
	case len(r.Grants) > 0 && !slices.Contains(r.Grants, "authorization_code"),
		len(r.Responses) > 0 && !slices.Contains(r.Responses, "code"):
		return Client{}, refuse("invalid_client_metadata", "Only the grant type authorization_code is supported.")
	}
	for _, u := range r.Redirects {
		if !validRedirect(u) {
			return Client{}, refuse("invalid_redirect_uri",
				"A redirect URI is an https address, or an http address of this computer, without a fragment.")
		}
	}
	return Client{cleanName(r.Name), r.Redirects, now}, nil
}

// cleanName returns a name that cannot be taken for another text, for example one that is written from right to left.
func cleanName(name string) string {
	name = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, name))
	if r := []rune(name); len(r) > maxName {
		name = strings.TrimSpace(string(r[:maxName]))
	}
	if name == "" {
		return "Unnamed app"
	}
	return name
}

// validRedirect reports whether a client may register an address to which browsers are redirected.
func validRedirect(address string) bool {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxRedirect || u.Host == "" || u.User != nil || strings.Contains(address, "#") ||
		strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// hasRedirect reports whether a client has registered an address. An app on the user's computer chooses another port at
// each start, so the ports of such addresses are not compared (RFC 8252).
func (c *Client) hasRedirect(address string) bool {
	return slices.ContainsFunc(c.Redirects, func(r string) bool {
		if r == address {
			return true
		}
		a, err := url.Parse(r)
		b, err2 := url.Parse(address)
		if err != nil || err2 != nil || !validRedirect(address) || !isLoopback(a.Hostname()) || a.Scheme != "http" {
			return false
		}
		a.Host, b.Host = a.Hostname(), b.Hostname()
		return a.String() == b.String()
	})
}

package webapp

import (
	"html"
)

// Page is the data of one page.
type Page struct {
	Language    string // code
	ColorScheme int    // the protocol's number: 1 that of the system, 2 dark, 3 light
	Title       string // name of the organization
	Description string // for search engines, "" for users with a login
	CSRF        string // token
	Nonce       string // permits the scripts of the page
	Params      []byte // JSON
	// Spectators says that visitors without an account can read some channels.
	Spectators, FirefoxAndroid bool
}

// Color schemes (protocol).
const (
	systemColors = 1
	darkColors   = 2
)

// HTML returns the page.
func (r *Release) HTML(p *Page) []byte {
	own := r.texts[p.Language]
	v := &values{
		texts: map[string]string{
			"csp_nonce": html.EscapeString(p.Nonce),
			"csrf_input": `<input type="hidden" name="csrfmiddlewaretoken" value="` + html.EscapeString(p.CSRF) +
				`">`,
		},
		flags: map[string]bool{"has_web_public_streams": p.Spectators, "is_firefox_android": p.FirefoxAndroid},
		translate: func(english string) string {
			if text := own[english]; text != "" {
				return text
			}
			return english
		},
	}
	b := make([]byte, 0, pageBytes+len(p.Params)+len(p.Params)/16)
	add := func(parts ...string) {
		for _, s := range parts {
			b = append(b, s...)
		}
	}
	class := ""
	switch p.ColorScheme {
	case systemColors:
		class = ` class="color-scheme-automatic"`
	case darkColors:
		class = ` class="dark-theme"`
	}
	add(`<!DOCTYPE html><html lang="`, html.EscapeString(p.Language), `"`, class,
		`><head><meta charset="utf-8"><title>`,
		html.EscapeString(p.Title), ` - Zulip</title>`,
		`<link id="favicon" rel="icon" href="`, StaticPath, `images/favicon.svg?v=4">`,
		`<link rel="alternate icon" href="`, StaticPath, `images/favicon.png?v=4">`)
	if p.Description != "" {
		for _, name := range []string{"description", "og:description"} {
			add(`<meta name="`, name, `" content="`, html.EscapeString(p.Description), `">`)
		}
	}
	for _, file := range r.styles {
		add(`<link rel="stylesheet" href="`, StaticPath, bundles, file, `">`)
	}
	for _, file := range r.scripts {
		add(`<script defer crossorigin="anonymous" nonce="`, v.texts["csp_nonce"], `" src="`, StaticPath, bundles, file,
			`"></script>`)
	}
	for _, block := range r.head {
		b = block.appendTo(b, v)
	}
	add(`</head><body>`)
	b = r.content.appendTo(b, v)
	add(`<div hidden id="page-params" data-params='`)
	b = appendEscaped(b, p.Params)
	add(`'></div></body></html>`)
	return b
}

const (
	bundles = "webpack-bundles/"
	// pageBytes is about the size of a page without its parameters.
	pageBytes = 16 << 10
)

// appendEscaped appends JSON as the value of an attribute in single quotes.
func appendEscaped(b, json []byte) []byte {
	from := 0
	for i, c := range json {
		escaped := ""
		switch c {
		case '&':
			escaped = "&amp;"
		case '\'':
			escaped = "&#39;"
		case '<':
			escaped = "&lt;"
		case '>':
			escaped = "&gt;"
		default:
			continue
		}
		b = append(append(b, json[from:i]...), escaped...)
		from = i + 1
	}
	return append(b, json[from:]...)
}

package realm

import (
	"strings"
	"testing"
)

// TestIsWebURL pins the one check of web addresses, for services of bots and for links that all readers see.
func TestIsWebURL(t *testing.T) {
	for s, want := range map[string]struct{ service, link bool }{
		"https://example.org/a?b=c":  {true, true},
		"http://localhost:8080/hook": {true, true},
		"http://bots:8080/hook":      {true, false},
		"http://[::1]:8080/hook":     {true, false},
		"HTTPS://example.org":        {true, true},
		"https://example.org/%zz":    {true, true},
		"https://host?a.b":           {true, false},
		"https://example.org/a b":    {false, false},
		"https://<b>.example.org":    {false, false},
		"ftp://example.org":          {false, false},
		"https://":                   {false, false},
		"https://?a":                 {false, false},
		"example.org":                {false, false},
		"":                           {false, false},
		"https://example.org/" + strings.Repeat("a", maxWebURL-20):   {true, true},
		"https://example.org/" + strings.Repeat("a", maxWebURL-20+1): {false, false},
	} {
		if service, link := IsWebURL(s, true), IsWebURL(s, false); service != want.service || link != want.link {
			t.Errorf("%.40q: service %v, link %v, want %v", s, service, link, want)
		}
	}
}

package realm

import (
	"strings"
	"testing"
)

// TestWebURLs pins what the two checks of URLs accept, and where they differ.
func TestWebURLs(t *testing.T) {
	for s, want := range map[string]struct{ service, link bool }{
		"https://example.org/a?b=c":  {true, true},
		"http://localhost:8080/hook": {true, true},
		"http://bots:8080/hook":      {true, false},
		"HTTPS://example.org":        {true, false},
		"https://example.org/a b":    {true, false},
		"https://example.org/%zz":    {false, true},
		"ftp://example.org":          {false, false},
		"https://":                   {false, false},
		"example.org":                {false, false},
		"":                           {false, false},
		"https://example.org/" + strings.Repeat("a", maxWebURL-20):   {true, true},
		"https://example.org/" + strings.Repeat("a", maxWebURL-20+1): {false, false},
	} {
		if service, link := IsServiceURL(s), isWebURL(s); service != want.service || link != want.link {
			t.Errorf("%.40q: service %v, link %v, want %v", s, service, link, want)
		}
	}
}

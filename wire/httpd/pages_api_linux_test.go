package httpd

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"

	"parley/wire"
)

// TestAPIPages follows each link of the pages about the API. Each operation, parameter and object of the description
// must be shown, and an example of each answer.
func TestAPIPages(t *testing.T) {
	s := New(Options{Server: failingServer{}, Realms: oneRealm{}, Limits: Limits{Visitor: 1 << 20},
		Tools: &wire.Tools{Sign: sign, Token: func(n int) string { return strings.Repeat("t", n) }}})
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID, Description string
			Parameters               []struct{ Name, Description string }
			Responses                map[string]struct {
				Content map[string]struct{ Example any }
			}
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(wire.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	link := regexp.MustCompile(`href="(/api/docs[^"#]*)"`)
	for next := []string{"/api/docs"}; len(next) > 0; next = next[1:] {
		path := next[0]
		if pages[path] != "" {
			continue
		}
		r := &handle(s, "GET", path, "Accept", "text/html").Response
		policy := string(r.Header.Peek("Content-Security-Policy"))
		if r.StatusCode() != 200 || !strings.Contains(policy, "default-src 'none'") ||
			strings.Contains(policy, "script") {
			t.Fatalf("%s: %d %q", path, r.StatusCode(), policy)
		}
		pages[path] = html.UnescapeString(string(r.Body()))
		for _, m := range link.FindAllStringSubmatch(string(r.Body()), -1) {
			next = append(next, m[1])
		}
	}
	for path, item := range doc.Paths {
		for method, op := range item {
			page := pages["/api/docs/"+op.OperationID]
			for _, text := range []string{path, op.Description} {
				if !strings.Contains(page, text) {
					t.Errorf("the page of %s %s lacks %q", method, path, text)
				}
			}
			if example := op.Responses["200"].Content["application/json"].Example; example != nil {
				text, err := json.MarshalIndent(example, "", "  ")
				if err != nil || !strings.Contains(page, "<code>"+string(text)+"</code>") {
					t.Errorf("the page of %s %s lacks the example of its answer (%v)", method, path, err)
				}
			}
			for _, p := range op.Parameters {
				if !strings.Contains(page, p.Name) || !strings.Contains(page, p.Description) {
					t.Errorf("the page of %s %s lacks the parameter %s", method, path, p.Name)
				}
			}
		}
	}
	if n := len(doc.Components.Schemas); len(pages) < n {
		t.Errorf("%d pages, and %d objects", len(pages), n)
	}
	if r := &handle(s, "GET", "/api/docs/nothing", "Accept", "text/html").Response; r.StatusCode() != 404 {
		t.Errorf("an unknown operation: %d", r.StatusCode())
	}
	t.Logf("%d pages", len(pages))
}

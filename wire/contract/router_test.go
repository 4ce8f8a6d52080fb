package contract

import (
	"strings"
	"testing"

	"parley/wire"
)

// TestRouterAgainstTheList compares the server's endpoints with the list of all endpoints: exactly those without the
// mark "extension" are in the list. Listed endpoints that the server does not have are logged.
func TestRouterAgainstTheList(t *testing.T) {
	c := load(t)
	served, listed := map[string]bool{}, map[string]bool{}
	for _, e := range c.Endpoints() {
		listed[endpointPattern(e.Method, e.Path)] = true
	}
	for _, e := range wire.Endpoints() {
		s := endpointPattern(e.Method, e.Path)
		served[s] = true
		switch {
		case listed[s] && e.Extension != "":
			t.Errorf("%s is marked as an extension, but it is in the protocol", s)
		case !listed[s] && e.Extension == "":
			t.Errorf("%s is served, but neither in the protocol nor marked as an extension", s)
		}
	}
	var missing, defined []string
	for _, e := range c.Endpoints() {
		if !served[endpointPattern(e.Method, e.Path)] {
			missing = append(missing, e.Method+" "+e.Path)
			if e.Spec == "YES" {
				defined = append(defined, e.Method+" "+e.Path)
			}
		}
	}
	t.Logf("%d of %d listed endpoints are missing, %d of them defined by the specification:\n  %s", len(missing),
		len(c.Endpoints()),
		len(defined), strings.Join(missing, "\n  "))
}

// endpointPattern returns the method and path of an endpoint without the names of its path parameters.
func endpointPattern(method, path string) string {
	return method + " " + inBraces.ReplaceAllString(strings.ReplaceAll(path, ":*", ""), "{}")
}

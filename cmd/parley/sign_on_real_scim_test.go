package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// scimPackages are the checks of SCIM servers that make login runs, and the HTTP client that they use.
var scimPackages = []string{"scim2-tester==0.5.2", "scim2-client[httpx2]==0.13.2"}

// knownScim are checks that fail, with the reason.
var knownScim = map[string]string{
	"search_with_attributes":            "a search for accounts and groups at once is refused, as the standard allows",
	"did not remove attribute 'active'": "an account is active or not: the attribute always has a value",
	"unexpected value for 'emails'":     "an account has one address, which is the primary one",
}

// The checks of scim2-tester pass: discovery, accounts and groups, each attribute with each operation.
func TestRealScimTester(t *testing.T) {
	cache := realServers(t)
	python := filepath.Join(cache, "scim", "bin", "python3")
	t.Logf("installing %v into %s", scimPackages, cache)
	for _, c := range [][]string{{"python3", "-m", "venv", filepath.Join(cache, "scim")},
		append([]string{python, "-m", "pip", "install", "-q"}, scimPackages...)} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v cannot be installed, so SCIM is not tried with them: %v\n%s", scimPackages, err, out)
		}
	}
	_, at, data := browserDemo(t)
	c := scimToken(t, at, data)
	out, err := exec.Command(python, "testdata/login/scim_tester.py", at+"/scim/v2", c.token).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	passed := 0
	for line := range strings.Lines(string(out)) {
		status, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		known := ""
		for part, reason := range knownScim {
			if strings.Contains(rest, part) {
				known = reason
			}
		}
		switch status {
		case "SUCCESS", "COMPLIANT", "ACCEPTABLE":
			passed++
		case "SKIPPED":
			t.Logf("skipped: %s", rest)
		default:
			if known == "" {
				t.Errorf("%s: %s", status, rest)
			} else {
				t.Logf("%s, which is known (%s): %s", status, known, rest)
			}
		}
	}
	if passed < 50 {
		t.Errorf("only %d checks passed:\n%s", passed, out)
	}
}

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// clauseLimits are the clauses that make a comment hard to read for engineers with English as a second language, and
// how many of each 1,000 comment lines may have.
var clauseLimits = []struct {
	name    string
	pattern *regexp.Regexp
	limit   float64
	remedy  string
}{
	{"who-clauses", regexp.MustCompile(`(?i)\b(?:whoever|who) (?:may|can|is|are|was|has|have|had|hears?|comes?|came|` +
		`joins?|leaves?|asks?|knows?|sees?|sits?|waits?|reads?|sends?|got|gets)\b`), 2,
		`name the subject: "users who can see the account", "the caller", "the client"`},
	{"what-clauses", regexp.MustCompile(`(?i)\bwhat (?:is|are|was|were|has|had|comes?|came|stands?|goes|a|an|the|it|` +
		`they|one|some|no|follows|happens|remains|belongs|waits|others?)\b`), 2,
		"use a noun: the rows, the answer, the rest"},
	{"he for a user", regexp.MustCompile(`(?i)\b(?:he|his|him|himself)\b`), 0.1, "users are they"},
	{"somebody, anew, stands",
		regexp.MustCompile(`(?i)\b(?:nobody|somebody|everybody|whoever|anew|stands?|stood|lies|` +
			`lay|hears?|heard)\b`), 1.5, "no user, a user, all users, again, is, is stored, receives"},
}

// Limits of the whole repository.
const (
	maxColumns   = 120 // of a line, with tabs of four
	maxLongLines = 20
	maxTestLines = 120 // of one function in a test file
	maxREADME    = 1500
)

// readableTests lists longer functions of test files that are easier to read whole, each with its reason.
var readableTests = map[string]string{}

var (
	wholeLineComment = regexp.MustCompile(`^\s*//(.*)`)
	trailingComment  = regexp.MustCompile("[^:\"'`]//\\s(.*)$")
	function         = regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)[\[(]`)
)

// TestLanguage keeps comments, line lengths and README readable. CONTRIBUTING.md has the rules of the house language.
func TestLanguage(t *testing.T) {
	const root = "../.."
	comments, long := 0, []string{}
	found := make([][]string, len(clauseLimits))
	for _, file := range goFiles(t, root) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text[:min(len(text), 300)], []byte("DO NOT EDIT")) {
			continue
		}
		test, start := "", 0
		for i, line := range strings.Split(string(text), "\n") {
			at := file + ":" + strconv.Itoa(i+1)
			if columns(line) > maxColumns {
				long = append(long, at)
			}
			if m := function.FindStringSubmatch(line); m != nil && strings.HasSuffix(file, "_test.go") {
				test, start = m[1], i
			}
			if line == "}" && test != "" {
				if i-start > maxTestLines && readableTests[test] == "" {
					t.Errorf("%s: %s has %d lines: split it by scene, at most %d lines each", at, test, i-start,
						maxTestLines)
				}
				test = ""
			}
			comment, ok := commentOf(line)
			if !ok {
				continue
			}
			comments++
			for k, c := range clauseLimits {
				for range c.pattern.FindAllString(comment, -1) {
					found[k] = append(found[k], at+" "+strings.TrimSpace(comment))
				}
			}
		}
	}
	for k, c := range clauseLimits {
		if rate := 1000 * float64(len(found[k])) / float64(max(comments, 1)); rate > c.limit {
			t.Errorf("%s: %.1f of 1,000 comment lines, limit %.1f; %s:\n\t%s", c.name, rate, c.limit, c.remedy,
				strings.Join(found[k][:min(20, len(found[k]))], "\n\t"))
		}
	}
	if len(long) > maxLongLines {
		t.Errorf("%d lines over %d columns, limit %d: %v", len(long), maxColumns, maxLongLines,
			long[:min(20, len(long))])
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(readme))); words > maxREADME {
		t.Errorf("README.md has %d words, limit %d: move details to .github/docs", words, maxREADME)
	}
}

// commentOf returns the comment of a line of Go, if the line has one. Directives are not comments.
func commentOf(line string) (string, bool) {
	if m := wholeLineComment.FindStringSubmatch(line); m != nil {
		return m[1], !strings.HasPrefix(m[1], "go:") && !strings.HasPrefix(m[1], "nolint")
	}
	m := trailingComment.FindStringSubmatch(line)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// columns returns the width of a line with tabs of four.
func columns(line string) int {
	n := 0
	for _, r := range line {
		if n++; r == '\t' {
			n = (n + 3) / 4 * 4
		}
	}
	return n
}

// goFiles returns the Go files that git tracks, testdata apart.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "*.go").Output()
	if err != nil {
		t.Skipf("git does not list the files: %v", err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(f string) bool {
		return strings.Contains(f, "/testdata/")
	})
}

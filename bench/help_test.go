package bench

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestHelp requires that every command and scenario prints its help to standard output and ends with 0, and that
// commands with flags list these and not all commands.
func TestHelp(t *testing.T) {
	commands := append(ScenarioNames(), "list", "show", "schema", "faults", "agent", "conform", "client", "hunt",
		"targets",
		"compare", "record", "replay", "organizations")
	for _, c := range commands {
		for _, flag := range []string{"-h", "--help"} {
			var out, errors bytes.Buffer
			if code := Main([]string{c, flag}, &out, &errors); code != 0 || out.Len() == 0 || errors.Len() > 0 {
				t.Errorf("%s %s: code %d, %d bytes of help, errors %q", c, flag, code, out.Len(), errors.String())
			}
			flags := !slices.Contains([]string{"list", "show", "schema"}, c)
			if flags == strings.Contains(out.String(), usage) {
				t.Errorf("%s %s lists its flags: %v, want %v; it printed\n%s", c, flag, !flags, flags, out.String())
			}
		}
	}
}

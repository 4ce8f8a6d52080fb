package bench

import (
	"bytes"
	"testing"
)

// TestHelp requires that every command and scenario prints its help to standard output and ends with 0.
func TestHelp(t *testing.T) {
	commands := append(ScenarioNames(), "list", "show", "hunt", "targets", "compare", "record", "replay")
	for _, c := range commands {
		for _, flag := range []string{"-h", "--help"} {
			var out, errors bytes.Buffer
			if code := Main([]string{c, flag}, &out, &errors); code != 0 || out.Len() == 0 || errors.Len() > 0 {
				t.Errorf("%s %s: code %d, %d bytes of help, errors %q", c, flag, code, out.Len(), errors.String())
			}
		}
	}
}

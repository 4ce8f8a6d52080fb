package emoji

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed short_names.txt
var shortNameTable string

var shortNames = sync.OnceValue(func() map[string]string {
	m := make(map[string]string, 2*strings.Count(shortNameTable, "\n"))
	for line := range strings.Lines(shortNameTable) {
		if line[0] == '#' {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		for _, name := range parts[1:] {
			m[name] = parts[0]
		}
	}
	return m
})

// CodeOfShortName returns the code of the emoji that Slack shows for a name. Other chat servers use the same names.
// Some of them are the names of other emoji here, and some codes have no name here: the protocol has none for most
// clock faces and for the colors of the skin alone.
func CodeOfShortName(name string) (code string, ok bool) {
	code, ok = shortNames()[name]
	return code, ok
}

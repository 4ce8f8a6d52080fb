// Generate writes the emoji table and the table of short names from two published packages. Run it in the root of the
// repository; it needs npm, pip and python3:
//
//	go run ./wire/markdown/emoji/generate
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// codesPackage contains the characters and their code points.
	codesPackage = "emoji-datasource-google@16.0.0" // npm, MIT
	// namesPackage contains the names that clients of the protocol use; other characters keep the name of
	// codesPackage.
	namesPackage = "zulip-emoji-mapping==1.0.1" // PyPI, Apache-2.0
	target       = "wire/markdown/emoji/table.txt"
	shortTarget  = "wire/markdown/emoji/short_names.txt"
)

// olderNames are short names that Slack used before, and that exports of that time contain. codesPackage lists the
// names of today.
var olderNames = map[string]string{"simple_smile": "1f642"}

func main() {
	dir, err := os.MkdirTemp("", "generate")
	check(err)
	defer os.RemoveAll(dir)
	run(dir, "pip", "install", "--quiet", "--target", dir, namesPackage)
	var names map[string]struct {
		Canonical string   `json:"canonical_name"`
		Aliases   []string `json:"aliases"`
	}
	check(json.Unmarshal(run(dir, "python3", "-c",
		"import json; from zulip_emoji_mapping.emoji_names import EMOJI_NAME_MAPS as m; print(json.dumps(m))"), &names))
	run(dir, "npm", "pack", "--silent", codesPackage)
	run(dir, "tar", "xzf", strings.ReplaceAll(codesPackage, "@", "-")+".tgz", "package/emoji.json")
	data, err := os.ReadFile(filepath.Join(dir, "package", "emoji.json"))
	check(err)
	var all []struct {
		Unified   string `json:"unified"`
		ShortName string `json:"short_name"`
		AddedIn   string `json:"added_in"`
		// ShortNames are all names that Slack and other servers give the emoji, ShortName among them.
		ShortNames []string `json:"short_names"`
	}
	check(json.Unmarshal(data, &all))

	var lines, shortLines []string
	for _, e := range all {
		parts := strings.Split(strings.ToLower(e.Unified), "-")
		bare := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return p == "fe0f" })
		code := strings.Join(bare, "-")
		short := append([]string{code}, e.ShortNames...)
		for name, of := range olderNames {
			if of == code && !slices.Contains(short, name) {
				short = append(short, name)
			}
		}
		shortLines = append(shortLines, strings.Join(short, "\t"))
		style := "e"
		if len(bare) == 1 && len(parts) == 2 {
			style = "t" // shown as text unless a variation selector follows
		}
		n, ok := names[code]
		if !ok {
			// Skin tones and most clock faces have no name; newer characters have the name of their own package.
			if e.AddedIn != "15.1" && e.AddedIn != "16.0" {
				continue
			}
			n.Canonical = strings.ReplaceAll(e.ShortName, "-", "_")
		}
		lines = append(lines, strings.Join(append([]string{code, style, n.Canonical}, n.Aliases...), "\t"))
	}
	write(target, fmt.Sprintf("# Code, style (t: text by default), canonical name, other names; from %s (npm, MIT) "+
		"and %s (PyPI, Apache-2.0); written by generate.", codesPackage, namesPackage), lines)
	write(shortTarget, fmt.Sprintf("# Code, short names of Slack; from %s (npm, MIT); written by generate.",
		codesPackage), shortLines)
}

// write writes a table, sorted by code.
func write(file, head string, lines []string) {
	slices.Sort(lines)
	check(os.WriteFile(file, []byte(head+"\n"+strings.Join(lines, "\n")+"\n"), 0o644))
}

func run(dir, name string, args ...string) []byte {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	check(cmd.Run())
	return out.Bytes()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

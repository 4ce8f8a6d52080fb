package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/actors/realm"
)

// settingTables are files that name settings to store, show or import them, not to follow them.
var settingTables = map[string]bool{"realm_settings.go": true, "realm_settings_effect.go": true,
	"zulip_export.go":  true,
	"descriptions.txt": true}

// shownSetting finds the settings and permissions that a page of the client shows.
var shownSetting = regexp.MustCompile(`<(?:Realm(?:Switch|Choice|Limit|Text|Channel)|User(?:Switch|Choice))\b[^>]*?` +
	`\bname="(\w+)"|case "(\w+)":\s+return t\(`)

// soundsOfReasons are the settings of notifications whose names the client puts together, in notify/reasons.ts.
var soundsOfReasons = regexp.MustCompile(`^enable_(stream|followed_topic)_(desktop|audible)_notifications$`)

// digestSettings are shown only if a registration says that the server sends digests (settings_send_digest_emails).
var digestSettings = map[string]bool{"digest_emails_enabled": true, "digest_weekday": true,
	"enable_digest_emails": true}

// TestShownSettingsHaveAnEffect: code of the server or of the client follows each setting and permission that a page of
// the client shows. The page hides those of realm.SettingsWithoutEffect, and no code may follow these.
func TestShownSettingsHaveAnEffect(t *testing.T) {
	shown, code := map[string]bool{}, map[string]string{}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	client := filepath.Join("..", "..", "wire", "web", "client", "src")
	for _, dir := range []string{"../../actors/realm", "../../wire", "../../cmd/internal", client} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if err == nil && (d.Name() == "node_modules" || d.Name() == "contract" || d.Name() == "imports" ||
					dir == "../../wire" && d.Name() == "client") {
					return fs.SkipDir
				}
				return err
			}
			inClient := strings.HasPrefix(path, client)
			settings := inClient && strings.Contains(path,
				string(filepath.Separator)+"settings"+string(filepath.Separator))
			switch ext := filepath.Ext(path); {
			case settings && ext == ".tsx":
				for _, m := range shownSetting.FindAllStringSubmatch(read(path), -1) {
					shown[m[1]+m[2]] = true
				}
			case settings, settingTables[d.Name()], d.Name() == "schema.ts", strings.HasSuffix(path, "_test.go"):
			case ext == ".go" || inClient && (ext == ".ts" || ext == ".tsx"):
				code[path] = read(path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(shown) < 80 {
		t.Errorf("only %d settings were found", len(shown))
	}
	hidden := strings.Fields(realm.SettingsWithoutEffect())
	isHidden := map[string]bool{}
	for _, name := range hidden {
		isHidden[name] = true
		if !shown[name] {
			t.Errorf("no page shows %s, so it need not be hidden", name)
		}
	}
	for name := range shown {
		use := regexp.MustCompile(`\b(realm_)?` + name + `\b`)
		follows := soundsOfReasons.MatchString(name)
		for _, text := range code {
			follows = follows || use.MatchString(text)
		}
		if follows == isHidden[name] && !digestSettings[name] {
			t.Errorf("%s: code follows it: %v; hidden because it has no effect: %v (realm_settings_effect.go)", name,
				follows,
				isHidden[name])
		}
	}
}

package mattermost

import (
	"strings"

	"parley/wire/imports"
)

// mentionsIn converts the mentions of a text, except in code.
func mentionsIn(s string, users *imports.Mentions) string {
	return imports.ReplaceNames(s, '@', func(name string) (string, bool) {
		switch lower := strings.ToLower(name); lower {
		case "channel", "all", "here":
			return "@**all**", true
		default:
			return users.Of(lower)
		}
	})
}

package mattermost

import (
	"strings"

	"parley/wire/imports"
)

// mentionsIn converts the mentions of a text, except in code.
func mentionsIn(s string, users *imports.Mentions) string {
	var out strings.Builder
	at := 0
	for i := 0; i < len(s); {
		switch {
		case s[i] == '`':
			i = codeEnd(s, i)
		case s[i] == '@' && (i == 0 || !imports.Word(s[i-1]) && strings.IndexByte("._-", s[i-1]) < 0):
			end := i + 1
			for end < len(s) && named(s[end]) {
				end++
			}
			to, length := mention(s[i+1:end], users)
			if length == 0 {
				i = end
				continue
			}
			out.WriteString(s[at:i] + to)
			i += 1 + length
			at = i
		default:
			i++
		}
	}
	out.WriteString(s[at:])
	return out.String()
}

// codeEnd returns the position after the code that begins at i, or after the quotes if they do not end.
func codeEnd(s string, i int) int {
	n := i
	for n < len(s) && s[n] == '`' {
		n++
	}
	if end := strings.Index(s[n:], s[i:n]); end >= 0 {
		return n + end + n - i
	}
	return n
}

// named reports whether a byte may be part of a username.
func named(c byte) bool { return c < 0x80 && imports.Word(c) || c == '_' || c == '.' || c == '-' }

// mention returns the mention for a name, and how many of its bytes belong to it; 0 if no user has the name. Marks at
// the end may belong to the name or to the sentence.
func mention(name string, users *imports.Mentions) (to string, length int) {
	for name != "" {
		switch lower := strings.ToLower(name); lower {
		case "channel", "all", "here":
			return "@**all**", len(name)
		default:
			if to, ok := users.Of(lower); ok {
				return to, len(name)
			}
		}
		if strings.IndexByte("._-", name[len(name)-1]) < 0 {
			return "", 0
		}
		name = name[:len(name)-1]
	}
	return "", 0
}

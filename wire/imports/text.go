package imports

import (
	"fmt"
	"strings"
	"unicode"
)

// FirstUserID is the first id that a format may want for a user.
const FirstUserID = 8

// Mentions are the texts that mention users. Users with equal names are distinguished by their ids.
type Mentions struct {
	users map[string]*User
	names map[string]int
}

// NewMentions gives each user an id and a name that can be mentioned, and returns the mentions.
func NewMentions(users []User) *Mentions {
	m := &Mentions{users: make(map[string]*User, len(users)), names: make(map[string]int, len(users))}
	for i := range users {
		u := &users[i]
		u.ID = int64(FirstUserID + i)
		if u.Name = Name(u.Name); u.Name == "" {
			u.Name = fmt.Sprintf("User %d", u.ID)
		}
		m.users[u.Key] = u
		m.names[strings.ToLower(u.Name)]++
	}
	return m
}

// Of returns the mention of a user; false if there is no such user.
func (m *Mentions) Of(key string) (string, bool) {
	u := m.users[key]
	switch {
	case u == nil:
		return "", false
	case m.names[strings.ToLower(u.Name)] > 1:
		return fmt.Sprintf("@**%s|%d**", u.Name, u.ID), true
	}
	return "@**" + u.Name + "**", true
}

// Name returns the name of a user; "" if there is no such user.
func (m *Mentions) Name(key string) string {
	if u := m.users[key]; u != nil {
		return u.Name
	}
	return ""
}

// maxName is the limit of users' names, in code points. It is the protocol's.
const maxName = 100

// Name returns a name without the characters that end a mention or that the protocol does not allow in names.
func Name(s string) string {
	s = strings.Map(func(c rune) rune {
		if strings.ContainsRune("*`\\>\"@", c) || !unicode.IsPrint(c) || c == unicode.ReplacementChar {
			return -1
		}
		return c
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return strings.TrimSpace(FirstRunes(s, maxName))
}

// FirstRunes returns the first n code points of a text.
func FirstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Link returns a link of Markdown. The label is one line, and has only brackets that belong together.
func Link(label, address string) string {
	label = strings.Join(strings.Fields(label), " ")
	depth, balanced := 0, true
	for _, c := range label {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		balanced = balanced && depth >= 0
	}
	if !balanced || depth != 0 {
		label = strings.NewReplacer("[", "(", "]", ")").Replace(label)
	}
	return "[" + label + "](" + EscapeAddress(address) + ")"
}

// EscapeAddress escapes the characters that end an address in a link.
func EscapeAddress(address string) string { return addressEscaper.Replace(address) }

var addressEscaper = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "\n", "", "\r", "", "<", "%3C", ">", "%3E")

// Word reports whether a byte belongs to a word: a letter or digit of ASCII, or a part of another character.
func Word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// ReplaceNames replaces the names in a text that a mark comes before, such as '@', except in code. find returns the
// replacement of a name, and false if there is nothing with that name. Marks at the end of a name may belong to it or
// to the sentence: find is asked for the longest name first.
func ReplaceNames(s string, mark byte, find func(name string) (string, bool)) string {
	var out strings.Builder
	at := 0
	for i := 0; i < len(s); {
		switch {
		case s[i] == '`':
			i = codeEnd(s, i)
		case s[i] == mark && (i == 0 || !Word(s[i-1]) && strings.IndexByte("._-", s[i-1]) < 0):
			end := i + 1
			for end < len(s) && inUsername(s[end]) {
				end++
			}
			to, length := longestName(s[i+1:end], find)
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

// inUsername reports whether a byte may be part of a username.
func inUsername(c byte) bool { return c < 0x80 && Word(c) || strings.IndexByte("_.-", c) >= 0 }

// longestName returns the replacement of a name, and how many of its bytes belong to it; 0 if there is none.
func longestName(name string, find func(string) (string, bool)) (to string, length int) {
	for name != "" {
		if to, ok := find(name); ok {
			return to, len(name)
		}
		if strings.IndexByte("._-", name[len(name)-1]) < 0 {
			return "", 0
		}
		name = name[:len(name)-1]
	}
	return "", 0
}

package realm

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths in Unicode code points. The numbers come from the protocol.
const (
	MaxTopic       = 60
	MaxMessage     = 10000
	MaxChannelName = 60
	MaxDescription = 1024
	MaxUserName    = 100
	minUserName    = 2
)

// findUnprintable returns the 1-based position of the first character that names must not contain, with ok = false.
// These are control characters, surrogates and Unicode non-characters, as in the protocol. findSpoofing adds to them.
func findUnprintable(s string) (int, bool) {
	n := 0
	for _, c := range s {
		n++
		if unicode.Is(unicode.Cc, c) || unicode.Is(unicode.Cs, c) || c >= 0xFDD0 && c <= 0xFDEF || c&0xFFFE == 0xFFFE {
			return n, false
		}
	}
	return 0, true
}

// RemoveUnprintable returns s without the characters that findUnprintable finds, except those in keep. It is for texts
// of other programs, such as subjects of mails.
func RemoveUnprintable(s, keep string) string {
	return strings.Map(func(c rune) rune {
		if _, ok := findUnprintable(string(c)); ok || strings.ContainsRune(keep, c) {
			return c
		}
		return -1
	}, s)
}

// findSpoofing is findUnprintable for names of accounts, channels, folders and groups: they also must not contain
// controls of the text direction. With these a name could be shown as another one, and turn around the text behind it.
// Topics and messages may contain them, because they do not identify a user or channel.
func findSpoofing(s string) (int, bool) {
	n := 0
	for _, c := range s {
		n++
		if unicode.Is(unicode.Bidi_Control, c) {
			return n, false
		}
	}
	return findUnprintable(s)
}

// runeCount returns the number of code points of a text.
func runeCount(s string) int { return utf8.RuneCountInString(s) }

// firstRunes returns the first n code points of s.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// fold returns the form by which names are compared: case is ignored.
func fold(s string) string { return strings.ToLower(s) }

// FoldTopic returns a topic in the form used for comparisons: topics that differ only in case are the same.
func FoldTopic(topic string) string { return fold(topic) }

// checkName refuses full names that the protocol does not allow. except is the user that may have the name already.
func (v View) checkName(name string, except UserID) error {
	if err := CheckUserName(name); err != nil {
		return err
	}
	if v.OrgBool("require_unique_names") {
		name = strings.TrimSpace(name)
		taken := false
		for _, id := range v.index.usersByName[fold(name)] {
			taken = taken || id != except
		}
		if taken {
			return BadRequest("Unique names required in this organization.")
		}
	}
	return nil
}

// CheckNewName refuses full names that a new account cannot have.
func (v View) CheckNewName(name string) error { return v.checkName(name, 0) }

// CheckUserName refuses full names that no organization allows.
func CheckUserName(name string) error {
	name = strings.TrimSpace(name)
	switch n := runeCount(name); {
	case n < minUserName:
		return BadRequest("Name too short!")
	case n > MaxUserName:
		return BadRequest("Name too long!")
	}
	if _, ok := findSpoofing(name); !ok || strings.ContainsAny(name, "*`\\>\"@") {
		return BadRequest("Invalid characters in name!")
	}
	if i := strings.LastIndexByte(name, '|'); i >= 0 && isDigits(name[i+1:]) {
		return BadRequest("Invalid format!")
	}
	return nil
}

// CheckOrganizationName refuses names that a new organization cannot have.
func CheckOrganizationName(name string) error {
	name = strings.TrimSpace(name)
	if n := runeCount(name); n == 0 || n > maxOrgName {
		return BadRequest("Enter a name of at most %d characters.", maxOrgName)
	}
	if _, ok := findSpoofing(name); !ok {
		return BadRequest("Invalid characters in name!")
	}
	return nil
}

// isDigits reports whether a text is one or more ASCII digits.
func isDigits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// ValidEmail checks the syntax of an email address. It refuses only what can never be one; whether email arrives
// decides the rest.
func ValidEmail(e string) bool {
	at := strings.LastIndexByte(e, '@')
	if at <= 0 || at == len(e)-1 || len(e) > 254 || strings.ContainsAny(e, " \t\r\n,;<>()[]\\\"") {
		return false
	}
	host := e[at+1:]
	if strings.ContainsRune(e[:at], '@') || strings.HasPrefix(host, ".") || strings.HasSuffix(host, ".") ||
		strings.Contains(host, "..") {
		return false
	}
	return host == "localhost" || strings.ContainsRune(host, '.')
}

// ErrInvalidEmail refuses an email address that is not valid.
func ErrInvalidEmail() error { return BadRequest("Enter a valid email address.") }

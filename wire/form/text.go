package form

import (
	"unicode"
	"unicode/utf8"
)

// Printable is the check of names people give to things: no control characters, surrogates or Unicode
// non-characters. When it fails, pos is the first offender, counted in code points from 1.
func Printable(s string) (pos int, ok bool) {
	for i := 0; i < len(s); {
		pos++
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || unicode.Is(unicode.Cc, r) || isNonCharacter(r) {
			return pos, false
		}
		i += n
	}
	return 0, true
}

// isNonCharacter: the 66 code points Unicode promises never to assign. Surrogates cannot be decoded at all.
func isNonCharacter(r rune) bool {
	return 0xFDD0 <= r && r <= 0xFDEF || r&0xFFFE == 0xFFFE
}

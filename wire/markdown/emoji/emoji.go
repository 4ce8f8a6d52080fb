package emoji

import (
	_ "embed"
	"strconv"
	"strings"
	"unicode/utf8"
)

//go:embed table.txt
var table string

// Emoji is one emoji character or sequence.
type Emoji struct {
	Code   string
	Names  []string // the canonical one first
	IsText bool     // shown as text unless a variation selector follows
}

var (
	all    []Emoji
	byName = map[string]*Emoji{}
	byCode = map[string]*Emoji{}
	// starts holds the code points that occur in emoji, except ASCII ones, which are emoji only in sequences.
	starts = map[rune]bool{}
)

func init() {
	n := strings.Count(table, "\n")
	all = make([]Emoji, 0, n)
	for line := range strings.Lines(table) {
		if line[0] == '#' {
			continue
		}
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, Emoji{Code: parts[0], IsText: parts[1] == "t", Names: parts[2:]})
	}
	for i := range all {
		e := &all[i]
		byCode[e.Code] = e
		for _, name := range e.Names {
			if byName[name] == nil {
				byName[name] = e
			}
		}
		for part := range strings.SplitSeq(e.Code, "-") {
			if c, err := strconv.ParseUint(part, 16, 32); err == nil && c >= utf8.RuneSelf && c != joiner &&
				c != keycap {
				starts[rune(c)] = true
			}
		}
	}
}

// All returns every emoji, sorted by code. The caller must not change the slice.
func All() []Emoji { return all }

// CodeOf returns the code of a name.
func CodeOf(name string) (code string, ok bool) {
	e := byName[name]
	if e == nil {
		return "", false
	}
	return e.Code, true
}

// NameOf returns the canonical name of a code.
func NameOf(code string) (name string, ok bool) {
	e := byCode[code]
	if e == nil {
		return "", false
	}
	return e.Names[0], true
}

// NamesByCode returns the names of each code, the canonical one first. Clients fetch it as code_to_names.
func NamesByCode() map[string][]string {
	m := make(map[string][]string, len(all))
	for i := range all {
		m[all[i].Code] = all[i].Names
	}
	return m
}

// Code points with a function in sequences.
const (
	joiner      = 0x200d
	keycap      = 0x20e3
	variation   = 0xfe0f
	firstTone   = 0x1f3fb
	lastTone    = 0x1f3ff
	firstFlag   = 0x1f1e6
	lastFlag    = 0x1f1ff
	firstTag    = 0xe0020
	lastTag     = 0xe007e
	tagsEnd     = 0xe007f
	maxSequence = 32 // code points; longer sequences are unknown and stay text
)

// Next reads an emoji at the start of s. It returns its length in bytes (0 if there is none) and the emoji, or nil
// for an unknown sequence, which stays text as a whole.
func Next(s string) (length int, e *Emoji) {
	first, _ := utf8.DecodeRuneInString(s)
	length, flagged := element(s)
	if length == 0 {
		return 0, nil
	}
	for n := 1; n < maxSequence && strings.HasPrefix(s[length:], "\u200d"); n++ {
		more, _ := element(s[length+3:])
		if more == 0 {
			break
		}
		length += 3 + more
	}
	e = byCode[CodeOfCharacter(s[:length])]
	if e != nil && e.IsText && !flagged && length == utf8.RuneLen(first) {
		return length, nil
	}
	return length, e
}

// element reads one character with its modifier, and reports whether a variation selector asks for an emoji.
func element(s string) (length int, flagged bool) {
	c, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return 0, false
	}
	if firstFlag <= c && c <= lastFlag {
		if next, m := utf8.DecodeRuneInString(s[n:]); firstFlag <= next && next <= lastFlag {
			return n + m, true
		}
		return 0, false
	}
	if c < utf8.RuneSelf {
		if (c == '#' || c == '*' || '0' <= c && c <= '9') && strings.HasPrefix(s[n:], "\ufe0f\u20e3") {
			return n + 6, true
		}
		return 0, false
	}
	if !starts[c] && (c < firstTone || c > lastTone) {
		return 0, false
	}
	next, m := utf8.DecodeRuneInString(s[n:])
	switch {
	case next == variation:
		n += m
		if strings.HasPrefix(s[n:], "\u20e3") {
			n += 3
		}
		return n, true
	case firstTone <= next && next <= lastTone:
		return n + m, true
	case firstTag <= next && next <= lastTag:
		end := n
		for firstTag <= next && next <= lastTag {
			end += m
			next, m = utf8.DecodeRuneInString(s[end:])
		}
		if next == tagsEnd {
			return end + m, true
		}
	}
	return n, false
}

// CodeOfCharacter returns the code of an emoji in characters.
func CodeOfCharacter(s string) string {
	buf := make([]byte, 0, 24)
	for _, c := range s {
		if c == variation {
			continue
		}
		if len(buf) > 0 {
			buf = append(buf, '-')
		}
		if c < 0x1000 {
			buf = append(buf, "000"[:3-hexLength(c)+1]...)
		}
		buf = strconv.AppendInt(buf, int64(c), 16)
	}
	return string(buf)
}

// Character returns the characters of an emoji code.
func Character(code string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(code, "-") {
		c, err := strconv.ParseUint(part, 16, 32)
		if err != nil {
			return ""
		}
		b.WriteRune(rune(c))
	}
	return b.String()
}

func hexLength(c rune) int {
	n := 1
	for c >>= 4; c > 0; c >>= 4 {
		n++
	}
	return n
}

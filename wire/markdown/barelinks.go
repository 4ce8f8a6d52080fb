package markdown

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed tlds.txt
var tldList string

// tlds are the top-level domains that make a bare host a link; the list is generated.
var tlds = func() map[string]bool {
	m := map[string]bool{}
	for line := range strings.Lines(tldList) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			m[line] = true
		}
	}
	return m
}()

// maxLinkParens is the greatest depth of nested parentheses in the path of a bare link.
const maxLinkParens = 7

// longWord is the length in bytes from which the scanner remembers failed attempts in a word.
const longWord = 200

// afterLink are the characters between a bare link and the next space that do not belong to the link.
const afterLink = `!:;?),.'">”’»›…`

// cjkPunctuation is the punctuation of Chinese, Japanese and Korean, in all its widths. These scripts have no space
// between a link and the text around it, so a bare link ends before it and can begin after it. Characters that also
// occur inside names, such as the middle dot and the wave dash, are not in it.
var cjkPunctuation = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x3001, Hi: 0x3003, Stride: 1}, // 、。〃
	{Lo: 0x3008, Hi: 0x3011, Stride: 1}, // 〈〉《》「」『』【】
	{Lo: 0x3014, Hi: 0x301b, Stride: 1}, // 〔〕〖〗〘〙〚〛
	{Lo: 0x301d, Hi: 0x301f, Stride: 1}, // 〝〞〟
	{Lo: 0xfe10, Hi: 0xfe18, Stride: 1}, // the same for vertical text
	{Lo: 0xfe35, Hi: 0xfe44, Stride: 1}, // brackets for vertical text
	{Lo: 0xfe47, Hi: 0xfe48, Stride: 1}, // as above
	{Lo: 0xfe50, Hi: 0xfe52, Stride: 1}, // ﹐﹑﹒
	{Lo: 0xfe54, Hi: 0xfe57, Stride: 1}, // ﹔﹕﹖﹗
	{Lo: 0xfe59, Hi: 0xfe5e, Stride: 1}, // ﹙﹚﹛﹜﹝﹞
	{Lo: 0xff01, Hi: 0xff02, Stride: 1}, // ！＂
	{Lo: 0xff07, Hi: 0xff09, Stride: 1}, // ＇（）
	{Lo: 0xff0c, Hi: 0xff0e, Stride: 2}, // ，．
	{Lo: 0xff1a, Hi: 0xff1b, Stride: 1}, // ：；
	{Lo: 0xff1c, Hi: 0xff1e, Stride: 2}, // ＜＞
	{Lo: 0xff1f, Hi: 0xff1f, Stride: 1}, // ？
	{Lo: 0xff3b, Hi: 0xff3d, Stride: 2}, // ［］
	{Lo: 0xff5b, Hi: 0xff5d, Stride: 2}, // ｛｝
	{Lo: 0xff5f, Hi: 0xff64, Stride: 1}, // ｟｠｡｢｣､
}}

// endsWord reports whether a bare link ends before c.
func endsWord(c rune) bool {
	return unicode.IsSpace(c) || c > unicode.MaxLatin1 && unicode.Is(cjkPunctuation, c)
}

// bareLinks replaces addresses in the text by links.
func (r *renderer) bareLinks(text string) string {
	if !mayLink(text) {
		return text
	}
	e := rewriter{src: text}
	s := linkScanner{text: text}
	for i := 0; i < len(text); {
		start, end := s.next(i)
		if start < 0 {
			break
		}
		i = end
		link := r.unmark(text[start:end])
		href, ok := cleanAddress(link)
		if !ok {
			continue
		}
		a := r.element(tagA, attr{"href", r.localAddress(href)})
		r.emit(a, text[start:end], false)
		r.result.HasLink = true
		e.replace(start, end, r.placeholder(a))
	}
	if e.from > 0 { // after a link, a line end at the end of the text (which a quote can leave) is no break
		return strings.TrimSuffix(e.finish(), "\n")
	}
	return text
}

// mayLink reports whether text can contain a bare link: a dot or colon inside a word. It is a cheap check.
func mayLink(text string) bool {
	for i := 0; i+1 < len(text); i++ {
		switch text[i] {
		case '.':
			if c := text[i+1]; i > 0 && c != ' ' && c != '\n' && c != '.' && c < utf8.RuneSelf {
				return true
			} else if c >= utf8.RuneSelf {
				return true
			}
		case '/':
			if text[i+1] == '/' {
				return true
			}
		case ':':
			if i >= 7 && text[i-7:i] == "bitcoin" {
				return true
			}
		}
	}
	return false
}

// linkScanner finds bare links. It keeps its findings about the current word for later starts in the same word.
type linkScanner struct {
	text string
	// About the word (the text between two characters that end a word) around the last start:
	wordEnd int
	tail    int                 // from here to wordEnd there are only characters of afterLink
	parens  []int               // in a long word: the positions of its parentheses and double quotes, and its end
	seen    map[[2]int]struct{} // in a long word: the positions (and depths) that failed paths passed
}

// next returns the first link that starts at i or later, -1 if there is none.
func (s *linkScanner) next(i int) (start, end int) {
	text := s.text
	for i < len(text) {
		if opensLink(text, i) || opensAfterCJK(text, i) {
			if end := s.link(i); end > 0 {
				return i, end
			}
		}
		// The next start follows a space or one of the characters that can precede a link.
		for i++; i < len(text); i++ {
			if c := text[i-1]; c < '=' && (c <= ' ' || c == '\'' || c == '"' || c == '(' || c == ',' || c == ':' ||
				c == '<') ||
				c >= 0x80 && (opensLink(text, i) || opensAfterCJK(text, i)) {
				break
			}
		}
	}
	return -1, -1
}

// opensAfterCJK reports whether a character of cjkPunctuation is before i.
func opensAfterCJK(text string, i int) bool {
	c, _ := utf8.DecodeLastRuneInString(text[:i])
	return c > unicode.MaxLatin1 && unicode.Is(cjkPunctuation, c)
}

// link returns the end of the link that starts at i, or 0.
func (s *linkScanner) link(i int) int {
	text := s.text
	if i >= len(text) {
		return 0
	}
	c, _ := utf8.DecodeRuneInString(text[i:])
	if !isWord(c) && c != '-' && c != '.' {
		return 0
	}
	if rest := text[i:]; strings.HasPrefix(rest, "http") {
		n := 4
		if strings.HasPrefix(rest[n:], "s") {
			n++
		}
		if strings.HasPrefix(rest[n:], "://") {
			return s.full(i, i+n+3)
		}
	} else if strings.HasPrefix(rest, "bitcoin:") {
		return s.bitcoin(i)
	}
	return s.host(i)
}

// measure finds the end of the word around i, and the start of its trailing afterLink characters. Typographic quotes
// that close are among these.
func (s *linkScanner) measure(i int) {
	if i < s.wordEnd {
		return
	}
	end := strings.IndexFunc(s.text[i:], endsWord)
	if end < 0 {
		end = len(s.text) - i
	}
	s.wordEnd = i + end
	s.seen, s.parens = nil, nil
	if end > longWord {
		for p := i; p < s.wordEnd; p++ {
			if c := s.text[p]; c == '(' || c == ')' || c == '"' {
				s.parens = append(s.parens, p)
			}
		}
		s.parens = append(s.parens, s.wordEnd)
	}
	s.tail = s.wordEnd
	for s.tail > i {
		c, size := utf8.DecodeLastRuneInString(s.text[i:s.tail])
		if !strings.ContainsRune(afterLink, c) || c == utf8.RuneError {
			break
		}
		s.tail -= size
	}
}

// full reads an address with a scheme; its host starts at host.
func (s *linkScanner) full(start, host int) int {
	s.measure(start)
	end := host
	for end < s.wordEnd {
		c, n := utf8.DecodeRuneInString(s.text[end:])
		if !isWord(c) && c != '.' && c != ':' && c != '@' && c != '-' {
			break
		}
		end += n
	}
	if end == host {
		return 0
	}
	if end < s.wordEnd && s.text[end] == '/' {
		return s.path(end)
	}
	if end < s.tail {
		return 0
	}
	_, first := utf8.DecodeRuneInString(s.text[host:])
	return max(s.tail, host+first)
}

// path reads the path that starts with the slash at i: up to the trailing characters of the word, with parentheses in
// pairs.
func (s *linkScanner) path(i int) int {
	p, depth := i+1, 0
	for {
		q := s.nextParen(p)
		if depth == 0 && max(p, s.tail) <= q {
			return max(p, s.tail)
		}
		if q == s.wordEnd {
			return 0
		}
		switch s.text[q] {
		case '(':
			depth++
		case ')':
			depth--
		case '"':
			return 0
		}
		if depth < 0 || depth > maxLinkParens {
			return 0
		}
		p = q + 1
		if s.parens == nil {
			continue
		}
		// In a long word a position that failed before fails again.
		key := [2]int{p, depth}
		if _, ok := s.seen[key]; ok {
			return 0
		}
		if s.seen == nil {
			s.seen = map[[2]int]struct{}{}
		}
		s.seen[key] = struct{}{}
	}
}

// nextParen returns the first parenthesis or double quote of the word at p or later, or the end of the word.
func (s *linkScanner) nextParen(p int) int {
	if s.parens != nil {
		n, _ := slices.BinarySearch(s.parens, p)
		return s.parens[n]
	}
	n := strings.IndexAny(s.text[p:s.wordEnd], `()"`)
	if n < 0 {
		return s.wordEnd
	}
	return p + n
}

// host reads a bare host with a known top-level domain and an optional path, or an email address.
func (s *linkScanner) host(i int) int {
	text := s.text
	end, dot, labels := i, -1, 0
	strict := true // one dot between labels, and only characters of a host
	for end < len(text) {
		c, n := rune(text[end]), 1
		if c >= utf8.RuneSelf {
			c, n = utf8.DecodeRuneInString(text[end:])
		}
		if c == '.' {
			if end == i || end == dot+1 {
				if labels == 0 {
					strict = false
				}
				break
			}
			dot = end
			labels++
		} else if !isWord(c) && c != '-' {
			break
		}
		end += n
	}
	stop := end
	// In an email address dots can be anywhere.
	for stop < len(text) {
		c, n := utf8.DecodeRuneInString(text[stop:])
		if !isWord(c) && c != '-' && c != '.' {
			break
		}
		stop += n
	}
	if stop < len(text) && text[stop] == '@' {
		return s.email(i, stop+1)
	}
	if !strict || labels == 0 {
		return 0
	}
	if dot == end-1 { // the last dot ends a sentence
		end = dot
		if dot = strings.LastIndexByte(text[i:end], '.'); dot < 0 {
			return 0
		}
		dot += i
	}
	if !tlds[text[dot+1:end]] {
		return 0
	}
	s.measure(i)
	if end < s.wordEnd && text[end] == '/' {
		return s.path(end)
	}
	if end < s.tail {
		return 0
	}
	return end
}

// email reads the host of an email address that starts at start.
func (s *linkScanner) email(start, host int) int {
	end := host
	for end < len(s.text) {
		c, n := utf8.DecodeRuneInString(s.text[end:])
		if !isWord(c) && c != '-' && c != '.' {
			break
		}
		end += n
	}
	for end > host && s.text[end-1] == '.' {
		end--
	}
	dot := strings.LastIndexByte(s.text[host:end], '.')
	if dot <= 0 || strings.IndexByte(s.text[host+dot:end], '-') >= 0 {
		return 0
	}
	s.measure(start)
	if end < s.tail {
		return 0
	}
	return end
}

// bitcoin reads "bitcoin:" and an address: 1 or 3 and 25 to 34 further characters.
func (s *linkScanner) bitcoin(i int) int {
	p := i + len("bitcoin:")
	if p >= len(s.text) || s.text[p] != '1' && s.text[p] != '3' {
		return 0
	}
	n := p + 1
	for n < len(s.text) && isAlnum(s.text[n]) && strings.IndexByte("0IOl", s.text[n]) < 0 {
		n++
	}
	if n-p-1 < 25 || n-p-1 > 34 {
		return 0
	}
	s.measure(i)
	if n < s.tail {
		return 0
	}
	return n
}

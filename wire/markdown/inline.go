package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pass is one of the readings a text gets, in this order. What a pass has made an element, later ones do not see.
type pass uint8

const (
	passCode pass = iota
	passStrongEm
	passMention
	passMath
	passChannel
	passTime
	passGroup
	passLink
	passBareLink
	passLinkifier
	passStrong
	passEm
	passDel
	passEmoji
	passEmoticon
	passCharacter
	passCount
)

// sign is a set of bytes that a pass needs to find anything.
type sign uint16

const (
	signTick sign = 1 << iota
	signStar
	signAt
	signDollar
	signHash
	signLess
	signBracket
	signColon
	signDot
	signTilde
	signLine
	signWide
	signMark
	signSmile // the first or second byte of an emoticon
	signAmp
)

var signs = func() (t [256]sign) {
	for c, s := range map[byte]sign{'`': signTick, '*': signStar, '@': signAt, '$': signDollar, '#': signHash, '<': signLess | signSmile,
		'[': signBracket, ':': signColon | signSmile, '.': signDot, '~': signTilde, '\n': signLine, markOpen: signMark,
		'(': signSmile, ';': signSmile, '&': signAmp} {
		t[c] = s
	}
	for c := 0x80; c < 0x100; c++ {
		t[c] = signWide
	}
	return t
}()

func signsOf(s string) (f sign) {
	for i := 0; i < len(s); i++ {
		f |= signs[s[i]]
	}
	return f
}

// needs lists what each pass cannot do without.
var needs = [passCount]sign{
	passCode: signTick, passStrongEm: signStar, passMention: signAt, passMath: signDollar, passChannel: signHash, passTime: signLess,
	passGroup: signAt, passLink: signBracket, passBareLink: signDot | signColon | signAt, passStrong: signStar, passEm: signStar,
	passDel: signTilde, passEmoji: signColon, passEmoticon: signSmile, passCharacter: signWide,
}

// inlineTree runs the inline passes over every source text below n.
func (r *renderer) inlineTree(n *node) {
	blocks := n.tag == tagLi && n.lastElement() != nil
	for c := n.first; c != nil; {
		next := c.next
		switch c.kind {
		case kindElement:
			r.inlineTree(c)
		case kindSource:
			r.inlineInto(n, c)
		}
		c = next
	}
	if blocks {
		r.readAgain(n)
	}
}

// readAgain reads what no pass has made an element of once more, where it stands behind an element inside an emphasised text or is
// itself emphasised there: a link may end where a star was, now that the star is gone.
func (r *renderer) readAgain(n *node) {
	for c := n.first; c != nil; c = c.next {
		if c.kind != kindElement {
			continue
		}
		if c.emphasis() {
			inside := c.lastElement() != nil
			if t := c.first; t != nil && t.kind == kindText {
				r.inlineInto(c, t)
			}
			if inside {
				r.readAgain(c)
			}
		}
		if t := c.next; t != nil && t.kind == kindText && !elements[c.tag].block && c.tag != tagBr {
			r.inlineInto(n, t)
		}
	}
}

func (n *node) emphasis() bool { return n.tag == tagEm || n.tag == tagStrong || n.tag == tagDel }

// inlineInto replaces the source text c by what it means.
func (r *renderer) inlineInto(parent, c *node) {
	f := signsOf(c.text)
	if f&^(signDot|signSmile|signAmp) == 0 && f&signDot == 0 && len(r.o.Linkifiers) == 0 && !(r.o.Emoticons && f&signSmile != 0) {
		c.kind = kindText
		return
	}
	holder := node{tag: parent.tag}
	r.inline(&holder, c.text, 0, f)
	at := c.prev
	c.remove()
	for h := holder.first; h != nil; {
		next := h.next
		parent.insertAfter(at, h)
		if h.kind == kindElement && h.emphasis() {
			r.readAgain(h)
		}
		at, h = h, next
	}
}

// inline reads text from the given pass on and appends the result to parent.
func (r *renderer) inline(parent *node, text string, from pass, f sign) {
	for p := from; p < passCount; p++ {
		if need := needs[p]; need != 0 && f&need == 0 {
			continue
		}
		switch p {
		case passCode:
			text = r.codeSpans(text)
		case passStrongEm:
			text = r.strongEms(text)
		case passMention:
			text = r.mentions(text)
		case passMath:
			text = r.maths(text)
		case passChannel:
			text = r.channelLinks(text)
		case passTime:
			text = r.times(text)
		case passGroup:
			text = r.groups(text)
		case passLink:
			text = r.namedLinks(text)
		case passBareLink:
			text = r.bareLinks(text)
		case passLinkifier:
			text = r.linkify(text)
		case passStrong:
			text = r.strongs(text)
		case passEm:
			text = r.ems(text)
		case passDel:
			text = r.dels(text)
		case passEmoji:
			text = r.emojiNames(text)
		case passEmoticon:
			if r.o.Emoticons {
				text = r.emoticons(text)
			}
		case passCharacter:
			text = r.emojiCharacters(text)
		}
	}
	r.emit(parent, text, true)
}

// emit appends text to parent: marks become the elements they stand for, and line ends breaks if they are to.
func (r *renderer) emit(parent *node, text string, breaks bool) {
	special := "\x02"
	if breaks {
		special = "\n\x02"
	}
	for {
		i := strings.IndexAny(text, special)
		if i < 0 {
			break
		}
		if i > 0 {
			parent.append(r.textNode(kindText, text[:i]))
		}
		if text[i] == '\n' {
			parent.append(r.element(tagBr))
			text = text[i+1:]
			continue
		}
		n, length := r.marks(text[i:])
		if n.tag != tagMark && n.parent == nil {
			parent.append(n)
		}
		text = text[i+length:]
	}
	if text != "" {
		parent.append(r.textNode(kindText, text))
	}
}

// unmark replaces the marks in text by the text of their elements: for addresses and titles.
func (r *renderer) unmark(text string) string {
	i := strings.IndexByte(text, markOpen)
	if i < 0 {
		return text
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexByte(text, markOpen) {
		n, length := r.marks(text[i:])
		b.WriteString(text[:i])
		b.WriteString(n.innerText())
		text = text[i+length:]
	}
	b.WriteString(text)
	return b.String()
}

// edit builds a text with some parts replaced by marks.
type edit struct {
	src  string
	from int
	out  []byte
}

func (e *edit) replace(start, end int, with string) {
	if e.out == nil {
		e.out = make([]byte, 0, len(e.src)+16)
	}
	e.out = append(append(e.out, e.src[e.from:start]...), with...)
	e.from = end
}

func (e *edit) done() string {
	if e.out == nil {
		return e.src
	}
	return string(append(e.out, e.src[e.from:]...))
}

// codeSpans reads n backticks, any text, n backticks. A backslash before them keeps them text.
func (r *renderer) codeSpans(text string) string {
	runs := tickRuns(text)
	e := edit{src: text}
	for i := 0; i < len(text); {
		next := strings.IndexByte(text[i:], '`')
		if next < 0 {
			break
		}
		i += next
		n := runs.length(text, i)
		slashes := 0
		for i-slashes > e.from && text[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 1 { // the first backtick is escaped
			i, n, slashes = i+1, n-1, 0
		} else if slashes > 0 {
			e.replace(i-slashes, i, strings.Repeat(`\`, slashes/2))
		}
		// Where nothing closes all of them, some of the backticks belong to the code.
		end, k := -1, n
		for ; k > 0; k-- {
			if end = runs.after(k, i+n); end >= 0 {
				break
			}
		}
		if end < 0 {
			i += n
			continue
		}
		n = k
		code := r.element(tagCode)
		code.append(r.textNode(kindVerbatim, text[i+n:end]))
		e.replace(i, end+n, r.mark(code))
		i = end + n
	}
	return e.done()
}

// strongEms reads ***text***.
func (r *renderer) strongEms(text string) string {
	return r.starred(text, 3, func(inner string) *node {
		em, strong := r.element(tagEm), r.element(tagStrong)
		r.inline(em, inner, passStrongEm+1, signsOf(inner))
		strong.append(em)
		return strong
	})
}

// ems reads *text* within a line.
func (r *renderer) ems(text string) string {
	return r.starred(text, 1, func(inner string) *node {
		em := r.element(tagEm)
		r.inline(em, inner, passEm+1, signsOf(inner))
		return em
	})
}

// starRun is a run of stars that nothing has closed yet: where it begins and how many of them are left.
type starRun struct{ at, stars int }

// starred replaces text between n stars by the elements build makes of it. No star, caret or line end may stand in the text and no
// space at its edges; but what has become an element may itself stand between stars.
func (r *renderer) starred(text string, n int, build func(inner string) *node) string {
	var open []starRun
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); {
		next := strings.IndexAny(text[i:], "*^\n")
		if next < 0 {
			return string(append(out, text[i:]...))
		}
		out = append(out, text[i:i+next]...)
		i += next
		if text[i] != '*' {
			open = open[:0]
			out = append(out, text[i])
			i++
			continue
		}
		stars := 0
		for i < len(text) && text[i] == '*' {
			stars++
			i++
		}
		for stars >= n && len(open) > 0 {
			last := &open[len(open)-1]
			inner := out[last.at+last.stars:]
			if last.stars < n || !emphasised(inner) {
				break
			}
			mark := r.mark(build(string(inner)))
			last.stars -= n
			stars -= n
			out = append(out[:last.at+last.stars], mark...)
			if last.stars == 0 {
				open = open[:len(open)-1]
			}
		}
		if stars > 0 {
			open = append(open, starRun{len(out), stars})
			out = append(out, text[i-stars:i]...)
		}
	}
	return string(out)
}

// emphasised says that text may stand between stars: there is some, and no space at its edges.
func emphasised(text []byte) bool {
	first, _ := utf8.DecodeRune(text)
	last, _ := utf8.DecodeLastRune(text)
	return len(text) > 0 && !isBlank(first) && !isBlank(last)
}

// strongs reads **text** within a line.
func (r *renderer) strongs(text string) string {
	e := edit{src: text}
	for i := 0; ; {
		next := strings.Index(text[i:], "**")
		if next < 0 {
			return e.done()
		}
		i += next
		line := strings.IndexByte(text[i:], '\n')
		if line < 0 {
			line = len(text) - i
		}
		end := -1
		if line >= 5 {
			end = strings.Index(text[i+3:i+line], "**")
		}
		if end < 0 {
			i += line // nothing on this line can end what begins on it
			continue
		}
		end += i + 3
		r.wrap(&e, tagStrong, passStrong, i, i+2, end, end+2)
		i = end + 2
	}
}

// dels reads ~~text~~ within a line.
func (r *renderer) dels(text string) string {
	e := edit{src: text}
	for i := 0; ; {
		next := strings.Index(text[i:], "~~")
		if next < 0 {
			return e.done()
		}
		i += next
		n := i
		for n < len(text) && text[n] == '~' {
			n++
		}
		end := n
		if n-i == 2 {
			for end < len(text) && text[end] != '~' && text[end] != '\n' {
				end++
			}
		}
		if n-i != 2 || end == n || !strings.HasPrefix(text[end:], "~~") || strings.HasPrefix(text[end:], "~~~") {
			i = end
			continue
		}
		r.wrap(&e, tagDel, passDel, i, n, end, end+2)
		i = end + 2
	}
}

// wrap puts what is between the delimiters into an element; later passes read it.
func (r *renderer) wrap(e *edit, t tag, p pass, start, from, to, end int) {
	n := r.element(t)
	inner := e.src[from:to]
	r.inline(n, inner, p+1, signsOf(inner))
	e.replace(start, end, r.mark(n))
}

// opensMention says that a mention or channel link may begin at i.
func opensMention(text string, i int) bool {
	return opensAfter(text, i, `'"({[/<`)
}

// opensLink says that a link may begin at i.
func opensLink(text string, i int) bool {
	return opensAfter(text, i, `'"(,:<`)
}

func opensAfter(text string, i int, also string) bool {
	if i == 0 {
		return true
	}
	if c := text[i-1]; c < utf8.RuneSelf {
		return isSpace(c) || 0x1c <= c && c <= 0x1f || strings.IndexByte(also, c) >= 0
	}
	c, _ := utf8.DecodeLastRuneInString(text[:i])
	return unicode.IsSpace(c)
}

// isWord says that c is a letter, digit or underscore in any script.
func isWord(c rune) bool {
	if c < utf8.RuneSelf {
		return c == '_' || isAlnum(byte(c))
	}
	return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsNumber(c))
}

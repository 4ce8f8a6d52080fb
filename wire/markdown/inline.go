package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pass is one pass over the inline text, in this order. Later passes do not see the elements of earlier ones.
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

// trigger is a set of bytes that a pass needs to find anything.
type trigger uint16

const (
	triggerTick trigger = 1 << iota
	triggerStar
	triggerAt
	triggerDollar
	triggerHash
	triggerLess
	triggerBracket
	triggerColon
	triggerDot
	triggerTilde
	triggerLine
	triggerWide
	triggerPlaceholder
	triggerSmile // the first or second byte of an emoticon
	triggerAmp
)

// triggerOfByte is the trigger of each byte; bytes outside ASCII share one.
var triggerOfByte = func() (t [256]trigger) {
	for c, s := range map[byte]trigger{
		'`': triggerTick, '*': triggerStar, '@': triggerAt, '$': triggerDollar, '#': triggerHash,
		'<': triggerLess | triggerSmile, '[': triggerBracket, ':': triggerColon | triggerSmile, '.': triggerDot,
		'~': triggerTilde, '\n': triggerLine, placeholderOpen: triggerPlaceholder,
		'(': triggerSmile, ';': triggerSmile, '&': triggerAmp,
	} {
		t[c] = s
	}
	for c := 0x80; c < 0x100; c++ {
		t[c] = triggerWide
	}
	return t
}()

func triggersOf(s string) (f trigger) {
	for i := 0; i < len(s); i++ {
		f |= triggerOfByte[s[i]]
	}
	return f
}

// passTriggers lists the bytes without which a pass finds nothing.
var passTriggers = [passCount]trigger{
	passCode:      triggerTick,
	passStrongEm:  triggerStar,
	passMention:   triggerAt,
	passMath:      triggerDollar,
	passChannel:   triggerHash,
	passTime:      triggerLess,
	passGroup:     triggerAt,
	passLink:      triggerBracket,
	passBareLink:  triggerDot | triggerColon | triggerAt,
	passStrong:    triggerStar,
	passEm:        triggerStar,
	passDel:       triggerTilde,
	passEmoji:     triggerColon,
	passEmoticon:  triggerSmile,
	passCharacter: triggerWide,
}

// inlineTree runs the inline passes over each source text below n.
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
		r.reparse(n)
	}
}

// reparse parses unparsed text again if it follows an element inside an emphasised text, or is itself emphasised
// there: a link can end where a star was, now that the star is removed.
func (r *renderer) reparse(n *node) {
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
				r.reparse(c)
			}
		}
		if t := c.next; t != nil && t.kind == kindText && !elements[c.tag].block && c.tag != tagBr {
			r.inlineInto(n, t)
		}
	}
}

func (n *node) emphasis() bool { return n.tag == tagEm || n.tag == tagStrong || n.tag == tagDel }

// inlineInto replaces the source text c by its elements.
func (r *renderer) inlineInto(parent, c *node) {
	f := triggersOf(c.text)
	if f&^(triggerDot|triggerSmile|triggerAmp) == 0 && f&triggerDot == 0 && len(r.options.Linkifiers) == 0 &&
		!(r.options.Emoticons && f&triggerSmile != 0) {
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
			r.reparse(h)
		}
		at, h = h, next
	}
}

// inline parses text from the given pass on and appends the result to parent.
func (r *renderer) inline(parent *node, text string, from pass, f trigger) {
	for p := from; p < passCount; p++ {
		if need := passTriggers[p]; need != 0 && f&need == 0 {
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
			if r.options.Emoticons {
				text = r.emoticons(text)
			}
		case passCharacter:
			text = r.emojiCharacters(text)
		}
	}
	r.emit(parent, text, true)
}

// emit appends text to parent, with elements in place of placeholders. Line ends become breaks if breaks is set.
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
		n, length := r.placeholderAt(text[i:])
		if n.tag != tagBorder && n.parent == nil {
			parent.append(n)
		}
		text = text[i+length:]
	}
	if text != "" {
		parent.append(r.textNode(kindText, text))
	}
}

// unmark replaces placeholders by the text of their elements: for addresses and titles.
func (r *renderer) unmark(text string) string {
	i := strings.IndexByte(text, placeholderOpen)
	if i < 0 {
		return text
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexByte(text, placeholderOpen) {
		n, length := r.placeholderAt(text[i:])
		b.WriteString(text[:i])
		b.WriteString(n.innerText())
		text = text[i+length:]
	}
	b.WriteString(text)
	return b.String()
}

// rewriter builds a text in which some parts are replaced by placeholders.
type rewriter struct {
	src  string
	from int
	out  []byte
}

func (e *rewriter) replace(start, end int, with string) {
	if e.out == nil {
		e.out = make([]byte, 0, len(e.src)+16)
	}
	e.out = append(append(e.out, e.src[e.from:start]...), with...)
	e.from = end
}

func (e *rewriter) finish() string {
	if e.out == nil {
		return e.src
	}
	return string(append(e.out, e.src[e.from:]...))
}

// codeSpans replaces n backticks, text, n backticks. A backslash before them escapes them.
func (r *renderer) codeSpans(text string) string {
	runs := tickRuns(text)
	e := rewriter{src: text}
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
		// If no run closes all of them, some of the backticks belong to the code.
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
		e.replace(i, end+n, r.placeholder(code))
		i = end + n
	}
	return e.finish()
}

// strongEms replaces ***text***.
func (r *renderer) strongEms(text string) string {
	return r.starred(text, 3, func(inner string) *node {
		em, strong := r.element(tagEm), r.element(tagStrong)
		r.inline(em, inner, passStrongEm+1, triggersOf(inner))
		strong.append(em)
		return strong
	})
}

// ems replaces *text* within a line.
func (r *renderer) ems(text string) string {
	return r.starred(text, 1, func(inner string) *node {
		em := r.element(tagEm)
		r.inline(em, inner, passEm+1, triggersOf(inner))
		return em
	})
}

// starRun is a run of stars that is not closed yet: its position and the number of stars left.
type starRun struct{ at, stars int }

// starred replaces text between n stars by the elements that build returns. The text contains no star, caret or line
// end, and no space at its edges. Elements of earlier passes can be between the stars.
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
			mark := r.placeholder(build(string(inner)))
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

// emphasised reports whether text can be between stars: it is not empty and has no space at its edges.
func emphasised(text []byte) bool {
	first, _ := utf8.DecodeRune(text)
	last, _ := utf8.DecodeLastRune(text)
	return len(text) > 0 && !isBlank(first) && !isBlank(last)
}

// strongs replaces **text** within a line.
func (r *renderer) strongs(text string) string {
	e := rewriter{src: text}
	for i := 0; ; {
		next := strings.Index(text[i:], "**")
		if next < 0 {
			return e.finish()
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
			i += line // no closing delimiter on this line
			continue
		}
		end += i + 3
		r.wrap(&e, tagStrong, passStrong, i, i+2, end, end+2)
		i = end + 2
	}
}

// dels replaces ~~text~~ within a line.
func (r *renderer) dels(text string) string {
	e := rewriter{src: text}
	for i := 0; ; {
		next := strings.Index(text[i:], "~~")
		if next < 0 {
			return e.finish()
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

// wrap puts the text between the delimiters into an element; later passes parse it.
func (r *renderer) wrap(e *rewriter, t tag, p pass, start, from, to, end int) {
	n := r.element(t)
	inner := e.src[from:to]
	r.inline(n, inner, p+1, triggersOf(inner))
	e.replace(start, end, r.placeholder(n))
}

// opensMention reports whether a mention or channel link can start at i.
func opensMention(text string, i int) bool {
	return opensAfter(text, i, `'"({[/<`)
}

// opensLink reports whether a link can start at i.
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

// isWord reports whether c is a letter, digit or underscore in any script.
func isWord(c rune) bool {
	if c < utf8.RuneSelf {
		return c == '_' || isAlnum(byte(c))
	}
	return c != utf8.RuneError && (unicode.IsLetter(c) || unicode.IsNumber(c))
}

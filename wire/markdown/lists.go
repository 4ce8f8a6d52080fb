package markdown

import "strings"

// listIndent is the number of spaces that nest a list by one level.
const listIndent = 2

// wideIndent also nests by one level.
const wideIndent = "    "

// listItem parses the first line of an item: the list it belongs to, its number and its text. At most one space can
// precede it.
func listItem(line string) (list tag, number, text string, ok bool) {
	if len(line) > 0 && line[0] == ' ' {
		line = line[1:]
	}
	n := itemMark(line)
	if n == 0 {
		return 0, "", "", false
	}
	text = strings.TrimLeft(line[n:], " ")
	if isBullet(line[0]) {
		return tagUl, "", text, true
	}
	return tagOl, line[:n-1], text, true
}

// itemMark returns the length of the bullet or number at the start of a line, if a space follows it.
func itemMark(line string) int {
	n := 0
	switch {
	case line == "":
		return 0
	case isBullet(line[0]):
		n = 1
	default:
		for n < len(line) && isDigit(line[n]) {
			n++
		}
		if n == 0 || n >= len(line) || line[n] != '.' {
			return 0
		}
		n++
	}
	if n >= len(line) || line[n] != ' ' {
		return 0
	}
	return n
}

// indentedItem reports whether a line is an item of a nested list.
func indentedItem(line string) bool {
	s := strings.TrimLeft(line, " ")
	n := len(line) - len(s)
	return n >= listIndent && n < 3*listIndent && itemMark(s) > 0
}

// narrow replaces four spaces of indentation by one level (two spaces), in an item of a nested list.
func narrow(text string) string {
	if !strings.HasPrefix(text, wideIndent) || !indentedItem(text) {
		return text
	}
	return strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n"+wideIndent, "\n  "), "\n")
}

// list parses a block of items.
func (r *renderer) list(parent *node, text string) bool {
	kind, _, _, ok := listItem(text)
	if !ok {
		return false
	}
	start, items := splitItems(kind, text)
	var list *node
	before := parent.lastElement()
	switch {
	case before != nil && before.tag == kind:
		// The list continues after a blank line: from here on its items are paragraphs.
		list = before
		r.loosen(list)
		li := r.element(tagLi)
		list.append(li)
		r.in(stateLoose, func() { r.parseOne(li, items[0]) })
		items = items[1:]
	case parent.tag == tagUl || parent.tag == tagOl:
		list = parent
	default:
		list = r.element(kind)
		if kind == tagOl && start != "1" {
			list.attrs = []attr{{"start", start}}
		}
		parent.append(list)
	}
	r.in(stateTight, func() {
		for _, item := range items {
			if strings.HasPrefix(item, "  ") && list.last != nil {
				r.parseOne(list.last, narrow(item))
				continue
			}
			li := r.element(tagLi)
			list.append(li)
			r.parseOne(li, item)
		}
	})
	return true
}

// loosen wraps the text of the last item of a list in paragraphs.
func (r *renderer) loosen(list *node) {
	li := list.last
	if li == nil {
		return
	}
	if t := li.first; t != nil && t.kind == kindSource {
		t.remove()
		p := r.element(tagP)
		p.append(t)
		li.insertAfter(nil, p)
	}
	if t := li.last; t != nil && t.kind == kindSource && t.prev != nil {
		t.remove()
		t.text = strings.TrimLeft(t.text, " \n")
		p := r.element(tagP)
		p.append(t)
		li.append(p)
	}
}

// splitItems splits a block into its items; nested items and further lines stay in their item.
func splitItems(kind tag, block string) (start string, items []string) {
	var lines []string
	flush := func() {
		if len(lines) == 1 {
			items = append(items, lines[0])
		} else if len(lines) > 0 {
			items = append(items, strings.Join(lines, "\n"))
		}
		lines = nil
	}
	for line := range strings.SplitSeq(block, "\n") {
		if k, number, text, ok := listItem(line); ok && k == kind {
			if len(items) == 0 && len(lines) == 0 {
				start = number
			}
			flush()
			lines = []string{text}
			continue
		}
		if indentedItem(line) && !strings.HasPrefix(lines[0], "  ") {
			flush()
		}
		lines = append(lines, line)
	}
	flush()
	return start, items
}

// indented reports whether a block belongs to an item of the list before it or around it.
func (r *renderer) indented(parent *node, text string) bool {
	if !strings.HasPrefix(text, "  ") || r.state == stateDetabbed {
		return false
	}
	if parent.tag == tagLi {
		return true
	}
	last := parent.lastElement()
	return last != nil && (last.tag == tagUl || last.tag == tagOl)
}

// indentedBlock parses a block into the item that its indentation selects.
func (r *renderer) indentedBlock(parent *node, text string) {
	text = narrow(text)
	level, target := r.indentLevel(parent, text)
	text = looseDetab(text, level)
	r.in(stateDetabbed, func() {
		switch {
		case parent.tag == tagLi:
			if last := parent.lastElement(); last != nil && (last.tag == tagUl || last.tag == tagOl) {
				r.parseOne(last, text)
			} else {
				r.parseOne(parent, text)
			}
		case target.tag == tagLi:
			r.parseOne(target, text)
		case target.last != nil && target.last.tag == tagLi:
			li := target.last
			if t := li.first; t != nil && t.kind == kindSource {
				t.remove()
				p := r.element(tagP)
				p.append(t)
				li.insertAfter(nil, p)
			}
			r.parseText(li, text)
		default:
			li := r.element(tagLi)
			target.append(li)
			r.parseOne(li, text)
		}
	})
}

// indentLevel descends into the last items as far as the indentation reaches.
func (r *renderer) indentLevel(parent *node, text string) (int, *node) {
	n := 0
	for n < len(text) && text[n] == ' ' {
		n++
	}
	want, level := n/listIndent, 0
	if r.state == stateTight {
		level = 1
	}
	for want > level {
		child := parent.lastElement()
		if child == nil || child.tag != tagUl && child.tag != tagOl && child.tag != tagLi {
			break
		}
		if child.tag != tagLi {
			level++
		}
		parent = child
	}
	return level, parent
}

func looseDetab(text string, level int) string {
	n := level * listIndent
	var b strings.Builder
	b.Grow(len(text))
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if len(line) >= n && strings.TrimLeft(line[:n], " ") == "" {
			line = line[n:]
		}
		b.WriteString(line)
	}
	return b.String()
}

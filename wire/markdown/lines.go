package markdown

import "strings"

// Placeholders represent finished elements inside source text. Users cannot write them: both bytes are removed from
// every source.
const (
	placeholderOpen  = '\x02'
	placeholderClose = '\x03'
)

const (
	tabColumns = 4 // a tab reaches to the next multiple of this
	// maxFences is the greatest number of open fences; further ones are text. Each open quote costs two bytes a line.
	maxFences = 40
)

// separateLists inserts a blank line between a line and a list directly below it, outside code.
func separateLists(text string) string {
	if !strings.Contains(text, "\n") || !mayHoldList(text) {
		return text
	}
	type open struct {
		fence string
		code  bool
	}
	var fences []open
	coded := 0
	var b strings.Builder
	rest, first := text, true
	prev, prevItem := "", byte(0)
	for more := true; more; {
		var line string
		line, rest, more = strings.Cut(rest, "\n")
		item := listMarker(line)
		if !first {
			if coded == 0 && prev != "" && item != 0 && item != prevItem {
				if b.Len() == 0 {
					b.Grow(len(text) + 16)
				}
				b.WriteByte('\n')
			}
		}
		b.WriteString(line)
		if more {
			b.WriteByte('\n')
		}
		if f, ok := parseFence(line); ok {
			if n := len(fences); n > 0 && f.lang == "" && fences[n-1].fence == f.fence {
				if fences[n-1].code {
					coded--
				}
				fences = fences[:n-1]
			} else {
				code := f.lang != "quote" && f.lang != "quoted"
				if code {
					coded++
				}
				fences = append(fences, open{f.fence, code})
			}
		}
		prev, prevItem, first = line, item, false
	}
	return b.String()
}

func mayHoldList(text string) bool {
	for i := 0; i < len(text); {
		if listMarker(text[i:]) != 0 {
			return true
		}
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			return false
		}
		i += n + 1
	}
	return false
}

// listMarker returns '*' if a line begins an item of a bullet list, '1' for a numbered list (with a single digit),
// else 0.
func listMarker(line string) byte {
	i := 0
	for i < len(line) && line[i] == ' ' {
		i++
	}
	line = line[i:]
	switch {
	case len(line) >= 2 && isBullet(line[0]) && line[1] == ' ':
		return '*'
	case len(line) >= 3 && isDigit(line[0]) && line[1] == '.' && line[2] == ' ':
		return '1'
	}
	return 0
}

func isBullet(c byte) bool { return c == '*' || c == '-' || c == '+' }

// normalize unifies line ends, tabs and blank lines, and removes the bytes of placeholders.
func normalize(text string) string {
	if strings.ContainsAny(text, "\r\t\x00\x02\x03") {
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "", "\x02", "", "\x03", "").Replace(text)
		text = expandTabs(text)
	}
	if !strings.Contains(text, "\n ") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
			if strings.Trim(line, " ") == "" {
				continue
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func expandTabs(text string) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	var b strings.Builder
	column := 0
	for _, c := range text {
		switch c {
		case '\t':
			n := tabColumns - column%tabColumns
			b.WriteString("    "[:n])
			column += n
			continue
		case '\n':
			column = -1
		}
		b.WriteRune(c)
		column++
	}
	return b.String()
}

package markdown

import "strings"

const (
	// maxColumns and maxCells bound a table: otherwise a short source could create a million padded cells.
	maxColumns = 100
	maxCells   = 10_000
)

// table parses a block whose first line is a header and whose second line separates it from the rows.
func (r *renderer) table(parent *node, text string) bool {
	header, rest, ok := strings.Cut(text, "\n")
	if !ok {
		return false
	}
	separator, rows, _ := strings.Cut(rest, "\n")
	header, separator = strings.Trim(header, " "), strings.Trim(separator, " ")
	if strings.Trim(separator, "|:- ") != "" || strings.IndexByte(header+separator, '|') < 0 {
		return false
	}
	border := strings.HasPrefix(header, "|") || endsInPipe(header)
	names := splitRow(header, border)
	if len(names) == 1 && (!border || !allPiped(rest)) || len(names) > maxColumns {
		return false
	}
	marks := splitRow(separator, border)
	if len(marks) != len(names) {
		return false
	}
	align := make([]string, len(marks))
	for i, m := range marks {
		m = strings.Trim(m, " ")
		left, right := strings.HasPrefix(m, ":"), strings.HasSuffix(m, ":")
		switch {
		case left && right:
			align[i] = "center"
		case left:
			align[i] = "left"
		case right:
			align[i] = "right"
		}
	}
	table, head, body := r.element(tagTable), r.element(tagThead), r.element(tagTbody)
	head.append(r.row(tagTh, names, align))
	lines := strings.Split(rows, "\n")
	if len(lines)*len(names) > maxCells {
		return false
	}
	for _, line := range lines {
		if rows == "" {
			body.append(r.row(tagTd, nil, make([]string, len(align))))
			break
		}
		body.append(r.row(tagTd, splitRow(strings.Trim(line, " "), border), align))
	}
	table.append(head)
	table.append(body)
	parent.append(table)
	return true
}

func (r *renderer) row(cell tag, texts, align []string) *node {
	row := r.element(tagTr)
	for i, a := range align {
		c := r.element(cell)
		if i < len(texts) {
			if t := strings.Trim(texts[i], " "); t != "" {
				c.append(r.textNode(kindSource, t))
			}
		}
		if a != "" {
			c.attrs = []attr{{"style", "text-align: " + a + ";"}}
		}
		row.append(c)
	}
	return row
}

// endsInPipe reports whether a row ends in a pipe that is not escaped.
func endsInPipe(row string) bool {
	if !strings.HasSuffix(row, "|") {
		return false
	}
	n := len(row) - 1
	for n > 0 && row[n-1] == '\\' {
		n--
	}
	return (len(row)-1-n)%2 == 0
}

func allPiped(rows string) bool {
	for row := range strings.SplitSeq(rows, "\n") {
		row = strings.Trim(row, " ")
		if !strings.HasPrefix(row, "|") && !endsInPipe(row) {
			return false
		}
	}
	return true
}

// splitRow splits a row at its pipes, except escaped ones and those in code.
func splitRow(row string, border bool) []string {
	if border {
		row = strings.TrimPrefix(row, "|")
		if endsInPipe(row) {
			row = row[:len(row)-1]
		}
	}
	if strings.IndexByte(row, '`') < 0 && strings.IndexByte(row, '\\') < 0 {
		return strings.Split(row, "|")
	}
	runs := tickRuns(row)
	var cells []string
	from := 0
	for i := 0; i < len(row); {
		switch c := row[i]; {
		case c == '\\' && i+1 < len(row) && (row[i+1] == '\\' || row[i+1] == '|'):
			i += 2
		case c == '\\' && i+1 < len(row) && row[i+1] == '`':
			i++
			i += runs.length(row, i)
		case c == '`':
			i = runs.skip(row, i)
		case c == '|':
			cells = append(cells, row[from:i])
			i++
			from = i
		default:
			i++
		}
	}
	return append(cells, row[from:])
}

// ticks maps each length of a run of backticks to the positions of those runs.
type ticks map[int][]int

func tickRuns(s string) ticks {
	t := ticks{}
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		n := t.length(s, i)
		t[n] = append(t[n], i)
		i += n
	}
	return t
}

func (t ticks) length(s string, i int) int {
	n := i
	for n < len(s) && s[n] == '`' {
		n++
	}
	return n - i
}

// skip returns the position after the code that starts at i, or after its backticks if no run closes it.
func (t ticks) skip(s string, i int) int {
	n := t.length(s, i)
	if end := t.after(n, i+n); end >= 0 {
		return end + n
	}
	return i + n
}

// after returns the first run of exactly n backticks at i or later. It forgets earlier runs.
func (t ticks) after(n, i int) int {
	runs := t[n]
	for len(runs) > 0 && runs[0] < i {
		runs = runs[1:]
	}
	t[n] = runs
	if len(runs) == 0 {
		return -1
	}
	return runs[0]
}

package mail

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"parley/actors/realm"
)

// replyText returns what the writer of a reply has written: without the quoted mail and the signature. It is "" if
// there is nothing else.
func (p *parsedMail) replyText() string {
	text, other := "", ""
	for _, x := range p.sections {
		own := withoutQuotes(unifyLines(x.plain))
		if x.plain == "" {
			own = renderHTML(x.page, false)
		}
		text, other = joinTexts(text, own), joinTexts(other, unifyLines(x.other))
	}
	text = cutSignature(cutFooter(strings.TrimSpace(cmp.Or(text, other))))
	if p.omitted > 0 {
		text = joinTexts(text, fmt.Sprintf("(%d further files of this mail were not kept.)", p.omitted))
	}
	return realm.RemoveUnprintable(text, "\t\n")
}

// deviceLine is the last line that mail programs of phones add.
var deviceLine = regexp.MustCompile(`(?i)^(sent (from|with|via) .{1,60}|get outlook for .{1,60}|` +
	`von meinem .{1,50} gesendet|gesendet (mit|von) .{1,50}|envoy\x{e9} (de|depuis|\x{e0} partir de) .{1,50}|` +
	`enviado (desde|do) .{1,50}|inviato da .{1,50}|verzonden (vanaf|met) .{1,50})$`)

// cutSignature removes a signature at the end of a reply: a line of two dashes at the beginning of the text, or the
// line that a phone adds.
func cutSignature(text string) string {
	if first, _, _ := strings.Cut(text, "\n"); strings.TrimSpace(first) == "--" {
		return ""
	}
	lines := strings.Split(text, "\n")
	if last := len(lines) - 1; deviceLine.MatchString(strings.TrimSpace(lines[last])) {
		text = strings.Join(lines[:last], "\n")
	}
	return strings.TrimSpace(text)
}

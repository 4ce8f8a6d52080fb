package integrations

import "testing"

// TestSlackMarkup holds the Markdown of Slack's markup: signs within signs, code as it is, and labels in place of the
// groups and dates that only Slack knows.
func TestSlackMarkup(t *testing.T) {
	for in, want := range map[string]string{
		"*bold* _italic_ ~gone~, (*two words*)":             "**bold** *italic* ~~gone~~, (**two words**)",
		"a*b*c snake_case_name 2*3*4 *a*b * c * **d**":      "a*b*c snake_case_name 2*3*4 *a*b * c * **d**",
		"*_both_* ~_*three*_~":                              "***both*** ~~***three***~~",
		"x\n_*in a line*_\n~*of its own*~":                  "x\n_**in a line**_\n~**of its own**~",
		"`*code*` *b* ```*x*\n_y_ <https://e.org|z>```":     "`*code*` **b** ```*x*\n_y_ [z](https://e.org)```",
		"<!subteam^S1|@ops> <!date^1392734382^{d}|18 Feb>":  "@ops 18 Feb",
		"<!subteam^S1> <#C1|general> <@U1|ada> <!everyone>": "<!subteam^S1> **#general** **@ada** **everyone**",
	} {
		if got := slackMarkdown(in, false); got != want {
			t.Errorf("%q\n got %q\nwant %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"plain_text": "2 *x* <y>", "mrkdwn": "2 **x** <y>"} {
		if got := slackTextOf(map[string]any{"type": in, "text": "2 *x* &lt;y&gt;"}); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

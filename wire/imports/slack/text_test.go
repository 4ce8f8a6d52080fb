package slack

import (
	"encoding/json"
	"os"
	"testing"

	"parley/wire/imports"
)

func testConverter() *converter {
	users := []imports.User{{Key: "U1", Name: "Ann Lee"}, {Key: "U2", Name: "Bo"}, {Key: "U3", Name: "bo"}}
	return &converter{mentions: imports.NewMentions(users), user: func(id string) string { return id },
		channels: map[string]string{"C1": "general"}}
}

// The pairs of the sample are converted exactly.
func TestSamplePairs(t *testing.T) {
	data, err := os.ReadFile("../../../../shared/imports/slack/message_conversion.json")
	if err != nil {
		t.Skip("the samples are not there")
	}
	var all struct {
		Pairs []struct {
			Name  string
			Input string
			Want  string `json:"conversion_output"`
		} `json:"regular_tests"`
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all.Pairs) == 0 {
		t.Fatal(err, len(all.Pairs))
	}
	for _, p := range all.Pairs {
		if got := testConverter().text(p.Input); got != p.Want {
			t.Errorf("%s: %q becomes %q, want %q", p.Name, p.Input, got, p.Want)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"<!everyone> <!channel> <!here> <!here|here>":               "@**all** @**all** @**all** @**all**",
		"<#C1|general> <#C1> <#C9|other>":                           "#**general** #**general** #other",
		"<#C9> <#C9|> <#C1|>":                                       "#C9 #C9 #**general**",
		"<@U1> <@U1|ann>, <@U9> (<@U2>)":                            "@**Ann Lee** @**Ann Lee**, <@U9> (@**Bo|9**)",
		"<@U9|zoe> <@U9|@zoe>":                                      "@zoe @zoe",
		"&lt;tag&gt; &amp;amp; `a &lt; b`":                          "<tag> &amp; `a < b`",
		"<https://x.example/a?b=1&amp;c=2|the docs>":                "[the docs](https://x.example/a?b=1&c=2)",
		"<https://x.example/_a_/*b*>":                               "https://x.example/_a_/*b*",
		"<https://a.example|see <https://b.example|b> &amp; <@U1>>": "[see b & @Ann Lee](https://a.example)",
		"a < b <https://x.example> c > d":                           "a < b https://x.example c > d",
		"<https://x.example/*>, *<https://x.example|y>*":            "https://x.example/*, **[y](https://x.example)**",
		"<mailto:ann@x.example|Ann> <tel:+123|call>":                "mailto:ann@x.example [call](tel:+123)",
		"<!subteam^S1|@team> <!date^1^{date}|today>":                "@team today",
		"<!subteam^S2> <!other>":                                    "@S2 @other",
		"<!date^1392734382^{date_num}> <!date^x^y>":                 "<time:2014-02-18T14:39:42Z> x",
		"<!date^1^{date}^https://x.example/a|then>":                 "[then](https://x.example/a)",
		"one\n*two*\n_three_":                                       "one\n**two**\n*three*",
		"":                                                          "",
	} {
		if got := testConverter().text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// The edges of words are those of all scripts: a letter with an accent is no edge, and foreign punctuation is one.
func TestEmphasisInAllScripts(t *testing.T) {
	for in, want := range map[string]string{
		"*Grüße*": "**Grüße**",
		"_schön_": "*schön*",
		"~früher~ *Ærø* _Łódź_ *日本語*":     "~~früher~~ **Ærø** *Łódź* **日本語**",
		"größe_von_haus ü_x_ *x*é":        "größe_von_haus ü_x_ *x*é",
		"„*fett*“ «_kursiv_» — *x*…":      "„**fett**“ «*kursiv*» — **x**…",
		"🎉*ja*🎉 ❤️_ja_":                   "🎉**ja**🎉 ❤️*ja*",
		"*太字*、です *太字*です":                  "**太字**、です *太字*です",
		"*a\u00a0b*\u00a0c":               "**a\u00a0b**\u00a0c",
		"*e\u0301*x *xe\u0301* \u0301*x*": "*e\u0301*x **xe\u0301** \u0301*x*",
	} {
		if got := testConverter().text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// A block of code keeps its first line, and the text around it stays outside. Code shows what Slack shows.
func TestCode(t *testing.T) {
	for in, want := range map[string]string{
		"```if (a) {\n  x\n}```\nafter":                    "```\nif (a) {\n  x\n}\n```\nafter",
		"```\na\n\nb\n```":                                 "```\na\n\nb\n```",
		"see ```x``` and *y*":                              "see\n```\nx\n```\nand **y**",
		"`*a* _b_` ```\n~c~ *d*\n``` *e*":                  "`*a* _b_`\n```\n~c~ *d*\n```\n**e**",
		"```a```\n```b```":                                 "```\na\n```\n```\nb\n```",
		"&gt; ```a\nb``` c\nd":                             "> ```\n> a\n> b\n> ```\n> c\nd",
		"see `a &lt; b &amp;&amp; c`":                      "see `a < b && c`",
		"```a &lt; b &amp;amp; c```":                       "```\na < b &amp; c\n```",
		"`curl <https://x.example|x.example> <@U1> <#C1>`": "`curl x.example @Ann Lee #general`",
		"```<https://x.example/a?b&amp;c>```":              "```\nhttps://x.example/a?b&c\n```",
		"```if (a<b && c>d)```":                            "```\nif (a<b && c>d)\n```",
		"*x ```a``` y*":                                    "*x\n```\na\n```\ny*",
		"open ``` only *b*":                                "open ``` only **b**",
	} {
		if got := testConverter().text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// A time is the same message in each form in which programs write it.
func TestTimes(t *testing.T) {
	for ts, want := range map[string]int64{"1700000003.0001": 1700000003_000100, "1700000003.000100": 1700000003_000100,
		"1700000003": 1700000003_000000, "1.7000000030001e9": 1700000003_000100, " 1700000003.1 ": 1700000003_100000,
		"1700000003.0001009": 1700000003_000100} {
		if got, ok := micros(ts); got != want || !ok {
			t.Errorf("%q is %d, %v; want %d", ts, got, ok, want)
		}
	}
	for _, ts := range []string{"", "x", "-1", "0", "1e400", "1e10", "99999999999.1", "1.x", "1..2", "NaN", "Inf"} {
		if got, ok := micros(ts); ok {
			t.Errorf("%q is %d, want an error", ts, got)
		}
	}
	const at = 1700000003_000100
	if a, b := identity("1700000003.0001", at), identity("1700000003.000100", at); a != b {
		t.Errorf("%q and %q are two messages", a, b)
	}
}

// No text causes a panic or needs more than linear time.
func FuzzText(f *testing.F) {
	f.Add("*a* <@U1> `x` ```y``` <http://x|y> ~z~")
	f.Fuzz(func(t *testing.T, s string) { testConverter().text(s) })
}

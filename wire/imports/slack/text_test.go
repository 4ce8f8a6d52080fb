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
		"<!everyone> <!channel> <!here> <!here|here>": "@**all** @**all** @**all** @**all**",
		"<#C1|general> <#C1> <#C9|other>":             "#**general** #**general** <#C9|other>",
		"<@U1> <@U1|ann>, <@U9> (<@U2>)":              "@**Ann Lee** @**Ann Lee**, <@U9> (@**Bo|9**)",
		"&lt;tag&gt; &amp;amp; `a &lt; b`":            "<tag> &amp; `a &lt; b`",
		"<https://x.example/a?b=1&amp;c=2|the docs>":  "[the docs](https://x.example/a?b=1&c=2)",
		"<https://x.example/_a_/*b*>":                 "https://x.example/_a_/*b*",
		"`*a* _b_` ```\n~c~ *d*\n``` *e*":             "`*a* _b_` ```\n~c~ *d*\n``` **e**",
		"<!subteam^S1|@team> <!date^1^{date}|today>":  "@team today",
		"one\n*two*\n_three_":                         "one\n**two**\n*three*",
		"":                                            "",
	} {
		if got := testConverter().text(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// No text causes a panic or needs more than linear time.
func FuzzText(f *testing.F) {
	f.Add("*a* <@U1> `x` ```y``` <http://x|y> ~z~")
	f.Fuzz(func(t *testing.T, s string) { testConverter().text(s) })
}

package markdown

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// knownPlainDifferences lists the cases with another plain text, and the reason.
var knownPlainDifferences = map[string]string{}

func TestPlainTextFixtures(t *testing.T) {
	n := 0
	for _, c := range readFixtures(t).Regular {
		if c.Text == nil {
			continue
		}
		n++
		got := PlainText(c.Expected)
		reason, listed := knownPlainDifferences[c.Name]
		switch {
		case got == *c.Text && listed:
			t.Errorf("%s passes now: remove it from knownPlainDifferences (%s)", c.Name, reason)
		case got != *c.Text && !listed:
			t.Errorf("%s\nhtml: %q\n got: %q\nwant: %q", c.Name, c.Expected, got, *c.Text)
		}
	}
	t.Logf("%d plain texts", n)
}

func TestHighlight(t *testing.T) {
	for _, c := range []struct{ html, words, phrase, want string }{
		{"<p>The cat sat</p>", "cat", "", `<p>The <span class="highlight">cat</span> sat</p>`},
		{"<p>Cats concatenate</p>", "cats", "", `<p><span class="highlight">Cats</span> concatenate</p>`},
		{"<p>The t isn't</p>", "isn t", "",
			`<p>The <span class="highlight">t</span> <span class="highlight">isn</span>'<span ` +
				`class="highlight">t</span></p>`},
		{"<p>a snake_case cat</p>", "case cat", "",
			`<p>a snake_<span class="highlight">case</span> <span class="highlight">cat</span></p>`},
		{"<p>concatenate</p>", "", "cat", `<p>con<span class="highlight">cat</span>enate</p>`},
		{"<p>cats</p>", "cats", "cat", `<p><span class="highlight">cats</span></p>`},
		{"<p>我们 ok</p>", "们", "", `<p>我<span class="highlight">们</span> ok</p>`},
		{`<p><a href="http://cat.org">a dog</a></p>`, "cat", "", `<p><a href="http://cat.org">a dog</a></p>`},
		{"<p>R&amp;D AMP</p>", "amp", "R&D",
			`<p><span class="highlight">R&amp;D</span> <span class="highlight">AMP</span></p>`},
		{"<p>R&amp;D amp;</p>", "amp", "p;", `<p>R&amp;D <span class="highlight">amp</span>;</p>`},
		{"<p>Über über</p>", "üBER", "",
			`<p><span class="highlight">Über</span> <span class="highlight">über</span></p>`},
		{"<p>x</p>", "", "", "<p>x</p>"},
		{`<math xmlns="m"><mi>x</mi></math>x`, "x", "",
			`<math xmlns="m"><mi>x</mi></math><span class="highlight">x</span>`},
	} {
		if got := Highlight(c.html, strings.Fields(c.words), []string{c.phrase}); got != c.want {
			t.Errorf("%q, %q in %s\n got: %s\nwant: %s", c.words, c.phrase, c.html, got, c.want)
		}
	}
	if got, want := HighlightText("a <b> plan", []string{"b", "plan"},
		nil), `a &lt;<span class="highlight">b</span>&gt; <span class="highlight">plan</span>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSearchText(t *testing.T) {
	got, err := Render("```spoiler top :cat:\nhidden\n```\n> quoted $$x$$\n\n1. one", testLookup{}, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := SearchText(got.HTML)
	for _, want := range []string{"top :cat:", "🐈", "hidden", "quoted", "$$x$$", "one"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not contain %q", text, want)
		}
	}
}

func TestVisibleSource(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                               "plain",
		"a [b](http://c.example) d":           "a [b] d",
		"[b](<http://c.example> \"title\") d": "[b] d",
		"[b](http://c.example/(x) 'e') f":     "[b] f",
		"[![i](/a.png)](http://c.example) d":  "[![i]] d",
		"a](b":                                "a](b",
		"[a] (b)":                             "[a] (b)",
	} {
		if got := VisibleSource(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	many := strings.Repeat("[a](", 20_000)
	if got := VisibleSource(many); got != many {
		t.Errorf("%d bytes of unclosed links became %d", len(many), len(got))
	}
}

func TestAlertWords(t *testing.T) {
	words := []string{"cat", "big plan", "c++", "Übel", "cat", "con", ""}
	for text, want := range map[string][]int{
		"a cat":                   {0, 4},
		"CAT!":                    {0, 4},
		"concatenate":             nil,
		"cat\"":                   nil,
		"\"cat.":                  {0, 4},
		"`cat`":                   {0, 4},
		"> cat":                   {0, 4},
		"cat|":                    nil,
		"the Big Plan? C++ übel.": {1, 2, 3},
		"```\ncat\n```\nc++":      {2},
		"~~~quote\ncat\n~~~":      {0, 4},
		"```py\nx = cat\n":        nil,
		"@cat":                    nil,
		"con cat":                 {0, 4, 5},
		"":                        nil,
	} {
		if got := NewAlertMatcher(words).Find(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func BenchmarkAlertWords(b *testing.B) {
	words := make([]string, 10_000)
	for i := range words {
		words[i] = fmt.Sprintf("word%d of %d", i, i*7919%10_000)
	}
	m := NewAlertMatcher(words)
	text := strings.Repeat("some words of a message, word12 of 19 and word77 of 5 ", 2) + "word12 of 5028"
	b.ReportAllocs()
	for b.Loop() {
		if len(m.Find(text)) != 1 {
			b.Fatal("the word was not found")
		}
	}
}

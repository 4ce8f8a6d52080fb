package markdown

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func mustRender(t *testing.T, text string, o *Options) Result {
	t.Helper()
	r, err := Render(text, testLookup{}, o)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if err := checkSafe(r.HTML); err != nil {
		t.Errorf("%q: %v", text, err)
	}
	return r
}

func check(t *testing.T, o *Options, cases [][2]string) {
	t.Helper()
	for _, c := range cases {
		if got := mustRender(t, c[0], o).HTML; got != c[1] {
			t.Errorf("%q\n got: %s\nwant: %s", c[0], got, c[1])
		}
	}
}

const (
	annMention = `<span class="user-mention" data-user-id="12">@Ann Lee</span>`
	annSilent  = `<span class="user-mention silent" data-user-id="12">Ann Lee</span>`
)

func TestBlocks(t *testing.T) {
	check(t, &Options{}, [][2]string{
		{"", ""}, {" \n ", ""},
		{"a\n\n\nb\n", "<p>a</p>\n<p>b</p>"},
		{"a\r\nb\tc", "<p>a<br>\nb   c</p>"},
		{"&nbsp; &#60; &bad &; <b>", "<p>&nbsp; &#60; &amp;bad &amp;; &lt;b&gt;</p>"},
		{"---", "<hr>"}, {"a\n***\nb", "<p>a</p>\n<hr>\n<p>b</p>"},
		{"a\n## b ##\nc", "<p>a</p>\n<h2>b</h2>\n<p>c</p>"}, {"####### a", "<p>####### a</p>"},
		{"a\n===", "<p>a<br>\n===</p>"},
		{"* a\n\n  b", "<ul>\n<li>\n<p>a</p>\n<p>b</p>\n</li>\n</ul>"},
		{"* a\n\n    b", "<ul>\n<li>a<p>b</p>\n</li>\n</ul>"},
		{"* a\nb", "<ul>\n<li>a<br>\nb</li>\n</ul>"},
		{"* a\n    * b", "<ul>\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>"},
		{"* a\n    * b\n        * c\n    * d\n* e",
			"<ul>\n<li>a<ul>\n<li>b<ul>\n<li>c</li>\n</ul>\n</li>\n<li>d</li>\n</ul>\n</li>\n<li>e</li>\n</ul>"},
		{"1. a\n    * b", "<ol>\n<li>\n<p>a</p>\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ol>"},
		{"1. a\n* b", "<ol>\n<li>a</li>\n</ol>\n<ul>\n<li>b</li>\n</ul>"},
		{"a\n10. b", "<p>a<br>\n10. b</p>"}, {"10. b", "<ol start=\"10\">\n<li>b</li>\n</ol>"},
		{"a\n\n    * b", "<p>a</p>\n<div class=\"codehilite\"><pre><span></span><code>* b\n</code></pre></div>"},
		{"> a\nb\n\nc", "<blockquote>\n<p>a<br>\nb</p>\n</blockquote>\n<p>c</p>"},
		{"a\n> b", "<p>a</p>\n<blockquote>\n<p>b</p>\n</blockquote>"},
		{"> * a\n> ## b", "<blockquote>\n<ul>\n<li>a</li>\n</ul>\n<h2>b</h2>\n</blockquote>"},
		{"~~~quoted\na\n~~~", "<blockquote>\n<p>a</p>\n</blockquote>"},
		{"a|b\n:-|-:\nc", "<table>\n<thead>\n<tr>\n<th style=\"text-align: left;\">a</th>\n<th style=\"text-align: " +
			"right;\">b</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td style=\"text-align: left;\">c</td>\n<td style=\"text-align: " +
			"right;\"></td>\n</tr>\n</tbody>\n</table>"},
		{"|a|\n|:-:|\n|`x|y` \\| z|", "<table>\n<thead>\n<tr>\n<th style=\"text-align: " +
			"center;\">a</th>\n</tr>\n</thead>\n" +
			"<tbody>\n<tr>\n<td style=\"text-align: center;\"><code>x|y</code> \\| z</td>\n</tr>\n</tbody>\n</table>"},
		{"x\na|b\n-|-", "<p>x<br>\na|b<br>\n-|-</p>"},
	})
}

func TestIndentedCodeAndWhiteSpace(t *testing.T) {
	code := func(body string) string {
		return `<div class="codehilite"><pre><span></span><code>` + body + "\n</code></pre></div>"
	}
	check(t, &Options{}, [][2]string{
		{"    a\nb", code("a") + "\n\n<p>b</p>"}, {"\ta\n\n* b", code("a") + "\n\n<ul>\n<li>b</li>\n</ul>"},
		{">     a\n\nb", "<blockquote>\n" + code("a") + "\n\n</blockquote>\n<p>b</p>"}, {"    a\n\n", code("a")},
		{"    a\u3000", code("a")}, {"```\na\u00a0\n```\u3000\nb", code("a") + "\n<p>b</p>"},
		{"\u3000a", "<p>a</p>"}, {"\u00a0\u2003a b", "<p>a b</p>"}, {"x\n\n\u3000a\u3000", "<p>x</p>\n<p>a\u3000</p>"},
		{"##\u3000a\u3000", "<h2>a</h2>"}, {"~~~math\n\\x\n~~~", "<p><span class=\"tex-error\">\\x</span></p>"},
		{"a\n>\n    >", "<p>a</p>\n<blockquote></blockquote>"}, {"a\n>\n  >", "<p>a<br>\n&gt;<br>\n  &gt;</p>"},
		{"> see b.org\n    >", "<blockquote>\n<p>see <a href=\"http://b.org\">b.org</a></p>\n</blockquote>"},
		{"> see b\n    >", "<blockquote>\n<p>see b<br>\n</p>\n</blockquote>"},
	})
}

// TestEmphasisWithin checks emphasis around emphasised text, and links that end where a star was.
func TestEmphasisWithin(t *testing.T) {
	link := `<a href="http://b.org">b.org</a>`
	check(t, &Options{}, [][2]string{
		{"*a *b* c*", "<p><em>a <em>b</em> c</em></p>"},
		{"***a ***b*** c***", "<p><strong><em>a <strong><em>b</em></strong> c</em></strong></p>"},
		{"*a * b*", "<p>*a * b*</p>"}, {"* x*y*z*", "<ul>\n<li>x<em>y</em>z*</li>\n</ul>"},
		{"q *x*y*z*", "<p>q <em>x</em>y<em>z</em></p>"},
		{"*a ^ *b* c*", "<p>*a ^ <em>b</em> c*</p>"}, {"*a\n*b* c*", "<p>*a<br>\n<em>b</em> c*</p>"},
		{"*a **b* c**", "<p>*a <strong>b* c</strong></p>"},
		{"***a***b***", "<p><strong><em>a</em></strong>b***</p>"}, {"*a*b*", "<p><em>a</em>b*</p>"},
		{"**b.org**", "<p><strong>b.org</strong></p>"},
		{"**`a` b.org**", "<p><strong><code>a</code> " + link + "</strong></p>"},
		{"~~*a* b.org~~", "<p><del><em>a</em> " + link + "</del></p>"},
		{"**a *b.org***", "<p><strong>a *b.org</strong>*</p>"},
		{"~~a *b.org* c~~", "<p><del>a <em>" + link + "</em> c</del></p>"},
		{"1. **b.org**\n  2. c", "<ol>\n<li><strong>" + link +
			"</strong><ol start=\"2\">\n<li>c</li>\n</ol>\n</li>\n</ol>"},
	})
	check(t, &Options{Emoticons: true}, [][2]string{{"&amp;:) &;:)",
		"<p>&amp;:) &amp;;" + `<span aria-label="smile" class="emoji emoji-1f642" role="img" ` +
			`title="smile">:smile:</span>` + "</p>"}})
}

// An open formula ends with an empty part, and an empty block is one empty formula.
func TestEmptyFormulas(t *testing.T) {
	for text, want := range map[string]int{"```math\n```": 1, "```math\nx\n```": 1, "```math\nx\n\ny\n```": 2,
		"```math\nx": 2,
		"```math":    1} {
		html := mustRender(t, text, &Options{}).HTML
		if n := strings.Count(html, `"katex-display"`); n != want || strings.Count(html, "<p>") != 1 {
			t.Errorf("%q has %d formulas, want %d in one paragraph: %s", text, n, want, html)
		}
	}
}

func TestFences(t *testing.T) {
	code := func(lang, body string) string {
		if lang != "" {
			lang = ` data-code-language="` + lang + `"`
		}
		return `<div class="codehilite"` + lang + `><pre><span></span><code>` + body + "\n</code></pre></div>"
	}
	check(t, &Options{}, [][2]string{
		{"```\na\n````\nb\n```", code("", "a\n````\nb")},
		{"```\na", code("", "a")},
		{"a\n```\nb\n```\nc", "<p>a</p>\n" + code("", "b") + "\n<p>c</p>"},
		{"``` .text\n<'\">\n```", code("Text only", "&lt;'\"&gt;")},
		{"```{js}\n\n\tx  \n\n```", code("JavaScript", `<span class="w">    </span><span class="nx">x</span>`)},
		{"```c++\n\n```", code("C++", "")},
		{"```?no\nx\n ```", "<p><code>?no\nx\n </code></p>"}, {"```no$such\nx\n```", code("no", "x")},
		{"```No.Such\nx\n```", code("No.Such", "x")},
		{" ```\na\n ```", "<p><code>\na\n </code></p>"},
		{"> ```\n> a\n> ```", "<blockquote>\n<p><code>\na\n</code></p>\n</blockquote>"},
		{"#!/usr/bin/nosuch x\na", "<p>#!/usr/bin/nosuch x<br>\na</p>"},
		{"```spoiler a\n```spoiler b\nc\n```\nd\n```",
			`<div class="spoiler-block"><div class="spoiler-header">` + "\n<p>a</p>\n" +
				`</div><div class="spoiler-content" aria-hidden="true">` + "\n" +
				`<div class="spoiler-block"><div class="spoiler-header">` + "\n<p>b</p>\n" +
				`</div><div class="spoiler-content" aria-hidden="true">` +
				"\n<p>c</p>\n</div></div>\n<p>d</p>\n</div></div>"},
		{"```quote\n\na\n```py\n```\n\n```\n", "<blockquote>\n<p>a</p>\n" + code("Python", "") + "\n</blockquote>"},
		{"```quote\na\n", "<blockquote>\n<p>a</p>\n</blockquote>"}, {"```quote\n```", "<p>&gt; </p>"},
		{"~~~math\n\\x\n\n\\y'\n~~~", "<p><span class=\"tex-error\">\\x</span>\n\n<span " +
			"class=\"tex-error\">\\y&#x27;</span></p>"},
		{"```quote", "<p>&gt; <br>\n&gt; </p>"}, {"```quote\nhi", "<blockquote>\n<p>hi</p>\n</blockquote>"},
		{"```text\nx", code("Text only", "x")}, // the blank lines of an open fence are not shown
	})
	check(t, &Options{DefaultCodeLanguage: "nosuch"}, [][2]string{
		{"```\na\n```", code("nosuch", "a")}, {"```text\na\n```", code("Text only", "a")}, {"    a", code("", "a")},
	})
}

func TestHighlighting(t *testing.T) {
	short := strings.NewReplacer(`<span class="`, "{", `">`, ":", "</span>", "}")
	for _, c := range [][3]string{
		{"python", "from a import b\ndef f(x):\n    \"\"\"doc\"\"\"\n    return 'y' + 1",
			"{kn:from}{w: }{nn:a}{w: }{kn:import} {n:b}\n{k:def}{w: }{nf:f}{p:(}{n:x}{p:):}\n" +
				"{w:    }{sd:\"\"\"doc\"\"\"}\n    {k:return} {s1:'y'} {o:+} {mi:1}"},
		{"python", "import a, b", "{kn:import}{w: }{nn:a}{o:,}{w: }{nn:b}"},
		{"js", "const e = new TypeError(1);",
			"{kd:const}{w: }{nx:e}{w: }{o:=}{w: }{ow:new}{w: }{ne:TypeError}{p:(}{mf:1}{p:);}"},
		{"bash", "#!/bin/sh\nfor i in x; do ls -l; done",
			"{ch:#!/bin/sh}\n{k:for}{w: }i{w: }{k:in}{w: }x{p:;}{w: }{k:do}{w: }ls{w: }-l{p:;}{w: }{k:done}"},
		{"c", "int main() { f(); }", "{kt:int}{w: }{nf:main}{p:()}{w: }{p:{}{w: }{n:f}{p:();}{w: }{p:}}"},
		{"go", "func f() {}", "{kd:func}{w: }{nx:f}{p:()}{w: }{p:{}}"},
		{"yaml", "a:\n  - 1", "{nt:a}{p::}\n{w:  }{p p-Indicator:-}{w: }{l l-Scalar l-Scalar-Plain:1}"},
		{"json", `{"a": null}`, `{p:{}{nt:"a"}{p::}{w: }{kc:null}{p:}}`},
		{"sql", "select 1", "{k:select}{w: }{mi:1}"},
		{"diff", "+a", "{gi:+a}"},
	} {
		html := mustRender(t, "```"+c[0]+"\n"+c[1]+"\n```", &Options{}).HTML
		_, html, _ = strings.Cut(html, "<code>")
		html, _, _ = strings.Cut(html, "\n</code>")
		if got := short.Replace(html); got != c[2] {
			t.Errorf("%s\n got: %s\nwant: %s", c[0], got, c[2])
		}
	}
}

func TestInline(t *testing.T) {
	check(t, &Options{}, [][2]string{
		{"`` `a` ``", "<p><code> `a` </code></p>"}, {"`a\nb`", "<p><code>a\nb</code></p>"}, {"\\`a`", "<p>\\`a`</p>"},
		{"**a *b* c**", "<p><strong>a <em>b</em> c</strong></p>"}, {"* a*", "<ul>\n<li>a*</li>\n</ul>"},
		{"x * a*", "<p>x * a*</p>"},
		{"~~a **b**~~ ~~~c~~~", "<p><del>a <strong>b</strong></del> ~~~c~~~</p>"}, {"~~ a ~~", "<p><del> a </del></p>"},
		{"*a\nb*", "<p>*a<br>\nb*</p>"}, {"**:cat:**",
			`<p><strong><span aria-label="cat" class="emoji emoji-1f408" role="img" title="cat">:cat:</span>` +
				`</strong></p>`},
		{"`:cat:`", "<p><code>:cat:</code></p>"}, {"[:cat: **x**](/y)", `<p><a href="/y">:cat: **x**</a></p>`},
		{"x$$a$$", "<p>x$$a$$</p>"}, {"$$a\nb$$", "<p>$$a<br>\nb$$</p>"}, {"`$$a$$`", "<p><code>$$a$$</code></p>"},
		{"![a](http://b.org)", `<p>!<a href="http://b.org">a</a></p>`}, {"_a_ \\* \\_", `<p>_a_ \* \_</p>`},
		{"/me waves\nat you", "<p>/me waves<br>\nat you</p>"},
	})
	if r := mustRender(t, "/me waves\nat you", &Options{}); !r.IsMe {
		t.Error("/me is not recognised")
	}
	for _, text := range []string{"/me", "/meow", "x /me y", "/me a\n\n* b"} {
		if r := mustRender(t, text, &Options{}); r.IsMe {
			t.Errorf("%q is recognised as a /me message", text)
		}
	}
}

func TestMentions(t *testing.T) {
	check(t, &Options{}, [][2]string{
		{"@**Ann Lee**", "<p>" + annMention + "</p>"}, {"@**ann lee**", "<p>" + annMention + "</p>"},
		{"@**Ann Lee|12**", "<p>" + annMention + "</p>"}, {"@**|12**", "<p>" + annMention + "</p>"},
		{"@**ann lee|12**", "<p>@<strong>ann lee|12</strong></p>"}, {"@**Zoe|12**", "<p>@<strong>Zoe|12</strong></p>"},
		{"@_**Ann Lee|12**", "<p>" + annSilent + "</p>"}, {"x@**Ann Lee**", "<p>x@<strong>Ann Lee</strong></p>"},
		{"(@**Ann Lee**)", "<p>(" + annMention + ")</p>"},
		{"`x`@**Zoe**", "<p><code>x</code>@<strong>Zoe</strong></p>"},
		{"@**Gone**", `<p><span class="user-mention silent" data-user-id="13">Gone</span></p>`},
		{"@**A & B <C>**", `<p><span class="user-mention" data-user-id="14">@A &amp; B &lt;C&gt;</span></p>`},
		{"@**all**", `<p><span class="user-mention channel-wildcard-mention" data-user-id="*">@all</span></p>`},
		{"@_**channel**", `<p><span class="user-mention channel-wildcard-mention silent" ` +
			`data-user-id="*">channel</span></p>`},
		{"@**topic** @_**topic**", `<p><span class="topic-mention">@topic</span> <span class="topic-mention ` +
			`silent">topic</span></p>`},
		{"@**all|99**", `<p><span class="user-mention" data-user-id="99">@all</span></p>`},
		{"@*ops* @_*ops* @*old*", `<p><span class="user-group-mention" data-user-group-id="5">@ops</span> ` +
			`<span class="user-group-mention silent" data-user-group-id="5">ops</span> <span ` +
			`class="user-group-mention silent" data-user-group-id="6">old</span></p>`},
		{"@*role:administrators*", `<p><span class="user-group-mention" ` +
			`data-user-group-id="1">@Administrators</span></p>`},
		{"@*none*", "<p>@<em>none</em></p>"},
		{">@**Ann Lee** `a @**Zoe**`", "<blockquote>\n<p>" + annSilent +
			" <code>a @_**Zoe**</code></p>\n</blockquote>"},
		{"```quote\n@*ops*\n```", "<blockquote>\n<p><span class=\"user-group-mention silent\" " +
			"data-user-group-id=\"5\">ops</span></p>\n</blockquote>"},
	})
	// A name is not parsed again, whatever it contains.
	if got, err := Render("[x](http://a/@**odd**) @**odd**", oddLookup{}, &Options{}); err != nil ||
		!strings.Contains(got.HTML, "@*a* \x020") {
		t.Errorf("%q %v", got.HTML, err)
	}
	r := mustRender(t, "@**Ann Lee** @**Ann Lee** @_**Zoe** @**Gone** @*ops* @_*old* @**all** @_**topic**\n> @**Zoe**",
		&Options{})
	if !slices.Equal(r.MentionedUsers, []int64{12}) || !slices.Equal(r.MentionedGroups, []int64{5}) ||
		!r.ChannelWildcard || r.TopicWildcard {
		t.Errorf("%+v", r)
	}
	r = mustRender(t, "@**Ann Lee** @*ops* @**all** @**topic**", &Options{Silent: true})
	if len(r.MentionedUsers)+len(r.MentionedGroups) > 0 || r.ChannelWildcard || r.TopicWildcard {
		t.Errorf("a description has mentions: %+v", r)
	}
}

// oddLookup has a user whose name contains Markdown and a placeholder.
type oddLookup struct{ EmptyLookup }

func (oddLookup) UserByName(string) (User, bool) { return User{1, "*a* \x020\x03", true}, true }

func TestChannelLinks(t *testing.T) {
	check(t, &Options{}, [][2]string{
		{"#**dev**", `<p><a class="stream" data-stream-id="3" href="/#narrow/channel/3-dev">#dev</a></p>`},
		{"#**big news.**", `<p><a class="stream" data-stream-id="4" href="/#narrow/channel/4-big-news.2E">#big ` +
			`news.</a></p>`},
		{"#**dev>big plan**", `<p><a class="stream-topic" data-stream-id="3" ` +
			`href="/#narrow/channel/3-dev/topic/big.20plan/with/77">#dev &gt; big plan</a></p>`},
		{"#**dev>a/b é**", `<p><a class="stream-topic" data-stream-id="3" ` +
			`href="/#narrow/channel/3-dev/topic/a.2Fb.20.C3.A9">#dev &gt; a/b é</a></p>`},
		{"#**dev>**", `<p><a class="stream-topic" data-stream-id="3" href="/#narrow/channel/3-dev/topic/">#dev ` +
			`&gt; <em>general chat</em></a></p>`},
		{"#**dev>big plan@77**", `<p><a class="message-link" ` +
			`href="/#narrow/channel/3-dev/topic/big.20plan/near/77">#dev &gt; big plan @ 💬</a></p>`},
		{"#**dev>@77**", `<p><a class="message-link" href="/#narrow/channel/3-dev/topic//near/77">#dev &gt; ` +
			`<em>general chat</em> @ 💬</a></p>`},
		{"#**board** #**board>big plan** #**board>big plan@77**",
			`<p><a class="stream" data-stream-id="5" href="/#narrow/channel/5-board">#board</a> ` +
				"#<strong>board&gt;big plan</strong> #<strong>board&gt;big plan@77</strong></p>"},
		{"#**Dev** #**Dev>big plan**", "<p>#<strong>Dev</strong> #<strong>Dev&gt;big plan</strong></p>"},
		{"#**secret>a** x#**dev**", "<p>#<strong>secret&gt;a</strong> x#<strong>dev</strong></p>"},
	})
	if r := mustRender(t, "#**dev**", &Options{}); !r.HasLink {
		t.Error("a channel link does not count as a link")
	}
}

func TestLinks(t *testing.T) {
	check(t, &Options{RealmURL: "https://chat.example.org"}, [][2]string{
		{`[a](http://b.org "t & \"u")`, `<p><a href="http://b.org" title="t &amp; \&quot;u">a</a></p>`},
		{"[](http://b.org) [ ](/c)", `<p><a href="http://b.org">http://b.org</a> <a href="/c">/c</a></p>`},
		{"[a](b.org/c) [a](x@b.org) [a](#f) [a](/p)",
			`<p><a href="http://b.org/c">a</a> <a href="mailto:x@b.org">a</a> <a href="#f">a</a> <a ` +
				`href="/p">a</a></p>`},
		{"[a](JAVASCRIPT:x) [a](foo:bar) [a](data:x)", "<p>[a](JAVASCRIPT:x) [a](foo:bar) [a](data:x)</p>"},
		{"[a](HTTP://B.org/#)", `<p><a href="http://B.org/">a</a></p>`},
		{"[a\nb](/c) [x]() [x](file:/y) [x](//evil.org)",
			`<p><a href="/c">a` + "\n" + `b</a> <a href="http://">x</a> <a href="file:///y">x</a> <a ` +
				`href="http://evil.org">x</a></p>`},
		{"[a]( http://b.org/c d )", `<p><a href="http://b.org/c%20d">a</a></p>`},
		{"[`a`](/b) [[a]](/b(c))", `<p><a href="/b"><code>a</code></a> <a href="/b(c)">[a]</a></p>`},
		{"https://chat.example.org/#narrow/x https://chat.example.org/user_uploads/1/a " +
			"https://chat.example.org/help https://chat.example.org.evil/#x",
			`<p><a href="#narrow/x">https://chat.example.org/#narrow/x</a> <a ` +
				`href="user_uploads/1/a">https://chat.example.org/user_uploads/1/a</a> ` +
				`<a href="https://chat.example.org/help">https://chat.example.org/help</a> <a ` +
				`href="https://chat.example.org.evil/#x">https://chat.example.org.evil/#x</a></p>`},
		{"see a.md, b.py or C.COM", "<p>see a.md, b.py or C.COM</p>"},
		{"http://a.org?x=1 a..b x@y", "<p>http://a.org?x=1 a..b x@y</p>"},
		{"http://a.org/?x=1&y=2.", `<p><a href="http://a.org/?x=1&amp;y=2">http://a.org/?x=1&amp;y=2</a>.</p>`},
		{"**http://a.org/x**", `<p><strong>http://a.org/x</strong></p>`},
		{"bitcoin:1BoatSLRHtKNngkdXEeobR76b53LETtpyT",
			`<p><a href="bitcoin:1BoatSLRHtKNngkdXEeobR76b53LETtpyT">` +
				`bitcoin:1BoatSLRHtKNngkdXEeobR76b53LETtpyT</a></p>`},
		{"<a.org>, mail first.last@b.co.uk!",
			`<p>&lt;<a href="http://a.org">a.org</a>&gt;, mail <a ` +
				`href="mailto:first.last@b.co.uk">first.last@b.co.uk</a>!</p>`},
	})
}

// Addresses whose host browsers refuse are no links: the client could not read them.
func TestLinksToInvalidHosts(t *testing.T) {
	for _, bad := range []string{"java\tscript:x", "http://a|b.org/", "http://a^b.org",
		"http://a%00b.org", "http://a.org:65536", "https://a..org/", "ftp://.a.org", "http://a:1:2",
		"http://1.2.3.4.5/", "http://256.1.1.256", "http://[x]/", "http://[::1]x", "http://u@:80/",
		"http://a\\b.org", "//a|b.org", "a|b.org/c"} {
		r := mustRender(t, "[a]("+bad+")", &Options{})
		if strings.Contains(r.HTML, "href") || r.HasLink {
			t.Errorf("%q: %s", bad, r.HTML)
		}
	}
	for _, good := range []string{"http://a_b.org", "http://127.0.0.1:9991/", "http://[::1]:80/", "http://u:p@a.org/",
		"https://bücher.example", "http://localhost", "http://a.org.", "http://a.org:/", "http://0x7f.1/",
		"http://host:port/",
		"file:///etc", "mailto:a@b.org"} {
		if r := mustRender(t, "[a]("+good+")", &Options{}); !r.HasLink {
			t.Errorf("%q: %s", good, r.HTML)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2030, 5, 31, 8, 0, 0, 0, time.UTC)
	for source, want := range map[string]string{
		"2031-05-06T10:00:00+02:00": "2031-05-06T08:00:00Z", "2031-05-06 10:00": "2031-05-06T10:00:00Z",
		"2031-05-06T10:00Z": "2031-05-06T10:00:00Z",
		"20310506T101112Z":  "2031-05-06T10:11:12Z", "Jun 5th 2017, 10:30PM": "2017-06-05T22:30:00Z",
		"June 5, 2017 at 12am": "2017-06-05T00:00:00Z",
		"5/6/2017":             "2017-05-06T00:00:00Z", "25/6/2017 9:00 EST": "2017-06-25T14:00:00Z",
		"Mon, 05 Jun 2017 22:30:00 GMT": "2017-06-05T22:30:00Z",
		"2017-06-05 22:30:00.25":        "2017-06-05T22:30:00.250000Z", "1496701800": "2017-06-05T22:30:00Z",
		"10:15":    "2030-05-31T10:15:00Z",
		"Feb 2029": "2029-02-28T00:00:00Z", "2017-06-05 22:30 -0530": "2017-06-06T04:00:00Z",
		"10 PM 2031-05-16": "2031-05-16T22:00:00Z", "2/24/99": "1999-02-24T00:00:00Z",
		"11-May-2017, 2330 GMT": "2017-05-11T23:30:00Z",
		"20170916T1951-0530":    "2017-09-17T01:21:00Z", "1999": "1999-05-31T00:00:00Z",
		"9pm GMT+3 2031-05-06": "2031-05-07T00:00:00Z", "2031-05-06 9pm UTC-4": "2031-05-06T17:00:00Z",
		"2031-05-06 9h30":  "2031-05-06T09:30:00Z",
		"2031-05-06 21 pm": "", "991231": "1999-12-31T00:00:00Z", "2017-13-05": "", "2017-001": "", "0000-05-06": "",
		"": "", "hello": "", "2017-13-45": "", "99:99": "", "2017-02-30": "", "1e400": "", "0": "1970-01-01T00:00:00Z",
		"9999-12-31T23:00:00-05:00": "", "nan": "",
	} {
		got := mustRender(t, "<time:"+source+">", &Options{Now: now}).HTML
		expect := `<p><time datetime="` + want + `">` + source + "</time></p>"
		if want == "" {
			expect = "<p>&lt;time:" + source + "&gt;</p>"
		}
		if got != expect {
			t.Errorf("%q\n got: %s\nwant: %s", source, got, expect)
		}
	}
}

func TestEmoji(t *testing.T) {
	span := func(name, code string) string {
		title := strings.ReplaceAll(name, "_", " ")
		return `<span aria-label="` + title + `" class="emoji emoji-` + code + `" role="img" title="` + title + `">:` +
			name + `:</span>`
	}
	check(t, &Options{RealmID: "2"}, [][2]string{
		{":party::nosuch::cat:", `<p><img alt=":party:" class="emoji" src="/user_avatars/2/emoji/images/1.png" ` +
			`title="party">:nosuch:` + span("cat", "1f408") + "</p>"},
		{":smile_cat:", `<p><img alt=":smile_cat:" class="emoji" src="/user_avatars/2/emoji/images/2.gif" ` +
			`title="smile cat"></p>`},
		{":zulip:", `<p><img alt=":zulip:" class="emoji" ` +
			`src="/static/generated/emoji/images/emoji/unicode/zulip.png" title="zulip"></p>`},
		{":thumbs_up: 👍 ✈ ✈️ 1️⃣ 🇩🇪 🇩", "<p>" + span("thumbs_up", "1f44d") + " " + span("+1", "1f44d") + " ✈ " +
			span("airplane", "2708") + " " +
			span("one", "0031-20e3") + " " + span("flag_germany", "1f1e9-1f1ea") + " 🇩</p>"},
		{"👍🏽 © 3 #", "<p>👍🏽 © 3 #</p>"},
		{":) ", "<p>:) </p>"},
	})
	check(t, &Options{Emoticons: true}, [][2]string{
		{":) (: a:) :)a (:)) ;)!", "<p>" + span("smile", "1f642") + " " + span("smile", "1f642") + " a:) :)a " +
			span("smile", "1f642") + ")) " + span("wink", "1f609") + "!</p>"},
		{"<3 :/ :P `:)`", "<p>" + span("heart", "2764") + " " + span("confused", "1f615") + " " +
			span("stuck_out_tongue", "1f61b") + " <code>:)</code></p>"},
	})
}

func TestPreviews(t *testing.T) {
	o := &Options{InlineImages: true}
	img := func(url, title string) string {
		if title != "" {
			title = ` title="` + title + `"`
		}
		return `<div class="message_inline_image"><a href="` + url + `"` + title + `><img src="` + url + `"></a></div>`
	}
	link := func(url string) string { return `<a href="` + url + `">` + url + "</a>" }
	dropbox := func(page, picture string) string { // the link stays: its page is not the picture
		return "<p>" + link(page) + "</p>\n" + `<div class="message_inline_image"><a href="` + page + `"><img src="` +
			picture + `"></a></div>`
	}
	const a, b = "http://x.org/a.png", "http://x.org/b.JPG?v=1"
	check(t, o, [][2]string{
		{a, img(a, "")},
		{a + " " + b + " " + a, "<p>" + link(a) + " " + link(b) + " " + link(a) + "</p>\n" + img(a, "") + img(b, "")},
		{a + "\n\n" + b + "\n\nc", img(a, "") + img(b, "") + "<p>c</p>"},
		{"* " + a, "<ul>\n<li>" + img(a, "") + "</li>\n</ul>"},
		{"* " + a + "\n\n* b", "<ul>\n<li>\n" + img(a, "") + "</li>\n<li>\n<p>b</p>\n</li>\n</ul>"},
		{"**see " + a + " x**", "<p><strong>see " + link(a) + " x</strong></p>\n" + img(a, "")},
		{"> " + a, "<blockquote>\n<p>" + link(a) + "</p>\n</blockquote>"},
		{"https://www.dropbox.com/s/a/x.png?dl=0", dropbox("https://www.dropbox.com/s/a/x.png?dl=0",
			"https://www.dropbox.com/s/a/x.png?raw=1")},
		{
			"https://dropbox.com/scl/fi/a/x.png?rlkey=k&dl=0",
			dropbox("https://dropbox.com/scl/fi/a/x.png?rlkey=k&amp;dl=0",
				"https://dropbox.com/scl/fi/a/x.png?raw=1&amp;rlkey=k"),
		},
		{"https://notdropbox.com/s/a/x.png", img("https://notdropbox.com/s/a/x.png", "")},
		{"[n & m](" + a + ")", `<p><a href="` + a + `">n &amp; m</a></p>` + "\n" + img(a, "n &amp; m")},
		{"[cat](/user_uploads/2/ab/cat.png)", `<p><a href="/user_uploads/2/ab/cat.png">cat</a></p>` + "\n" +
			`<div class="message_inline_image"><a href="/user_uploads/2/ab/cat.png" title="cat"><img ` +
			`data-original-content-type="image/png" ` +
			`data-original-dimensions="30x20" src="/user_uploads/thumbnail/2/ab/cat.png/840x560.jpg"></a></div>`},
		{"[new](/user_uploads/2/ab/new.png)", `<p><a href="/user_uploads/2/ab/new.png">new</a></p>` + "\n" +
			`<div class="message_inline_image"><a href="/user_uploads/2/ab/new.png" title="new"><img ` +
			`class="image-loading-placeholder" ` +
			`data-original-content-type="image/png" data-original-dimensions="30x20" ` +
			`src="/static/images/loading/loader-black.svg"></a></div>`},
		{"[fun](/user_uploads/2/ab/fun.gif)", `<p><a href="/user_uploads/2/ab/fun.gif">fun</a></p>` + "\n" +
			`<div class="message_inline_image"><a href="/user_uploads/2/ab/fun.gif" title="fun"><img ` +
			`data-animated="true" data-original-content-type="image/gif" ` +
			`data-original-dimensions="3x2" src="/user_uploads/thumbnail/2/ab/fun.gif/840x560-anim.gif"></a></div>`},
		{"[film](/user_uploads/2/ab/film.mp4)", `<p><a href="/user_uploads/2/ab/film.mp4">film</a></p>` + "\n" +
			`<div class="message_inline_image message_inline_video"><a href="/user_uploads/2/ab/film.mp4" ` +
			`title="film"><video preload="metadata" src="/user_uploads/2/ab/film.mp4"></video></a></div>`},
		{"[text](/user_uploads/2/ab/text.txt)", `<p><a href="/user_uploads/2/ab/text.txt">text</a></p>`},
		{"[a](/i/x.png) [b](/i/x.mp4)", `<p><a href="/i/x.png">a</a> <a href="/i/x.mp4">b</a></p>` + "\n" +
			img("/i/x.png", "a")},
		{"https://github.com/a/b/blob/main/c.png",
			`<div class="message_inline_image"><a href="https://github.com/a/b/blob/main/c.png">` +
				`<img src="https://raw.githubusercontent.com/a/b/main/c.png"></a></div>`},
		{"https://de.wikipedia.org/wiki/File:Owl.png",
			`<div class="message_inline_image"><a href="https://de.wikipedia.org/wiki/Special:FilePath/File:Owl.png">` +
				`<img src="https://de.wikipedia.org/wiki/Special:FilePath/File:Owl.png"></a></div>`},
		{"https://pasteboard.co/owl.png", "<p>" + link("https://pasteboard.co/owl.png") + "</p>"},
		{"see https://www.youtube.com/watch_videos?video_ids=dQw4w9WgXcQ,i96UO8-GFvw",
			"<p>see " + link("https://www.youtube.com/watch_videos?video_ids=dQw4w9WgXcQ,i96UO8-GFvw") + "</p>\n" +
				`<div class="youtube-video message_inline_image"><a data-id="dQw4w9WgXcQ" ` +
				`href="https://www.youtube.com/watch_videos?video_ids=dQw4w9WgXcQ,i96UO8-GFvw">` +
				`<img src="https://i.ytimg.com/vi/dQw4w9WgXcQ/mqdefault.jpg"></a></div>`},
		{"https://youtu.be/dQw4w9WgXcQ", "<p>" + link("https://youtu.be/dQw4w9WgXcQ") + "</p>\n" +
			`<div class="youtube-video message_inline_image"><a data-id="dQw4w9WgXcQ" ` +
			`href="https://youtu.be/dQw4w9WgXcQ"><img src="https://i.ytimg.com/vi/dQw4w9WgXcQ/mqdefault.jpg">` +
			`</a></div>`},
	})
	waiting := mustRender(t, "[new](/user_uploads/2/ab/new.png) [cat](/user_uploads/2/ab/cat.png)", o).HTML
	made := UploadMeta{ContentType: "image/png", Width: 30, Height: 20, Thumbnailed: true}
	loading := `<img class="image-loading-placeholder" data-original-content-type="image/png" ` +
		`data-original-dimensions="30x20" src="/static/images/loading/loader-black.svg">`
	there := `<img data-original-content-type="image/png" data-original-dimensions="30x20" ` +
		`src="/user_uploads/thumbnail/2/ab/new.png/840x560.jpg">`
	if got, want := ShowThumbnail(waiting, "2/ab/new.png", made, true), strings.Replace(waiting, loading, there,
		1); got != want || got == waiting {
		t.Errorf("the thumbnail is not shown: %s", got)
	}
	if got, want := ShowThumbnail(waiting, "2/ab/new.png", made, false), strings.Replace(waiting,
		`<div class="message_inline_image"><a href="/user_uploads/2/ab/new.png" title="new">`+loading+"</a></div>", "",
		1); got != want || got == waiting {
		t.Errorf("the placeholder of a missing thumbnail is still shown: %s", got)
	}
	if got := ShowThumbnail(waiting, "2/ab/cat.png", made, false); got != waiting {
		t.Errorf("a text without placeholder changed: %s", got)
	}
	many := ""
	for i := range maxPreviews + 1 {
		many += a + "?" + string(rune('a'+i)) + " "
	}
	if strings.Contains(mustRender(t, many, o).HTML, "<img") {
		t.Error("too many previews are shown")
	}
	if got := mustRender(t, a, &Options{InlineImages: true, NoPreviews: true}).HTML; got != "<p>"+link(a)+"</p>" {
		t.Error("a description has previews:", got)
	}

	r := mustRender(t, "[n](/user_uploads/2/ab/cat.png) /user_uploads/2/x/y%20z.txt", o)
	if !r.HasLink || !r.HasImage || !r.HasAttachment ||
		!slices.Equal(r.Attachments, []string{"2/ab/cat.png", "2/x/y z.txt"}) {
		t.Errorf("%+v", r)
	}
	r = mustRender(t, "http://x.org/page", &Options{LinkPreviews: true})
	if !slices.Equal(r.PreviewURLs, []string{"http://x.org/page"}) {
		t.Errorf("%+v", r)
	}
	o = &Options{LinkPreviews: true, Previews: map[string]Preview{"http://x.org/page": {Title: "T", Description: "<D>",
		Image: "http://x.org/i.png?a=(1)"}}}
	check(t, o, [][2]string{{"http://x.org/page", "<p>" + link("http://x.org/page") + "</p>\n" +
		`<div class="message_embed"><a class="message_embed_image" href="http://x.org/page" ` +
		`style="background-image: url(http://x.org/i.png?a=%281%29)"></a>` +
		`<div class="data-container"><div class="message_embed_title"><a href="http://x.org/page" title="T">T</a>` +
		`</div>` +
		`<div class="message_embed_description">&lt;D&gt;</div></div></div>`}})
}

func TestLinkifiers(t *testing.T) {
	var o Options
	for _, l := range [][2]string{
		{`#(?P<id>[0-9]{2,8})`, "https://bugs.example.org/{id}"},
		{`#(?P<id>[0-9]+)-x`, "https://other.example.org/{?id}"},
		{`(?P<org>[a-z]+)/(?P<repo>[a-z]+)@(?P<hash>[0-9a-f]{7})`, "https://code.example.org/{org}/{repo}/{hash}"},
		{`evil(?P<x>.*)`, "javascript:{x}"},
	} {
		c, err := CompileLinkifier(l[0], l[1])
		if err != nil {
			t.Fatal(err)
		}
		o.Linkifiers = append(o.Linkifiers, c)
	}
	bug := func(n string) string { return `<a href="https://bugs.example.org/` + n + `">#` + n + "</a>" }
	check(t, &o, [][2]string{
		{"#12 #13, (#14) x#15 #16y #17.", "<p>" + bug("12") + " " + bug("13") + ", (" + bug("14") + ") x#15 #16y " +
			bug("17") + ".</p>"},
		{"`#12` [#12](/a) **#12**", `<p><code>#12</code> <a href="/a">#12</a> <strong>#12</strong></p>`},
		{"#12-x", "<p>" + bug("12") + "-x</p>"}, {"#1-x", `<p><a href="https://other.example.org/?id=1">#1-x</a></p>`},
		{"a/b@1234567", `<p><a href="https://code.example.org/a/b/1234567">a/b@1234567</a></p>`},
		{"evilx", "<p>evilx</p>"},
	})
	links := TopicLinks("fix #12 and #13 see example.org or https://a.org/#99", &o)
	want := []TopicLink{{"#12", "https://bugs.example.org/12"}, {"#13", "https://bugs.example.org/13"},
		{"example.org", "https://example.org"},
		{"https://a.org/#99", "https://a.org/#99"}}
	if !slices.Equal(links, want) {
		t.Errorf("got %v, want %v", links, want)
	}
	for topic, want := range map[string][]TopicLink{
		"(a.org) 'b.org', c.org!": {{"a.org", "https://a.org"}, {"b.org", "https://b.org"},
			{"c.org", "https://c.org"}},
		"http://a.org/x,y http://b.org/(c)": {{"http://a.org/x", "http://a.org/x"}},
		"x.a.org:b.org #12":                 {{"b.org", "https://b.org"}, {"#12", "https://bugs.example.org/12"}},
		"é a.org/é? b.py x@c.org":           {{"a.org/é", "https://a.org/é"}, {"x@c.org", "https://x@c.org"}},
	} {
		if got := TopicLinks(topic, &o); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", topic, got, want)
		}
	}
	for _, c := range [][3]string{
		{"(", "https://x/", "Bad regular expression: missing ): ("},
		{"(?P<a>x)", "https://x/{b}", "Group 'b' in URL template is not present in linkifier pattern."},
		{"(?P<a>x)", "https://x/", "Group 'a' in linkifier pattern is not present in URL template."},
		{"x", "https://x/{", "Invalid URL template."},
		{`(?=x)`, "https://x/", "Bad regular expression: invalid perl operator: (?="},
	} {
		if _, err := CompileLinkifier(c[0], c[1]); err == nil || err.Error() != c[2] {
			t.Errorf("%q: %v", c[0], err)
		}
	}
}

func TestScan(t *testing.T) {
	got := Scan("@**Ann Lee** @_**Zoe|7** @*ops* #**dev>big plan@5** #**a>b** :cat::dog: @**all** " +
		"[x](/user_uploads/2/ab/cat.png)")
	if !slices.Equal(got.Users, []UserRef{{"Ann Lee", 0}, {"Zoe", 7}}) || !slices.Contains(got.Groups, "ops") ||
		!got.Wildcard ||
		!slices.Equal(got.Channels, []ChannelRef{{Name: "dev", Topic: "big plan", HasTopic: true, Message: "5"},
			{Name: "dev>big plan@5"}, {Name: "a", Topic: "b", HasTopic: true}, {Name: "a>b"}}) ||
		!slices.Contains(got.Emoji, "cat") || !slices.Contains(got.Emoji, "dog") ||
		!slices.Equal(got.Uploads, []string{"2/ab/cat.png"}) {
		t.Errorf("%+v", got)
	}
	if !Scan("Nothing here, at 10 o'clock (really).").Empty() {
		t.Error("an empty text has references")
	}
}

// TestLinksBesideCJK has links in texts without spaces. A bare link ends before the punctuation of these scripts and
// may begin after it, with a path or without, and so do bare hosts and email addresses.
func TestLinksBesideCJK(t *testing.T) {
	link := func(href, text string) string { return `<a href="` + href + `">` + text + `</a>` }
	const address = "https://example.org/a"
	a := link(address, address)
	for _, c := range "、。〃〈〉《》「」『』【】〔〕〖〗〘〙〚〛〝〞〟！＂＇（），．：；＜＞？［］｛｝｟｠｡｢｣､﹐﹑﹒﹔﹕﹖﹗︐︒︵︶﹁﹂" {
		mark := string(c)
		check(t, &Options{}, [][2]string{
			{address + mark, "<p>" + a + mark + "</p>"},
			{address + mark + "続き", "<p>" + a + mark + "続き</p>"},
			{"続き" + mark + address + mark + "続き", "<p>続き" + mark + a + mark + "続き</p>"},
			{address + ")." + mark + "x", "<p>" + a + ")." + mark + "x</p>"},
			{"https://example.org" + mark + "続き",
				"<p>" + link("https://example.org", "https://example.org") + mark + "続き</p>"},
			{"example.org/a" + mark + "続き",
				"<p>" + link("http://example.org/a", "example.org/a") + mark + "続き</p>"},
			{"example.org" + mark + "続き", "<p>" + link("http://example.org", "example.org") + mark + "続き</p>"},
			{"ann@example.org" + mark, "<p>" + link("mailto:ann@example.org", "ann@example.org") + mark + "</p>"},
		})
	}
	check(t, &Options{}, [][2]string{
		{"「" + address + "」と（" + address + "）。", "<p>「" + a + "」と（" + a + "）。</p>"},
		{"“" + address + "” x", "<p>“" + address + "” x</p>"}, // as before: no link begins after it
		{`"` + address + "” x", `<p>"` + a + "” x</p>"},
		{address + "’ " + address + "»", "<p>" + a + "’ " + a + "»</p>"},
		{address + "’s", "<p>" + link(address+"’s", address+"’s") + "</p>"},
		// letters and marks inside names remain
		{address + "/日本語・あ〜ん/が",
			"<p>" + link(address+"/日本語・あ〜ん/が", address+"/日本語・あ〜ん/が") + "</p>"},
	})
}

// TestNoTime has texts in the form of a time that are none. They remain as they are written: escaped, and without
// formatting. The text around them is rendered as always.
func TestNoTime(t *testing.T) {
	valid := `<time datetime="2031-05-06T00:00:00Z">2031-05-06</time>`
	check(t, &Options{}, [][2]string{
		{"<time:nonsense> <time:2021-02-30>", "<p>&lt;time:nonsense&gt; &lt;time:2021-02-30&gt;</p>"},
		{"**a** <time:x & y> *b*", "<p><strong>a</strong> &lt;time:x &amp; y&gt; <em>b</em></p>"},
		{"<time:>", "<p>&lt;time:&gt;</p>"},
		{"<time:<script>alert(1)</script>>", "<p>&lt;time:&lt;script&gt;alert(1)&lt;/script&gt;&gt;</p>"},
		{"<time:oops <time:2031-05-06>", "<p>&lt;time:oops &lt;time:2031-05-06&gt;</p>"},
		{"<time:**a** :smile: https://example.org>", "<p>&lt;time:**a** :smile: https://example.org&gt;</p>"},
		{"<time:oops> <time:2031-05-06>", "<p>&lt;time:oops&gt; " + valid + "</p>"},
		{"<time:a\nb>", "<p>&lt;time:a\nb&gt;</p>"},
		{"`<time:oops>`", "<p><code>&lt;time:oops&gt;</code></p>"},
	})
}

package markdown

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/wire/markdown/katex"

	"golang.org/x/net/html"
)

// checkSafe returns an error if a rendered text has elements that do not close in order, or anything that is not
// allowed.
func checkSafe(out string) error {
	z := html.NewTokenizer(strings.NewReader(out))
	var open []string
	for {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				return fmt.Errorf("left open: %v", open)
			}
			return nil
		case html.TextToken:
			if strings.ContainsAny(string(z.Raw()), "<>\x00\x02\x03") {
				return fmt.Errorf("raw text %q", z.Raw())
			}
		case html.StartTagToken:
			t := z.Token()
			if t.Data == "span" && attrOf(t, "class") == "katex" || attrOf(t, "class") == "katex-display" {
				math, n := mathOf(out, z)
				if !katex.Safe(math) {
					return fmt.Errorf("unsafe math %q", math)
				}
				z = html.NewTokenizer(strings.NewReader(out[n:]))
				out = out[n:]
				continue
			}
			i := slices.IndexFunc(elements[:], func(e element) bool { return e.name == t.Data && e.name != "" })
			if i < 0 {
				return fmt.Errorf("element %q", t.Data)
			}
			for _, a := range t.Attr {
				if !slices.Contains(elements[i].attrs, a.Key) {
					return fmt.Errorf("attribute %q of %q", a.Key, t.Data)
				}
				if a.Key == "href" || a.Key == "src" {
					if !safeInBrowser(a.Val) {
						return fmt.Errorf("address %q", a.Val)
					}
				}
				if a.Key == "style" && (strings.ContainsAny(a.Val, `"'\<>`) ||
					!strings.HasPrefix(a.Val, "text-align: ") && !strings.HasPrefix(a.Val, "background-image: url(")) {
					return fmt.Errorf("style %q", a.Val)
				}
			}
			if !elements[i].void {
				open = append(open, t.Data)
			}
		case html.EndTagToken:
			t := z.Token()
			if len(open) == 0 || open[len(open)-1] != t.Data {
				return fmt.Errorf("end of %q in %v", t.Data, open)
			}
			open = open[:len(open)-1]
		default:
			return fmt.Errorf("token %q", z.Raw())
		}
	}
}

func attrOf(t html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// mathOf cuts out the math element at the start of z and returns the position after it.
func mathOf(out string, z *html.Tokenizer) (math string, end int) {
	begin := strings.Index(out, `<span class="katex`)
	depth, at := 0, begin
	inner := html.NewTokenizer(strings.NewReader(out[begin:]))
	for {
		switch inner.Next() {
		case html.ErrorToken:
			return out[begin:], len(out)
		case html.StartTagToken:
			depth++
		case html.EndTagToken:
			depth--
		}
		at += len(inner.Raw())
		if depth == 0 {
			return out[begin:at], at
		}
	}
}

// safeInBrowser checks an address as browsers do: without leading controls and spaces, and without line ends.
func safeInBrowser(address string) bool {
	address = strings.Map(func(c rune) rune {
		if c == '\t' || c == '\n' || c == '\r' {
			return -1
		}
		return c
	}, strings.TrimLeftFunc(address, func(c rune) bool { return c <= ' ' }))
	scheme, _, ok := strings.Cut(address, ":")
	if !ok || strings.ContainsAny(scheme, "/?#") {
		return true
	}
	for i := 0; i < len(scheme); i++ {
		if !isAlnum(scheme[i]) && strings.IndexByte("+-.", scheme[i]) < 0 {
			return true
		}
	}
	return schemes[strings.ToLower(scheme)]
}

// hostilePieces are pieces of attacks and mistakes.
var hostilePieces = []string{
	"<script>alert(1)</script>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](java\tscript:alert(1))",
	"[x]( javascript:x)",
	"[x](&#106;avascript:x)", "[x](data:text/html,x)", `[x](http://a "b" onclick=")`, `[x](http://a"onclick="y)`,
	"[x](//evil.org/a)",
	"`<b>`", "```\"><script>\n<b>\n```", "$$\\href{javascript:x}{y}$$", "$$\\url{javascript:x}$$",
	"$$\\htmlClass{x}{y}$$", "$$\\includegraphics{http://x/y.png}$$",
	"@**Ann Lee**", "@**a & b <c>**", "#**dev>a\"><b>@5**", ":party:", ":zulip:", "😀", "<time:\"><b>>",
	"| a | b |\n|:-|-|\n| `|` | <b> |",
	"> > > x", "* a\n  * b", "1. a\n\n   b", "~~~quote\nx\n~~~", "```spoiler \"><b>\nx\n```",
	"```math\n\\frac{1}{0}\n```", "\x02", "\x03", "\x020\x03",
	"***", "**", "*", "~~", "[", "](", ")", "\\", "&amp;", "&#x3c;", "&", "http://a.b/c_(d)",
	"http://a.b/\"onmouseover=x", "a@b.org", "www.x.com",
	"![a](http://a/b.png)", "https://www.youtube.com/watch?v=dQw4w9WgXcQ", "/user_uploads/2/ab/cat.png",
	"[n](/user_uploads/2/ab/new.png)",
	"[s](/user_uploads/2/ab/song.mp3)", "[c](/user_uploads/2/a b/cat.png)", "*a *b* c*", "\n", "\n\n", "    ", "  ",
	"\t", "# h", "---", "\xff", "\u2028",
}

func FuzzRender(f *testing.F) {
	for _, h := range hostilePieces {
		f.Add(h, byte(1))
	}
	f.Add(strings.Join(hostilePieces, " "), byte(0))
	f.Add(strings.Join(hostilePieces, "\n"), byte(3))
	link, err := CompileLinkifier(`#(?P<id>[0-9a-z<>"]+)`, "https://bugs.example.org/{id}")
	if err != nil {
		f.Fatal(err)
	}
	evil, err := CompileLinkifier(`!(?P<x>.+)`, "{+x}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, flags byte) {
		o := testOptions()
		o.Emoticons, o.LinkPreviews = flags&1 != 0, flags&2 != 0
		o.Previews = map[string]Preview{"http://a.b/c_(d)": {Title: "<b>", Description: "\"", Image: "http://x/y');z"}}
		if flags&4 != 0 {
			o.Linkifiers = []Linkifier{link, evil}
		}
		if flags&8 != 0 {
			o.DefaultCodeLanguage = "python"
		}
		refs := Scan(text)
		spy := &spyLookup{refs: refs}
		got, err := Render(text, spy, o)
		if errors.Is(err, ErrUnrenderable) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := checkSafe(got.HTML); err != nil {
			t.Errorf("%q gives %q: %v", text, got.HTML, err)
		}
		if spy.missed != "" {
			t.Errorf("Scan of %q misses %s", text, spy.missed)
		}
		PlainText(got.HTML)
		if err := checkSafe(strings.ReplaceAll(Highlight(got.HTML, []string{"a", "amp"}, []string{"t"}), "\x00",
			"")); err != nil {
			t.Errorf("highlighting %q: %v", got.HTML, err)
		}
		TopicLinks(text[:min(60, len(text))], o)
		NewAlertMatcher([]string{"a", "alert"}).Find(text)
	})
}

// spyLookup records references of the rendering that Scan did not return.
type spyLookup struct {
	testLookup
	refs   Refs
	missed string
}

func (s *spyLookup) UserByName(name string) (User, bool) {
	if !slices.ContainsFunc(s.refs.Users, func(u UserRef) bool { return u.Name == name }) {
		s.missed = "user " + name
	}
	return s.testLookup.UserByName(name)
}

func (s *spyLookup) UserByID(id int64) (User, bool) {
	if !slices.ContainsFunc(s.refs.Users, func(u UserRef) bool { return u.ID == id }) {
		s.missed = fmt.Sprint("user ", id)
	}
	return s.testLookup.UserByID(id)
}

func (s *spyLookup) GroupByName(name string) (Group, bool) {
	if !slices.Contains(s.refs.Groups, name) {
		s.missed = "group " + name
	}
	return s.testLookup.GroupByName(name)
}

func (s *spyLookup) Channel(name string) (Channel, bool) {
	if !slices.ContainsFunc(s.refs.Channels, func(c ChannelRef) bool { return c.Name == name }) {
		s.missed = "channel " + name
	}
	return s.testLookup.Channel(name)
}

func (s *spyLookup) Emoji(name string) (CustomEmoji, bool) {
	if !slices.Contains(s.refs.Emoji, name) {
		s.missed = "emoji " + name
	}
	return s.testLookup.Emoji(name)
}

func (s *spyLookup) Upload(id string) (UploadMeta, bool) {
	if !slices.Contains(s.refs.Uploads, id) {
		s.missed = "upload " + id
	}
	return s.testLookup.Upload(id)
}

func TestHostilePairs(t *testing.T) {
	o := testOptions()
	for _, a := range hostilePieces {
		for _, b := range hostilePieces {
			for _, between := range []string{"", "\n"} {
				text := a + between + b
				got, err := Render(text, testLookup{}, o)
				if err != nil {
					t.Errorf("%q: %v", text, err)
				} else if err := checkSafe(got.HTML); err != nil {
					t.Errorf("%q gives %q: %v", text, got.HTML, err)
				}
			}
		}
	}
}

func TestLimits(t *testing.T) {
	for name, text := range map[string]string{
		"too long": strings.Repeat("é", maxSource+1),
		"too much": strings.Repeat("$$a_b^c$$ ", 1000),
	} {
		if _, err := Render(text, testLookup{}, testOptions()); !errors.Is(err, ErrUnrenderable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Render(strings.Repeat("é", maxSource), testLookup{}, testOptions()); err != nil {
		t.Error("the longest text:", err)
	}
}

func TestConcurrentRender(t *testing.T) {
	o := testOptions()
	texts := append(slices.Clone(hostilePieces), median, "```go\nfunc f() {}\n```", "| a | b |\n|-|-|\n| c | d |")
	want := make([]Result, len(texts))
	for i, text := range texts {
		want[i], _ = Render(text, testLookup{}, o)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i, text := range texts {
				if got, err := Render(text, testLookup{}, o); err != nil || got.HTML != want[i].HTML {
					t.Errorf("%q: %v\n got: %s\nwant: %s", text, err, got.HTML, want[i].HTML)
				}
			}
		})
	}
	all.Wait()
}

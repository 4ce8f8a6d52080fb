package markdown

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// median is a typical message: 120 characters, one mention, one emoji.
const median = "Hey @**Ann Lee**, the deploy went through fine this morning, thanks for checking the numbers again " +
	"before lunch :tada: k"

func BenchmarkMedian(b *testing.B) {
	o := testOptions()
	if len(median) != 120 {
		b.Fatal(len(median))
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Render(median, testLookup{}, o)
		if err != nil || len(r.MentionedUsers) != 1 {
			b.Fatal(r, err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if Scan(median).Empty() {
			b.Fatal("nothing found")
		}
	}
}

func BenchmarkRealistic(b *testing.B) {
	for name, text := range map[string]string{
		"plain": "ok, see you there",
		"link":  "have a look at https://example.com/path?x=1 and tell me",
		"list":  "Today:\n* one **bold** thing\n* another\n  * nested\n\nBye",
		"quote": "@_**Zoe|7** [said](http://zulip.testserver/#narrow/channel/13-social/topic/party/near/103):\n" +
			"```quote\nHow are you?\n```\nGreat",
		"code":     "```python\ndef f(x):\n    return x + 1\n```",
		"math":     "$$e^{i\\pi} = -1$$",
		"ten_kilo": strings.Repeat("A paragraph with *some* **words**, `code` and a link to example.com.\n\n", 140),
	} {
		b.Run(name, func(b *testing.B) {
			o := testOptions()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Render(text, testLookup{}, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// hostileShapes return texts that grow with n; each shape has taken more than linear time in some version.
var hostileShapes = map[string]func(n int) string{
	"quotes":        func(n int) string { return strings.Repeat(">", n) },
	"quoted_lines":  func(n int) string { return strings.Repeat(strings.Repeat("> ", 24)+"a\n", n/50) },
	"quote_fences":  func(n int) string { return strings.Repeat("~~~quote\na\n", n/11) },
	"spoilers":      func(n int) string { return strings.Repeat("```spoiler a\nb\n", n/15) },
	"lists":         func(n int) string { return strings.Repeat("* ", n/2) + "a" },
	"deep_list":     func(n int) string { return stairs(n) },
	"loose_list":    func(n int) string { return strings.Repeat("* a\n\n", n/5) },
	"long_list":     func(n int) string { return strings.Repeat("* a\n", n/4) },
	"numbers":       func(n int) string { return strings.Repeat("1. a\n* b\n", n/9) },
	"stars":         func(n int) string { return strings.Repeat("*", n) },
	"open_strong":   func(n int) string { return strings.Repeat("**a ", n/4) },
	"open_em":       func(n int) string { return strings.Repeat("*a ", n/3) },
	"nested_em":     func(n int) string { return strings.Repeat("*a ", n/6) + strings.Repeat("b* ", n/6) },
	"emphasis":      func(n int) string { return strings.Repeat("*a **b ", n/7) },
	"strong_em":     func(n int) string { return strings.Repeat("***a*", n/5) },
	"dels":          func(n int) string { return strings.Repeat("~~a", n/3) },
	"brackets":      func(n int) string { return strings.Repeat("[", n) },
	"open_links":    func(n int) string { return strings.Repeat("[a](", n/4) },
	"open_links_in": func(n int) string { return strings.Repeat("[a](b(", n/6) },
	"open_titles":   func(n int) string { return strings.Repeat("[a](b \"", n/7) },
	"open_angles":   func(n int) string { return strings.Repeat("[a](<b", n/6) },
	"bare_links":    func(n int) string { return strings.Repeat(",http://a/", n/10) + "(" },
	"bare_parens":   func(n int) string { return strings.Repeat("http://a/(", n/10) },
	"bare_hosts":    func(n int) string { return strings.Repeat("a.", n/2) },
	"hosts_apart":   func(n int) string { return strings.Repeat("(a.b", n/4) },
	"mails":         func(n int) string { return strings.Repeat("a@b.", n/4) },
	"fences":        func(n int) string { return strings.Repeat("```\n", n/4) },
	"ticks":         func(n int) string { return ticksOfAllLengths(n) },
	"tick_pairs":    func(n int) string { return strings.Repeat("`a``b", n/5) },
	"code":          func(n int) string { return "```python\n" + strings.Repeat("x = 'a", n/6) },
	"indented":      func(n int) string { return strings.Repeat("    a\n\n", n/7) },
	"blank_code":    func(n int) string { return "    a" + strings.Repeat("\n\n", n/2) + "    b" },
	"headings":      func(n int) string { return strings.Repeat("# a\n", n/4) },
	"rules":         func(n int) string { return strings.Repeat("---\n", n/4) },
	"table":         func(n int) string { return "a|b\n-|-\n" + strings.Repeat("c|d\n", n/4) },
	"tables":        func(n int) string { return strings.Repeat("a|b\n-|-\n\n", n/9) },
	"wide_table": func(n int) string {
		return strings.Repeat("a|", n/5) + "\n" + strings.Repeat("-|", n/5) + "\n" + strings.Repeat("\n", n/5)
	},
	"mentions":      func(n int) string { return strings.Repeat("@**Ann Lee** ", n/13) },
	"open_mentions": func(n int) string { return strings.Repeat("@**a ", n/5) },
	"groups":        func(n int) string { return strings.Repeat("@*a ", n/4) },
	"channels":      func(n int) string { return strings.Repeat("#**dev>", n/7) },
	"times":         func(n int) string { return strings.Repeat("<time:", n/6) },
	"emoji":         func(n int) string { return strings.Repeat(":a", n/2) },
	"characters":    func(n int) string { return strings.Repeat("😀\u200d", n/7) },
	"dollars":       func(n int) string { return strings.Repeat("$$\\$", n/4) },
	"open_math":     func(n int) string { return strings.Repeat("$$a ", n/4) },
	"entities":      func(n int) string { return strings.Repeat("&a", n/2) },
	"images":        func(n int) string { return strings.Repeat("http://a/b.png ", n/15) },
	"uploads":       func(n int) string { return strings.Repeat("/user_uploads/", n/14) },
	"spaces":        func(n int) string { return strings.Repeat(" ", n-1) + "a" },
	"lines":         func(n int) string { return strings.Repeat("a\n", n/2) },
	"spaced_lines":  func(n int) string { return strings.Repeat("a\n ", n/3) },
	"marks":         func(n int) string { return strings.Repeat("\x020\x03", n/3) },
}

func stairs(n int) string {
	var b strings.Builder
	for depth := 0; b.Len()+2*depth+4 <= n; depth++ {
		b.WriteString(strings.Repeat("  ", depth) + "* a\n")
	}
	return b.String()
}

func ticksOfAllLengths(n int) string {
	var b strings.Builder
	for k := 1; b.Len()+k+1 <= n; k++ {
		b.WriteString(strings.Repeat("`", k) + "a")
	}
	return b.String()
}

// sizes are hostile texts of 1, 2, 4 and 8 times a length; the last is nearly the longest allowed text.
var sizes = []int{1200, 2400, 4800, 9600}

func BenchmarkHostile(b *testing.B) {
	for name, shape := range hostileShapes {
		for _, n := range sizes {
			text := shape(n)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				o := testOptions()
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					Render(text, testLookup{}, o)
				}
			})
		}
	}
}

// cpuTime returns the CPU time of the test process so far: it does not depend on other processes of the machine.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestLinearTime renders each hostile shape at 1 and 8 times a length. Linear growth is a factor of 8, quadratic one
// of 64.
func TestLinearTime(t *testing.T) {
	o := testOptions()
	o.Emoticons = true
	cost := func(text string) time.Duration {
		best := time.Hour
		for range 5 {
			start := cpuTime(t)
			Render(text, testLookup{}, o)
			best = min(best, cpuTime(t)-start)
		}
		return best
	}
	for name, shape := range hostileShapes {
		var small, large time.Duration
		grows := true
		// Garbage of earlier texts may be collected during the measurement: try again.
		for tries := 0; grows && tries < 4; tries++ {
			small, large = cost(shape(sizes[0])), cost(shape(sizes[3]))
			grows = large > 32*small && large > 4*time.Millisecond
		}
		if grows {
			t.Errorf("%s: %v for %d bytes, %v for %d", name, small, sizes[0], large, sizes[3])
		}
	}
}

package katex

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func testDeadline() time.Time { return time.Now().Add(20 * time.Second) }

func TestRender(t *testing.T) {
	html, ok, late := Render(`\frac{a}{\sqrt{b}} \begin{pmatrix} 1 & 2 \end{pmatrix} \color{red} x`, true,
		testDeadline())
	if !ok || late || !strings.HasPrefix(html, `<span class="katex-display"><span class="katex">`) ||
		!strings.Contains(html, "<svg") {
		t.Errorf("ok %v, late %v: %s", ok, late, html)
	}
	for _, wrong := range []string{`\frac{a`, `\nosuch`, `\href{javascript:alert(1)}{x}`,
		strings.Repeat("{", 3000) + strings.Repeat("}", 3000),
		`\def\a{\a\a}\a`, strings.Repeat("x", maxFormula+1)} {
		if html, ok, _ := Render(wrong, false, testDeadline()); ok && !strings.Contains(html, "color:#cc0000") {
			t.Errorf("%.40q is accepted: %.200s", wrong, html)
		}
	}
	// The engines still work afterwards.
	if _, ok, _ := Render("x", false, testDeadline()); !ok {
		t.Error("x is rejected")
	}
}

func TestRenderLate(t *testing.T) {
	if _, ok, late := Render("x", false, time.Now().Add(-time.Second)); ok || !late {
		t.Errorf("ok %v, late %v", ok, late)
	}
	if _, ok, late := Render("x", false, testDeadline()); !ok || late {
		t.Errorf("afterwards: ok %v, late %v", ok, late)
	}
}

func TestConcurrentRender(t *testing.T) {
	want, ok, _ := Render("x^2", false, testDeadline())
	if !ok {
		t.Fatal("rejected")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				if got, ok, late := Render("x^2", false, testDeadline()); !ok || late || got != want {
					t.Errorf("ok %v, late %v: %s", ok, late, got)
				}
			}
		})
	}
	all.Wait()
}

func TestSafe(t *testing.T) {
	for html, want := range map[string]bool{
		`<span class="katex" style="height:1em;">x</span>`: true, `<script>x</script>`: false,
		`<span onclick="x">x</span>`:               false,
		`<span style="background:url(x)">x</span>`: false, `<a href="x">x</a>`: false, `<span>x`: false,
		`x</span>`: false, `<!-- x -->`: false,
		`<span><math></span></math>`: false, `<path d="M0"/>`: true, `<span`: false,
	} {
		if got := Safe(html); got != want {
			t.Errorf("%s: %v", html, got)
		}
	}
}

// Engines are removed when no formula needs them, and loaded again for the next one.
func TestEnginesWithoutFormulas(t *testing.T) {
	for range 2 {
		if html, ok, _ := Render("x^2", false, testDeadline()); !ok || html == "" {
			t.Fatalf("%q, %t", html, ok)
		}
		removeEngines()
		for range cap(engines) {
			if e := <-engines; e != nil {
				t.Error("an engine remains")
			}
			engines <- nil
		}
	}
}

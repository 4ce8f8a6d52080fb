package katex

import (
	"strings"
	"sync"
	"testing"
	"time"
)

func soon() time.Time { return time.Now().Add(20 * time.Second) }

func TestRender(t *testing.T) {
	html, ok, late := Render(`\frac{a}{\sqrt{b}} \begin{pmatrix} 1 & 2 \end{pmatrix} \color{red} x`, true, soon())
	if !ok || late || !strings.HasPrefix(html, `<span class="katex-display"><span class="katex">`) ||
		!strings.Contains(html, "<svg") {
		t.Errorf("ok %v, late %v: %s", ok, late, html)
	}
	for _, wrong := range []string{`\frac{a`, `\nosuch`, `\href{javascript:alert(1)}{x}`,
		strings.Repeat("{", 3000) + strings.Repeat("}", 3000),
		`\def\a{\a\a}\a`, strings.Repeat("x", maxFormula+1)} {
		if html, ok, _ := Render(wrong, false, soon()); ok && !strings.Contains(html, "color:#cc0000") {
			t.Errorf("%.40q is accepted: %.200s", wrong, html)
		}
	}
	// The engines still work after all that.
	if _, ok, _ := Render("x", false, soon()); !ok {
		t.Error("x is refused")
	}
}

func TestRenderLate(t *testing.T) {
	if _, ok, late := Render("x", false, time.Now().Add(-time.Second)); ok || !late {
		t.Errorf("ok %v, late %v", ok, late)
	}
	if _, ok, late := Render("x", false, soon()); !ok || late {
		t.Errorf("afterwards: ok %v, late %v", ok, late)
	}
}

func TestRenderTogether(t *testing.T) {
	want, ok, _ := Render("x^2", false, soon())
	if !ok {
		t.Fatal("refused")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5 {
				if got, ok, late := Render("x^2", false, soon()); !ok || late || got != want {
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

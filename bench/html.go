package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// WriteHTML writes a report as one file: styles and charts are inline, and the browser fetches nothing.
func WriteHTML(w io.Writer, res *Result) error {
	type kindRow struct {
		Name string
		K    KindData
		Per  float64
		Bad  string
	}
	type phaseView struct {
		D       *PhaseData
		Kinds   []kindRow
		Latency template.HTML
		Rate    template.HTML
		Over    template.HTML
	}
	var phases []phaseView
	for i := range res.Phases {
		d := &res.Phases[i]
		v := phaseView{D: d}
		var curves []series
		for _, k := range kindNames {
			kd, ok := d.Kinds[k]
			if !ok {
				continue
			}
			v.Kinds = append(v.Kinds, kindRow{k, kd, float64(kd.N) / d.Seconds, statuses(kd.Status)})
			if len(kd.Latency.Curve) > 0 {
				curves = append(curves, series{name: k, xy: tailScale(kd.Latency.Curve)})
			}
		}
		if len(d.Seen.Curve) > 0 {
			curves = append([]series{{name: "sent→seen", xy: tailScale(d.Seen.Curve)}}, curves...)
		}
		v.Latency = chart{title: "latency by percentile", x: "percentile", y: "ms", logY: true,
			ticks: tailTicks}.svg(curves)
		var req, del, p50, p99, took [][2]float64
		for _, s := range d.Series {
			req = append(req, [2]float64{s.At, s.Requests})
			del = append(del, [2]float64{s.At, s.Delivered})
			if s.SeenP99 > 0 {
				p50 = append(p50, [2]float64{s.At, s.SeenP50})
				p99 = append(p99, [2]float64{s.At, s.SeenP99})
			}
			if s.TookP99 > 0 {
				took = append(took, [2]float64{s.At, s.TookP99})
			}
		}
		v.Rate = chart{title: "throughput", x: "s", y: "a second"}.svg([]series{{name: "requests answered", xy: req},
			{name: "messages seen", xy: del}})
		v.Over = chart{title: "latency over time", x: "s", y: "ms",
			logY: true}.svg([]series{{name: "seen p50", xy: p50}, {name: "seen p99", xy: p99},
			{name: "answered p99", xy: took}})
		phases = append(phases, v)
	}
	var rss, heap, cpu, gor [][2]float64
	for _, m := range res.Memory {
		rss = append(rss, [2]float64{m.At, float64(m.RSS) / (1 << 20)})
		if m.Heap > 0 {
			heap = append(heap, [2]float64{m.At, float64(m.Heap) / (1 << 20)})
		}
		cpu = append(cpu, [2]float64{m.At, m.CPU})
		if m.Goroutines > 0 {
			gor = append(gor, [2]float64{m.At, float64(m.Goroutines)})
		}
	}
	return report.Execute(w, map[string]any{
		"R":      res,
		"Phases": phases,
		"Memory": chart{title: "memory of the server", x: "s",
			y: "MB"}.svg([]series{{name: "resident", xy: rss}, {name: "heap in use", xy: heap}}),
		"CPU": chart{title: "CPU of the server", x: "s", y: "cores"}.svg([]series{{name: "cores", xy: cpu}}),
		"Gor": chart{title: "goroutines", x: "s", y: ""}.svg([]series{{name: "goroutines", xy: gor}}),
	})
}

// tailScale converts percentiles to a logarithmic scale: each unit to the right is a request ten times as rare.
func tailScale(curve [][2]float64) [][2]float64 {
	var out [][2]float64
	for _, p := range curve {
		if p[0] < 100 {
			out = append(out, [2]float64{math.Log10(100 / (100 - p[0])), p[1]})
		}
	}
	return out
}

var tailTicks = []tick{{0, "0"}, {math.Log10(2), "50"}, {1, "90"}, {2, "99"}, {3, "99.9"}, {4, "99.99"}}

type tick struct {
	at   float64
	text string
}

type series struct {
	name string
	xy   [][2]float64
}

type chart struct {
	title, x, y string
	logY        bool
	ticks       []tick // along x; default: round numbers
}

var colours = []string{"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f",
	"#475569", "#b45309"}

// svg draws the series as lines; it returns "" if there are no points.
func (c chart) svg(all []series) template.HTML {
	var drawn []series
	minX, maxX, minY, maxY := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, s := range all {
		if len(s.xy) == 0 {
			continue
		}
		drawn = append(drawn, s)
		for _, p := range s.xy {
			minX, maxX = min(minX, p[0]), max(maxX, p[0])
			if !c.logY || p[1] > 0 {
				minY, maxY = min(minY, p[1]), max(maxY, p[1])
			}
		}
	}
	if len(drawn) == 0 || math.IsInf(minY, 0) {
		return ""
	}
	const w, h, left, right, top, bottom = 560.0, 260.0, 58.0, 24.0, 30.0, 34.0
	if c.logY {
		minY, maxY = math.Floor(math.Log10(minY)), math.Ceil(math.Log10(maxY))
	} else {
		minY = 0
	}
	if maxY <= minY {
		maxY = minY + 1
	}
	if maxX <= minX {
		maxX = minX + 1
	}
	px := func(x float64) float64 { return left + (x-minX)/(maxX-minX)*(w-left-right) }
	py := func(y float64) float64 {
		if c.logY {
			y = math.Log10(max(y, math.Pow(10, minY)))
		}
		return h - bottom - (y-minY)/(maxY-minY)*(h-top-bottom)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, w, h, template.HTMLEscapeString(c.title))
	fmt.Fprintf(&b, `<text class="t" x="%g" y="16">%s</text>`, left, template.HTMLEscapeString(c.title))
	for _, t := range c.yTicks(minY, maxY) {
		y := py(t.at)
		fmt.Fprintf(&b, `<line class="g" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, left, w-right, y, y)
		fmt.Fprintf(&b, `<text class="a" text-anchor="end" x="%g" y="%.1f">%s</text>`, left-6, y+4, t.text)
	}
	ticks := c.ticks
	if ticks == nil {
		ticks = roundTicks(minX, maxX, 6)
	}
	for _, t := range ticks {
		if t.at < minX || t.at > maxX+1e-9 {
			continue
		}
		x := px(t.at)
		fmt.Fprintf(&b, `<line class="g" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, x, x, top, h-bottom)
		fmt.Fprintf(&b, `<text class="a" text-anchor="middle" x="%.1f" y="%g">%s</text>`, x, h-bottom+15, t.text)
	}
	fmt.Fprintf(&b, `<text class="a" text-anchor="end" x="%g" y="%g">%s</text><text class="a" x="4" y="16">%s</text>`,
		w-right, h-4, c.x, c.y)
	for i, s := range drawn {
		col := colours[i%len(colours)]
		var pts strings.Builder
		for _, p := range s.xy {
			fmt.Fprintf(&pts, "%.1f,%.1f ", px(p[0]), py(p[1]))
		}
		if len(s.xy) == 1 {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, px(s.xy[0][0]), py(s.xy[0][1]), col)
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.8" points="%s"/>`, col,
			strings.TrimSpace(pts.String()))
	}
	b.WriteString(`</svg><p class="k">`)
	for i, s := range drawn {
		fmt.Fprintf(&b, `<span><i style="background:%s"></i>%s</span> `, colours[i%len(colours)],
			template.HTMLEscapeString(s.name))
	}
	b.WriteString(`</p>`)
	return template.HTML(b.String())
}

func (c chart) yTicks(lo, hi float64) []tick {
	if !c.logY {
		return roundTicks(lo, hi, 5)
	}
	var out []tick
	step := math.Max(1, math.Ceil((hi-lo)/6))
	for e := lo; e <= hi; e += step {
		v := math.Pow(10, e)
		out = append(out, tick{v, tickLabel(v)})
	}
	return out
}

// roundTicks returns about n round numbers between lo and hi.
func roundTicks(lo, hi float64, n int) []tick {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(n))))
	for _, m := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*m) <= float64(n) {
			step *= m
			break
		}
	}
	var out []tick
	for v := math.Ceil(lo/step) * step; v <= hi+step/1e6; v += step {
		out = append(out, tick{v, tickLabel(v)})
	}
	return out
}

func tickLabel(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

var (
	//go:embed report.html
	reportSource string
	//go:embed report.css
	reportStyle string
)

// reportFuncs are the functions of the templates of reports.
var reportFuncs = template.FuncMap{
	"num":      number,
	"val":      valueText,
	"statuses": statuses,
	"style":    func() template.CSS { return template.CSS(reportStyle) },
	"four":     func() []struct{} { return make([]struct{}, 4) },
	"ms":       func(v float64) string { return fmt.Sprintf("%.2f", v) },
	"f0":       func(v float64) string { return fmt.Sprintf("%.0f", v) },
	"f1":       func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"pc":       func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) },
	"mb":       func(v int64) string { return fmt.Sprintf("%.1f MB", float64(v)/(1<<20)) },
}

// report is the template of WriteHTML.
var report = template.Must(template.New("report").Funcs(reportFuncs).Parse(reportSource))

package bench

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

// WriteHTML writes a report in one file: styles and drawings are inside, nothing is fetched.
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
				curves = append(curves, series{name: k, xy: tail(kd.Latency.Curve)})
			}
		}
		if len(d.Seen.Curve) > 0 {
			curves = append([]series{{name: "sent→seen", xy: tail(d.Seen.Curve)}}, curves...)
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

// tail turns percentiles into the scale on which every step to the right is a tenfold rarer request.
func tail(curve [][2]float64) [][2]float64 {
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
	ticks       []tick // on x; default: round numbers
}

var colours = []string{"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f",
	"#475569", "#b45309"}

// svg draws lines; it answers nothing where there is nothing to draw.
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
		fmt.Fprintf(&b, `<line class="g" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text class="a" text-anchor="end" x="%g" y="%.1f">%s</text>`, left, w-right, y, y, left-6, y+4, t.text)
	}
	ticks := c.ticks
	if ticks == nil {
		ticks = round(minX, maxX, 6)
	}
	for _, t := range ticks {
		if t.at < minX || t.at > maxX+1e-9 {
			continue
		}
		fmt.Fprintf(&b, `<line class="g" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text class="a" text-anchor="middle" x="%.1f" y="%g">%s</text>`, px(t.at), px(t.at), top, h-bottom, px(t.at), h-bottom+15, t.text)
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
		return round(lo, hi, 5)
	}
	var out []tick
	step := math.Max(1, math.Ceil((hi-lo)/6))
	for e := lo; e <= hi; e += step {
		v := math.Pow(10, e)
		out = append(out, tick{v, plain(v)})
	}
	return out
}

// round finds about n round numbers in a range.
func round(lo, hi float64, n int) []tick {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(n))))
	for _, m := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*m) <= float64(n) {
			step *= m
			break
		}
	}
	var out []tick
	for v := math.Ceil(lo/step) * step; v <= hi+step/1e6; v += step {
		out = append(out, tick{v, plain(v)})
	}
	return out
}

func plain(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}

var report = template.Must(template.New("report").Funcs(template.FuncMap{
	"num": number,
	"val": valueText,
	"ms":  func(v float64) string { return fmt.Sprintf("%.2f", v) },
	"f0":  func(v float64) string { return fmt.Sprintf("%.0f", v) },
	"f1":  func(v float64) string { return fmt.Sprintf("%.1f", v) },
	"pc":  func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) },
	"mb":  func(v int64) string { return fmt.Sprintf("%.1f MB", float64(v)/(1<<20)) },
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>parley bench: {{.R.Scenario.Name}}</title>
<style>
:root{color-scheme:light dark;--ink:#1a1f2b;--soft:#5b6475;--line:#dfe3ea;--page:#fff;--card:#f7f8fa;--good:#047857;--bad:#b91c1c}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa4b5;--line:#333b49;--page:#14181f;--card:#1b212b;--good:#34d399;--bad:#f87171}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:1180px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
p.sub{color:var(--soft);margin:.2rem 0}table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
th,td{text-align:right;padding:.22rem .6rem;border-bottom:1px solid var(--line);white-space:nowrap}th{color:var(--soft);font-weight:500}
th:first-child,td:first-child,td.n{text-align:left}td.n{white-space:normal;color:var(--soft)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(420px,1fr));gap:1rem;margin-top:1rem}
.grid>div:empty{display:none}.grid>div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:.6rem}
svg{width:100%;height:auto;display:block}svg .t{font-size:13px;font-weight:600;fill:var(--ink)}svg .a{font-size:11px;fill:var(--soft)}svg .g{stroke:var(--line)}
.k{margin:.2rem 0 0;color:var(--soft);font-size:13px}.k i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 .6em}
.verdict{font-weight:600;margin:1rem 0;padding:.6rem .9rem;border-radius:8px;border:1px solid currentColor}.good{color:var(--good)}.bad{color:var(--bad)}
.scroll{overflow-x:auto}code{font-size:.92em}
</style></head><body>
<h1>parley bench: {{.R.Scenario.Name}}</h1>
<p class="sub">{{.R.Scenario.About}}</p>
<p class="sub">{{.R.Started.Format "2006-01-02 15:04 MST"}}, {{f1 .R.Seconds}} s in all, seed {{.R.Scenario.Seed}}. {{.R.Machine}}. Server {{.R.Server.Version}}, feature level {{.R.Server.Level}}.</p>
<p class="sub">Crowd of {{.R.Build.Users}} users, {{.R.Build.Channels}} channels, {{.R.Build.Messages}} messages built {{.R.Build.How}} in {{f1 .R.Build.Seconds}} s; {{.R.Scenario.Pollers}} queues registered in {{f1 .R.Build.Register}} s.</p>
{{if .R.Broken}}<div class="verdict bad" id="verdict">{{.R.Broken}} promises broken</div><ul>{{range .R.Violations}}<li><b>{{.Kind}}</b>: {{.Text}}</li>{{end}}</ul>
{{else}}<div class="verdict good" id="verdict">All promises kept</div>{{end}}
{{range .Phases}}<h2>Phase {{.D.Name}}</h2>
<p class="sub">{{f1 .D.Seconds}} s; {{mb .D.In}} in, {{mb .D.Out}} out; everything seen {{num .D.Drain}} s after the last request; {{if $.R.Server.Pid}}server {{num .D.CPU}} cores{{if .D.Delivered}}, {{f1 .D.Delivery}} µs a delivery{{end}}; {{end}}generator {{pc .D.Busy}} of a core; others {{num .D.Others}} cores.</p>
{{if .D.Refused}}<div class="verdict bad">No verdict on rates and latencies: {{.D.Refused}}</div>{{end}}
<div class="scroll"><table><tr><th>kind</th><th>n</th><th>share</th><th>per s</th><th>p50 ms</th><th>p90</th><th>p99</th><th>p99.9</th><th>max</th><th>not 200</th></tr>
{{range .Kinds}}<tr><td>{{.Name}}</td><td>{{.K.N}}</td><td>{{f0 .K.Share}} %</td><td>{{f0 .Per}}</td>{{if .K.Latency.N}}<td>{{ms .K.Latency.P50}}</td><td>{{ms .K.Latency.P90}}</td><td>{{ms .K.Latency.P99}}</td><td>{{ms .K.Latency.P999}}</td><td>{{ms .K.Latency.Max}}</td>{{else}}<td>–</td><td>–</td><td>–</td><td>–</td><td>–</td>{{end}}<td>{{.Bad}}</td></tr>
{{end}}{{with .D.Seen}}{{if .N}}<tr><td>sent→seen</td><td>{{.N}}</td><td></td><td></td><td>{{ms .P50}}</td><td>{{ms .P90}}</td><td>{{ms .P99}}</td><td>{{ms .P999}}</td><td>{{ms .Max}}</td><td></td></tr>{{end}}{{end}}</table></div>
<div class="grid"><div>{{.Latency}}</div><div>{{.Rate}}</div><div>{{.Over}}</div></div>
{{end}}
<h2>The server</h2>{{if .R.Server.Pid}}<div class="grid"><div>{{.Memory}}</div><div>{{.CPU}}</div><div>{{.Gor}}</div></div>{{else}}<p class="sub">Its process was not visible: no CPU and memory.</p>{{end}}
<h2>Figures</h2><div class="scroll"><table><tr><th>figure</th><th>value (range)</th><th></th></tr>
{{range .R.Figures}}<tr><td><code>{{.Name}}</code></td><td>{{val .}}</td><td class="n">{{.Note}}{{if .Refused}} {{.Refused}}{{end}}</td></tr>
{{end}}</table></div>
{{if .R.Notes}}<h2>Notes</h2><ul>{{range .R.Notes}}<li>{{.}}</li>{{end}}{{range .R.Complaints}}<li>the server said: <code>{{.}}</code></li>{{end}}</ul>{{end}}
</body></html>
`))

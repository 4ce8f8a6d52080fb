package bench

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed compare.html
var comparisonSource string

// comparison is the template of WriteComparison.
var comparison = template.Must(template.New("comparison").Funcs(reportFuncs).Parse(comparisonSource))

// comparedKind is a row of a comparison: what two servers did with one kind of request.
type comparedKind struct {
	Name         string
	A, B         *KindData // nil: the run has none
	RateA, RateB float64   // a second
}

// comparedPhase is a phase of both runs.
type comparedPhase struct {
	Name         string
	A, B         *PhaseData // nil: the run has no such phase
	Kinds        []comparedKind
	Charts       []template.HTML // of latency by percentile, for each kind
	SeenA, SeenB *Latency
}

// comparedFigure is a row of the figures of both runs.
type comparedFigure struct {
	Name, A, B, Difference, Noise, Word string
}

// WriteComparison writes two results as one file with a column for each: styles and charts are inline, and the browser
// fetches nothing. Differences within noise, a share, are named as such.
func WriteComparison(w io.Writer, a, b *Result, names [2]string, noise float64) error {
	var phases []*comparedPhase
	byName := map[string]*comparedPhase{}
	at := func(name string) *comparedPhase {
		if byName[name] == nil {
			byName[name] = &comparedPhase{Name: name}
			phases = append(phases, byName[name])
		}
		return byName[name]
	}
	for i := range a.Phases {
		at(a.Phases[i].Name).A = &a.Phases[i]
	}
	for i := range b.Phases {
		at(b.Phases[i].Name).B = &b.Phases[i]
	}
	for _, p := range phases {
		p.fill(names)
	}
	var figures []comparedFigure
	compareFigures(a, b, noise, func(f comparedFigure) { figures = append(figures, f) })
	return comparison.Execute(w, map[string]any{"A": a, "B": b, "NameA": names[0], "NameB": names[1],
		"Phases": phases, "Figures": figures})
}

// fill makes the rows and charts of a phase.
func (p *comparedPhase) fill(names [2]string) {
	for _, kind := range append([]string{""}, kindNames[:]...) {
		row := comparedKind{Name: kind}
		var curves []series
		for i, d := range []*PhaseData{p.A, p.B} {
			if d == nil {
				continue
			}
			latency := &d.Seen
			if kind != "" {
				k, ok := d.Kinds[kind]
				if !ok {
					continue
				}
				if latency = &k.Latency; i == 0 {
					row.A, row.RateA = &k, float64(k.N)/d.Seconds
				} else {
					row.B, row.RateB = &k, float64(k.N)/d.Seconds
				}
			} else if i == 0 {
				p.SeenA = latency
			} else {
				p.SeenB = latency
			}
			if len(latency.Curve) > 0 {
				curves = append(curves, series{name: names[i], xy: tailScale(latency.Curve)})
			}
		}
		if row.A != nil || row.B != nil {
			p.Kinds = append(p.Kinds, row)
		}
		if title := kind + ": latency by percentile"; len(curves) > 0 {
			if kind == "" {
				title = "sent to seen: latency by percentile"
			}
			p.Charts = append(p.Charts, chart{title: title, x: "percentile", y: "ms", logY: true,
				ticks: tailTicks}.svg(curves))
		}
	}
}

package bench

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

// usualNoise is the difference between repeated runs of the same code on a quiet machine with two cores: measured, ±8
// to 10 %. A figure that was measured once is not trusted further than that.
const usualNoise = 0.10

// ReadResult reads a file that --json wrote.
func ReadResult(file string) (*Result, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Result{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if r.Format < 1 || r.Format > formatNow {
		return nil, fmt.Errorf("%s: format %d is too new: this program reads formats up to %d", file, r.Format,
			formatNow)
	}
	return r, nil
}

func compareMain(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("parley bench compare", flag.ContinueOnError)
	f.SetOutput(stderr)
	noise := usualNoise
	fails := false
	f.Func("fail-if", "`worse=5%`: exit code 1 if a figure of B is worse by more than this and more than its noise, "+
		"or if B violated more guarantees", func(text string) (err error) {
		fails = true
		noise, err = parseWorse(text)
		return err
	})
	names := [2]string{"A", "B"}
	htmlFile := f.String("html", "", "write a report with a column for each result to `file`")
	f.Func("names", "`names` of the two servers in the report, separated by a comma", func(text string) error {
		a, b, ok := strings.Cut(text, ",")
		if names = [2]string{strings.TrimSpace(a), strings.TrimSpace(b)}; !ok || names[0] == "" || names[1] == "" {
			return errors.New("must be two names, separated by a comma")
		}
		return nil
	})
	// Flags may precede or follow the files.
	var files []string
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return 2
		}
		if args = f.Args(); len(args) > 0 {
			files, args = append(files, args[0]), args[1:]
		}
	}
	if len(files) != 2 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	a, err := ReadResult(files[0])
	if err == nil {
		var b *Result
		if b, err = ReadResult(files[1]); err == nil {
			worse := Compare(stdout, a, b, noise)
			if *htmlFile != "" {
				if err := writeFile(*htmlFile, func(w io.Writer) error {
					return WriteComparison(w, a, b, names, noise)
				}); err != nil {
					fmt.Fprintln(stderr, err)
					return 2
				}
			}
			if fails && (worse > 0 || b.Broken > a.Broken) {
				return 1
			}
			return 0
		}
	}
	fmt.Fprintln(stderr, err)
	return 2
}

// parseWorse reads the value of --fail-if, for example worse=5%, as a share.
func parseWorse(text string) (float64, error) {
	v, ok := strings.CutPrefix(text, "worse=")
	if ok {
		v, ok = strings.CutSuffix(v, "%")
	}
	percent, err := strconv.ParseFloat(v, 64)
	if !ok || err != nil || !(percent >= 0 && percent <= 1000) {
		return 0, fmt.Errorf("must be worse=PERCENT%%, for example worse=5%%, not %q", text)
	}
	return percent / 100, nil
}

// Compare prints the differences between the figures of a and b and returns the number of figures that are worse in b
// by
// more than noise, a share, and by more than the ranges of both.
func Compare(w io.Writer, a, b *Result, noise float64) (worse int) {
	fmt.Fprintf(w, "A: %s, %s, server %s\nB: %s, %s, server %s\n", a.Scenario.Name,
		a.Started.Format("2006-01-02 15:04"), orUnknown(a.Server.Version), b.Scenario.Name,
		b.Started.Format("2006-01-02 15:04"), orUnknown(b.Server.Version))
	if a.Machine != b.Machine {
		fmt.Fprintf(w, "DIFFERENT MACHINES:\n  A %s\n  B %s\n", a.Machine, b.Machine)
	}
	if a.Scenario.Name != b.Scenario.Name || a.Scenario.Users != b.Scenario.Users ||
		a.Scenario.Pollers != b.Scenario.Pollers {
		fmt.Fprintf(w, "DIFFERENT LOADS: A %s with %d users and %d pollers, B %s with %d and %d\n", a.Scenario.Name,
			a.Scenario.Users, a.Scenario.Pollers, b.Scenario.Name, b.Scenario.Users, b.Scenario.Pollers)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tA\tB\tdifference\tnoise\t")
	worse = compareFigures(a, b, noise, func(f comparedFigure) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, f.A, f.B, f.Difference, f.Noise, f.Word)
	})
	t.Flush()
	if a.Broken+b.Broken > 0 {
		fmt.Fprintf(w, "guarantees violated: A %d, B %d\n", a.Broken, b.Broken)
	}
	return worse
}

// compareFigures passes each figure of a or b to row, and returns the number of those that are worse in b.
func compareFigures(a, b *Result, noise float64, row func(comparedFigure)) (worse int) {
	for _, fa := range a.Figures {
		fb, ok := b.Figure(fa.Name)
		if !ok {
			row(comparedFigure{Name: fa.Name, A: valueText(fa), B: "-"})
			continue
		}
		diff, both, word := judge(fa, fb, noise)
		if word == "WORSE" {
			worse++
		}
		row(comparedFigure{fa.Name, valueText(fa), valueText(fb), diff, fmt.Sprintf("±%.0f %%", 100*both), word})
	}
	for _, fb := range b.Figures {
		if _, ok := a.Figure(fb.Name); !ok {
			row(comparedFigure{Name: fb.Name, A: "-", B: valueText(fb)})
		}
	}
	return worse
}

// judge compares a difference with the noise of both sides, which is at least the share least.
func judge(a, b Figure, least float64) (diff string, noise float64, word string) {
	noise = max(least, halfRange(a), halfRange(b))
	if a.Value == 0 {
		if b.Value == 0 {
			return "0 %", noise, ""
		}
		return "", noise, ""
	}
	d := (b.Value - a.Value) / math.Abs(a.Value)
	diff = fmt.Sprintf("%+.1f %%", 100*d)
	switch {
	case a.Refused != "" || b.Refused != "":
		return diff, noise, "no verdict"
	case math.Abs(d) <= noise:
		return diff, noise, "within noise"
	case (d > 0) == a.More:
		return diff, noise, "better"
	}
	return diff, noise, "WORSE"
}

// halfRange returns half the range of a figure, as a share of its value.
func halfRange(f Figure) float64 {
	if f.Value == 0 {
		return 0
	}
	return math.Abs(f.High-f.Low) / 2 / math.Abs(f.Value)
}

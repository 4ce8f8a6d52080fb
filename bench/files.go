package bench

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// guaranteeKinds are the guarantees that every run checks, by the kind of their violations. A JUnit file has a test
// case for each.
var guaranteeKinds = []string{"loss", "duplicate", "reorder", "leak", "truncated", "two ids", "refused but seen",
	"event id", "bad answer", "queue lost", "silent poll", "poll refused", "not stored", "late"}

// A junitSuite is a JUnit file: the form that build servers read.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Stamp    string      `xml:"timestamp,attr,omitempty"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr"`
	Failure *junitReason `xml:"failure,omitempty"`
	Error   *junitReason `xml:"error,omitempty"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the guarantees and thresholds of a run as test cases.
func WriteJUnit(w io.Writer, res *Result) error {
	seconds := strconv.FormatFloat(res.Seconds, 'f', 3, 64)
	s := junitSuite{Name: "parley bench " + res.Scenario.Name, Time: seconds,
		Stamp: res.Started.Format("2006-01-02T15:04:05")}
	kinds := slices.Clone(guaranteeKinds)
	for _, k := range slices.Sorted(maps.Keys(res.BrokenByKind)) {
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for _, k := range kinds {
		c := junitCase{Class: "guarantee", Name: k, Time: seconds}
		if n := res.BrokenByKind[k]; n > 0 {
			var texts []string
			for _, v := range res.Violations {
				if v.Kind == k {
					texts = append(texts, v.line())
				}
			}
			c.Failure = &junitReason{fmt.Sprintf("violated %d times", n), strings.Join(texts, "\n")}
		}
		s.Cases = append(s.Cases, c)
	}
	for _, t := range res.Thresholds {
		c := junitCase{Class: "threshold", Name: t.Threshold, Time: seconds}
		if !t.Kept {
			c.Failure = &junitReason{"measured " + valueText(Figure{Value: t.Value, Unit: t.Unit}), t.Note}
		}
		s.Cases = append(s.Cases, c)
	}
	if res.Stopped != "" {
		s.Cases = append(s.Cases, junitCase{Class: "run", Name: "stop", Time: seconds,
			Failure: &junitReason{"a stop condition ended the run", res.Stopped}})
	}
	return s.write(w)
}

// writeJUnitError writes a run that could not be made.
func writeJUnitError(w io.Writer, name string, reason error) error {
	s := junitSuite{Name: "parley bench " + name, Time: "0", Cases: []junitCase{{Class: "run", Name: name, Time: "0",
		Error: &junitReason{"the run could not be made", reason.Error()}}}}
	return s.write(w)
}

func (s *junitSuite) write(w io.Writer) error {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
	}
	b, err := xml.MarshalIndent(s, "", " ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, b)
	}
	return err
}

// WriteCSV writes a table with one row for each phase and kind of request. Latencies are in milliseconds.
func WriteCSV(w io.Writer, res *Result) error {
	c := csv.NewWriter(w)
	c.Write([]string{"phase", "kind", "count", "not_200", "per_second", "mean_ms", "p50_ms", "p90_ms", "p99_ms",
		"p999_ms", "max_ms"})
	for i := range res.Phases {
		d := &res.Phases[i]
		row := func(kind string, n, bad int64, l Latency) {
			out := []string{d.Name, kind, strconv.FormatInt(n, 10), strconv.FormatInt(bad, 10)}
			for _, v := range []float64{float64(n) / d.Seconds, l.Mean, l.P50, l.P90, l.P99, l.P999, l.Max} {
				out = append(out, strconv.FormatFloat(v, 'f', 3, 64))
			}
			c.Write(out)
		}
		for _, k := range kindNames {
			if kd, ok := d.Kinds[k]; ok {
				var bad int64
				for _, n := range kd.Status {
					bad += n
				}
				row(k, kd.N, bad, kd.Latency)
			}
		}
		row("seen", d.Delivered, 0, d.Seen)
	}
	c.Flush()
	return c.Error()
}

// WritePrometheus writes the figures, violations and thresholds of a run in the text form of Prometheus.
func WritePrometheus(w io.Writer, res *Result) error {
	var b strings.Builder
	b.WriteString("# HELP parley_bench_figure A figure of the run, in the unit of its label.\n" +
		"# TYPE parley_bench_figure gauge\n")
	for _, f := range res.Figures {
		fmt.Fprintf(&b, "parley_bench_figure{scenario=%s,name=%s,unit=%s} %g\n", label(res.Scenario.Name),
			label(f.Name), label(f.Unit), f.Value)
	}
	b.WriteString("# HELP parley_bench_violations Violated guarantees by kind.\n" +
		"# TYPE parley_bench_violations gauge\n")
	for _, k := range guaranteeKinds {
		fmt.Fprintf(&b, "parley_bench_violations{scenario=%s,kind=%s} %d\n", label(res.Scenario.Name), label(k),
			res.BrokenByKind[k])
	}
	b.WriteString("# HELP parley_bench_threshold_kept 1 if the run kept the threshold, else 0.\n" +
		"# TYPE parley_bench_threshold_kept gauge\n")
	for _, t := range res.Thresholds {
		kept := 0
		if t.Kept {
			kept = 1
		}
		fmt.Fprintf(&b, "parley_bench_threshold_kept{scenario=%s,threshold=%s} %d\n", label(res.Scenario.Name),
			label(t.Threshold), kept)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// label quotes the value of a Prometheus label.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// writeFile creates a file and fills it. It does nothing for an empty name.
func writeFile(name string, fill func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}

// writeFiles writes the files that the flags of a run name.
func writeFiles(s *runFlags, res *Result) error {
	return errors.Join(s.writeJSON(res),
		writeFile(s.htmlFile, func(w io.Writer) error { return WriteHTML(w, res) }),
		writeFile(s.junitFile, func(w io.Writer) error { return WriteJUnit(w, res) }),
		writeFile(s.csvFile, func(w io.Writer) error { return WriteCSV(w, res) }),
		writeFile(s.promFile, func(w io.Writer) error { return WritePrometheus(w, res) }))
}

// writeJSON writes a result to the file of --json, if there is one.
func (s *runFlags) writeJSON(result any) error {
	b, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		return err
	}
	return writeFile(s.jsonFile, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// finish prints the result of a run, writes its files, and returns the exit code: 0 if all guarantees and thresholds
// were kept and no stop condition
// ended the run, else 1; 2 if a file cannot be written.
func (s *runFlags) finish(res *Result, stdout, stderr io.Writer) int {
	fromFile, _ := parseThresholds(s.scenario.Thresholds) // parse has checked them
	res.checkThresholds(append(fromFile, s.thresholds...))
	writeTable(stdout, res)
	if err := writeFiles(s, res); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", s.flags.Name(), err)
		return 2
	}
	if res.Broken > 0 || res.Missed > 0 || res.Stopped != "" {
		return 1
	}
	return 0
}

// fail prints why a run could not be made, records it in the JUnit file, and returns the exit code 2.
func (s *runFlags) fail(reason error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "%s: %v\n", s.flags.Name(), reason)
	err := writeFile(s.junitFile, func(w io.Writer) error {
		return writeJUnitError(w, strings.TrimPrefix(s.flags.Name(), "parley bench "), reason)
	})
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", s.flags.Name(), err)
	}
	return 2
}

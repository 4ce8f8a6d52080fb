package bench

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
)

// writeTable prints the result of a run as text.
func writeTable(w io.Writer, res *Result) {
	fmt.Fprintf(w, "\n%s\nserver %s (feature level %d), crowd of %d users, %d channels, %d messages built %s in "+
		"%.1f s\n", res.Machine, orUnknown(res.Server.Version), res.Server.Level, res.Build.Users, res.Build.Channels,
		res.Build.Messages, res.Build.How, res.Build.Seconds)
	for i := range res.Phases {
		d := &res.Phases[i]
		fmt.Fprintf(w, "\nphase %s: %.1f s, %.1f MB in, %.1f MB out, everything seen %.2f s after the last request\n",
			d.Name, d.Seconds, float64(d.In)/(1<<20), float64(d.Out)/(1<<20), d.Drain)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "kind\tn\tshare\tper s\tp50 ms\tp90\tp99\tp99.9\tmax\tnot 200\t")
		for _, k := range kindNames {
			kd, ok := d.Kinds[k]
			if !ok {
				continue
			}
			lat := "\t-\t-\t-\t-\t-"
			if kd.Latency.N > 0 {
				l := kd.Latency
				lat = fmt.Sprintf("\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f", l.P50, l.P90, l.P99, l.P999, l.Max)
			}
			fmt.Fprintf(t, "%s\t%d\t%.0f %%\t%.0f%s\t%s\t\n", k, kd.N, kd.Share, float64(kd.N)/d.Seconds, lat,
				statuses(kd.Status))
		}
		if d.Seen.N > 0 {
			l := d.Seen
			fmt.Fprintf(t, "sent→seen\t%d\t\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\t\n", l.N, d.PerSecond, l.P50, l.P90,
				l.P99, l.P999, l.Max)
		}
		t.Flush()
		if res.Server.Pid != 0 {
			fmt.Fprintf(w, "server %.2f cores", d.CPU)
			if d.Delivered > 0 {
				fmt.Fprintf(w, ", %.1f us a delivery of %.0f bytes", d.Delivery, d.Bytes)
			}
			fmt.Fprint(w, "; ")
		}
		fmt.Fprintf(w, "generator %.0f %% of a core, behind its schedule p99 %.2f ms; other processes and the host "+
			"%.2f cores\n", 100*d.Busy, d.Late.P99, d.Others)
		if d.Refused != "" {
			fmt.Fprintf(w, "NO VERDICT on rates and latencies: %s\n", d.Refused)
		}
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range res.Figures {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, valueText(f), f.Note)
	}
	t.Flush()
	for _, n := range res.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, c := range res.Complaints {
		fmt.Fprintf(w, "error answer: %s\n", c)
	}
	if res.Stopped != "" {
		fmt.Fprintf(w, "STOPPED: %s\n", res.Stopped)
	}
	writeThresholds(w, res)
	writeVerdict(w, res)
}

func writeVerdict(w io.Writer, res *Result) {
	if res.Broken == 0 {
		fmt.Fprintf(w, "guarantees: all met (seed %d)\n", res.Scenario.Seed)
		return
	}
	fmt.Fprintf(w, "GUARANTEES VIOLATED: %d (seed %d). The first of each kind:\n", res.Broken, res.Scenario.Seed)
	seen := map[string]bool{}
	for _, v := range res.Violations {
		if !seen[v.Kind] {
			seen[v.Kind] = true
			fmt.Fprintf(w, "  %s\n", v.line())
		}
	}
}

func statuses(m map[string]int64) string {
	if len(m) == 0 {
		return "-"
	}
	var out []string
	for s, n := range m {
		if s == "0" {
			s = "none"
		}
		out = append(out, fmt.Sprintf("%s:%d", s, n))
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

func orUnknown(s string) string {
	if s == "" {
		return "of unknown version"
	}
	return s
}

// number formats a value with three or four significant digits.
func number(v float64) string {
	switch a := max(v, -v); {
	case a == 0:
		return "0"
	case a >= 1000:
		return fmt.Sprintf("%.0f", v)
	case a >= 100:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func valueText(f Figure) string {
	s := number(f.Value)
	if f.Unit != "" {
		s += " " + f.Unit
	}
	if f.Low != f.High {
		s += fmt.Sprintf(" (%s to %s)", number(f.Low), number(f.High))
	}
	if f.Refused != "" {
		s += " no verdict"
	}
	return s
}

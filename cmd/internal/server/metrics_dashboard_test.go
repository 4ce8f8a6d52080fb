package server

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// The dashboard for Grafana names only metrics and labels that the server has, each panel has a query, and no two
// panels have the same place.
func TestDashboard(t *testing.T) {
	labels, histograms := map[string]string{}, map[string]bool{}
	for _, m := range AllMetrics() {
		labels[m.Name], histograms[m.Name] = m.Label, m.Type == "histogram"
	}
	var board struct {
		UID        string
		Panels     []panel
		Templating struct{ List []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(readDeployFile(t, "dashboard.json")), &board); err != nil {
		t.Fatal(err)
	}
	if board.UID == "" || len(board.Panels) == 0 || len(board.Templating.List) != 2 {
		t.Fatalf("the dashboard is incomplete: %+v", board)
	}
	names := regexp.MustCompile(`\b(parley|process)_[a-z_]+`)
	groups := regexp.MustCompile(`by \((\w+)\)`)
	places := map[[2]int]string{}
	for _, p := range board.Panels {
		at := [2]int{p.GridPos.X, p.GridPos.Y}
		if places[at] != "" {
			t.Errorf("%s is at the place of %s", p.Title, places[at])
		}
		if places[at] = p.Title; len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
		for _, q := range p.Targets {
			used := map[string]bool{"instance": true, "le": true}
			for _, name := range names.FindAllString(q.Expr, -1) {
				plain := strings.TrimSuffix(name, "_bucket")
				label, known := labels[plain]
				if strings.HasPrefix(name, "process_") {
					continue // the process collector of Prometheus
				}
				if !known || histograms[plain] != (plain != name) {
					t.Errorf("%s: %s is no metric of the server", p.Title, name)
				}
				used[label] = true
			}
			for _, group := range groups.FindAllStringSubmatch(q.Expr, -1) {
				if !used[group[1]] {
					t.Errorf("%s: no metric of %s has the label %s", p.Title, q.Expr, group[1])
				}
			}
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") {
				t.Errorf("%s: the parentheses of %s do not match", p.Title, q.Expr)
			}
		}
	}
}

// panel is a panel of the dashboard.
type panel struct {
	Title   string
	GridPos struct{ X, Y int }
	Targets []struct{ Expr string }
}

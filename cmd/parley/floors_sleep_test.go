package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// realSleeps are the calls of time.Sleep in tests that wait for a time by the real clock and not for a condition, by
// file. Their numbers only become smaller: a test that waits for something that it can ask about asks in a loop, or
// runs in a bubble of synctest, whose clock is not the real one.
var realSleeps = map[string]struct {
	calls int
	why   string
}{
	"actors/linear_test.go":         {1, "a request that takes a time"},
	"bench/conform/conform_test.go": {3, "the waits of a client between two requests"},
	"cmd/internal/server/retention_test.go": {1,
		"a sweep in the background between two backups, which it waits for"},
	"cmd/parley/answer_memory_test.go":          {4, "the periods in which the memory is measured"},
	"cmd/parley/cluster_backup_test.go":         {1, "the next whole second: a restore goes to a second"},
	"cmd/parley/cluster_clock_test.go":          {1, "an edge reads its clock, which no answer shows"},
	"cmd/parley/cluster_freeze_test.go":         {1, "how long a core is stopped"},
	"cmd/parley/cluster_kill_test.go":           {2, "how long a core is down; the pause of a client"},
	"cmd/parley/cluster_linear_test.go":         {2, "random moments"},
	"cmd/parley/cluster_links_test.go":          {2, "the delay of a link, and how long a fault lasts"},
	"cmd/parley/cluster_partition_test.go":      {3, "how long faults last"},
	"cmd/parley/cluster_presence_test.go":       {1, "the half minute of presence that a crash may lose"},
	"cmd/parley/failure_test.go":                {1, "the interval of the marks of the store, which no answer shows"},
	"cmd/parley/files_bucket_test.go":           {1, "a random moment"},
	"cmd/parley/import_test.go":                 {1, "a random moment"},
	"cmd/parley/kill_test.go":                   {4, "random moments, and the pauses of clients"},
	"cmd/parley/network_test.go":                {1, "the delay of packets"},
	"snapshot/replicated/replicated_test.go":    {1, "how long a process is stopped"},
	"wire/httpd/park/secure_conn_linux_test.go": {2, "bytes and requests that arrive one by one"},
}

// TestFloorsSleep counts the calls of time.Sleep in tests that are not in a loop with a condition.
func TestFloorsSleep(t *testing.T) {
	const root = "../.."
	found := map[string][]string{}
	for _, file := range goFiles(t, root) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, line := range sleepsOf(t, filepath.Join(root, file)) {
			found[file] = append(found[file], fmt.Sprint(line))
		}
	}
	for file, lines := range found {
		if want := realSleeps[file].calls; len(lines) > want {
			t.Errorf("%s, lines %s: %d calls of time.Sleep, limit %d: wait for a condition in a loop, or use synctest",
				file, strings.Join(lines, ", "), len(lines), want)
		}
	}
	for file, x := range realSleeps {
		if n := len(found[file]); n < x.calls {
			t.Errorf("%s has %d calls of time.Sleep: lower its limit in realSleeps from %d", file, n, x.calls)
		}
	}
}

// sleepsOf returns the lines of a file with calls of time.Sleep by the real clock that are not in a loop with a
// condition.
func sleepsOf(t *testing.T, path string) (lines []int) {
	t.Helper()
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var around []ast.Node
	fake := false
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		if id, ok := n.(*ast.Ident); ok && strings.Contains(strings.ToLower(id.Name), "synctest") {
			fake = true
		}
		if call, ok := n.(*ast.CallExpr); ok && callsOf(call, "Sleep") && !asksForCondition(around) {
			lines = append(lines, set.Position(call.Pos()).Line)
		}
		around = append(around, n)
		return true
	})
	if fake {
		return nil
	}
	return lines
}

// callsOf reports whether a call is one of these functions of package time.
func callsOf(call *ast.CallExpr, names ...string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "time" && slices.Contains(names, s.Sel.Name)
}

// asksForCondition reports whether the innermost loop around a call, in the same function, asks for a condition: it
// calls something in its condition, or compares the time with a deadline.
func asksForCondition(around []ast.Node) bool {
	for _, n := range slices.Backward(around) {
		switch loop := n.(type) {
		case *ast.FuncLit, *ast.FuncDecl, *ast.RangeStmt:
			return false
		case *ast.ForStmt:
			return loop.Cond != nil && asks(loop.Cond, true) || asks(loop.Body, false)
		}
	}
	return false
}

// asks reports whether a node calls time.Now or time.Since, or with any, calls anything.
func asks(n ast.Node, anything bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			found = found || anything || callsOf(call, "Now", "Since")
		}
		return true
	})
	return found
}

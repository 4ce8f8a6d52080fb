package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/cmd/internal/datadir"
)

var digestOf = regexp.MustCompile(`realm (\d+) at (\d+): \d+ rows, digest [0-9a-f]{64}`)

func digests(t *testing.T, args ...string) string {
	t.Helper()
	out, code := runParley(args...)
	found := digestOf.FindAllString(out, -1)
	if code != 0 || len(found) == 0 {
		t.Fatalf("%s: code %d, %s", strings.Join(args, " "), code, out)
	}
	return strings.Join(found, "\n")
}

// The state of a running server, the state that its journal replays to, and the state that its rows load to are the
// same.
func TestDigestsAgree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := demo(t, dir, "--demo-crowd", "users=60,channels=6,messages=600,realms=2,seed=7")
	p.serving()
	live := digests(t, "realm", "digest", "--data", dir)
	p.kill()
	if replayed := digests(t, "log", "replay", dir); replayed != live {
		t.Errorf("the live and the replayed state differ:\n%s\n%s", live, replayed)
	}
	// A start replays the journal and its end writes a snapshot; the state does not change.
	if reopened := digests(t, "realm", "digest", "--data", dir); reopened != live {
		t.Errorf("the live and the reopened state differ:\n%s\n%s", live, reopened)
	}
	if out, _ := runParley("log", "print", dir); strings.Count(out, "\n") != 2 ||
		!strings.Contains(out, "are in the snapshot's rows") {
		t.Errorf("after a clean stop the journal has facts: %.500s", out)
	}
	if loaded := digests(t, "log", "replay", dir); loaded != live {
		t.Errorf("the live state and the one loaded from rows differ:\n%s\n%s", live, loaded)
	}
}

func TestLogPrintShowsEveryFact(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := demo(t, dir)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	id, err := ann.send("to be found in the journal")
	if err != nil {
		t.Fatal(err)
	}
	p.kill()
	out, code := runParley("log", "print", dir)
	if code != 0 {
		t.Fatal(out)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, fmt.Sprintf("1 %d ", i+1)) {
			t.Fatalf("line %d is %.80q", i+1, line)
		}
	}
	if !strings.Contains(out, " MessageSent {") || !strings.Contains(out, fmt.Sprintf(`"ID":%d,`, id)) ||
		!strings.Contains(lines[0], " Founded {") {
		t.Errorf("the message or the first fact is missing: %s", out)
	}
	some, _ := runParley("log", "print", "--from", "3", "--to", "4", dir)
	if some != strings.Join(lines[2:4], "\n")+"\n" {
		t.Errorf("facts 3 and 4: %s", some)
	}
	if at2 := digests(t, "log", "replay", "--to", "2", dir); !strings.HasPrefix(at2, "realm 1 at 2: ") {
		t.Errorf("replayed to 2: %s", at2)
	}
}

// A data directory that a newer program has served is refused by every command that reads or changes the directory of a
// stopped server: an older program does not know all its facts and rows.
func TestCommandsRefuseNewerDataDirectories(t *testing.T) {
	temp := t.TempDir()
	dir, export := filepath.Join(temp, "data"), filepath.Join(temp, "export")
	p := demo(t, dir)
	p.serving()
	p.stop()
	commands := [][]string{
		{"log", "print", dir},
		{"log", "check", dir},
		{"log", "replay", dir},
		{"search", "rebuild", dir},
		{"backup", filepath.Join(temp, "backup"), "--data", dir},
		{"export", export, "--data", dir},
		{"import", export, "--data", dir, "--realm", "other"},
		{"realm", "list", "--data", dir},
	}
	runAll := func(refused bool) {
		t.Helper()
		for _, c := range commands {
			out, code := runParley(c...)
			if newer := strings.Contains(out, "was served by a newer parley"); newer != refused ||
				(code == 0) == refused {
				t.Errorf("%s: code %d, %.300s", strings.Join(c, " "), code, out)
			}
		}
	}
	if out, code := runParley("export", export, "--data", dir); code != 0 {
		t.Fatal(out)
	}
	writeFile(t, filepath.Join(dir, datadir.VersionFile), fmt.Sprintln(datadir.Version()+1))
	runAll(true)
	writeFile(t, filepath.Join(dir, datadir.VersionFile), fmt.Sprintln(datadir.Version()))
	commands = slices.DeleteFunc(
		commands,
		func(c []string) bool { return c[0] == "import" },
	) // it would find the same keys
	runAll(false)
}

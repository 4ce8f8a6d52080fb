package main

import (
	"archive/zip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/mail"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// zipEntries returns the entries of a zip file.
func zipEntries(t *testing.T, file string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(text)
	}
	return out
}

// complianceScene is a demo organization with edited, moved, deleted and direct messages.
type complianceScene struct {
	t       *testing.T
	data    string
	ann, bo *account
}

func newComplianceScene(t *testing.T) *complianceScene {
	s := &complianceScene{t: t, data: filepath.Join(t.TempDir(), "data")}
	at := demo(t, s.data).serving()
	olive := demoAccount(t, at, "olive@example.org")
	s.ann, s.bo = demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	post := func(who *account, topic, text string) string {
		return fmt.Sprint(who.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"},
			"topic": {topic}, "content": {text}})["id"])
	}
	edited := post(s.ann, "secret", "the xylophone text")
	s.ann.must(t, "PATCH", "messages/"+edited, url.Values{"content": {"=SUM(A1:A9)"}})
	moved := post(s.ann, "zebra place", "+wombat")
	olive.must(t, "PATCH", "messages/"+moved, url.Values{"topic": {"new place"}})
	deleted := post(s.bo, "secret", "quokka soon")
	olive.must(t, "DELETE", "messages/"+deleted, nil)
	id := fmt.Sprint(s.bo.must(t, "GET", "users/me", nil)["user_id"])
	s.ann.must(t, "POST", "messages", url.Values{"type": {"direct"}, "to": {"[" + id + "]"}, "content": {"yodel"}})
	if out, code := runParley("retention", "hold", "add", "--email", "bo@example.org", "--reason", "case 7", "--data",
		s.data); code != 0 {
		t.Fatal(out)
	}
	return s
}

// export runs the command and returns the entries of its file, and the counts of about.json.
func (s *complianceScene) export(args ...string) (entries map[string]string, counts map[string]int) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "export.zip")
	out, code := runParley(append([]string{"export", "compliance", "--data", s.data, "--out", file}, args...)...)
	if code != 0 {
		s.t.Fatal(out)
	}
	entries = zipEntries(s.t, file)
	var about struct{ Counts map[string]int }
	if err := json.Unmarshal([]byte(entries["about.json"]), &about); err != nil {
		s.t.Fatal(err)
	}
	return entries, about.Counts
}

// A compliance export has each message that exists or is in the archive, with earlier texts, moves and holds. Its
// counts are those of an independent reader, in each format.
func TestComplianceExport(t *testing.T) {
	s := newComplianceScene(t)
	entries, counts := s.export()
	var records []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(entries["messages.jsonl"]), "\n") {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	if counts["messages"] != len(records) || counts["deleted"] != 1 || counts["edits"] != 1 || counts["moves"] != 1 ||
		counts["held"] < 2 {
		t.Errorf("%v for %d records", counts, len(records))
	}
	find := func(content string) map[string]any {
		for _, r := range records {
			if r["content"] == content {
				return r
			}
		}
		t.Fatalf("no message %q", content)
		return nil
	}
	if c := find("=SUM(A1:A9)")["changes"].([]any); len(c) != 1 ||
		c[0].(map[string]any)["content_before"] != "the xylophone text" {
		t.Errorf("the edit: %v", c)
	}
	if c := find("+wombat")["changes"].([]any); len(c) != 1 || c[0].(map[string]any)["topic_before"] != "zebra place" ||
		c[0].(map[string]any)["by"].(map[string]any)["email"] != "olive@example.org" {
		t.Errorf("the move: %v", c)
	}
	d := find("quokka soon")
	if removal := d["deleted"].(map[string]any); removal["reason"] != "deleted by a user" ||
		removal["by"].(map[string]any)["email"] != "olive@example.org" || len(d["legal_holds"].([]any)) != 1 {
		t.Errorf("the deletion: %v", d)
	}
	if find("yodel")["legal_holds"] == nil {
		t.Error("a direct message to a user on hold is not on hold")
	}

	entries, counts = s.export("--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(entries["messages.csv"])).ReadAll()
	if err != nil || len(rows) != len(records)+1 || counts["messages"] != len(records) {
		t.Errorf("the table has %d rows for %v: %v", len(rows), counts, err)
	}
	changes, err := csv.NewReader(strings.NewReader(entries["changes.csv"])).ReadAll()
	if err != nil || len(changes) != counts["edits"]+counts["moves"]+1 {
		t.Errorf("the table of changes has %d rows: %v", len(changes), err)
	}
	for _, row := range append(rows, changes...) {
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("a spreadsheet calculates %q", cell)
			}
		}
	}

	entries, _ = s.export("--format", "eml")
	mails := 0
	for name, text := range entries {
		if !strings.HasSuffix(name, ".eml") {
			continue
		}
		m, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := m.Header.AddressList("From"); err != nil || m.Header.Get("Subject") == "" {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if _, err := m.Header.Date(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		mails++
	}
	if mails != len(records) {
		t.Errorf("%d mails for %d messages", mails, len(records))
	}
	s.checkCriteria(len(records))
}

// checkCriteria tries each criterion, and its refusals, and looks for the entries of the audit log.
func (s *complianceScene) checkCriteria(all int) {
	t := s.t
	for args, want := range map[string]int{
		"--search XYLOPHONE":                                         1, // of an earlier text
		"--search zebra":                                             2, // of an earlier topic, and the notice about it
		"--search nowhere-at-all":                                    0,
		"--to 2000-01-01":                                            0,
		"--from 2000-01-01":                                          all,
		"--person bo@example.org --search yodel":                     1, // a direct message to Bo
		"--person bo@example.org --search quokka":                    1,
		"--person bo@example.org --search SUM":                       0,
		"--channel general --search wombat":                          1,
		"--channel general --search yodel":                           0,
		"--channel general --person ann@example.org --search quokka": 0,
	} {
		if _, counts := s.export(strings.Fields(args)...); counts["messages"] != want {
			t.Errorf("%s: %v, want %d messages", args, counts, want)
		}
	}
	for args, want := range map[string]string{
		"--person nobody@example.org --out x": "no user", "--channel nowhere --out x": "no channel",
		"--format pdf --out x": "--format", "--from yesterday --out x": "--from must be a day",
		"--from 2026-02-01 --to 2026-01-01 --out x": "must not be before", "": "--out is required",
		"--search= --out x": "--search must not be empty", "--to= --out x": "--to must not be empty",
	} {
		out, code := runParley(append([]string{"export", "compliance", "--data", s.data}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d %s", args, code, out)
		}
	}
	out, code := runParley("audit", "list", "--data", s.data, "--kind", "export.compliance")
	if code != 0 || !strings.Contains(out, "format csv") || !strings.Contains(out, "operator") ||
		strings.Contains(out, "bo@example.org") {
		t.Errorf("the audit log: %d %s", code, out)
	}
}

// Where the organization demands two owners, the command needs their approved request, whose criteria it uses, or
// --force.
func TestComplianceExportOfTwoOwners(t *testing.T) {
	s := newComplianceScene(t)
	olive := demoAccount(t, s.ann.url, "olive@example.org")
	ann := fmt.Sprint(s.ann.must(t, "GET", "users/me", nil)["user_id"])
	olive.must(t, "PATCH", "users/"+ann, url.Values{"role": {"100"}})
	olive.must(t, "PATCH", "compliance_exports", url.Values{"two_owners": {"true"}})
	file := filepath.Join(t.TempDir(), "export.zip")
	run := func(want string, args ...string) string {
		t.Helper()
		out, code := runParley(append([]string{"export", "compliance", "--data", s.data}, args...)...)
		if (code == 0) != (want == "") || !strings.Contains(out, want) {
			t.Fatalf("%v: %d %s", args, code, out)
		}
		return out
	}
	run("Two owners must agree", "--out", file)
	run("", "--out", file, "--force")
	id := fmt.Sprint(olive.must(t, "POST", "compliance_exports", url.Values{"user_ids": {"[" + ann + "]"},
		"search": {"xylophone"}})["id"])
	run("is pending", "--out", file, "--request", id)
	if _, err := olive.call("POST", "compliance_exports/"+id, url.Values{"approve": {"true"}}); err == nil {
		t.Error("an owner approves their own request")
	}
	if _, err := s.bo.call("POST", "compliance_exports/"+id, url.Values{"approve": {"true"}}); err == nil {
		t.Error("a member approves a request")
	}
	s.ann.must(t, "POST", "compliance_exports/"+id, url.Values{"approve": {"true"}})
	run("cannot be given", "--out", file, "--request", id, "--search", "other")
	run("", "--out", file, "--request", id)
	if got := zipEntries(t, file); strings.Count(got["messages.jsonl"], "\n") != 1 ||
		!strings.Contains(got["messages.jsonl"], "xylophone") {
		t.Errorf("the export of the request: %q", got["messages.jsonl"])
	}
	run("is used", "--out", file, "--request", id)
	out := run("", "--ask", "--person", "bo@example.org", "--channel", "general", "--format", "csv")
	list := olive.must(t, "GET", "compliance_exports", nil)["requests"].([]any)
	asked := list[len(list)-1].(map[string]any)
	if !strings.Contains(out, "--request "+jsonID(asked["id"])) || asked["format"] != "csv" ||
		len(asked["user_ids"].([]any)) != 1 || len(asked["owner_ids"].([]any)) != 0 {
		t.Errorf("%s: %v", out, asked)
	}
	olive.must(t, "POST", "compliance_exports/"+jsonID(asked["id"]), url.Values{"approve": {"true"}})
	run("is pending", "--out", file, "--request", jsonID(asked["id"]))
	s.ann.must(t, "POST", "compliance_exports/"+jsonID(asked["id"]), url.Values{"approve": {"true"}})
	run("", "--out", file, "--request", jsonID(asked["id"]))
}

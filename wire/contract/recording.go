package contract

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"parley/wire"
)

// A Record is one line of a recording: an answer or an event that a client received.
//
// An answer has Method, Path, Status and Body. An event that was not part of an answer has Event alone. Complete
// marks a registration without event types.
type Record struct {
	Method   string          `json:"method,omitempty"`
	Path     string          `json:"path,omitempty"`
	Status   int             `json:"status,omitempty"`
	Body     json.RawMessage `json:"body,omitempty"`
	Event    json.RawMessage `json:"event,omitempty"`
	Complete bool            `json:"complete,omitempty"`
}

// maxRecord bounds one line of a recording: it is more than a registration of the largest recorded organization.
const maxRecord = 64 << 20

// A Report sums up recordings.
type Report struct {
	Answers  int
	Events   int
	Missing  map[string]int // endpoints that answered 404 or 405, with counts
	Findings Findings
	Seen     map[string]int // checked endpoints and events by name, as in findings
}

// Check checks one record and adds the result to the report.
func (c *Contract) Check(rec Record, to *Report) {
	if to.Missing == nil {
		to.Missing, to.Seen = map[string]int{}, map[string]int{}
	}
	if rec.Event != nil {
		to.Events++
		to.Seen[eventName(rec.Event)]++
		to.take(c.Event(rec.Event))
		to.Findings = append(to.Findings, wire.CheckEvent(rec.Event)...)
		return
	}
	if !strings.HasPrefix(rec.Path, "/api/") && !strings.HasPrefix(rec.Path, "/json/") {
		return // a file or a picture, not an answer of the protocol
	}
	to.Answers++
	name := c.Route(rec.Method, rec.Path)
	to.Seen[name]++
	if name != "" && notRouted(rec.Status, rec.Body) {
		to.Missing[name]++
	}
	if rec.Complete && rec.Status == http.StatusOK {
		to.take(c.Register(rec.Body))
	} else {
		to.take(c.Answer(rec.Method, rec.Path, rec.Status, rec.Body))
	}
	to.take(CheckOwn(rec.Method, rec.Path, rec.Status, rec.Body))
	if name != "GET /events" || rec.Status != http.StatusOK {
		return
	}
	var answer struct {
		Events []json.RawMessage `json:"events"`
	}
	if json.Unmarshal(rec.Body, &answer) == nil {
		for _, e := range answer.Events {
			c.Check(Record{Event: e}, to)
		}
	}
}

// notRouted reports whether the endpoint does not exist. A missing draft, reminder or emoji has another message.
func notRouted(status int, body []byte) bool {
	var answer struct {
		Code string `json:"code"`
		Msg  string `json:"msg"`
	}
	json.Unmarshal(body, &answer) // other bodies leave answer empty
	return status == http.StatusMethodNotAllowed ||
		status == http.StatusNotFound && (answer.Code == "" || answer.Msg == "Not found")
}

func eventName(raw []byte) string {
	var e struct {
		Type string `json:"type"`
		Op   string `json:"op"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return "event"
	}
	if e.Op != "" {
		e.Type += "/" + e.Op
	}
	return "event " + e.Type
}

func (r *Report) take(err error) {
	var fs Findings
	if errors.As(err, &fs) {
		r.Findings = append(r.Findings, fs...)
	} else if err != nil {
		r.Findings = append(r.Findings, newFinding("recording", "", "type", err.Error()))
	}
}

// CheckRecording checks every line of a recording.
func (c *Contract) CheckRecording(in io.Reader, to *Report) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRecord)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var rec Record
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return fmt.Errorf("recording line %d: %w", n, err)
		}
		c.Check(rec, to)
	}
	return lines.Err()
}

// Distinct returns the findings as text. Findings that differ only in indices are merged and counted, and the
// missing fields of one endpoint or event are one line.
func (r *Report) Distinct() []string {
	counts := map[string]int{}
	first := map[string]Finding{}
	missing := map[string][]string{}
	for _, f := range r.Findings {
		if f.What == "missing" {
			if path := f.GeneralPath(); !slices.Contains(missing[f.Where], path) {
				missing[f.Where] = append(missing[f.Where], path)
			}
			continue
		}
		key := f.Where + " " + f.GeneralPath() + " " + f.What
		counts[key]++
		if _, ok := first[key]; !ok {
			first[key] = f
		}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(first)) {
		out = append(out, fmt.Sprintf("%s (%d times)", first[key], counts[key]))
	}
	for _, where := range slices.Sorted(maps.Keys(missing)) {
		out = append(out, fmt.Sprintf("%s: %d fields missing: %s", where, len(missing[where]),
			strings.Join(missing[where], " ")))
	}
	return out
}

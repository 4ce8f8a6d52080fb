package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/cmd/internal/backup"
	"parley/cmd/internal/control"
	"parley/cmd/internal/datadir"
	"parley/snapshot/files/sweep"
)

// retentionScene is a demo server whose clock the test moves.
type retentionScene struct {
	*demoServer
	ahead   *atomic.Int64 // the clock's lead, in seconds
	channel string        // id of a channel that keeps messages for a day
}

const hours = 3600

func newRetentionScene(t *testing.T) *retentionScene {
	t.Helper()
	ahead := &atomic.Int64{}
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Second) }
	s := &retentionScene{demoServer: startDemoAt(t, now), ahead: ahead}
	s.call("olive@example.org", "POST", "users/me/subscriptions", url.Values{"subscriptions": {`[{"name":"short"}]`},
		"principals":             {`["olive@example.org","ann@example.org","bo@example.org"]`},
		"message_retention_days": {"1"}})
	a := s.call("olive@example.org", "GET", "get_stream_id", url.Values{"stream": {"short"}})
	s.channel = fmt.Sprint(a["stream_id"])
	return s
}

// send sends a message to the channel and returns its id.
func (s *retentionScene) send(email, text string) float64 {
	s.t.Helper()
	return s.call(email, "POST", "messages", url.Values{"type": {"stream"}, "to": {"short"}, "topic": {"t"},
		"content": {text}, "read_by_sender": {"true"}})["id"].(float64)
}

// found returns the ids of the messages that a user finds in the topic, or with a search term there.
func (s *retentionScene) found(email string, terms ...string) (out []float64) {
	s.t.Helper()
	narrow := []map[string]string{{"operator": "channel", "operand": "short"},
		{"operator": "topic", "operand": "t"}}
	for _, x := range terms {
		narrow = append(narrow, map[string]string{"operator": "search", "operand": x})
	}
	data, _ := json.Marshal(narrow)
	a := s.call(email, "GET", "messages",
		url.Values{"narrow": {string(data)}, "anchor": {"newest"}, "num_before": {"100"}, "num_after": {"0"}})
	for _, m := range a["messages"].([]any) {
		out = append(out, m.(map[string]any)["id"].(float64))
	}
	return out
}

// upload uploads a file and returns its path below the server's address.
func (s *retentionScene) upload(email, content string) string {
	s.t.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, _ := w.CreateFormFile("file", "plan.txt")
	part.Write([]byte(content))
	w.Close()
	r, err := http.NewRequest("POST", s.BaseURL()+"/api/v1/user_uploads", &body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", w.FormDataContentType())
	r.SetBasicAuth(email, s.keys[email])
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var a map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("upload: %s %v %v", resp.Status, a, err)
	}
	return a["url"].(string)
}

// operate runs an operator's command on the running server.
func (s *retentionScene) operate(name string, args map[string]string) (map[string]any, error) {
	a, ran, err := control.Send(s.Data, name, args)
	if !ran {
		s.t.Fatal("no server runs")
	}
	return a, err
}

// backup returns the bytes of a backup.
func (s *retentionScene) backup() []byte {
	s.t.Helper()
	var out bytes.Buffer
	if _, err := backup.Write(s.Data, &out, backup.Options{}); err != nil {
		s.t.Fatal(err)
	}
	return out.Bytes()
}

// TestRetentionOnServer lets messages of a channel become due, restores them, deletes them again, and looks for their
// bytes in a backup when their time in the archive is over.
func TestRetentionOnServer(t *testing.T) {
	const marker, fileMarker = "JFQXZVWKPLMHRTBD", "ZKXJWQVPHTRDLMFB"
	s := newRetentionScene(t)
	ann, bo, olive := "ann@example.org", "bo@example.org", "olive@example.org"
	file := s.upload(ann, fileMarker)
	ids := []float64{s.send(ann, marker+" first"), s.send(ann, marker+" second [plan]("+file+")")}
	registered := s.call(
		bo,
		"POST",
		"register",
		url.Values{"event_types": {`["delete_message","update_message_flags"]`},
			"client_capabilities": {`{"bulk_message_deletion":true,"notification_settings_null":true}`}},
	)
	queue := registered["queue_id"].(string)
	if got := s.found(bo, marker); !slices.Equal(got, ids) {
		t.Fatalf("the search finds %v", got)
	}
	if !bytes.Contains(s.backup(), []byte(marker)) {
		t.Fatal("a backup does not contain the text: this test would prove nothing")
	}

	s.ahead.Store(23 * hours)
	kept := s.send(ann, marker+" third")
	s.ahead.Store(24*hours + 60)
	e, last := map[string]any{}, "-1"
	for e["topic"] != "t" { // another topic has the notice of the new channel
		a := s.call(bo, "GET", "events", url.Values{"queue_id": {queue}, "last_event_id": {last}})
		e = a["events"].([]any)[0].(map[string]any)
		last = fmt.Sprint(e["id"])
	}
	if e["type"] != "delete_message" || fmt.Sprint(e["message_ids"]) != fmt.Sprint(ids) ||
		fmt.Sprint(e["stream_id"]) != s.channel {
		t.Fatalf("the event is %v", e)
	}
	for _, terms := range [][]string{nil, {marker}} {
		if got := s.found(bo, terms...); !slices.Equal(got, []float64{kept}) {
			t.Errorf("search %v finds %v after the deletion", terms, got)
		}
	}

	list, err := s.operate("retention-list", nil)
	if err != nil {
		t.Fatal(err)
	}
	row := list["archives"].([]any)[0].(map[string]any)
	if row["messages"] != 3.0 || row["in"] != "#short" || row["by"] != "the retention policy" {
		t.Errorf("the list of archives is %v", list)
	}
	archive := map[string]string{"archive": row["archive"].(string)}
	if _, err := s.operate("retention-restore", archive); err == nil ||
		!strings.Contains(err.Error(), "set message_retention_days of channel #short to more than 1 days") {
		t.Errorf("a restore against the policy returned %v", err)
	}
	s.call(olive, "PATCH", "streams/"+s.channel, url.Values{"message_retention_days": {`"unlimited"`}})
	if a, err := s.operate("retention-restore", archive); err != nil || a["messages"] != 3.0 {
		t.Fatalf("the restore returned %v, %v", a, err)
	}
	for _, terms := range [][]string{nil, {marker}} {
		if got := s.found(bo, terms...); !slices.Equal(got, append(slices.Clone(ids), kept)) {
			t.Errorf("search %v finds %v after the restore", terms, got)
		}
	}
	s.expectPurged(ids, marker, fileMarker)
}

// expectPurged deletes messages by a user, lets their time in the archive end, and checks that backups do not contain
// their texts and files any more. One more message with the marker stays.
func (s *retentionScene) expectPurged(ids []float64, marker, fileMarker string) {
	s.t.Helper()
	for _, id := range append(s.found("bo@example.org")[len(ids):], ids...) {
		s.call("olive@example.org", "DELETE", fmt.Sprintf("messages/%.0f", id), nil)
	}
	content := filepath.Join(datadir.UploadsDir(s.Data), "content")
	filepath.WalkDir(content, func(path string, d fs.DirEntry, _ error) error {
		old := time.Now().Add(-2 * sweep.MinAge)
		return os.Chtimes(path, old, old)
	})
	data := s.backup()
	if !bytes.Contains(data, []byte(marker)) || !bytes.Contains(data, []byte(fileMarker)) {
		s.t.Fatal("the archive does not have the messages and the file")
	}
	s.ahead.Store((24 + 31*24) * hours)
	eventually(s.t, "the removal of the bytes", func() bool {
		s.eraser.EraseAll()
		s.sweeper.SweepSoon() // a sweep removes nothing while a backup is being written
		time.Sleep(100 * time.Millisecond)
		data := s.backup()
		return !bytes.Contains(data, []byte(marker)) && !bytes.Contains(data, []byte(fileMarker))
	})
}

// TestDroppedVersionsLeaveTheDisk edits one message more often than its history keeps texts. A backup from the next day
// does not contain the bytes of the texts that the history lost. It contains the first text and the newest ones.
func TestDroppedVersionsLeaveTheDisk(t *testing.T) {
	s := newRetentionScene(t)
	marker := func(n int) string {
		hash := sha256.Sum256([]byte{byte(n)})
		return base32.StdEncoding.EncodeToString(hash[:])
	}
	sent := s.call("ann@example.org", "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"},
		"topic": {"t"}, "content": {marker(0)}})
	path := fmt.Sprintf("messages/%.0f", sent["id"])
	const edits = realm.MaxTextEditsInHistory + 20
	contains := func(data []byte, n int) bool { return bytes.Contains(data, []byte(marker(n))) }
	for n := range edits {
		s.call("ann@example.org", "PATCH", path, url.Values{"content": {marker(n + 1)}})
	}
	if data := s.backup(); !contains(data, 2) || !contains(data, edits) {
		t.Fatal("a backup does not contain the texts: this test would prove nothing")
	}
	s.eraser.EraseAll()
	if !contains(s.backup(), 2) {
		t.Error("the texts are removed before a day has passed: each edit could make the disk busy")
	}
	s.ahead.Store(24*hours + 60)
	s.eraser.EraseAll()
	data := s.backup()
	history, _ := json.Marshal(s.call("ann@example.org", "GET", path+"/history", nil)["message_history"])
	for n := range edits + 1 {
		// The history shows the first text and the newest ones, beside the text that the message has now.
		kept := n == 0 || n > edits-realm.MaxTextEditsInHistory
		if !kept && contains(data, n) {
			t.Errorf("text %d is in the backup", n)
		}
		if contains(history, n) != kept {
			t.Errorf("text %d is in the history: %v, want %v", n, !kept, kept)
		}
	}
}

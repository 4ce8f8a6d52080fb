package control

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
)

// A server that ends a command without an answer runs, so the caller must not open its data directory. Without a
// socket, no server runs.
func TestServerWithoutAnswer(t *testing.T) {
	dir := t.TempDir()
	if _, ran, err := Send(dir, "realm-list", nil); ran || err != nil {
		t.Errorf("without a server: ran %v, %v", ran, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/realm-list", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"version":"1"}`)) })
	stop, err := Serve(dir, mux, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, ran, err := Send(dir, "realm-list", nil); !ran || err == nil || !strings.Contains(err.Error(),
		"did not answer") {
		t.Errorf("a command without an answer: ran %v, %v", ran, err)
	}
	if a, ran, err := Send(dir, "version", nil); !ran || err != nil || a["version"] != "1" {
		t.Errorf("a command with an answer: %v, ran %v, %v", a, ran, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if _, ran, err := Send(dir, "realm-list", nil); ran || err != nil {
		t.Errorf("after the server: ran %v, %v", ran, err)
	}
}

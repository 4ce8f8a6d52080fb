package handover

import (
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"parley/cmd/internal/control"
	"parley/snapshot"
)

// A successor that cannot read a copy of its predecessor's store continues without it, whatever the reason, and leaves
// no files behind.
func TestFailedPreload(t *testing.T) {
	for name, lend := range map[string]http.HandlerFunc{
		"an older program": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `no command "lend"`, http.StatusBadRequest)
		},
		"no space": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no space left", http.StatusInternalServerError)
		},
		"no copy":              func(http.ResponseWriter, *http.Request) {},
		"the predecessor ends": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := net.Listen("unix", filepath.Join(dir, control.SocketName))
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.HandleFunc("POST /lend", lend)
			s := &http.Server{Handler: mux}
			go s.Serve(l)
			defer s.Close()
			if p := Preload(dir, slog.New(slog.DiscardHandler)); p != nil {
				t.Error("preload returned organizations without a copy")
			}
			store, err := snapshot.Open(dir, snapshot.Options{})
			if err != nil {
				t.Fatalf("open the store afterwards: %v", err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); left != nil {
				t.Errorf("files left behind: %v", left)
			}
		})
	}
}

package calls

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

// emptyOrganizations are two organizations without calls.
type emptyOrganizations struct {
	realm.Turns
	realm.Views
}

func (emptyOrganizations) Owns(realm.ID) bool     { return true }
func (emptyOrganizations) HasSeveralRealms() bool { return true }

// Of the requests for tokens that wait for a LiveKit server, each of several organizations has half; others are refused
// at once. When LiveKit answers they are answered, and further users can join.
func TestJoinsAreShared(t *testing.T) {
	goOn, entered := make(chan struct{}), make(chan string, 2*maxJoins)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Name string `json:"name"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || !strings.HasSuffix(r.URL.Path, "/CreateRoom") {
			t.Errorf("%s: %v", r.URL, err)
		}
		entered <- body.Name
		<-goOn
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"sid":"RM_x","name":"x"}`)
	}))
	defer server.Close()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("parley: "+strings.Repeat("s", minSecret)), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := Start(Settings{LiveKitURL: "ws" + strings.TrimPrefix(server.URL, "http"), LiveKitKeyFile: key},
		emptyOrganizations{}, func(realm.ID, realm.Place) error { return nil },
		func(n int) string { return strings.Repeat("t", n) }, slog.New(slog.DiscardHandler),
		time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	join := func(id realm.ID) error {
		_, _, err := x.Join(id, realm.Call{Key: "k"}, 7, "Bo")
		return err
	}
	answers := make(chan error, maxJoins)
	for _, id := range []realm.ID{1, 2} {
		for range maxJoins / 2 {
			go func() { answers <- join(id) }()
			<-entered
		}
		if err := join(id); err != errTooManyJoins {
			t.Errorf("one more user of organization %d joins: %v", id, err)
		}
	}
	if n := x.joins; n.Used() != maxJoins || n.Refused() != 2 {
		t.Errorf("%d wait, %d were refused", n.Used(), n.Refused())
	}
	close(goOn)
	for range maxJoins {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := join(1); err != nil || x.joins.Used() != 0 || x.answered.Load() != maxJoins+1 || x.failed.Load() != 0 {
		t.Errorf("joining later: %v; %d wait, %d answered, %d failed", err, x.joins.Used(), x.answered.Load(),
			x.failed.Load())
	}
}

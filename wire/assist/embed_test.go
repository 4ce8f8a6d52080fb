package assist

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// withVectors lets the server of assist-url make vectors.
func withVectors(o *Options) {
	o.EmbedURL, o.EmbedModel, o.EmbedKeyFile, o.EmbedMessages = o.AssistURL, "small", o.AssistKeyFile, 100
}

// The request and the answer are those of OpenAI's documentation. The service may answer in any order.
func TestEmbed(t *testing.T) {
	a := newTestAssistant(t, func(w http.ResponseWriter, r *http.Request) {
		var got map[string]any
		json.NewDecoder(r.Body).Decode(&got)
		want := map[string]any{"model": "small", "input": []any{"soup", "crash"}, "encoding_format": "float",
			"dimensions": 2.0}
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer secret" ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("the service got %s %v", r.URL, got)
		}
		io.WriteString(w, `{"object":"list","data":[
			{"object":"embedding","index":1,"embedding":[0.25,-1e-3]},
			{"object":"embedding","index":0,"embedding":[0,1]}],
			"model":"small","usage":{"prompt_tokens":8,"total_tokens":8}}`)
	}, func(o *Options) { withVectors(o); o.EmbedDimensions = 2 })
	vectors, tokens, err := a.Embedder().Embed(context.Background(), 1, []string{"soup", "crash"}, 0)
	if want := [][]float32{{0, 1}, {0.25, -1e-3}}; err != nil || tokens != 8 || !reflect.DeepEqual(vectors, want) {
		t.Errorf("the vectors are %v, %d tokens, %v", vectors, tokens, err)
	}
	if newTestAssistant(t, nil, nil).Embedder() != nil {
		t.Error("without embed-url there is an embedder")
	}
}

// Each bad answer ends the request with an error that names the fault; the user who searches gets a refusal that does
// not quote the service.
func TestBadVectors(t *testing.T) {
	vectors := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"data":[`+text+`]}`) }
	}
	for name, x := range map[string]struct {
		serve          http.HandlerFunc
		fault, refusal string
	}{
		"HTML": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
			"not the expected JSON", ""},
		"NaN":    {vectors(`{"index":0,"embedding":[NaN,1]}`), "not the expected JSON", ""},
		"huge":   {vectors(`{"index":0,"embedding":[1e39,1]}`), "not the expected JSON", ""},
		"text":   {vectors(`{"index":0,"embedding":"AAAA"}`), "not the expected JSON", ""},
		"none":   {vectors(``), "0 vectors for 1 texts", ""},
		"more":   {vectors(`{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2]}`), "2 vectors for 1", ""},
		"index":  {vectors(`{"index":7,"embedding":[1,2]}`), "the number 7", ""},
		"shorts": {vectors(`{"index":0,"embedding":[1]}`), "1 numbers, want 2", ""},
		"longs":  {vectors(`{"index":0,"embedding":[1,2,3]}`), "3 numbers, want 2", ""},
		"zeros":  {vectors(`{"index":0,"embedding":[0,0]}`), "", ""},
		"10 MB": {func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"data":[`))
			for range 10 {
				w.Write([]byte(strings.Repeat(" ", 1<<20)))
			}
		}, "more than 4194304 bytes", ""},
		"hangs": {func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // else its end is not noticed
			<-r.Context().Done()
		}, "deadline exceeded", ""},
		"busy": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, "status 429",
			errMeaningBusy.Error()},
		"key": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "status 401", ""},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute
			if name == "hangs" {
				timeout = 50 * time.Millisecond
			}
			a := newTestAssistant(t, x.serve, func(o *Options) { withVectors(o); o.Timeout = timeout })
			_, _, err := a.Embedder().Embed(context.Background(), 1, []string{"soup"}, 2)
			if x.fault == "" && err != nil || x.fault != "" && (err == nil || !strings.Contains(err.Error(), x.fault)) {
				t.Errorf("the error is %v, want %q", err, x.fault)
			}
			if x.refusal == "" {
				x.refusal = errMeaningFailed.Error()
			}
			if _, err := a.Embedder().Query(ann, "soup", 2); err == nil || err.Error() != x.refusal {
				t.Errorf("the user gets %v, want %s", err, x.refusal)
			}
		})
	}
}

// A text that the service refuses is told apart from a service that has a fault.
func TestRefusedTexts(t *testing.T) {
	for status, want := range map[int]bool{400: true, 413: true, 422: true, 401: false, 404: false, 429: false,
		500: false} {
		a := newTestAssistant(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }, withVectors)
		_, _, err := a.Embedder().Embed(context.Background(), 1, []string{"soup"}, 0)
		if a.Embedder().IsRefusal(err) != want {
			t.Errorf("status %d: refusal is %t", status, !want)
		}
	}
}

// Searches cost tokens of the same count as summaries, and are refused when those are used up.
func TestSearchesCost(t *testing.T) {
	a := newTestAssistant(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"index":0,"embedding":[1,2]}],"usage":{"total_tokens":900}}`)
	}, func(o *Options) { withVectors(o); o.AssistUserTokens, o.AssistOrganizationTokens = 2000, 3000 })
	ask := func(by wire.Asker) error {
		_, err := a.Embedder().Query(by, "soup", 0)
		return err
	}
	for range 2 {
		if err := ask(ann); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.tokens.read(); n.user != 1800 {
		t.Errorf("two searches cost %d tokens", n.user)
	}
	if err := ask(ann); err != errMeaningTokens {
		t.Errorf("the third search: %v", err)
	}
	bo := wire.Asker{Realm: ann.Realm, User: 11}
	if err := ask(bo); err != nil {
		t.Error(err)
	}
	if err := ask(bo); err != errMeaningAll {
		t.Errorf("beyond the tokens of the organization: %v", err)
	}
	for range maxInProgress {
		a.places.Enter("9")
	}
	if err := ask(wire.Asker{Realm: 3, User: 10}); !realm.IsBusy(err) {
		t.Errorf("without a place: %v", err)
	}
}

// Settings that cannot work are named at the start.
func TestEmbedSettings(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"embed-dimensions must be between 0 and 4096, not 5000": func(s *Settings) { s.EmbedDimensions = 5000 },
		"embed-messages must be between 1 and 200000, not 0":    func(s *Settings) { s.EmbedMessages = 0 },
		"embed-organization-tokens must not be negative":        func(s *Settings) { s.EmbedOrganizationTokens = -1 },
		"embed-key-file: ":                  func(s *Settings) { s.EmbedKeyFile = "/nowhere" },
		"embed-url must be an address":      func(s *Settings) { s.EmbedURL = "models" },
		"embed-url is in a private network": func(s *Settings) { s.EmbedURL = "http://10.0.0.1" },
	} {
		o := Options{Settings: Settings{EmbedURL: "http://203.0.113.1", EmbedMessages: 10}, Client: http.DefaultClient,
			Allowed: func(ip netip.Addr) bool { return !ip.IsPrivate() }}
		change(&o.Settings)
		if _, err := New(o); err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

package assist

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// sendPiece sends an event of a model, as the description of OpenAI's chat completions has them.
func sendPiece(w http.ResponseWriter, data string) {
	fmt.Fprintf(w, "data: %s\n\n", data)
	w.(http.Flusher).Flush()
}

// sendText sends a piece of text.
func sendText(w http.ResponseWriter, text string) {
	content, _ := json.Marshal(text)
	sendPiece(w, fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"usage":null}`,
		content))
}

// sendEnd sends the pieces after the text.
func sendEnd(w http.ResponseWriter, tokens int) {
	sendPiece(w, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	sendPiece(w, fmt.Sprintf(`{"choices":[],"usage":{"total_tokens":%d}}`, tokens))
	sendPiece(w, "[DONE]")
}

func asStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
}

// newTestStreams returns an assistant whose readers do not wait between two answers.
func newTestStreams(t *testing.T, h http.HandlerFunc, change func(*Options)) *Assistant {
	a := newTestAssistant(t, h, change)
	a.parts.interval, a.parts.wait = 0, time.Minute
	return a
}

// readAll reads a text to its end and returns each state of it.
func readAll(a *Assistant, by wire.Asker, p wire.AssistedPart) (seen []string, err error) {
	for !p.Complete {
		if p, err = a.ReadPart(by, p.ID, len([]rune(p.Text))); err != nil || p.Error != "" {
			return seen, cmp.Or(err, errors.New(p.Error))
		}
		seen = append(seen, p.Text)
	}
	return seen, nil
}

// A reader sees the text grow. Its tokens are those of the service, and the whole is in the cache.
func TestStream(t *testing.T) {
	step := make(chan bool)
	defer func() { close(step) }()
	a := newTestStreams(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"stream":true,"stream_options":{"include_usage":true}`) {
			t.Errorf("the service got %s", body)
		}
		asStream(w)
		io.WriteString(w, ": wait\n\nevent: x\n")
		sendPiece(w, `{"choices":[{"delta":{"role":"assistant","content":null}}]}`)
		for _, text := range []string{"- Ann", " \u202easked.\u0000", "\n- <b>Bo</b>"} {
			sendText(w, text)
			<-step
		}
		sendEnd(w, 321)
	}, nil)
	p, err := a.BeginSummary(ann, talked)
	if err != nil || p.ID == "" || p.Complete {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, want := range []string{"- Ann", "- Ann asked.", "- Ann asked.\n- <b>Bo</b>"} {
		if p, err = a.ReadPart(ann, p.ID, len(p.Text)); err != nil || p.Text != want || p.Complete {
			t.Fatalf("the reader sees %+v, %v, want %q", p, err, want)
		}
		if a.cache.len() != 0 {
			t.Error("a part is in the cache")
		}
		step <- true
	}
	if p, err = a.ReadPart(ann, p.ID, len(p.Text)); err != nil || !p.Complete || p.Text != "- Ann asked.\n- <b>Bo</b>" {
		t.Errorf("the end is %+v, %v", p, err)
	}
	if n := a.tokens.read(); n.user != 321 {
		t.Errorf("tokens: %+v", n)
	}
	if p, err = a.BeginSummary(ann, talked); err != nil || !p.Complete || p.ID != "" || a.cache.len() != 1 {
		t.Errorf("the second time: %+v, %v", p, err)
	}
}

// Services that do not send pieces are asked for the whole, and may answer with it at once.
func TestServicesWithoutStreams(t *testing.T) {
	for _, status := range append(noStreamStatus, 200) {
		calls := 0
		a := newTestStreams(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if calls++; status != 200 && strings.Contains(string(body), `"stream":true`) {
				w.WriteHeader(status)
				return
			}
			answer(w, "whole", 10)
		}, nil)
		p, err := a.BeginSummary(ann, talked)
		if err != nil {
			t.Fatal(err)
		}
		if seen, err := readAll(a, ann, p); err != nil || seen[len(seen)-1] != "whole" || calls > 2 {
			t.Errorf("status %d: %v, %v, %d calls", status, seen, err, calls)
		}
	}
	a := newTestStreams(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"translatedText":"Hallo"}`)
	}, withTranslator)
	p, err := a.BeginTranslation(ann, "Hello", "de")
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := readAll(a, ann, p); err != nil || seen[0] != "Hallo" {
		t.Errorf("the translator: %v, %v", seen, err)
	}
}

// A stream that breaks, or has something else than pieces, is refused. Its text is not kept, and it costs something.
func TestBadStreams(t *testing.T) {
	for name, send := range map[string]func(w http.ResponseWriter){
		"nothing":   func(http.ResponseWriter) {},
		"cut":       func(w http.ResponseWriter) { sendText(w, "secret") },
		"HTML":      func(w http.ResponseWriter) { sendPiece(w, "<html>secret</html>") },
		"no object": func(w http.ResponseWriter) { sendPiece(w, `"secret"`) },
		"an error": func(w http.ResponseWriter) {
			sendText(w, "x")
			sendPiece(w, `{"error":{"message":"secret"}}`)
			sendEnd(w, 1)
		},
		"ended by an error": func(w http.ResponseWriter) {
			sendPiece(w, `{"choices":[{"delta":{"content":"secret"},"finish_reason":"error"}]}`)
		},
		"no text":         func(w http.ResponseWriter) { sendEnd(w, 1) },
		"control text":    func(w http.ResponseWriter) { sendText(w, "\u0007 "); sendEnd(w, 1) },
		"wrong types":     func(w http.ResponseWriter) { sendPiece(w, `{"choices":[{"delta":{"content":7}}]}`) },
		"null":            func(w http.ResponseWriter) { sendPiece(w, "null") },
		"null fields":     func(w http.ResponseWriter) { sendPiece(w, `{"choices":null,"usage":null,"error":null}`) },
		"null choice":     func(w http.ResponseWriter) { sendPiece(w, `{"choices":[null]}`) },
		"null delta":      func(w http.ResponseWriter) { sendPiece(w, `{"choices":[{"delta":null}]}`) },
		"10 MB, one line": func(w http.ResponseWriter) { io.WriteString(w, "data: "+strings.Repeat("x", 10<<20)) },
		"endless comments": func(w http.ResponseWriter) {
			for range 10 << 10 {
				io.WriteString(w, ": "+strings.Repeat("x", 1<<10)+"\n")
			}
		},
		"endless pieces without text": func(w http.ResponseWriter) {
			for range 100_000 {
				io.WriteString(w, `data: {"choices":[{"delta":{"content":"","reasoning_content":"secret"}}]}`+"\n\n")
			}
		},
	} {
		a := newTestStreams(t, func(w http.ResponseWriter, _ *http.Request) { asStream(w); send(w) }, nil)
		p, err := a.BeginSummary(ann, talked)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readAll(a, ann, p)
		if err == nil || !strings.Contains(err.Error(), "The service for summaries and translations failed.") {
			t.Errorf("%s: %v", name, err)
		}
		if a.tokens.read().user == 0 || a.cache.len() != 0 {
			t.Errorf("%s: a failed call costs nothing, or its text is kept", name)
		}
	}
}

// A text that has no end is cut, and the model is not read further. Its cost is estimated.
func TestEndlessStream(t *testing.T) {
	ended := make(chan bool)
	a := newTestStreams(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		asStream(w)
		for r.Context().Err() == nil {
			sendText(w, strings.Repeat("é", 1000))
		}
	}, nil)
	p, err := a.BeginSummary(ann, talked)
	if err != nil {
		t.Fatal(err)
	}
	seen, err := readAll(a, ann, p)
	if err != nil || len([]rune(seen[len(seen)-1])) != maxText {
		t.Errorf("%d answers, %v", len(seen), err)
	}
	<-ended
	if n := a.tokens.read().user; n <= minTokens || n > testUserTokens {
		t.Errorf("the call has cost %d tokens", n)
	}
}

// A model that hangs after one byte, or after one piece, is given up.
func TestPause(t *testing.T) {
	for name, send := range map[string]func(w http.ResponseWriter){
		"byte":  func(w http.ResponseWriter) { io.WriteString(w, "d"); w.(http.Flusher).Flush() },
		"piece": func(w http.ResponseWriter) { sendText(w, "x") },
		"comments": func(w http.ResponseWriter) {
			sendText(w, "x")
			for range 100 {
				io.WriteString(w, ": x\n")
			}
			w.(http.Flusher).Flush()
		},
	} {
		a := newTestStreams(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
			asStream(w)
			send(w)
			<-r.Context().Done()
		}, func(o *Options) {
			if name == "byte" {
				o.Timeout = 20 * time.Millisecond
			}
		})
		a.pause = 20 * time.Millisecond
		p, err := a.BeginSummary(ann, talked)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(a, ann, p); err == nil {
			t.Errorf("%s: a model that hangs has answered", name)
		}
	}
}

// The request to the model ends when the reader stops it, or asks no more. Only the user who has started a text reads
// and stops it. Tokens remain counted.
func TestReaders(t *testing.T) {
	began, ended := make(chan bool, 9), make(chan bool, 9)
	hang := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		asStream(w)
		sendText(w, "x")
		began <- true
		<-r.Context().Done()
		ended <- true
	}
	a := newTestStreams(t, hang, nil)
	p, err := a.BeginSummary(ann, talked)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	for _, other := range []wire.Asker{{Realm: 1, User: 11}, {Realm: 2, User: 10}} {
		if _, err := a.ReadPart(other, p.ID, 0); !errors.Is(err, errUnknownText) {
			t.Errorf("another user reads: %v", err)
		}
		if err := a.StopPart(other, p.ID); !errors.Is(err, errUnknownText) {
			t.Errorf("another user stops: %v", err)
		}
	}
	waiting := make(chan error, maxReaders)
	for range maxReaders {
		go func() {
			_, err := a.ReadPart(ann, p.ID, 9)
			waiting <- err
		}()
	}
	a.waitForReaders(p.ID, maxReaders)
	if _, err := a.ReadPart(ann, p.ID, 9); !realm.IsBusy(err) {
		t.Errorf("one reader too many: %v", err)
	}
	if err := a.StopPart(ann, p.ID); err != nil {
		t.Errorf("the user stops: %v", err)
	}
	for range maxReaders {
		if err := <-waiting; !errors.Is(err, errUnknownText) {
			t.Errorf("a reader of a stopped text: %v", err)
		}
	}
	<-ended
	if a.tokens.read().user == 0 || a.cache.len() != 0 || a.Parts() != 0 {
		t.Error("a stopped text costs nothing, or is kept")
	}
	a.parts.unread = time.Millisecond
	if p, err = a.BeginSummary(ann, talked); err != nil {
		t.Fatal(err)
	}
	for a.places.Used() != 0 { // the request may end before the service has read it
		runtime.Gosched()
	}
	if _, err := a.ReadPart(ann, p.ID, 0); !errors.Is(err, errUnknownText) {
		t.Errorf("a reader after the text was given up: %v", err)
	}
}

// waitForReaders returns when a text has a number of readers.
func (a *Assistant) waitForReaders(id string, n int) {
	for {
		a.parts.mu.Lock()
		p := a.parts.byID[id]
		enough := p != nil && p.readers >= n
		a.parts.mu.Unlock()
		if enough {
			return
		}
		runtime.Gosched()
	}
}

// Texts that nobody reads are bounded: the one that is complete for the longest time is forgotten.
func TestPartsAreBounded(t *testing.T) {
	a := newTestStreams(t, nil, nil)
	ids := []string{}
	for i := range maxParts + 1 {
		p := &part{by: ann, stop: func(error) {}, changed: make(chan struct{}), complete: true,
			answered: time.Unix(int64(i), 0)}
		ids = append(ids, a.parts.add(p))
	}
	if _, err := a.ReadPart(ann, ids[0], 0); a.Parts() != maxParts || !errors.Is(err, errUnknownText) {
		t.Errorf("%d texts, the oldest: %v", a.Parts(), err)
	}
	if p, err := a.ReadPart(ann, ids[1], 0); err != nil || !p.Complete {
		t.Errorf("the second: %+v, %v", p, err)
	}
}

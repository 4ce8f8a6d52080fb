package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// vectorService imitates a service with the interface of OpenAI's embeddings. Its vectors say how much a text is about
// food, and how much about computers.
type vectorService struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string
}

func newVectorService(t *testing.T) *vectorService {
	s := &vectorService{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		json.NewDecoder(r.Body).Decode(&asked)
		s.mu.Lock()
		defer s.mu.Unlock()
		data := []any{}
		for i, text := range asked.Input {
			s.sent = append(s.sent, text)
			count := func(words ...string) (n float32) {
				for _, word := range words {
					n += float32(strings.Count(text, word))
				}
				return n
			}
			data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": []float32{
				count("soup", "lunch", "hungry"), count("crash", "server", "disk"), 0.1}})
		}
		json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data, "model": "tiny",
			"usage": map[string]any{"prompt_tokens": 9, "total_tokens": 9}})
	}))
	t.Cleanup(s.Close)
	return s
}

// got returns how many texts with a word the service got.
func (s *vectorService) got(word string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.sent {
		n += strings.Count(text, word)
	}
	return n
}

// meaning returns the texts that a user finds, nearest first.
func (a *account) meaning(t *testing.T, words string, more ...string) (texts []string, complete bool) {
	t.Helper()
	form := url.Values{"query": {words}, "limit": {"100"}, "apply_markdown": {"false"}}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	answer := a.must(t, "GET", "messages/meaning", form)
	scores := answer["scores"].([]any)
	for i, m := range answer["messages"].([]any) {
		texts = append(texts, m.(map[string]any)["content"].(string))
		if i > 0 && scores[i].(float64) > scores[i-1].(float64) {
			t.Errorf("the scores rise: %v", scores)
		}
	}
	return texts, answer["complete"].(bool)
}

// awaitMeaning waits until a user finds a text.
func (a *account) awaitMeaning(t *testing.T, words, text string) {
	t.Helper()
	waitFor(t, func() error {
		if found, complete := a.meaning(t, words); !complete || !slices.Contains(found, text) {
			return fmt.Errorf("%s finds %q, complete %t, not %q", a.email, found, complete, text)
		}
		return nil
	})
}

// After owners have agreed, users find messages by their meaning: those that they can read at that moment, with the
// texts of that moment. The vectors last over a crash, and end with the agreement.
func TestSearchByMeaning(t *testing.T) {
	service, dir := newVectorService(t), t.TempDir()
	flags := []string{"--embed-url", service.URL, "--embed-model", "tiny", "--assist-allow", "127.0.0.0/8"}
	p := demo(t, dir, flags...)
	at := p.serving()
	olive, ann, bo := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org"),
		demoAccount(t, at, "bo@example.org")
	ann.say(t, "noon", "general", "we are hungry")
	ann.say(t, "night", "general", "the crash of the server")
	for i := range 20 {
		ann.say(t, "", `["olive@example.org"]`, fmt.Sprint("soup soup for us ", i))
	}
	query := url.Values{"query": {"lunch"}}
	bo.expectRefusal(t, "messages/meaning", query, "does not allow search by meaning")
	if service.got("") != 0 {
		t.Error("texts are sent before owners agree")
	}
	if _, err := ann.call("PATCH", "realm", url.Values{"meaning_search_enabled": {"true"}}); err == nil {
		t.Error("a member agrees")
	}
	olive.must(t, "PATCH", "realm", url.Values{"meaning_search_enabled": {"true"}})
	if state := bo.must(t, "POST", "register", nil); state["realm_meaning_search_enabled"] != true ||
		state["server_assistant"].(map[string]any)["search_by_meaning"] != true {
		t.Errorf("the registration offers %v", state["server_assistant"])
	}
	olive.awaitMeaning(t, "lunch", "soup soup for us 7")
	if found, _ := bo.meaning(t, "lunch", "limit", "1"); !slices.Equal(found, []string{"we are hungry"}) {
		t.Errorf("a user that cannot read the nearest messages finds %q", found)
	}
	if found, _ := bo.meaning(t, "disk", "limit", "1"); !slices.Equal(found, []string{"the crash of the server"}) {
		t.Errorf("of the computer, the user finds %q", found)
	}
	night := `[{"operator":"channel","operand":"general"},{"operator":"topic","operand":"night"}]`
	if found, _ := bo.meaning(t, "lunch", "narrow", night); !slices.Equal(found, []string{"the crash of the server"}) {
		t.Errorf("in a topic, the user finds %q", found)
	}
	bo.expectRefusal(t, "messages/meaning", nil, "Missing 'query' argument")
	bo.expectRefusal(t, "messages/meaning", url.Values{"query": {strings.Repeat("x", 501)}}, "query is too long")
	testMeaningAccess(t, service, olive, bo)
	p.kill()
	sent := service.got("hungry")
	p = demo(t, dir, flags...)
	at = p.serving()
	olive, bo = demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "bo@example.org")
	bo.awaitMeaning(t, "lunch", "we are hungry")
	if n := service.got("hungry"); n != sent {
		t.Errorf("after a crash the service got the texts again")
	}
	olive.must(t, "PATCH", "realm", url.Values{"meaning_search_enabled": {"false"}})
	bo.expectRefusal(t, "messages/meaning", query, "does not allow search by meaning")
	waitFor(t, func() error {
		if list, err := filepath.Glob(filepath.Join(dir, "meaning", "*")); err != nil || len(list) > 0 {
			return fmt.Errorf("there are files %q, %v", list, err)
		}
		return nil
	})
	p.stop()
	p = demo(t, dir)
	bo = demoAccount(t, p.serving(), "bo@example.org")
	bo.expectRefusal(t, "messages/meaning", query, "not enabled on this server")
	if _, err := os.Stat(filepath.Join(dir, "meaning")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a service there is a folder of vectors: %v", err)
	}
}

// testMeaningAccess changes what a user can read: the next search knows it, before the vectors do.
func testMeaningAccess(t *testing.T, service *vectorService, olive, bo *account) {
	boID := jsonID(bo.must(t, "GET", "users/me", nil)["user_id"])
	oliveID := jsonID(olive.must(t, "GET", "users/me", nil)["user_id"])
	channel := func(name, subscribers string) string {
		made := olive.must(t, "POST", "channels/create", url.Values{"name": {name}, "invite_only": {"true"},
			"subscribers": {subscribers}, "history_public_to_subscribers": {"false"}})
		return jsonID(made["id"])
	}
	both := "[" + oliveID + "," + boID + "]"
	elsewhere := channel("elsewhere", "["+oliveID+"]")
	changes := map[string]func(id string){
		"deleted": func(id string) { olive.must(t, "DELETE", "messages/"+id, nil) },
		"edited": func(id string) {
			olive.must(t, "PATCH", "messages/"+id, url.Values{"content": {"a crash instead"}})
		},
		"moved": func(id string) {
			olive.must(t, "PATCH", "messages/"+id, url.Values{"stream_id": {elsewhere}})
		},
		"unsubscribed": func(string) {
			olive.must(t, "DELETE", "users/me/subscriptions", url.Values{"subscriptions": {`["unsubscribed"]`},
				"principals": {"[" + boID + "]"}})
		},
	}
	said := map[string]string{}
	for name := range changes {
		channel(name, both)
		said[name] = olive.say(t, "access", name, "lunch soup "+name)
	}
	never := "lunch soup never"
	olive.say(t, "access", "elsewhere", never)
	for name := range changes {
		bo.awaitMeaning(t, "lunch", "lunch soup "+name)
	}
	olive.awaitMeaning(t, "lunch", never)
	for name, change := range changes {
		change(said[name])
		if found, _ := bo.meaning(t, "lunch"); slices.Contains(found, "lunch soup "+name) ||
			slices.Contains(found, "a crash instead") {
			t.Errorf("%s: the user finds %q", name, found)
		}
	}
	if found, _ := bo.meaning(t, "lunch"); slices.Contains(found, never) {
		t.Error("the user finds a message of a channel that it was never in")
	}
	bo.awaitMeaning(t, "disk", "a crash instead")
	if n := service.got("a crash instead"); n != 1 {
		t.Errorf("the service got an edited text %d times", n)
	}
	olive.must(t, "DELETE", "users/"+boID, nil)
	if _, err := bo.call("GET", "messages/meaning", url.Values{"query": {"lunch"}}); err == nil {
		t.Error("a deactivated user finds messages")
	}
	olive.must(t, "POST", "users/"+boID+"/reactivate", nil)
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, holds func() error) {
	t.Helper()
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	deadline := time.After(binaryTimeout)
	for err := holds(); err != nil; err = holds() {
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}

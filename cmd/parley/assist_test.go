package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// assistService imitates a model and a LibreTranslate server.
type assistService struct {
	*httptest.Server
	mu    sync.Mutex
	sent  string // body of the last request
	calls int
}

func newAssistService(t *testing.T) *assistService {
	s := &assistService{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sent, s.calls = string(text), s.calls+1; r.URL.Path == "/translate" {
			io.WriteString(w, `{"translatedText":"Hallo <b>alle</b>"}`)
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{
			"content": "Talk:\n- @**all** <img src=x>\n- [x](http://evil.example)"}}}})
	}))
	t.Cleanup(s.Close)
	return s
}

// last returns the body of the last request and the number of requests.
func (s *assistService) last() (string, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.calls
}

// say sends a message and returns its id.
func (a *account) say(t *testing.T, topic, to, text string) string {
	t.Helper()
	kind := "stream"
	if topic == "" {
		kind = "direct"
	}
	sent := a.must(t, "POST", "messages", url.Values{"type": {kind}, "to": {to}, "topic": {topic}, "content": {text}})
	return jsonID(sent["id"])
}

// expectRefusal sends a request and expects a refusal with a text.
func (a *account) expectRefusal(t *testing.T, path string, form url.Values, want string) {
	t.Helper()
	if _, err := a.call("GET", path, form); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("GET %s %v: %v, want %q", path, form, err, want)
	}
}

// After owners have agreed, a model summarizes messages that the caller can read at that moment, and a service
// translates a message. All answers of the services are plain text.
func TestAssistant(t *testing.T) {
	service := newAssistService(t)
	p := demo(t, t.TempDir(), "--assist-url", service.URL, "--assist-model", "tiny", "--translate-url", service.URL,
		"--assist-allow", "127.0.0.0/8")
	at := p.serving()
	olive, ann, bo := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org"),
		demoAccount(t, at, "bo@example.org")
	plan := ann.say(t, "plans", "general", "zebra plan for @**Bo Chen**, [secret link](https://hidden.example)")
	direct := ann.say(t, "", `["olive@example.org"]`, "zebra direct")
	narrow := url.Values{"narrow": {`[{"operator":"search","operand":"zebra"}]`}}
	german := url.Values{"language": {"de"}}
	const notAgreed = "does not allow summaries"
	bo.expectRefusal(t, "messages/summary", narrow, notAgreed)
	bo.expectRefusal(t, "messages/"+plan+"/translation", german, notAgreed)
	if _, calls := service.last(); calls != 0 {
		t.Error("texts are sent before owners agree")
	}
	olive.must(t, "PATCH", "realm", url.Values{"assistant_enabled": {"true"}})
	if state := bo.must(t, "POST", "register", nil); state["server_can_summarize_topics"] != true ||
		fmt.Sprint(state["server_assistant"]) != "map[summaries:true translations:true]" {
		t.Errorf("the registration offers %v, %v", state["server_can_summarize_topics"], state["server_assistant"])
	}
	a := bo.must(t, "GET", "messages/summary", narrow)
	want := "<p>Talk:</p>\n<ul>\n<li>@**all** &lt;img src=x&gt;</li>\n<li>[x](http://evil.example)</li>\n</ul>"
	if a["summary"] != want {
		t.Errorf("the summary is %q", a["summary"])
	}
	sent, _ := service.last()
	if !strings.Contains(sent, "zebra plan for @Bo Chen") || strings.Contains(sent, "hidden.example") ||
		strings.Contains(sent, "direct") {
		t.Errorf("the model got %s", sent)
	}
	bo.must(t, "GET", "messages/summary", narrow)
	if _, calls := service.last(); calls != 1 {
		t.Errorf("%d calls for the same topic", calls)
	}
	olive.must(t, "GET", "messages/summary", narrow)
	if sent, calls := service.last(); calls != 2 || !strings.Contains(sent, "zebra direct") {
		t.Errorf("the owner, who can read more, gets the summary of another user: %d calls, %s", calls, sent)
	}
	testTranslations(t, service, ann, bo, plan, direct)
	testAssistantAccess(t, service, olive, bo, narrow)
}

func testTranslations(t *testing.T, service *assistService, ann, bo *account, plan, direct string) {
	a := ann.must(t, "GET", "messages/"+direct+"/translation", url.Values{"language": {"de"}})
	if a["translation"] != "<p>Hallo &lt;b&gt;alle&lt;/b&gt;</p>" {
		t.Errorf("the translation is %q", a["translation"])
	}
	if sent, _ := service.last(); !strings.Contains(sent, `"q":"zebra direct"`) ||
		!strings.Contains(sent, `"target":"de"`) {
		t.Errorf("the translator got %s", sent)
	}
	bo.must(t, "GET", "messages/"+plan+"/translation", nil)
	if sent, _ := service.last(); !strings.Contains(sent, `"target":"en"`) {
		t.Errorf("without a language, the translator got %s", sent)
	}
	bo.expectRefusal(t, "messages/"+direct+"/translation", url.Values{"language": {"de"}}, "Invalid message(s)")
	ann.expectRefusal(t, "messages/"+direct+"/translation", url.Values{"language": {"../de"}}, "Invalid language")
}

// testAssistantAccess: a summary has no message that its reader has no access to at that moment.
func testAssistantAccess(t *testing.T, service *assistService, olive, bo *account, all url.Values) {
	boID := jsonID(bo.must(t, "GET", "users/me", nil)["user_id"])
	oliveID := jsonID(olive.must(t, "GET", "users/me", nil)["user_id"])
	channel := func(name string) string {
		made := olive.must(t, "POST", "channels/create", url.Values{"name": {name}, "invite_only": {"true"},
			"subscribers": {"[" + oliveID + "," + boID + "]"}})
		return jsonID(made["id"])
	}
	hide := map[string]func(id string){
		"deleted": func(id string) { olive.must(t, "DELETE", "messages/"+id, nil) },
		"unsubscribed": func(string) {
			olive.must(t, "DELETE", "users/me/subscriptions", url.Values{"subscriptions": {`["unsubscribed"]`},
				"principals": {"[" + boID + "]"}})
		},
	}
	elsewhere := olive.must(t, "POST", "channels/create", url.Values{"name": {"elsewhere"}, "invite_only": {"true"},
		"subscribers": {"[" + oliveID + "]"}, "history_public_to_subscribers": {"false"}})
	hide["moved"] = func(id string) {
		olive.must(t, "PATCH", "messages/"+id, url.Values{"stream_id": {jsonID(elsewhere["id"])}})
	}
	for name, remove := range hide {
		channel(name)
		text := "zebra " + name
		id := olive.say(t, "access", name, text)
		bo.must(t, "GET", "messages/summary", all)
		if sent, _ := service.last(); !strings.Contains(sent, text) {
			t.Errorf("%s: before, the model got %s", name, sent)
		}
		remove(id)
		olive.say(t, "access", "general", "zebra after "+name) // so that the summary is made again
		bo.must(t, "GET", "messages/summary", all)
		sent, _ := service.last()
		if strings.Contains(sent, `\"`+text+`\"`) || !strings.Contains(sent, "zebra after "+name) {
			t.Errorf("%s: the model got %s", name, sent)
		}
	}
	for _, g := range olive.must(t, "GET", "user_groups", nil)["user_groups"].([]any) {
		if g := g.(map[string]any); g["name"] == "role:administrators" {
			olive.must(t, "PATCH", "realm", url.Values{"can_summarize_topics_group": {
				fmt.Sprintf(`{"new":%s}`, jsonID(g["id"]))}})
		}
	}
	bo.expectRefusal(t, "messages/summary", all, "Insufficient permission")
	olive.must(t, "GET", "messages/summary", all)
	none := url.Values{"narrow": {`[{"operator":"search","operand":"nothingatall"}]`}}
	olive.expectRefusal(t, "messages/summary", none, "No messages in conversation")
}

// A text is read while the model writes it, only by the user who has started it and while the owners agree. A text of
// the model that breaks off is marked.
func TestAssistedTexts(t *testing.T) {
	steps := make(chan string)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for text := range steps {
			if text == "" {
				return
			}
			piece, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{
				"content": text}}}})
			fmt.Fprintf(w, "data: %s\n\n", piece)
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(service.Close)
	t.Cleanup(func() { close(steps) })
	p := demo(t, t.TempDir(), "--assist-url", service.URL, "--assist-model", "tiny", "--assist-allow", "127.0.0.0/8")
	at := p.serving()
	olive, ann, bo := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "ann@example.org"),
		demoAccount(t, at, "bo@example.org")
	ann.say(t, "plans", "general", "zebra plan")
	narrow := url.Values{"narrow": {`[{"operator":"search","operand":"zebra"}]`}}
	refuse := func(a *account, method, path string, form url.Values, want string) {
		t.Helper()
		if _, err := a.call(method, path, form); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %s: %v, want %q", method, path, err, want)
		}
	}
	refuse(ann, "POST", "assisted_texts", narrow, "does not allow summaries")
	olive.must(t, "PATCH", "realm", url.Values{"assistant_enabled": {"true"}})
	refuse(ann, "POST", "assisted_texts", nil, "Either 'narrow' or 'message_id' is required")
	refuse(ann, "POST", "assisted_texts", url.Values{"message_id": {"999999"}}, "Invalid message(s)")
	begun := ann.must(t, "POST", "assisted_texts", narrow)
	path := "assisted_texts/" + begun["text_key"].(string)
	steps <- "- A <b>zebra</b>"
	a := ann.must(t, "GET", path, nil)
	if a["text"] != "<ul>\n<li>A &lt;b&gt;zebra&lt;/b&gt;</li>\n</ul>" || a["complete"] != false {
		t.Errorf("the reader sees %v", a)
	}
	refuse(bo, "GET", path, nil, "The text does not exist.")
	refuse(bo, "DELETE", path, nil, "The text does not exist.")
	olive.must(t, "PATCH", "realm", url.Values{"assistant_enabled": {"false"}})
	refuse(ann, "GET", path, nil, "does not allow summaries")
	olive.must(t, "PATCH", "realm", url.Values{"assistant_enabled": {"true"}})
	steps <- ""
	a = ann.must(t, "GET", path, url.Values{"after": {jsonID(a["characters"])}})
	if a["error"] != "The service for summaries and translations failed." || a["complete"] != false {
		t.Errorf("after the text broke off: %v", a)
	}
	ann.must(t, "DELETE", path, nil)
	refuse(ann, "GET", path, nil, "The text does not exist.")
}

// An address in a private network is refused at the start.
func TestAssistantNeedsAllowedNetwork(t *testing.T) {
	out, code := runParley("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--assist-url",
		"http://127.0.0.1:1/v1")
	if code == 0 || !strings.Contains(out, "assist-allow") {
		t.Errorf("exit code %d, %s", code, out)
	}
}

// A user who has used up the tokens of a day is refused also after a crash. The next program counts on.
func TestTokensLastOverCrash(t *testing.T) {
	service, dir := newAssistService(t), t.TempDir()
	flags := []string{"--assist-url", service.URL, "--assist-model", "tiny", "--assist-allow", "127.0.0.0/8",
		"--assist-user-tokens", "1200"} // an estimate of a summary is about 1,000, its cost about 200
	p := demo(t, dir, flags...)
	olive := demoAccount(t, p.serving(), "olive@example.org")
	olive.must(t, "PATCH", "realm", url.Values{"assistant_enabled": {"true"}})
	ask := func(a *account, word string) error {
		a.say(t, "plans", "general", word+" plan")
		_, err := a.call("GET", "messages/summary",
			url.Values{"narrow": {`[{"operator":"search","operand":"` + word + `"}]`}})
		return err
	}
	const usedUp = "You have used up your summaries and translations of today."
	asked := 0
	var err error
	for err == nil && asked < 20 {
		asked++
		err = ask(olive, fmt.Sprint("zebra", asked))
	}
	if err == nil || !strings.Contains(err.Error(), usedUp) || asked < 2 {
		t.Fatalf("call %d: %v, want %q", asked, err, usedUp)
	}
	_, calls := service.last()
	p.kill()
	p = demo(t, dir, flags...)
	at := p.serving()
	olive = demoAccount(t, at, "olive@example.org")
	if err := ask(olive, "yak"); err == nil || !strings.Contains(err.Error(), usedUp) {
		t.Errorf("after the crash: %v, want %q", err, usedUp)
	}
	if _, after := service.last(); after != calls {
		t.Errorf("%d calls of the service after the crash", after-calls)
	}
	if err := ask(demoAccount(t, at, "bo@example.org"), "yak"); err != nil {
		t.Errorf("another user: %v", err)
	}
}

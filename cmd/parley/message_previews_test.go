package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// events polls a queue for events after the last one; it waits if there are none.
func (p *account) events(t *testing.T, queue string, last int) (list []map[string]any) {
	t.Helper()
	a, err := p.call("GET", "events", url.Values{"queue_id": {queue}, "last_event_id": {fmt.Sprint(last)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range a["events"].([]any) {
		list = append(list, e.(map[string]any))
	}
	return list
}

// TestLinkPreviews sends links to pages on this machine, which the settings allow, to a running server.
func TestLinkPreviews(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	hold := make(chan struct{}) // the slow page answers when it is closed
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		if r.URL.Path == "/slow" {
			<-hold
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>Page %s</title><meta name="description" content="What is &lt;there&gt;">`, r.URL.Path)
	}))
	defer site.Close()
	p := demo(t, filepath.Join(t.TempDir(), "data"), "--previews-allow", "127.0.0.0/8")
	at := p.serving()
	ada, ann, bo, bot := demoAccount(t, at, "ada@example.org"), demoAccount(t, at, "ann@example.org"),
		demoAccount(t, at, "bo@example.org"), demoAccount(t, at, "demo-bot@example.org")
	must := func(a map[string]any, err error) map[string]any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := must(bo.call("POST", "register",
		url.Values{"fetch_event_types": {`["realm"]`}})); a["server_inline_url_embed_preview"] != true ||
		a["realm_inline_url_embed_preview"] != false {
		t.Errorf("registered with %v, %v", a["server_inline_url_embed_preview"], a["realm_inline_url_embed_preview"])
	}
	if _, err := ann.send(site.URL + "/off"); err != nil { // previews are off until an administrator switches them on
		t.Fatal(err)
	}
	must(ada.call("PATCH", "realm", url.Values{"inline_url_embed_preview": {"true"}}))
	queue := must(bo.call("POST", "register",
		url.Values{"event_types": {`["message","update_message"]`}}))["queue_id"].(string)
	if _, err := bot.send(site.URL + "/bot"); err != nil {
		t.Fatal(err)
	}
	id, err := ann.send("see " + site.URL + "/page")
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	next := func(wanted string) map[string]any {
		t.Helper()
		for {
			for _, e := range bo.events(t, queue, last) {
				last = int(e["id"].(float64))
				if e["type"] == wanted {
					return e
				}
			}
		}
	}
	e := next("update_message")
	embed := `<div class="message_embed_title"><a href="` + site.URL + `/page" title="Page /page">Page /page</a>` +
		`</div>` +
		`<div class="message_embed_description">What is &lt;there&gt;</div>`
	if e["rendering_only"] != true || e["user_id"] != nil || e["message_id"] != float64(id) ||
		!strings.Contains(e["rendered_content"].(string), embed) || e["content"] != "see "+site.URL+"/page" {
		t.Errorf("the event is %v", e)
	}
	if html := bo.renderedContent(t, id); !strings.Contains(html, embed) {
		t.Errorf("the message is %s", html)
	}
	if a := must(bo.call("GET", fmt.Sprintf("messages/%d", id),
		nil)); a["message"].(map[string]any)["last_edit_timestamp"] != nil {
		t.Errorf("a preview counts as an edit: %v", a)
	}
	// A page that arrives after the message was edited is not shown.
	slow, err := ann.send(site.URL + "/slow")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slow page is asked for",
		func() bool { mu.Lock(); defer mu.Unlock(); return slices.Contains(asked, "/slow") })
	must(ann.call("PATCH", fmt.Sprintf("messages/%d", slow),
		url.Values{"content": {"never mind " + site.URL + "/other"}}))
	close(hold)
	eventually(t, "the other page is shown",
		func() bool { return strings.Contains(bo.renderedContent(t, slow), "Page /other") })
	if html := bo.renderedContent(t, slow); strings.Contains(html, "Page /slow") {
		t.Errorf("a page that is not linked any more is shown: %s", html)
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(asked, "/off") || slices.Contains(asked, "/bot") {
		t.Errorf("unwanted pages were fetched: %v", asked)
	}
}

// Without permission no page of this machine is fetched.
func TestPreviewsRejectPrivateNetworks(t *testing.T) {
	asked := make(chan string, 10)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer site.Close()
	p := demo(t, filepath.Join(t.TempDir(), "data"))
	at := p.serving()
	ada, ann := demoAccount(t, at, "ada@example.org"), demoAccount(t, at, "ann@example.org")
	if _, err := ada.call("PATCH", "realm", url.Values{"inline_url_embed_preview": {"true"}}); err != nil {
		t.Fatal(err)
	}
	id, err := ann.send(site.URL + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	p.stop() // by then the fetch has been rejected
	select {
	case path := <-asked:
		t.Errorf("message %d caused a fetch of %s", id, path)
	default:
	}
}

// Pages are fetched again if the server was killed before it showed them, and not if it had shown them. Clients receive
// each preview once, on their old queues.
func TestPreviewsSurviveKill(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]int{}
	times := func(path string) int { mu.Lock(); defer mu.Unlock(); return asked[path] }
	up := make(chan struct{}) // closed when the site answers
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked[r.URL.Path]++
		mu.Unlock()
		select {
		case <-up:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<title>Page %s</title>", r.URL.Path)
	}))
	defer site.Close()
	data := filepath.Join(t.TempDir(), "data")
	var p *program
	var ann, bo, cy, ada *account
	begin := func() {
		p = demo(t, data, "--previews-allow", "127.0.0.0/8")
		at := p.serving()
		ann, bo, cy, ada = demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org"),
			demoAccount(t, at, "cy@example.org"), demoAccount(t, at, "ada@example.org")
	}
	begin()
	ada.must(t, "PATCH", "realm", url.Values{"inline_url_embed_preview": {"true"}})
	queue := bo.must(t, "POST", "register", url.Values{"event_types": {`["update_message"]`}})["queue_id"].(string)
	last := -1
	previewed := func(until float64) (ids []float64) { // messages with a new rendering, up to the given one
		t.Helper()
		for !slices.Contains(ids, until) {
			for _, e := range bo.events(t, queue, last) {
				last = int(e["id"].(float64))
				if e["type"] == "update_message" && e["rendering_only"] == true {
					ids = append(ids, e["message_id"].(float64))
				}
			}
		}
		return ids
	}
	link := func(who *account, path string) float64 {
		t.Helper()
		id, err := who.send("see " + site.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return float64(id)
	}
	shows := func(id float64, path string) bool {
		return strings.Contains(bo.renderedContent(t, int64(id)), ">Page "+path+"</a>")
	}

	held, gone, edited, moved := link(ann, "/held"), link(bo, "/gone"), link(cy, "/first"), link(ada, "/moved")
	for _, path := range []string{"/held", "/gone", "/first", "/moved"} {
		eventually(t, path+" is asked for", func() bool { return times(path) == 1 })
	}
	p.kill()
	begin()
	for _, path := range []string{"/held", "/gone", "/first", "/moved"} {
		eventually(t, path+" is asked for again", func() bool { return times(path) == 2 })
	}
	ada.must(t, "DELETE", fmt.Sprintf("messages/%.0f", gone), nil)
	cy.must(t, "PATCH", fmt.Sprintf("messages/%.0f", edited), url.Values{"content": {"see " + site.URL + "/second"}})
	ada.must(t, "PATCH", fmt.Sprintf("messages/%.0f", moved), url.Values{"topic": {"elsewhere"}})
	close(up)
	eventually(t, "what is left is shown", func() bool {
		return shows(held, "/held") && shows(edited, "/second") && shows(moved, "/moved")
	})
	if shows(edited, "/first") {
		t.Error("a page is shown that is no longer linked")
	}
	p.kill()
	begin()
	if !shows(held, "/held") {
		t.Error("a preview disappeared")
	}
	var ids []float64
	for _, who := range []*account{ann, bo, cy, ada} { // each waits only for its own message
		ids = append(ids, previewed(link(who, "/"+who.email))...)
	}
	for _, id := range []float64{held, edited, moved} {
		if n := len(slices.DeleteFunc(slices.Clone(ids), func(x float64) bool { return x != id })); n != 1 {
			t.Errorf("%[2]d previews of message %.0[1]f: %[3]v", id, n, ids)
		}
	}
	if slices.Contains(ids, gone) {
		t.Error("a deleted message has a preview")
	}
	for _, path := range []string{"/held", "/gone", "/first", "/moved"} {
		if times(path) != 2 {
			t.Errorf("%s was asked for %d times", path, times(path))
		}
	}
}

package gifs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

var ann = wire.Asker{Realm: 1, User: 9}

// stage is a provider with a server that answers as a function says.
type stage struct {
	*Provider
	mu     sync.Mutex // of asked
	asked  []url.URL
	answer func(w http.ResponseWriter, r *http.Request)
	now    time.Time
	log    strings.Builder
}

func newStage(t *testing.T, name string) *stage {
	t.Helper()
	s := &stage{now: time.Unix(1_700_000_000, 0)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, *r.URL)
		s.mu.Unlock()
		s.answer(w, r)
	}))
	t.Cleanup(server.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("secret/key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Settings: Settings{GIFProvider: name, GIFKeyFile: key, GIFURL: server.URL + "/v"},
		Client: http.DefaultClient, Allowed: func(netip.Addr) bool { return true },
		Several: func() bool { return true }, Now: func() time.Time { return s.now },
		Log: slog.New(slog.NewTextHandler(&s.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.Provider = p
	return s
}

// giphyPage returns an answer of GIPHY's search as its documentation shows it: sizes are texts.
func giphyPage(n, total int) string {
	var list []any
	for i := range n {
		picture := func(name string) any {
			return map[string]any{"url": fmt.Sprintf("https://media.example/%d/%s.gif?cid=1", i, name), "width": "200",
				"height": "113", "size": "1234"}
		}
		list = append(list, map[string]any{"type": "gif", "id": fmt.Sprint(i), "title": fmt.Sprintf("Cat  %d\nGIF", i),
			"images": map[string]any{"original": picture("giphy"), "downsized_medium": picture("medium"),
				"fixed_width": picture("200w")}})
	}
	text, _ := json.Marshal(map[string]any{"data": list, "meta": map[string]any{"status": 200},
		"pagination": map[string]any{"total_count": total, "count": n, "offset": 0}})
	return string(text)
}

func TestGIPHY(t *testing.T) {
	s := newStage(t, "giphy")
	s.answer = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, giphyPage(pageSize, 100)) }
	found, err := s.Find(ann, "cat & dog", "", 3)
	if err != nil {
		t.Fatal(err)
	}
	asked := s.asked[0]
	want := url.Values{"api_key": {"secret/key"}, "q": {"cat & dog"}, "rating": {"pg-13"}, "limit": {"24"},
		"offset": {"0"}}
	if asked.Path != "/v/search" || asked.Query().Encode() != want.Encode() {
		t.Errorf("asked %s", asked.String())
	}
	first := wire.GIF{Title: "Cat 0 GIF", URL: "https://media.example/0/medium.gif?cid=1",
		Preview: "https://media.example/0/200w.gif?cid=1", Width: 200, Height: 113}
	if len(found.GIFs) != pageSize || found.GIFs[0] != first || found.Next != "24" {
		t.Errorf("%d pictures, the first %+v, next %q", len(found.GIFs), found.GIFs[0], found.Next)
	}
	if s.Keys() != (wire.GIFKeys{GIPHY: "secret/key"}) || s.Keys().Provider() != "GIPHY" {
		t.Errorf("keys %+v", s.Keys())
	}

	// The same question is not asked again within five minutes; what is popular now is another one.
	for range 3 {
		if again, err := s.Find(ann, "Cat & Dog", "", 3); err != nil || len(again.GIFs) != pageSize {
			t.Error("the answer was not kept", err)
		}
	}
	if _, err := s.Find(ann, "", "24", 1); err != nil || len(s.asked) != 2 {
		t.Errorf("%v, %d questions", err, len(s.asked))
	}
	if q := s.asked[1].Query(); s.asked[1].Path != "/v/trending" || q.Get("offset") != "24" || q.Get("rating") != "g" {
		t.Errorf("asked %s", s.asked[1].String())
	}
	s.now = s.now.Add(cacheTime)
	if _, err := s.Find(ann, "cat & dog", "", 3); err != nil || len(s.asked) != 3 {
		t.Errorf("%v, %d questions", err, len(s.asked))
	}
}

func TestTenor(t *testing.T) {
	s := newStage(t, "klipy")
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"results":[{"id":"1","title":"","content_description":"a cat","media_formats":{
			"gif":{"url":"https://media.example/cat.gif","dims":[498,280],"duration":0,"size":12},
			"tinygif":{"url":"https://media.example/cat-small.gif","dims":[220,124]}}}],"next":"CAgQ"}`)
	}
	found, err := s.Find(ann, "cat", "", 2)
	if err != nil || len(found.GIFs) != 1 || found.Next != "CAgQ" || found.GIFs[0] != (wire.GIF{Title: "a cat",
		URL: "https://media.example/cat.gif", Preview: "https://media.example/cat-small.gif",
		Width: 220, Height: 124}) {
		t.Errorf("%+v %v", found, err)
	}
	if _, err := s.Find(ann, "", "CAgQ", 4); err != nil {
		t.Error(err)
	}
	search, popular := s.asked[0], s.asked[1]
	q := search.Query()
	if search.Path != "/v/search" || q.Get("key") != "secret/key" || q.Get("contentfilter") != "medium" {
		t.Errorf("asked %s", search.String())
	}
	q = popular.Query()
	if popular.Path != "/v/featured" || q.Get("pos") != "CAgQ" || q.Get("contentfilter") != "off" {
		t.Errorf("asked %s", popular.String())
	}
}

// Answers that are of no use are refused without a word of them, and the key is in no log.
func TestBadAnswers(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"status":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<b>no", http.StatusForbidden) },
		"no JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"list":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "[]") },
		"fields":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{"x":1}}`) },
		"endless":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `"`+strings.Repeat("x", maxAnswer)) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
	} {
		s := newStage(t, "giphy")
		s.answer = answer
		_, err := s.Find(ann, "cat", "", 1)
		if err == nil || err.Error() != errFailed.Error() {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(s.log.String(), "secret") {
			t.Errorf("%s: the log has the key: %s", name, s.log.String())
		}
	}
	s := newStage(t, "giphy")
	s.o.Ask = func(realm.ID, realm.Place) error {
		t.Error("a page that does not exist is recorded as data that is sent")
		return nil
	}
	for _, page := range []string{"-1", "x", "1001", "1e3"} {
		if _, err := s.Find(ann, "cat", page, 1); err == nil || err.Error() != errPage.Error() {
			t.Errorf("page %q: %v", page, err)
		}
	}
	if len(s.asked) != 0 || s.log.Len() > 0 {
		t.Errorf("%d questions about pages that do not exist; the log has %q", len(s.asked), s.log.String())
	}
}

// The members of one of several organizations can use half of the requests, so those of another one find GIFs.
func TestSearchesAreShared(t *testing.T) {
	s := newStage(t, "giphy")
	goOn, entered := make(chan struct{}), make(chan bool, maxInProgress)
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		entered <- true
		<-goOn
		fmt.Fprint(w, giphyPage(1, 1))
	}
	answers := make(chan error, maxInProgress)
	search := func(by wire.Asker, n int) {
		_, err := s.Find(by, fmt.Sprint(n), "", 1)
		answers <- err
	}
	const half = maxInProgress / 2
	for n := range half {
		go search(ann, n)
		<-entered
	}
	if _, err := s.Find(ann, "cat", "", 1); err != errBusy {
		t.Errorf("search %d of an organization: %v", half+1, err)
	}
	go search(wire.Asker{Realm: 2, User: 9}, half)
	<-entered
	close(goOn)
	for range half + 1 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// Of an answer only addresses of the web are used that cannot end the link of a message, and sizes that can be drawn.
func TestPicturesOfAnswers(t *testing.T) {
	s := newStage(t, "giphy")
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		var list []any
		add := func(address, small string, width any) {
			list = append(list, map[string]any{"title": strings.Repeat("é", 300), "images": map[string]any{
				"original": map[string]any{"url": address}, "fixed_width": map[string]any{"url": small, "width": width,
					"height": "9"}}})
		}
		for _, bad := range []string{"javascript:alert(1)", "https://x/a.gif) @**all** (", "file:///etc/passwd", "//x/a",
			"", "https://x/`a.gif", "https://x/\u202ea.gif", "https://x/\u00a0a.gif",
			"https://u:p@x/a.gif", "https://x/" + strings.Repeat("a", maxAddress)} {
			add(bad, "https://x/small.gif", "5")
		}
		add("https://x/good.gif", "data:image/gif;base64,x", "-5")
		add("https://x/null.gif", "https://x/small.gif", nil)
		add("https://x/wide.gif", "https://x/small.gif", "wide")
		text, _ := json.Marshal(map[string]any{"data": list, "pagination": nil})
		w.Write(text)
	}
	found, err := s.Find(ann, "cat", "", 1)
	if err != nil || len(found.GIFs) != 3 || found.Next != "" {
		t.Fatalf("%+v %v", found, err)
	}
	for _, g := range found.GIFs {
		if g.Width != 1 || g.Height != 1 || len(g.Title) > maxTitle {
			t.Errorf("%+v", g)
		}
	}
	if found.GIFs[0].Preview != "https://x/good.gif" {
		t.Errorf("preview %q", found.GIFs[0].Preview)
	}
}

// Titles have no characters that messages refuse or that turn the text after them.
func TestTitlesOfAnswers(t *testing.T) {
	s := newStage(t, "tenor")
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"results":[{"content_description":"\u202ecat\u0000 \u2028👩\u200d🔬","media_formats":{
			"gif":{"url":"https://x/a.gif"},"tinygif":{"url":"https://x/b.gif","dims":["wide",null]}}}]}`)
	}
	found, err := s.Find(ann, "cat", "", 1)
	if err != nil || len(found.GIFs) != 1 || found.GIFs[0].Title != "cat 👩\u200d🔬" || found.GIFs[0].Width != 1 {
		t.Errorf("%+v %v", found, err)
	}
}

func TestSettings(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	nothing := func(netip.Addr) bool { return false }
	for want, s := range map[string]Settings{
		"gif-provider must be":     {GIFProvider: "other", GIFKeyFile: key},
		"gif-key-file":             {GIFProvider: "giphy"},
		"gif-url must be":          {GIFProvider: "giphy", GIFKeyFile: key, GIFURL: "ftp://x"},
		"in a private network":     {GIFProvider: "tenor", GIFKeyFile: key, GIFURL: "http://127.0.0.1:1/v2"},
		"one line with a key":      {GIFProvider: "tenor", GIFKeyFile: os.DevNull},
		"without a password and a": {GIFProvider: "tenor", GIFKeyFile: key, GIFURL: "https://x/?key=1"},
	} {
		if _, err := New(Options{Settings: s, Client: http.DefaultClient, Allowed: nothing}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
	if p, err := New(Options{Client: http.DefaultClient, Allowed: nothing}); p != nil || err != nil {
		t.Errorf("without a provider: %v %v", p, err)
	}
	p, err := New(Options{Settings: Settings{GIFProvider: "klipy", GIFKeyFile: key}, Client: http.DefaultClient,
		Allowed: nothing})
	if err != nil || AtOwner(p.Text()).Keys() != (wire.GIFKeys{KLIPY: "k"}) || AtOwner((*Provider)(nil).Text()) != nil {
		t.Errorf("an edge gets other keys: %v %q", err, p.Text())
	}
}

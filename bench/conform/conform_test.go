package conform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A goodClient follows the protocol, except for the fault that it is given.
type goodClient struct {
	url, fault string
	queue      string
	last       int64
}

func (c *goodClient) run(done <-chan struct{}) {
	c.register()
	for {
		select {
		case <-done:
			return
		default:
		}
		status, v, wait, err := c.get("events?" + url.Values{"queue_id": {c.queue},
			"last_event_id": {fmt.Sprint(c.last)}}.Encode())
		switch {
		case err != nil || status >= 500:
			if c.fault != "hot loop" {
				time.Sleep(minBackOff + 50*time.Millisecond)
			}
		case status == 429:
			if c.fault != "impatient" {
				time.Sleep(wait)
			}
		case status != 200:
			if c.fault != "stubborn" {
				c.register()
			} else {
				time.Sleep(minBackOff)
			}
		}
		for _, e := range v.Events {
			switch {
			case c.fault == "backwards" || e.ID > c.last && c.fault != "no ack":
				c.last = e.ID
			}
		}
	}
}

type clientAnswer struct {
	Queue  string `json:"queue_id"`
	Last   int64  `json:"last_event_id"`
	Events []struct {
		ID int64 `json:"id"`
	} `json:"events"`
}

func (c *goodClient) register() {
	resp, err := http.PostForm(c.url+"/api/v1/register", nil)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var v clientAnswer
	json.NewDecoder(resp.Body).Decode(&v)
	if c.fault != "old queue" || c.queue == "" {
		c.queue = v.Queue
	}
	c.last = v.Last
}

func (c *goodClient) get(path string) (status int, v clientAnswer, wait time.Duration, err error) {
	resp, err := http.Get(c.url + "/api/v1/" + path)
	if err != nil {
		return 0, v, 0, err
	}
	defer resp.Body.Close()
	json.NewDecoder(resp.Body).Decode(&v)
	wait, _ = time.ParseDuration(resp.Header.Get("Retry-After") + "s")
	return resp.StatusCode, v, wait, nil
}

// TestScript requires that the script accepts a client that follows the protocol, and names each fault of others.
func TestScript(t *testing.T) {
	for fault, want := range map[string]string{"": "", "no ack": "acknowledge", "backwards": "old event",
		"impatient": "rate limit", "hot loop": "server error", "stubborn": "lost queue", "old queue": "new queue"} {
		t.Run("client "+fault, func(t *testing.T) {
			t.Parallel()
			s := NewScript(io.Discard)
			srv := httptest.NewServer(s)
			defer srv.Close()
			over := make(chan struct{})
			go (&goodClient{url: srv.URL, fault: fault}).run(over)
			select {
			case <-s.Done():
			case <-time.After(15 * time.Second):
			}
			close(over)
			var wrong []string
			for _, x := range s.Steps() {
				if x.Wrong != "" {
					wrong = append(wrong, x.Name+": "+x.Wrong)
				} else if !x.Seen && fault == "" {
					t.Errorf("step %s was not seen", x.Name)
				}
			}
			all := strings.Join(wrong, "\n")
			if (want == "") != (len(wrong) == 0) || !strings.Contains(all, want) {
				t.Errorf("the script found:\n%s\nwant %q", all, want)
			}
		})
	}
}

// TestServersThatDeviate requires that servers that answer nonsense deviate in each check and end none of them.
func TestServersThatDeviate(t *testing.T) {
	users := []User{{"a@x.invalid", "k", 1}, {"b@x.invalid", "k", 2}, {"c@x.invalid", "k", 3}}
	for name, answer := range map[string]http.HandlerFunc{
		"empty": func(w http.ResponseWriter, r *http.Request) {},
		"page":  func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") },
		"huge ids": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w,
				`{"result":"success","msg":"","id":1e400,"queue_id":7,"events":{},"members":[7],"streams":7}`)
		},
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for block := bytes.Repeat([]byte(" "), 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		},
		"reset": func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "endless" && testing.Short() {
				t.Skip("reads 32 MB for each check")
			}
			srv := httptest.NewServer(answer)
			defer srv.Close()
			for _, o := range Run(Target{URL: srv.URL, Host: "h", Level: 1000, Users: users}, func(Outcome) {}) {
				if o.Deviation == "" || o.Statement == "" {
					t.Errorf("check %s: no deviation (skipped: %q)", o.Name, o.Skipped)
				}
			}
		})
	}
}

func TestOldServersAreSkipped(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	skipped := 0
	for _, o := range Run(Target{URL: srv.URL, Users: make([]User, 3)}, func(Outcome) {}) {
		if o.Skipped != "" {
			skipped++
		}
	}
	if skipped == 0 {
		t.Error("a server of feature level 0 must have skipped checks")
	}
}

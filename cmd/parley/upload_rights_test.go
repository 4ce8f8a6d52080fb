package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestUploadsStopWithTheRightsOfTheirUser holds that an upload is checked again when all of it has arrived: the key of
// its request may have been replaced, and the account deactivated. Then it is refused, and no file and no row is left.
func TestUploadsStopWithTheRightsOfTheirUser(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	at := demo(t, data).serving()
	olive := demoAccount(t, at, "olive@example.org")
	uploads := filepath.Join(data, "uploads")
	const half = 200_000
	text := strings.Repeat("x", half)
	for i, end := range []struct {
		what, says string
		withdraw   func(bo *account, id any)
	}{
		{"", "", func(*account, any) {}},
		{"the key was replaced", "Invalid API key", func(bo *account, _ any) {
			bo.must(t, "POST", "users/me/api_key/regenerate", nil)
		}},
		{"the account was deactivated", "Account is deactivated", func(_ *account, id any) {
			olive.must(t, "DELETE", fmt.Sprintf("users/%.0f", id), nil)
		}},
	} {
		email := fmt.Sprintf("up%d@example.org", i)
		made := olive.must(t, "POST", "users", url.Values{"email": {email}, "full_name": {fmt.Sprint("Up", i)},
			"password": {"correct horse battery staple"}})
		a := (&account{url: at}).must(t, "POST", "fetch_api_key",
			url.Values{"username": {email}, "password": {"correct horse battery staple"}})
		bo := &account{url: at, email: email, key: a["api_key"].(string)}
		resp, _ := bo.sendTus("POST", "/api/v1/tus", header{"Upload-Length": fmt.Sprint(2 * half)}, "")
		before := len(filesUnder(t, uploads))
		plain := startSlowUpload(bo, "POST", "/api/v1/user_uploads", "multipart/form-data; boundary=b",
			"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n"+text)
		pieces := startSlowUpload(bo, "PATCH", resp.Header.Get("Location"), "application/offset+octet-stream", text)
		eventually(t, "the first half of the plain upload is on disk", func() bool {
			return len(filesUnder(t, uploads)) > before
		})
		eventually(t, "the first half of the piece is on disk", func() bool {
			// The wrong offset keeps this request from writing if it comes first.
			resp, _ := bo.sendTus("PATCH", resp.Header.Get("Location"), header{"Upload-Offset": "1"}, "x")
			return resp.StatusCode == http.StatusLocked // another request writes
		})
		end.withdraw(bo, made["user_id"])
		for name, x := range map[string]struct {
			*slowUpload
			rest string
		}{"plain": {plain, text + "\r\n--b--\r\n"}, "resumable": {pieces, text}} {
			status, a := x.finish(x.rest)
			if end.what == "" && status != 200 || end.what != "" && (status < 400 || a["msg"] != end.says) {
				t.Errorf("%s upload, %s: %d %v", name, end.what, status, a)
			}
		}
		if end.what == "" {
			continue
		}
		eventually(t, "no file of the plain upload is left", func() bool {
			return len(filesUnder(t, uploads)) <= before
		})
	}
	a := olive.must(t, "GET", "attachments", nil)
	if space := a["upload_space_used"]; space != 4.0*half { // of both uploads of the first user
		t.Errorf("%v bytes of uploads are counted, want %d", space, 4*half)
	}
}

// slowUpload is a request whose body is not complete.
type slowUpload struct {
	body   *io.PipeWriter
	status int
	answer map[string]any
	done   chan struct{}
}

// startSlowUpload begins a request of a user with the first part of its body.
func startSlowUpload(p *account, method, path, contentType, first string) *slowUpload {
	r, w := io.Pipe()
	s := &slowUpload{body: w, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		req, err := http.NewRequest(method, p.url+path, r)
		if err != nil {
			return
		}
		req.SetBasicAuth(p.email, p.key)
		req.Header.Set("Content-Type", contentType)
		req.Header.Set("Tus-Resumable", "1.0.0")
		req.Header.Set("Upload-Offset", "0")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			s.answer = map[string]any{"msg": err.Error()}
			return
		}
		defer resp.Body.Close()
		s.status = resp.StatusCode
		json.NewDecoder(resp.Body).Decode(&s.answer)
	}()
	io.WriteString(w, first)
	return s
}

// finish sends the rest of the body and returns the answer.
func (s *slowUpload) finish(rest string) (int, map[string]any) {
	io.WriteString(s.body, rest)
	s.body.Close()
	<-s.done
	return s.status, s.answer
}

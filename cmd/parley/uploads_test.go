package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color/palette"
	"image/gif"
	"image/png"
	"io"
	"io/fs"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/wire"
)

// zeros returns a reader of so many bytes; the first bytes distinguish it from others.
func zeros(first string, size int) io.Reader {
	return io.MultiReader(strings.NewReader(first), io.LimitReader(zeroReader{}, int64(size-len(first))))
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// An upload cannot run scripts in a browser that opens it, under any of its addresses, and plain answers have no
// HSTS.
func TestUploadsRunNoScripts(t *testing.T) {
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
	at := p.serving()
	ann := demoAccount(t, at, "ann@example.org")
	const page = "<script>alert(1)</script>"
	for _, name := range []string{"page.html", "drawing.svg", "data.xml", "plain.txt", "noext"} {
		status, a, err := ann.upload(map[string]io.Reader{name: strings.NewReader(page)})
		if status != 200 || err != nil {
			t.Fatalf("upload of %s: %d, %v, %v", name, status, a, err)
		}
		path := a["url"].(string)
		temporary := ann.must(t, "GET", strings.TrimPrefix(path, "/"), nil)["url"].(string)
		download := strings.Replace(path, "/user_uploads/", "/user_uploads/download/", 1)
		for _, address := range []string{path + "?api_key=" + ann.key, download + "?api_key=" + ann.key, temporary} {
			r, err := http.Get(at + address)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || r.StatusCode != 200 || string(body) != page {
				t.Fatalf("GET %s: %d, %v, %q", address, r.StatusCode, err, body)
			}
			for header, want := range map[string]string{
				"X-Content-Type-Options":    "nosniff",
				"Content-Security-Policy":   "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox",
				"Cache-Control":             "private, immutable",
				"Strict-Transport-Security": "",
			} {
				if got := r.Header.Get(header); got != want {
					t.Errorf("GET %s: %s is %q, want %q", address, header, got, want)
				}
			}
		}
	}
}

// An empty file is a file, as with the reference server, in a form and in a resumable upload.
func TestEmptyFiles(t *testing.T) {
	p := startProgram(t, parleyCommand("serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--demo"))
	ann := demoAccount(t, p.serving(), "ann@example.org")
	status, a, err := ann.upload(map[string]io.Reader{"empty.txt": strings.NewReader("")})
	if err != nil || status != 200 || a["filename"] != "empty.txt" {
		t.Errorf("form: %d, %v, %v", status, a, err)
	}
	resp, a := ann.sendTus("POST", "/api/v1/tus", map[string]string{"Upload-Length": "0"}, "")
	if resp.StatusCode != 201 {
		t.Errorf("resumable: %s, %v", resp.Status, a)
	}
}

// upload sends files in one multipart body, without keeping them in memory, and returns the answer.
func (p *account) upload(files map[string]io.Reader) (status int, answer map[string]any, err error) {
	return p.uploadTo("user_uploads", files)
}

func (p *account) uploadTo(path string, files map[string]io.Reader) (status int, answer map[string]any, err error) {
	body, w := io.Pipe()
	form := multipart.NewWriter(w)
	go func() {
		form.WriteField("client", "test")
		for name, r := range files {
			part, err := form.CreateFormFile("any field", name)
			if err != nil {
				w.CloseWithError(err)
				return
			}
			if _, err := io.Copy(part, r); err != nil {
				w.CloseWithError(err)
				return
			}
		}
		form.Close()
		w.Close()
	}()
	return p.request("POST", "/api/v1/"+path, form.FormDataContentType(), body)
}

func (p *account) request(method, path, kind string, body io.Reader) (status int, answer map[string]any, err error) {
	r, err := http.NewRequest(method, p.url+path, body)
	if err != nil {
		return 0, nil, err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	if p.key != "" {
		r.SetBasicAuth(p.email, p.key)
	}
	resp, err := (&http.Client{Timeout: binaryTimeout,
		Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: insecureTLS}}).Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return resp.StatusCode, map[string]any{"body": string(data)}, nil
	}
	return resp.StatusCode, answer, nil
}

// memory returns one of Linux's memory figures of the process, in MiB.
func (p *program) memory(name string) int {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("memory is measured on Linux only: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			var kb int
			fmt.Sscan(rest, &kb)
			return kb >> 10
		}
	}
	p.t.Fatalf("no %s in %s", name, text)
	return 0
}

// filesUnder returns the paths of all files in a directory.
func filesUnder(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// eventually waits until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(binaryTimeout); !done(); {
		if time.Now().After(end) {
			t.Fatal("it never happened: ", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestUploadsAreNotHeldInMemory sends eight files at once, one of them of the maximum size.
func TestUploadsAreNotHeldInMemory(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	ann := demoAccount(t, at, "ann@example.org")
	if _, a, err := ann.upload(map[string]io.Reader{"warm.txt": strings.NewReader("warm")}); err != nil ||
		a["result"] != "success" {
		t.Fatal(a, err)
	}
	before := p.memory("VmHWM")
	var all sync.WaitGroup
	sent := 0
	for i := range 8 {
		size := 20 << 20
		if i == 0 {
			size = wire.MaxUploadBytes
		}
		sent += size
		all.Go(func() {
			status, a, err := ann.upload(map[string]io.Reader{fmt.Sprintf("%d.bin", i): zeros(fmt.Sprint("file ", i),
				size)})
			if err != nil || status != 200 || a["url"] == nil || a["uri"] != a["url"] ||
				a["filename"] != fmt.Sprintf("%d.bin", i) {
				t.Errorf("upload %d: %d %v %v", i, status, a, err)
			}
		})
	}
	all.Wait()
	const room = 48 // MiB: buffers of eight uploads take 1.2, the rest is garbage between two collections
	grown := p.memory("VmHWM") - before
	t.Logf("%d MiB were uploaded in eight files at once; the peak memory rose by %d MiB", sent>>20, grown)
	if grown > room {
		t.Errorf("memory rose by more than %d MiB", room)
	}
	a, err := ann.call("GET", "attachments", nil)
	if err != nil || int(a["upload_space_used"].(float64)) != sent+len("warm") {
		t.Errorf("space used: %v %v", a["upload_space_used"], err)
	}
}

// Paths that leave the directory of files, also after decoding, are not found.
func TestPathTraversal(t *testing.T) {
	visitor := &account{url: demo(t, filepath.Join(t.TempDir(), "data")).serving()}
	for _, path := range []string{"/user_avatars/1/%2e%2e", "/user_avatars/1/%2e", "/user_avatars/exports/%2e%2e",
		"/user_avatars/exports/%2e%2e%2fsecret",
		"/user_avatars/1/%2e%2e%2f%2e%2e%2fsecret", "/user_avatars/1/emoji/images/%2e%2e", "/user_avatars/1/a%00b",
		"/static/images/%2e%2e"} {
		if status, a, err := visitor.request("GET", path, "", nil); err != nil || status != 404 {
			t.Errorf("%s: %d %v %v", path, status, a, err)
		}
	}
}

// A refused upload leaves neither a file nor a row.
func TestRefusedUploadsLeaveNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data, "--upload-quota", "1")
	at := p.serving()
	ann := demoAccount(t, at, "ann@example.org")
	if q := ann.must(t, "POST", "register", nil)["realm_upload_quota_mib"]; q != 1.0 {
		t.Errorf("clients are told the quota %v", q)
	}
	uploads := filepath.Join(data, "uploads")
	for what, try := range map[string]struct {
		files  map[string]io.Reader
		who    *account
		status int
		says   string
	}{
		"no file": {nil, ann, 400, "You must specify a file to upload"},
		"two files": {map[string]io.Reader{"a": strings.NewReader("a"), "b": strings.NewReader("b")}, ann, 400,
			"You may only upload one file at a time"},
		"over the quota": {map[string]io.Reader{"a": zeros("quota", 2<<20)}, ann, 400,
			"Upload would exceed your organization's upload quota."},
		"too large": {map[string]io.Reader{"a": zeros("large", wire.MaxUploadBytes+1)}, ann, 400,
			"Uploaded file is larger than the allowed limit of 100 MiB"},
		"no login": {map[string]io.Reader{"a": strings.NewReader("a")}, &account{url: at}, 401,
			"Not logged in: API authentication or user session required"},
	} {
		status, a, err := try.who.upload(try.files)
		if err != nil || status != try.status || a["msg"] != try.says {
			t.Errorf("%s: %d %v %v", what, status, a, err)
		}
	}
	for _, body := range []string{"", "--x\r\nno head",
		"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\nno end"} {
		if status, a, err := ann.request("POST", "/api/v1/user_uploads", "multipart/form-data; boundary=x",
			strings.NewReader(body)); err != nil || status != 400 {
			t.Errorf("%q: %d %v %v", body, status, a, err)
		}
	}
	var begun []string
	for range 2 { // announced bytes count too
		resp, a := ann.sendTus("POST", "/api/v1/tus", map[string]string{"Upload-Length": "700000"}, "")
		if resp.StatusCode == 201 {
			begun = append(begun, resp.Header.Get("Location"))
		} else if resp.StatusCode != 413 || a["code"] != "REALM_UPLOAD_QUOTA" {
			t.Errorf("%s %v", resp.Status, a)
		}
	}
	if len(begun) != 1 {
		t.Fatalf("a quota of 1 MiB let uploads of 0.7 begin: %v", begun)
	}
	if resp, _ := ann.sendTus("DELETE", begun[0], nil, ""); resp.StatusCode != 204 {
		t.Error(resp.Status)
	}
	// A client disconnects in the middle of an upload.
	c, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest("POST", at+"/api/v1/user_uploads", nil)
	r.SetBasicAuth(ann.email, ann.key)
	fmt.Fprintf(c,
		"POST /api/v1/user_uploads HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Type: multipart/form-data; "+
			"boundary=x\r\nContent-Length: 1000000\r\n\r\n", r.Header.Get("Authorization"))
	fmt.Fprintf(c, "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n%s",
		bytes.Repeat([]byte("half"), 50_000))
	eventually(t, "the first half is on disk", func() bool { return len(filesUnder(t, uploads)) == 1 })
	c.Close()
	eventually(t, "no file is left", func() bool { return len(filesUnder(t, uploads)) == 0 })
	if a, err := ann.call("GET", "attachments", nil); err != nil || len(a["attachments"].([]any)) != 0 ||
		a["upload_space_used"] != 0.0 {
		t.Errorf("%v %v", a, err)
	}
}

// sendTus sends a request of the protocol of resumable uploads.
func (p *account) sendTus(method, path string, header map[string]string, body string) (*http.Response, map[string]any) {
	r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return nil, nil
	}
	r.Header.Set("Tus-Resumable", "1.0.0")
	if method == "PATCH" {
		r.Header.Set("Content-Type", "application/offset+octet-stream")
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if p.key != "" {
		r.SetBasicAuth(p.email, p.key)
	}
	resp, err := (&http.Client{Timeout: binaryTimeout, Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return &http.Response{Status: err.Error(), Header: http.Header{}}, nil
	}
	defer resp.Body.Close()
	var a map[string]any
	json.NewDecoder(resp.Body).Decode(&a)
	return resp, a
}

// header has the headers of a request for a resumable upload.
type header = map[string]string

// checkRejectedUploads tries to begin uploads that must be rejected.
func checkRejectedUploads(t *testing.T, ann *account) {
	t.Helper()
	for what, x := range map[string]struct {
		who    *account
		header header
		status int
	}{
		"no login":     {&account{url: ann.url}, header{"Upload-Length": "5"}, 401},
		"no length":    {ann, nil, 400},
		"a bad length": {ann, header{"Upload-Length": "-5"}, 400},
		"no end":       {ann, header{"Upload-Defer-Length": "1"}, 400},
		"too much":     {ann, header{"Upload-Length": fmt.Sprint(wire.MaxUploadBytes + 1)}, 413},
		"a bad note":   {ann, header{"Upload-Length": "5", "Upload-Metadata": "filename %%"}, 400},
		"a part":       {ann, header{"Upload-Length": "5", "Upload-Concat": "partial"}, 400},
		"another tus":  {ann, header{"Upload-Length": "5", "Tus-Resumable": "0.2.2"}, 412},
		"a long header": {ann, header{"Upload-Length": "5",
			"Upload-Metadata": "filename " + base64.StdEncoding.EncodeToString(make([]byte, 4000))}, 400},
	} {
		if resp, a := x.who.sendTus("POST", "/api/v1/tus/", x.header, ""); resp.StatusCode != x.status ||
			a["result"] != "error" || a["msg"] == "" || resp.Header.Get("Tus-Version") != "1.0.0" {
			t.Errorf("%s: %s %v %v", what, resp.Status, a, resp.Header)
		}
	}
}

// TestResumableUpload sends a file in parts to a server that is killed in between.
func TestResumableUpload(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	resp, _ := (&account{url: at}).sendTus("OPTIONS", "/api/v1/tus", nil, "")
	if h := resp.Header; resp.StatusCode != 204 || h.Get("Tus-Version") != "1.0.0" ||
		h.Get("Tus-Max-Size") != fmt.Sprint(wire.MaxUploadBytes) ||
		!strings.Contains(h.Get("Tus-Extension"), "creation") {
		t.Errorf("options: %s %v", resp.Status, h)
	}
	meta := "filename " + base64.StdEncoding.EncodeToString([]byte("plan (1).txt")) + ",filetype dGV4dC9wbGFpbg=="
	checkRejectedUploads(t, ann)
	text := strings.Repeat("0123456789", 50_000)
	resp, _ = ann.sendTus("POST", "/api/v1/tus/",
		header{"Upload-Length": fmt.Sprint(len(text)), "Upload-Metadata": meta}, "")
	id := resp.Header.Get("Location")
	if resp.StatusCode != 201 || !strings.HasPrefix(id, "/api/v1/tus/") || resp.Header.Get("Upload-Expires") == "" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	if resp, _ := ann.sendTus("PATCH", id, header{"Upload-Offset": "0"}, text[:200_000]); resp.StatusCode != 204 ||
		resp.Header.Get("Upload-Offset") != "200000" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	p.kill()
	p = startProgram(t, parleyCommand("serve", "--data", data, "--listen", strings.TrimPrefix(at, "http://"), "--demo"))
	p.serving()
	resp, _ = ann.sendTus("HEAD", id, nil, "")
	if h := resp.Header; resp.StatusCode != 200 || h.Get("Upload-Offset") != "200000" ||
		h.Get("Upload-Length") != fmt.Sprint(len(text)) || h.Get("Upload-Metadata") != meta ||
		!strings.Contains(h.Get("Cache-Control"), "no-store") {
		t.Fatalf("after the kill: %s %v", resp.Status, h)
	}
	for what, x := range map[string]struct {
		who    *account
		method string
		header header
		body   string
		status int
	}{
		"another's":          {bo, "HEAD", nil, "", 404},
		"another's piece":    {bo, "PATCH", header{"Upload-Offset": "200000"}, "x", 404},
		"another's end":      {bo, "DELETE", nil, "", 404},
		"an old piece":       {ann, "PATCH", header{"Upload-Offset": "0"}, "x", 409},
		"no offset":          {ann, "PATCH", nil, "x", 400},
		"another type":       {ann, "PATCH", header{"Upload-Offset": "200000", "Content-Type": "text/plain"}, "x", 415},
		"more than the rest": {ann, "PATCH", header{"Upload-Offset": "200000"}, text[199_999:], 413},
		"no answer yet":      {ann, "GET", nil, "", 404},
	} {
		if resp, a := x.who.sendTus(x.method, id, x.header, x.body); resp.StatusCode != x.status {
			t.Errorf("%s: %s %v", what, resp.Status, a)
		}
	}
	resp, a := ann.sendTus("POST", id, header{"X-HTTP-Method-Override": "PATCH", "Upload-Offset": "200000",
		"Content-Type": "application/offset+octet-stream"}, text[200_000:])
	url, _ := a["url"].(string)
	if resp.StatusCode != 200 || a["result"] != "success" || a["filename"] != "plan (1).txt" ||
		!strings.HasPrefix(url, "/user_uploads/") || !strings.HasSuffix(url, "/plan-1.txt") ||
		resp.Header.Get("Upload-Offset") != fmt.Sprint(len(text)) {
		t.Fatalf("the last piece: %s %v", resp.Status, a)
	}
	if status, got, err := ann.request("GET", url, "", nil); err != nil || status != 200 || got["body"] != text {
		t.Errorf("what came back: %d %v", status, err)
	}
	for _, method := range []string{"GET", "PATCH"} { // a client that has not received the answer asks again
		if resp, again := ann.sendTus(method, id, header{"Upload-Offset": fmt.Sprint(len(text))},
			""); resp.StatusCode != 200 || again["url"] != url {
			t.Errorf("%s again: %s %v", method, resp.Status, again)
		}
	}
	if a, err := ann.call("GET", "attachments", nil); err != nil || len(a["attachments"].([]any)) != 1 {
		t.Errorf("%v %v", a, err)
	}
	resp, a = ann.sendTus("POST", "/api/v1/tus",
		header{"Upload-Length": "5", "Upload-Metadata": meta, "Content-Type": "application/offset+octet-stream"},
		"whole")
	if url, _ := a["url"].(string); resp.StatusCode != 201 || resp.Header.Get("Upload-Offset") != "5" ||
		!strings.HasPrefix(url, "/user_uploads/") {
		t.Errorf("all in the first request: %s %v", resp.Status, a)
	}
	for range 50 { // more than the limit per user: uploads that fail at once do not count
		resp, _ := ann.sendTus("POST", "/api/v1/tus",
			header{"Upload-Length": "5", "Content-Type": "application/offset+octet-stream"}, "too much")
		if resp.StatusCode != 413 {
			t.Fatalf("more than the file in the first request: %s", resp.Status)
		}
	}
	resp, _ = ann.sendTus("POST", "/api/v1/tus", header{"Upload-Length": "5"}, "")
	id = resp.Header.Get("Location")
	ann.sendTus("PATCH", id, header{"Upload-Offset": "0"}, "abc")
	if resp, _ := ann.sendTus("DELETE", id, nil, ""); resp.StatusCode != 204 {
		t.Errorf("the end of one that was begun: %s", resp.Status)
	}
	if resp, _ := ann.sendTus("HEAD", id, nil, ""); resp.StatusCode != 404 {
		t.Errorf("after its end: %s", resp.Status)
	}
	for _, name := range filesUnder(t, filepath.Join(data, "uploads", "unfinished")) {
		if !strings.HasSuffix(name, ".json") { // the answers of finished uploads
			t.Errorf("left: %s", name)
		}
	}
}

func gifOf(t *testing.T, frames int) io.Reader {
	g := &gif.GIF{}
	for range frames {
		g.Image, g.Delay = append(g.Image, image.NewPaletted(image.Rect(0, 0, 40, 30), palette.WebSafe)),
			append(g.Delay, 5)
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, g); err != nil {
		t.Fatal(err)
	}
	return &b
}

func pngOf(t *testing.T, w, h int) io.Reader {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return &b
}

// renderedContent returns the HTML of a message.
func (p *account) renderedContent(t *testing.T, id int64) string {
	t.Helper()
	a, err := p.call("GET", fmt.Sprintf("messages/%d", id), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a["message"].(map[string]any)["content"].(string)
}

// A message with an image is sent at once, and rendered again when the thumbnail exists.
func TestThumbnailsAppearLater(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	visitor := &account{url: at}
	for name, x := range map[string]struct {
		file   io.Reader
		format string // of the thumbnail; empty: there will be none
		kind   string
	}{
		"cat.png":    {pngOf(t, 900, 300), "840x560.jpg", "image/jpeg"},
		"dance.gif":  {gifOf(t, 3), "840x560-anim.gif", "image/gif"},
		"broken.png": {io.LimitReader(pngOf(t, 900, 300), 60), "", ""},
	} {
		_, a, err := ann.upload(map[string]io.Reader{name: x.file})
		if err != nil || a["url"] == nil {
			t.Fatal(a, err)
		}
		url := a["url"].(string)
		path := strings.TrimPrefix(url, "/user_uploads/")
		a, err = ann.call("POST", "messages",
			map[string][]string{"type": {"direct"}, "to": {`["bo@example.org"]`}, "content": {"[it](" + url + ")"}})
		if err != nil {
			t.Fatal(err)
		}
		id := int64(a["id"].(float64))
		eventually(t, name+" is shown, or nothing waits for it",
			func() bool { return !strings.Contains(bo.renderedContent(t, id), "image-loading-placeholder") })
		html := bo.renderedContent(t, id)
		status, err := bo.call("GET", "thumbnail/status/"+path, nil)
		if err != nil || status["has_thumbnail"] != (x.format != "") {
			t.Errorf("%s: %v %v", name, status, err)
		}
		if x.format == "" {
			if strings.Contains(html, "<img") {
				t.Errorf("%s: %s", name, html)
			}
			continue
		}
		thumbnail := "/user_uploads/thumbnail/" + path + "/" + x.format
		if !strings.Contains(html, `src="`+thumbnail+`"`) || !strings.Contains(html, "data-original-dimensions") {
			t.Errorf("%s: %s", name, html)
		}
		get := func(who *account, path string) (int, string) {
			r, _ := http.NewRequest("GET", at+path, nil)
			if who.key != "" {
				r.SetBasicAuth(who.email, who.key)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode, resp.Header.Get("Content-Type")
		}
		if code, kind := get(bo, thumbnail); code != 200 || kind != x.kind {
			t.Errorf("%s: %d %s", thumbnail, code, kind)
		}
		for _, wrong := range []struct {
			who  *account
			path string
			code int
		}{{visitor, thumbnail, 403}, {demoAccount(t, at, "cy@example.org"), thumbnail, 404}, {bo, thumbnail + "x", 404},
			{bo, "/user_uploads/thumbnail/" + path, 404}} {
			if code, _ := get(wrong.who, wrong.path); code != wrong.code {
				t.Errorf("%s: %d", wrong.path, code)
			}
		}
	}
	if code, a, err := visitor.request("GET", "/static/images/loading/loader-black.svg", "", nil); err != nil ||
		code != 200 || !strings.Contains(fmt.Sprint(a["body"]), "<svg") {
		t.Errorf("the placeholder of an image: %d %v %v", code, a, err)
	}
}

func TestKeyInURL(t *testing.T) {
	k := newDemoClient(t)
	ann := k.people["ann"]
	_, answer, err := ann.upload(map[string]io.Reader{"a.txt": strings.NewReader("hello")})
	if err != nil {
		t.Fatal(err)
	}
	url := k.at + answer["url"].(string)
	k.must("ann", "POST messages", "type", "stream", "to", "general", "topic", "files", "content",
		"[a.txt]("+answer["url"].(string)+")")
	hook := k.must("ann", "POST bots", "full_name", "Hook", "short_name", "hook", "bot_type", 2)
	got := func(key any) int {
		t.Helper()
		return status(t, fmt.Sprintf("%s?api_key=%v", url, key))
	}
	k.equal("a reader of the message", got(k.people["bo"].key), 200)
	k.equal("an unknown key", got(strings.Repeat("x", 32)), 403)
	k.equal("an incoming-webhook bot", got(hook["api_key"]), 403)
	k.must("olive", "POST realm/deactivate")
	k.equal("after the organization was deactivated", got(ann.key), 403)
}

// A truncated image is rejected as an emoji, and the name of a default emoji is rejected in every spelling.
func TestInvalidEmojiAreRejected(t *testing.T) {
	at := demo(t, filepath.Join(t.TempDir(), "data")).serving()
	ann := demoAccount(t, at, "ann@example.org")
	whole, err := io.ReadAll(pngOf(t, 64, 64))
	if err != nil {
		t.Fatal(err)
	}
	moving, err := io.ReadAll(gifOf(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		file []byte
		says string
	}{
		{"thumbs_up", whole, "Only administrators can override default emoji."},
		{"thumbs%20up", whole, "Only administrators can override default emoji."},
		{"%20thumbs_up%20", whole, "Only administrators can override default emoji."},
		{"cut", whole[:len(whole)-20], "Invalid image format"},
		{"cut", moving[:len(moving)-20], "Invalid image format"},
		{"cut", whole, ""},
		{"moving", moving, ""},
	} {
		if _, a, err := ann.uploadTo("realm/emoji/"+x.name,
			map[string]io.Reader{"a": bytes.NewReader(x.file)}); err != nil || a["msg"] != x.says {
			t.Errorf("%s: %v %v", x.name, a, err)
		}
	}
}

// A bot's picture is sent with the bot, or later. Permission is checked before the image.
func TestPictures(t *testing.T) {
	at := demo(t, filepath.Join(t.TempDir(), "data")).serving()
	ada, ann, bo := demoAccount(t, at, "ada@example.org"), demoAccount(t, at, "ann@example.org"),
		demoAccount(t, at, "bo@example.org")
	send := func(p *account, method, path string, fields map[string]string, files ...io.Reader) map[string]any {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for name, text := range fields {
			w.WriteField(name, text)
		}
		for i, f := range files {
			part, err := w.CreateFormFile(fmt.Sprint("file", i), "a.png")
			if err == nil {
				_, err = io.Copy(part, f)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		_, a, err := p.request(method, "/api/v1/"+path, w.FormDataContentType(), &b)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	junk := func() io.Reader { return strings.NewReader("no picture") }
	bot := map[string]string{"full_name": "Painter", "short_name": "painter", "bot_type": "1"}
	if a := send(ann, "POST", "bots", bot, junk()); a["msg"] != "Invalid image format" {
		t.Errorf("a bot with junk: %v", a)
	}
	if a := send(ann, "POST", "bots", bot, pngOf(t, 9, 9),
		pngOf(t, 9, 9)); a["msg"] != "You may only upload one file at a time" {
		t.Errorf("a bot with two pictures: %v", a)
	}
	a := send(ann, "POST", "bots", bot, pngOf(t, 9, 9))
	id, _ := a["user_id"].(float64)
	first, _ := a["avatar_url"].(string)
	if a["result"] != "success" || strings.Contains(first, "generated") {
		t.Fatalf("a bot with a picture: %v", a)
	}
	if status, _, err := bo.request("GET", first, "", nil); err != nil || status != 200 {
		t.Errorf("the picture: %d %v", status, err)
	}
	path := fmt.Sprintf("bots/%d", int(id))
	if a := send(bo, "PATCH", path, nil, junk()); a["msg"] != "Insufficient permission" {
		t.Errorf("junk for another's bot: %v", a)
	}
	if a := send(ann, "PATCH", path, nil, junk()); a["msg"] != "Invalid image format" {
		t.Errorf("junk for a bot: %v", a)
	}
	a = send(ann, "PATCH", path, nil, io.MultiReader(pngOf(t, 30, 20), zeros("large", 3<<20)))
	if now, _ := a["avatar_url"].(string); a["result"] != "success" || now == first || !strings.HasSuffix(now, "?v=2") {
		t.Errorf("another picture for a bot: %v", a)
	}
	for _, path := range []string{"users/me/avatar", "realm/icon", "realm/logo"} {
		name := path[strings.LastIndex(path, "/")+1:]
		if a := send(ada, "POST", path, map[string]string{"night": "false"}, pngOf(t, 9, 9),
			pngOf(t, 9, 9)); a["msg"] != "You must upload exactly one "+name+"." {
			t.Errorf("two pictures for %s: %v", path, a)
		}
	}
	if a, err := ada.call("PATCH", "realm", url.Values{"avatar_changes_disabled": {"true"}}); err != nil ||
		a["result"] != "success" {
		t.Fatal(a, err)
	}
	if a := send(bo, "POST", "users/me/avatar", nil,
		junk()); a["msg"] != "Avatar changes are disabled in this organization." {
		t.Errorf("junk where pictures stay as they are: %v", a)
	}
}

// Files can be read in parts and conditionally. Only reading is allowed.
func TestRangeAndConditionalRequests(t *testing.T) {
	at := demo(t, filepath.Join(t.TempDir(), "data")).serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	_, a, err := ann.upload(map[string]io.Reader{"a.txt": strings.NewReader("0123456789")})
	if err != nil {
		t.Fatal(err)
	}
	path, _ := a["url"].(string)
	get := func(p *account, method string, header ...string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequest(method, p.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(p.email, p.key)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	whole, body := get(ann, "GET")
	tag := whole.Header.Get("ETag")
	if whole.StatusCode != 200 || body != "0123456789" || len(tag) < 3 {
		t.Fatalf("%s %q, ETag %s", whole.Status, body, tag)
	}
	for _, x := range []struct {
		header []string
		status int
		body   string
		part   string // Content-Range
	}{
		{[]string{"Range", "bytes=0-3"}, 206, "0123", "bytes 0-3/10"},
		{[]string{"Range", "bytes=7-"}, 206, "789", "bytes 7-9/10"},
		{[]string{"Range", "bytes=-2"}, 206, "89", "bytes 8-9/10"},
		{[]string{"Range", "bytes=-99"}, 206, "0123456789", "bytes 0-9/10"},
		{[]string{"Range", "bytes=8-99999999999999999"}, 206, "89", "bytes 8-9/10"},
		{[]string{"Range", "bytes=10-"}, 416, "", "bytes */10"},
		{[]string{"Range", "bytes=-0"}, 416, "", "bytes */10"},
		{[]string{"Range", "bytes=5-2"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=0-1,4-5"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=x"}, 200, "0123456789", ""},
		{[]string{"Range", "lines=0-3"}, 200, "0123456789", ""},
		{[]string{"Range", "bytes=0-3", "If-Range", tag}, 206, "0123", "bytes 0-3/10"},
		{[]string{"Range", "bytes=0-3", "If-Range", `"other"`}, 200, "0123456789", ""},
		{[]string{"If-None-Match", tag}, 304, "", ""},
		{[]string{"If-None-Match", `"other", W/` + tag}, 304, "", ""},
		{[]string{"If-None-Match", `"other"`}, 200, "0123456789", ""},
	} {
		resp, body := get(ann, "GET", x.header...)
		if resp.StatusCode != x.status || x.status != 416 && body != x.body ||
			resp.Header.Get("Content-Range") != x.part {
			t.Errorf("%v: %s %q %s", x.header, resp.Status, body, resp.Header.Get("Content-Range"))
		}
	}
	if resp, body := get(ann, "HEAD", "Range", "bytes=0-3"); resp.StatusCode != 200 || body != "" ||
		resp.ContentLength != 10 || resp.Header.Get("ETag") != tag {
		t.Errorf("HEAD: %s %q %v", resp.Status, body, resp.Header)
	}
	if resp, _ := get(bo, "GET", "If-None-Match", tag); resp.StatusCode != 404 {
		t.Errorf("to a user without access: %s", resp.Status)
	}
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		if resp, _ := get(ann, method); resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: %s %v", method, resp.Status, resp.Header)
		}
	}
	if resp, body := get(ann, "OPTIONS"); resp.StatusCode != 204 || body != "" {
		t.Errorf("OPTIONS: %s %q", resp.Status, body)
	}
}

// The address of a user's avatar can be requested by every user. A guest who cannot see the user gets the avatar for
// unknown users, and a request by email address reveals nothing.
func TestAvatarAddresses(t *testing.T) {
	k := newDemoClient(t)
	avatarURL := func(who, name string) string {
		t.Helper()
		p := k.people[who]
		r, err := http.NewRequest("GET", k.at+"/avatar/"+strings.ReplaceAll(name, "{ann}", fmt.Sprint(k.ids["ann"])),
			nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.key != "" {
			r.SetBasicAuth(p.email, p.key)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 302 {
			return resp.Status[:3]
		}
		return resp.Header.Get("Location")
	}
	const unknown = "/static/images/unknown-user-avatar"
	drawn := fmt.Sprintf("/user_avatars/root/generated/%d", k.ids["ann"])
	k.equal("a colleague, by id", avatarURL("bo", "{ann}"), drawn+".png?v=1")
	k.equal("a colleague, by address", avatarURL("bo", "ann@example.org/medium"), drawn+"-medium.png?v=1")
	k.equal("a missing user", avatarURL("bo", "999999"), "404")
	k.equal("to visitors without access", avatarURL("", "{ann}"), "404")
	k.must("ada", "PATCH realm", "enable_spectator_access", true)
	k.equal("to visitors, by id", avatarURL("", "{ann}"), drawn+".png?v=1")
	k.equal("to visitors, by address", avatarURL("", "ann@example.org"), "404")

	var members any
	for _, g := range k.must("ada", "GET user_groups")["user_groups"].([]any) {
		if g := g.(map[string]any); g["name"] == "role:members" {
			members = g["id"]
		}
	}
	k.must("ada", "PATCH realm", "can_access_all_users_group", map[string]any{"new": members})
	var names []any
	for _, s := range k.must("gus", "GET users/me/subscriptions")["subscriptions"].([]any) {
		names = append(names, s.(map[string]any)["name"])
	}
	k.must("gus", "DELETE users/me/subscriptions", "subscriptions", names)
	k.equal("to a guest without access, by id", avatarURL("gus", "{ann}"), unknown+".png")
	k.equal("and larger", avatarURL("gus", "{ann}/medium"), unknown+"-medium.png")
	for _, size := range []string{".png", "-medium.png"} {
		if status, _, err := k.people[""].request("GET", unknown+size, "", nil); err != nil || status != 200 {
			t.Errorf("%s: %d %v", size, status, err)
		}
	}
	k.equal("to a guest without access, by address", avatarURL("gus", "ann@example.org"), "404")
	k.equal("the own avatar of a guest", avatarURL("gus", fmt.Sprint(k.ids["gus"])),
		strings.Replace(drawn, fmt.Sprint(k.ids["ann"]), fmt.Sprint(k.ids["gus"]), 1)+".png?v=1")
}

// Pictures of phones in HEIC are stored and named, and get no thumbnail, with a reason.
func TestHEICPicture(t *testing.T) {
	p := demo(t, t.TempDir())
	ann := demoAccount(t, p.serving(), "ann@example.org")
	for brand, want := range map[string]string{"heic": "image/heic", "mif1": "image/heic", "avif": "image/avif",
		"isom": "application/octet-stream"} {
		content := "\x00\x00\x00\x18ftyp" + brand + "\x00\x00\x00\x00mif1heic" + strings.Repeat("x", 100)
		address := ann.uploadText(t, "IMG_1.HEIC", content)
		if _, err := ann.send("[photo](" + address + ")"); err != nil {
			t.Fatal(err)
		}
		status, header, body := fetch(t, ann.url, ann, address)
		if status != 200 || header.Get("Content-Type") != want || string(body) != content ||
			!strings.HasPrefix(header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %v", brand, status, header)
		}
		status, _, body = fetch(t, ann.url, ann, "/user_uploads/thumbnail"+strings.TrimPrefix(address, "/user_uploads")+
			"/840x560.webp")
		named := strings.Contains(string(body), "no thumbnails of HEIC")
		if status != 404 || named != strings.HasPrefix(want, "image/") {
			t.Errorf("thumbnail of %s: %d %s", brand, status, body)
		}
	}
}

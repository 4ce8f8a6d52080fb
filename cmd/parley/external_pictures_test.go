package main

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// externalPicture is a path of a picture in rendered text.
var externalPicture = regexp.MustCompile(`src="(/external_content/[0-9a-f]{40}/([0-9a-f]+))"`)

// With image-proxy, messages show pictures of other sites at addresses of this server, which fetches each once. No one
// can make it fetch others. Without the setting, such addresses lead to the sites.
func TestExternalPictures(t *testing.T) {
	asked := atomic.Int64{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.Contains(r.URL.Path, "page") {
			fmt.Fprint(w, "<html><script>alert(1)</script>")
			return
		}
		fmt.Fprint(w, "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff"+
			",\x00\x00\x00\x00\x01\x00\x01\x00\x00;")
	}))
	defer site.Close()
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data, "--image-proxy", "--previews-allow", "127.0.0.0/8")
	ann := demoAccount(t, p.serving(), "ann@example.org")
	send := func(address string) (path string) {
		t.Helper()
		id, err := ann.send(address)
		if err != nil {
			t.Fatal(err)
		}
		m := ann.must(t, "GET", fmt.Sprint("messages/", id), nil)["message"].(map[string]any)
		found := externalPicture.FindStringSubmatch(m["content"].(string))
		if found == nil {
			t.Fatalf("no picture in %s", m["content"])
		}
		if b, err := hex.DecodeString(found[2]); err != nil || string(b) != address {
			t.Fatalf("the path is for %q: %v", b, err)
		}
		return found[1]
	}
	path := send(site.URL + "/cat.gif")
	for range 3 {
		status, header, body := fetch(t, ann.url, nil, path)
		if status != 200 || header.Get("Content-Type") != "image/gif" ||
			header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(string(body), "GIF89a") {
			t.Fatalf("%d %v %q", status, header, body)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the site was asked %d times", asked.Load())
	}
	if status, _, body := fetch(t, ann.url, nil, send(site.URL+"/page.png")); status != 404 {
		t.Errorf("a page that is called a picture: %d %q", status, body)
	}
	other := path[:strings.LastIndex(path, "/")+1] + hex.EncodeToString([]byte(site.URL+"/dog.gif"))
	before := asked.Load()
	for _, path := range []string{other, path + "00", "/external_content/x/y", "/external_content/" +
		strings.Repeat("0", 40) + "/00"} {
		if status, _, _ := fetch(t, ann.url, nil, path); status != 403 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if asked.Load() != before {
		t.Error("the server fetched an address that it had not signed")
	}
	p.stop()
	p = demo(t, data)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(p.serving() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 302 || resp.Header.Get("Location") != site.URL+"/cat.gif" {
		t.Errorf("without the setting: %d to %q", resp.StatusCode, resp.Header.Get("Location"))
	}
}

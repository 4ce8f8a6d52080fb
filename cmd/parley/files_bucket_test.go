package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/snapshot/files/s3/s3test"
)

// bucketServer is a server that keeps its files in a folder of a bucket.
type bucketServer struct {
	t      *testing.T
	s3     *s3test.Server
	proxy  *s3test.Proxy
	folder string
	data   string
	*program
	ann *account
}

// startBucketServer starts a server with a demo organization and its files in the folder "files" of a bucket.
func startBucketServer(t *testing.T) *bucketServer {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.SecretKey)
	b := &bucketServer{t: t, s3: s3test.Start(t), folder: "files", data: filepath.Join(t.TempDir(), "data")}
	b.proxy = b.s3.Proxy(t)
	b.start("--files", b.proxy.URL(b.folder))
	return b
}

// start starts the server, also after it was killed.
func (b *bucketServer) start(flags ...string) {
	b.t.Helper()
	b.program = demo(b.t, b.data, flags...)
	at := b.serving()
	if b.ann == nil {
		b.ann = demoAccount(b.t, at, "ann@example.org")
	}
	b.ann.url = at
}

// objects returns the keys of the uploaded files in the bucket.
func (b *bucketServer) objects() []string {
	list := b.s3.Objects(b.folder + "/content")
	slices.Sort(list)
	return list
}

// age makes all objects seem to be written more than a day ago, so that a sweep removes those that no row names.
func (b *bucketServer) age() {
	b.t.Helper()
	old := time.Now().Add(-25 * time.Hour)
	for _, key := range b.s3.Objects(b.folder) {
		if err := os.Chtimes(b.s3.Path(b.folder+"/"+key), old, old); err != nil {
			b.t.Fatal(err)
		}
	}
}

// attachments returns the ids of the listed uploads by their path.
func (b *bucketServer) attachments() map[string]int64 {
	b.t.Helper()
	found := map[string]int64{}
	for _, x := range b.ann.must(b.t, "GET", "attachments", nil)["attachments"].([]any) {
		x := x.(map[string]any)
		found["/user_uploads/"+x["path_id"].(string)] = int64(x["id"].(float64))
	}
	return found
}

// request sends a request as Ann and returns status, body and headers; status 0 is a broken connection.
func (b *bucketServer) request(method, path string) (status int, body string, headers http.Header) {
	return b.requestWith(method, path, "", "")
}

// requestUpload sends a file as Ann.
func (b *bucketServer) requestUpload(text string) (status int, body string, headers http.Header) {
	var form strings.Builder
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "file.txt")
	if err == nil {
		_, err = io.WriteString(part, text)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		b.t.Fatal(err)
	}
	return b.requestWith("POST", "/api/v1/user_uploads", w.FormDataContentType(), form.String())
}

func (b *bucketServer) requestWith(method, path, kind, content string) (status int, body string, headers http.Header) {
	r, err := http.NewRequest(method, b.ann.url+path, strings.NewReader(content))
	if err != nil {
		b.t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.SetBasicAuth(b.ann.email, b.ann.key)
	client := &http.Client{Timeout: binaryTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return resp.StatusCode, string(data), resp.Header
}

// checkStopped runs parley files check, which must find so many named files and no bad one.
func (b *bucketServer) checkStopped(named int) {
	b.t.Helper()
	out, code := runParley("files", "check", "--data", b.data)
	if want := fmt.Sprintf("%d files are referenced, 0 of them are missing or damaged", named); code != 0 ||
		!strings.Contains(out, want) {
		b.t.Errorf("parley files check: code %d, %s, want %q", code, out, want)
	}
}

// A server is killed after an upload was stored in the bucket and before its row was written, and after the row of
// another one was removed and before its file was. The first upload was not acknowledged, the second one stays
// deleted, and the next sweep removes both files. The same content can be uploaded again.
func TestBucketKillBetweenFileAndRow(t *testing.T) {
	b := startBucketServer(t)
	kept, deleted := b.ann.uploadText(t, "kept.txt", "kept"), b.ann.uploadText(t, "deleted.txt", "deleted")
	// kill kills the server while the proxy holds a request that do has caused.
	kill := func(held <-chan *s3test.Held, do func() (status int)) {
		t.Helper()
		answered := make(chan int, 1)
		go func() { answered <- do() }()
		select {
		case x := <-held:
			b.kill()
			if status := <-answered; status == 200 {
				t.Error("the request was acknowledged too early")
			}
			x.Release()
		case status := <-answered:
			t.Fatalf("the request was answered %d before the bucket was asked", status)
		}
		b.start()
	}
	upload := func(text string) int {
		status, _, _ := b.ann.upload(map[string]io.Reader{"file.txt": strings.NewReader(text)})
		return status
	}
	kill(b.proxy.HoldAnswer("PUT"), func() int { return upload("never acknowledged") })
	if n := len(b.objects()); n != 3 {
		t.Fatalf("the bucket has %d files, want 3: the kill was not between the file and its row", n)
	}
	kill(b.proxy.HoldAnswer("PUT"), func() int { return upload("uploaded again") })
	again := b.ann.uploadText(t, "again.txt", "uploaded again")
	id := b.attachments()[deleted]
	kill(b.proxy.HoldBefore("DELETE"), func() int {
		status, _, _ := b.request("DELETE", fmt.Sprintf("/api/v1/attachments/%d", id))
		return status
	})
	if n := len(b.objects()); n != 4 {
		t.Fatalf("the bucket has %d files, want 4: the kill was not between the row and the file", n)
	}
	if got := slices.Sorted(maps.Keys(b.attachments())); !slices.Equal(got, slices.Sorted(slices.Values([]string{kept,
		again}))) {
		t.Errorf("the server lists %v", got)
	}
	if status, _, _ := b.request("GET", deleted); status != 404 {
		t.Errorf("a deleted file is answered %d", status)
	}
	b.age()
	b.kill()
	b.start()
	eventually(t, "the orphans are swept", func() bool { return len(b.objects()) == 2 })
	if got := b.ann.download(t, kept) + ", " + b.ann.download(t, again); got != "kept, uploaded again" {
		t.Errorf("the acknowledged files are %s", got)
	}
	b.stop()
	b.checkStopped(2)
}

// uploadRecord has the answers that one client of TestBucketKill got about its files.
type uploadRecord struct {
	content map[string]string // of acknowledged uploads, by path
	deleted []string          // acknowledged deletions
	unsure  map[string]bool   // deletions without an answer
}

// TestBucketKill kills a server at random moments while clients upload and delete files. After each kill, every
// acknowledged upload has its content and every acknowledged deletion holds; in the end the bucket has exactly the
// files that rows name. KILLS and SEED make the test longer or repeat it: make conform-s3.
func TestBucketKill(t *testing.T) {
	kills := environmentNumber("KILLS", 2)
	seed := uint64(environmentNumber("SEED", int(time.Now().UnixNano()%1e9)))
	t.Logf("KILLS=%d SEED=%d", kills, seed)
	b := startBucketServer(t)
	random := rand.New(rand.NewPCG(seed, 1))
	records := make([]*uploadRecord, 4)
	for i := range records {
		records[i] = &uploadRecord{content: map[string]string{}, unsure: map[string]bool{}}
	}
	for kill := range kills {
		var working sync.WaitGroup
		for i, r := range records {
			working.Go(func() {
				b.uploadUntilKilled(r, fmt.Sprint(kill, "/", i), rand.New(rand.NewPCG(seed, uint64(100*kill+i))))
			})
		}
		time.Sleep(time.Duration(100+random.IntN(400)) * time.Millisecond) // a random moment
		b.kill()
		working.Wait()
		b.start()
		for _, r := range records {
			b.checkRecord(r)
		}
	}
	b.age()
	b.kill()
	b.start()
	named := b.attachments()
	eventually(t, "the orphans are swept", func() bool { return len(b.objects()) == len(named) })
	deleted := 0
	for _, r := range records {
		b.checkRecord(r)
		deleted += len(r.deleted)
	}
	b.stop()
	b.checkStopped(len(named))
	t.Logf("%d files are left after %d kills, %d deletions were acknowledged", len(named), kills, deleted)
}

// uploadUntilKilled uploads and deletes files until a request has no answer.
func (b *bucketServer) uploadUntilKilled(r *uploadRecord, name string, random *rand.Rand) {
	for n := 0; ; n++ {
		text := fmt.Sprintf("file %s/%d %s", name, n, strings.Repeat("x", random.IntN(100_000)))
		status, a, err := b.ann.upload(map[string]io.Reader{"file.txt": strings.NewReader(text)})
		if err != nil {
			return
		}
		if status != 200 {
			b.t.Errorf("an upload is answered %d %v", status, a)
			return
		}
		path := a["url"].(string)
		r.content[path] = text
		if random.IntN(3) > 0 {
			continue
		}
		status, body, _ := b.request("GET", "/api/v1/attachments")
		var list struct {
			Attachments []struct {
				ID   int64
				Path string `json:"path_id"`
			}
		}
		if status != 200 || json.Unmarshal([]byte(body), &list) != nil {
			return
		}
		for _, x := range list.Attachments {
			if "/user_uploads/"+x.Path != path {
				continue
			}
			delete(r.content, path)
			if status, body, _ = b.request("DELETE", fmt.Sprintf("/api/v1/attachments/%d", x.ID)); status == 0 {
				r.unsure[path] = true
				return
			}
			if status != 200 {
				b.t.Errorf("a deletion is answered %d %s", status, body)
			}
			r.deleted = append(r.deleted, path)
		}
	}
}

func (b *bucketServer) checkRecord(r *uploadRecord) {
	b.t.Helper()
	for path, want := range r.content {
		if status, body, _ := b.request("GET", path); status != 200 || body != want {
			b.t.Errorf("the acknowledged %s is answered %d with %d bytes", path, status, len(body))
		}
	}
	for _, path := range r.deleted {
		if status, _, _ := b.request("GET", path); status != 404 {
			b.t.Errorf("the deleted %s is answered %d", path, status)
		}
	}
	for path := range r.unsure {
		if status, _, _ := b.request("GET", path); status != 200 && status != 404 {
			b.t.Errorf("%s, whose deletion had no answer, is answered %d", path, status)
		}
	}
}

package main

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/snapshot/files/s3/s3test"
)

// outage measures sends of messages while the bucket cannot be reached.
type outage struct {
	sent    int
	longest time.Duration
}

// hangingOutage is the shortest outage in which a server that hangs is noticed: two attempts of 20 s.
const hangingOutage = 45 * time.Second

// TestBucketOutage takes the S3 server away from a running server. Uploads and downloads get 503 with Retry-After, and
// messages are sent and received as before. Everything works again by itself afterwards. OUTAGE is the duration in
// seconds: make conform-s3 has 60.
func TestBucketOutage(t *testing.T) {
	lasts := time.Duration(environmentNumber("OUTAGE", 1)) * time.Second
	t.Run("ended", func(t *testing.T) { testOutage(t, lasts, (*s3test.Server).Kill, (*s3test.Server).Resume) })
	t.Run("hangs", func(t *testing.T) {
		if lasts < hangingOutage {
			t.Skip("a server that hangs is given up after 40 s: OUTAGE=60 runs this; package s3 tests the limits")
		}
		testOutage(t, lasts, (*s3test.Server).Freeze, (*s3test.Server).Thaw)
	})
}

func testOutage(t *testing.T, lasts time.Duration, begin, end func(*s3test.Server)) {
	b := startBucketServer(t)
	path := b.ann.uploadText(t, "before.txt", "before")
	q, err := b.ann.newPoller()
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan error, 1)
	go func() { received <- q.pollUntil("the end") }()
	began := time.Now()
	begin(b.s3)
	var messages outage
	var sending sync.WaitGroup
	stop := make(chan struct{})
	sending.Go(func() { messages.measure(t, stop, b.ann) })
	for n := 0; n == 0 || time.Since(began) < lasts; n++ {
		status, body, headers := b.requestUpload("a file that is refused")
		if n == 0 {
			t.Logf("the first upload was refused after %v", time.Since(began).Round(time.Millisecond))
		}
		if status != 503 || !strings.Contains(body, "FILES_UNAVAILABLE") || headers.Get("Retry-After") == "" {
			t.Fatalf("an upload is answered %d %s, Retry-After %q", status, body, headers.Get("Retry-After"))
		}
		if status, _, headers := b.request("GET", path); status != 503 || headers.Get("Retry-After") == "" {
			t.Fatalf("a download is answered %d, Retry-After %q", status, headers.Get("Retry-After"))
		}
		if _, body, _ := b.request("GET", "/health"); n > 0 && !strings.Contains(body, "unreachable since") {
			t.Errorf("the health check says %s", body)
		}
		time.Sleep(50 * time.Millisecond)
	}
	close(stop)
	sending.Wait()
	end(b.s3)
	eventually(t, "the bucket can be reached again", func() bool {
		status, body, _ := b.request("GET", path)
		return status == 200 && body == "before"
	})
	if got := b.ann.download(t, b.ann.uploadText(t, "after.txt", "after")); got != "after" {
		t.Errorf("an upload afterwards is %q", got)
	}
	b.ann.must(t, "POST", "messages", url.Values{"type": {"stream"}, "to": {"general"}, "topic": {"proof"},
		"content": {"the end"}})
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	if len(q.texts) != messages.sent {
		t.Errorf("%d messages were received, %d were sent", len(q.texts), messages.sent)
	}
	t.Logf("%d messages during the outage, the slowest took %v", messages.sent, messages.longest)
}

// measure sends messages until stop is closed.
func (o *outage) measure(t *testing.T, stop chan struct{}, from *account) {
	for {
		began := time.Now()
		if _, err := from.send(fmt.Sprint("message ", o.sent)); err != nil {
			t.Errorf("message %d: %v", o.sent, err)
			return
		}
		o.sent++
		o.longest = max(o.longest, time.Since(began))
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The messages of the attack on memory: their text has 7.5 kB, their HTML 20 times as much.
const (
	bombMessages = 600
	bombAnswers  = 29 // requests that are not read
)

// bombText is the content of one of these messages.
var bombText = strings.Repeat(":o: ", 2490)

// Limits of the memory that these answers take, in bytes above the memory of the idle server. Before answers were
// bounded, the first took 980 MB and the others 15.5 GB.
const (
	oneAnswerMemory  = 120 << 20
	manyAnswerMemory = 400 << 20
)

// Many requests at once for the history of one message: together they took 1.9 GB before they were built in turns.
const (
	bombEdits     = 100
	bombHistories = 150
)

// peakMemory returns the largest resident memory of a process since the last call, in bytes.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(after)
	kilobytes, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	// 5 resets the peak to the present value
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// Answers take a bounded part of the memory: a page of large messages is shortened, and requests whose answers are not
// read do not add up.
func TestAnswerMemory(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := demo(t, data)
	at := p.serving()
	ann := demoAccount(t, at, "ann@example.org")
	for range bombMessages {
		if _, err := ann.send(bombText); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	p = demo(t, data, "--write-timeout", "20s") // without the garbage of sending
	at = p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	pid := p.cmd.Process.Pid
	peakMemory(t, pid)
	time.Sleep(time.Second)
	idle := peakMemory(t, pid)

	checkShortenedPage(t, ann)
	if used := peakMemory(t, pid) - idle; used > oneAnswerMemory {
		t.Errorf("one page took %d MB above %d", used>>20, idle>>20)
	} else {
		t.Logf("one page took %d MB above %d", used>>20, idle>>20)
	}

	number := bombAnswers
	if n, err := strconv.Atoi(os.Getenv("ANSWERS")); err == nil {
		number = n
	}
	for i := range number {
		c := requestWithoutReading(t, ann, []string{"identity", "gzip"}[i%2])
		defer c.Close()
	}
	slowest := time.Duration(0)
	for range 10 {
		time.Sleep(200 * time.Millisecond)
		began := time.Now()
		if _, err := bo.send("still here"); err != nil {
			t.Errorf("another user: %v", err)
		}
		slowest = max(slowest, time.Since(began))
	}
	if used := peakMemory(t, pid) - idle; used > manyAnswerMemory {
		t.Errorf("%d unread pages took %d MB", number, used>>20)
	} else {
		t.Logf("%d unread pages took %d MB; another user waited at most %v", number, used>>20, slowest)
	}
}

// Requests for a history that compares many large texts take a bounded part of the memory too, and other users do not
// wait for all of them.
func TestHistoryMemory(t *testing.T) {
	p := demo(t, filepath.Join(t.TempDir(), "data"), "--write-timeout", "20s")
	at := p.serving()
	ann, bo := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org")
	id, err := ann.send("first")
	if err != nil {
		t.Fatal(err)
	}
	for n := range bombEdits {
		text := url.Values{"content": {strconv.Itoa(n) + " " + bombText[:9000]}}
		if _, err := ann.call("PATCH", fmt.Sprint("messages/", id), text); err != nil {
			t.Fatal(err)
		}
	}
	pid := p.cmd.Process.Pid
	peakMemory(t, pid)
	time.Sleep(time.Second)
	idle := peakMemory(t, pid)
	for range bombHistories {
		c := requestPathWithoutReading(t, ann, fmt.Sprintf("messages/%v/history", id), "identity")
		defer c.Close()
	}
	slowest := time.Duration(0)
	for range 10 {
		began := time.Now()
		if _, err := bo.send("still here"); err != nil {
			t.Errorf("another user: %v", err)
		}
		slowest = max(slowest, time.Since(began))
		time.Sleep(200 * time.Millisecond)
	}
	used := peakMemory(t, pid) - idle
	t.Logf("%d unread histories took %d MB; another user waited at most %v", bombHistories, used>>20, slowest)
	if used > manyAnswerMemory {
		t.Errorf("%d unread histories took %d MB", bombHistories, used>>20)
	}
}

// bombPage asks for all of the large messages.
var bombPage = url.Values{"anchor": {"newest"}, "num_before": {strconv.Itoa(bombMessages)}, "num_after": {"0"}}

// requestWithoutReading sends a request for the large messages on a connection of its own.
func requestWithoutReading(t *testing.T, a *account, encoding string) net.Conn {
	t.Helper()
	return requestPathWithoutReading(t, a, "messages?"+bombPage.Encode(), encoding)
}

// requestPathWithoutReading sends a GET request on a connection of its own.
func requestPathWithoutReading(t *testing.T, a *account, path, encoding string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(c, "GET /api/v1/%s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nAccept-Encoding: %s\r\n\r\n", path,
		a.auth(), encoding)
	return c
}

// checkShortenedPage asks for all large messages in one request. The answer has the newest of them.
func checkShortenedPage(t *testing.T, a *account) {
	t.Helper()
	r, err := http.NewRequest("GET", a.url+"/api/v1/messages?"+bombPage.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", a.auth())
	r.Header.Set("Accept-Encoding", "identity")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Messages                   []struct{ ID int }
		Found_oldest, Found_newest bool
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&page); err != nil {
		t.Fatal(err)
	}
	n := len(page.Messages)
	t.Logf("the page has %d messages and %d bytes", n, len(body))
	if n == 0 || n == bombMessages || page.Found_oldest || !page.Found_newest || len(body) > 12<<20 {
		t.Errorf("the page has %d messages, %d bytes, found_oldest %t, found_newest %t", n, len(body),
			page.Found_oldest, page.Found_newest)
	}
}

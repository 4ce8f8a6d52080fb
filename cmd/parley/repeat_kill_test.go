package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"testing"
	"time"
)

// A repeated message is sent once at each of its times, also if the program is killed right after it was sent. Of the
// times that pass while the program does not run, one message is sent.
func TestKillRepeatedMessage(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	start := func(ahead time.Duration) *program {
		cmd := parleyCommand("serve", "--data", data, "--listen", freeAddress(t), "--demo")
		cmd.Env = append(cmd.Env, clockAhead+"="+ahead.String())
		return startProgram(t, cmd)
	}
	p := start(0)
	ann := demoAccount(t, p.serving(), "ann@example.org")
	first := time.Now().Add(2 * time.Second)
	ann.must(t, "POST", "scheduled_messages", url.Values{"type": {"stream"}, "to": {channelID(t, ann, "general")},
		"topic": {"again"}, "content": {"stand-up"}, "scheduled_delivery_timestamp": {fmt.Sprint(first.Unix())},
		"repeat": {`{"every":"daily","timezone":"UTC"}`}})
	for sent, ahead := range []time.Duration{0, 24 * time.Hour, 24*time.Hour + time.Hour, 24 * 9 * time.Hour} {
		if ahead != 0 {
			p.kill()
			p = start(ahead)
			ann.url = p.serving()
		}
		want := sent + 1
		if sent >= 2 {
			want = sent // between two times nothing is sent
		}
		waitForTopic(t, ann, "again", want)
		next := ann.must(t, "GET", "scheduled_messages", nil)["scheduled_messages"].([]any)[0].(map[string]any)
		days := int64(ahead/(24*time.Hour)) + 1
		at := int64(next["scheduled_delivery_timestamp"].(float64))
		if at != first.Unix()+days*86400 || next["failed"] != false {
			t.Errorf("%v ahead, the next time is %d s after the first; failed: %v", ahead, at-first.Unix(),
				next["failed"])
		}
	}
	p.stop()
	if out, code := runParley("log", "check", data); code != 0 {
		t.Errorf("the log: %s", out)
	}
}

// channelID returns the id of a channel as a parameter.
func channelID(t *testing.T, a *account, name string) string {
	t.Helper()
	return fmt.Sprint(int64(a.must(t, "GET", "get_stream_id", url.Values{"stream": {name}})["stream_id"].(float64)))
}

// waitForTopic waits until a topic of #general has a number of messages, and fails if it has more.
func waitForTopic(t *testing.T, a *account, topic string, want int) {
	t.Helper()
	got := 0
	for deadline := time.Now().Add(binaryTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if got = len(a.textsOfTopic(t, topic)); got >= want {
			break
		}
	}
	if got != want {
		t.Fatalf("the topic has %d messages, want %d", got, want)
	}
}

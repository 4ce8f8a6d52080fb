package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/emersion/go-smtp"
)

// An email to a channel becomes a message with its files, which the readers of the channel can open. A link in its text
// gives no access to a file that the sender could not share.
func TestMailWithFiles(t *testing.T) {
	smtpAddress := freeAddress(t)
	at := demo(t, t.TempDir(), "--mail-listen", smtpAddress).serving()
	ann, bo, gus := demoAccount(t, at, "ann@example.org"), demoAccount(t, at, "bo@example.org"),
		demoAccount(t, at, "gus@example.org")
	own := ann.uploadText(t, "secret.txt", "Ann's own")
	a := ann.must(t, "GET", "streams/1/email_address", nil)
	text := "Subject: plans\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nlook at " +
		"[this](" + own + ")\n" +
		"--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename=\"a plan.txt\"\n\nthe plan\n--b--\n"
	c, err := smtp.Dial(smtpAddress)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SendMail("x@example.com", []string{fmt.Sprint(a["email"])},
		strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
		t.Fatal(err)
	}
	a = bo.must(t, "GET", "messages", url.Values{"anchor": {"newest"}, "num_before": {"1"}, "num_after": {"0"},
		"apply_markdown": {"false"}})
	got := a["messages"].([]any)[0].(map[string]any)
	link := regexp.MustCompile(
		`\n\[a plan\.txt\]\((/user_uploads/\S+/a-plan\.txt)\)$`).FindStringSubmatch(fmt.Sprint(got["content"]))
	if link == nil || got["subject"] != "plans" {
		t.Fatalf("the email became %v", got)
	}
	for _, x := range []struct {
		who        *account
		name, path string
		opens      bool
	}{{bo, "Bo", link[1], true}, {gus, "Gus", link[1], false}, {bo, "Bo", own, false}, {ann, "Ann", own, true}} {
		if _, err := x.who.call("GET", strings.TrimPrefix(x.path, "/"), nil); (err == nil) != x.opens {
			t.Errorf("%s asks for %s: %v", x.name, x.path, err)
		}
	}
	if got := bo.download(t, link[1]); got != "the plan" {
		t.Errorf("the file is %q", got)
	}
}

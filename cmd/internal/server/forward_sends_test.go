package server

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/wire/httpd"
)

// forwardedPost returns a forwarded request with a form and further header lines.
func forwardedPost(u *matrixUser, target, form string, lines ...string) httpd.ForwardedRequest {
	lines = append([]string{"POST " + target + " HTTP/1.1", "Host: " + u.host, "User-Agent: ZulipMobile/1",
		"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.email+":"+u.key)),
		fmt.Sprint("Content-Length: ", len(form))}, lines...)
	return httpd.ForwardedRequest{ID: fmt.Sprintf("edge-%d", requestIDs.Add(1)), Realm: ours, Remote: "192.0.2.1",
		HTTP: []byte(strings.Join(lines, "\r\n") + "\r\n\r\n" + form)}
}

const formType = "Content-Type: application/x-www-form-urlencoded"

// A forwarded message has the same answer whether it takes the short way or the ordinary one, and so has a refused one.
func TestForwardedSendsAreOrdinary(t *testing.T) {
	core, _, cluster, owner, member := stageWithEdge(t)
	channel := core.must(owner, "POST", "/channels/create", "name", "closed", "subscribers", []int64{owner.id},
		"invite_only", true)
	number := regexp.MustCompile(`"id":\d+`)
	answer := func(serve func(httpd.ForwardedRequest) (httpd.ForwardedAnswer, error), r httpd.ForwardedRequest) string {
		t.Helper()
		a, err := serve(r)
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := strings.Cut(number.ReplaceAllString(string(a.HTTP), `"id":0`), "\r\n\r\n")
		lines := strings.Split(head, "\r\n")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Date: ") })
		slices.Sort(lines)
		return strings.Join(lines, "\n") + "\n\n" + body
	}
	text := func(content string) string {
		return fmt.Sprintf("type=direct&to=[%d]&content=%s", owner.id, url.QueryEscape(content))
	}
	for _, c := range []struct {
		name, target, form string
		fast               bool
	}{
		{"a text", "/api/v1/messages", text("hello"), true},
		{"an unknown parameter", "/api/v1/messages", text("hello") + "&colour=red", true},
		{"a channel that the sender may not see", "/api/v1/messages",
			fmt.Sprintf("type=stream&to=%d&topic=t&content=hi", channel.int("id")), true},
		{"an unknown person", "/api/v1/messages", "type=direct&to=[4711]&content=hi", true},
		{"a long text", "/api/v1/messages", text(strings.Repeat("long ", 1000)), false},
		{"an empty text", "/api/v1/messages", text(" "), false},
		{"no form", "/api/v1/messages", "", false},
		{"another method", "/api/v1/messages", text("hello") + "&method=GET", false},
		{"the web prefix with a key", "/json/messages", text("hello"), true},
		{"another endpoint", "/api/v1/users/me/status", "status_text=here", false},
	} {
		before := cluster.fast.Load()
		fast := answer(cluster.serve, forwardedPost(member, c.target, c.form, formType))
		ordinary := answer(cluster.owner.ServeForwarded, forwardedPost(member, c.target, c.form, formType))
		if fast != ordinary {
			t.Errorf("%s: the short way answers\n%s\nthe ordinary one\n%s", c.name, fast, ordinary)
		}
		if got := cluster.fast.Load() > before; got != c.fast {
			t.Errorf("%s: on the short way: %t", c.name, got)
		}
	}
}

// A forwarded message does not take the short way if the ordinary one would refuse it, or has more to do.
func TestForwardedSendsDecline(t *testing.T) {
	_, _, cluster, owner, member := stageWithEdge(t)
	form := fmt.Sprintf("type=direct&to=[%d]&content=hello", owner.id)
	wrong := *member
	wrong.key = strings.Repeat("x", len(member.key))
	for _, c := range []struct {
		name    string
		request httpd.ForwardedRequest
		change  func(*httpd.ForwardedRequest)
	}{
		{"repeated", forwardedPost(member, "/api/v1/messages", form, formType),
			func(r *httpd.ForwardedRequest) { r.Again = true }},
		{"no id", forwardedPost(member, "/api/v1/messages", form, formType),
			func(r *httpd.ForwardedRequest) { r.ID = "" }},
		{"another organization", forwardedPost(member, "/api/v1/messages", form, formType),
			func(r *httpd.ForwardedRequest) { r.Realm = ours + 1 }},
		{"a wrong key", forwardedPost(&wrong, "/api/v1/messages", form, formType), nil},
		{"two keys", forwardedPost(member, "/api/v1/messages", form, formType, "Authorization: Basic eDp5"), nil},
		{"another form", forwardedPost(member, "/api/v1/messages", form,
			"Content-Type: multipart/form-data; boundary=x"), nil},
		{"a cut body", forwardedPost(member, "/api/v1/messages", form, formType),
			func(r *httpd.ForwardedRequest) { r.HTTP = r.HTTP[:len(r.HTTP)-1] }},
		{"no head", httpd.ForwardedRequest{ID: "edge-x", Realm: ours, HTTP: []byte("POST ")}, nil},
	} {
		if c.change != nil {
			c.change(&c.request)
		}
		sends := cluster.owner.NewForwardedSends()
		if sends.Begin(c.request, func(httpd.ForwardedAnswer, error) { t.Errorf("%s: answered", c.name) }) {
			t.Errorf("%s: taken", c.name)
		}
		sends.Flush()
	}
}

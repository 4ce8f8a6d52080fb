package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// newBot makes a bot of a user, and returns its address.
func (d *demoServer) newBot(owner string, n int) (email string, id int64) {
	d.t.Helper()
	a := d.call(owner, "POST", "bots", url.Values{"full_name": {fmt.Sprint("Bot ", n)},
		"short_name": {fmt.Sprint("bot", n, owner[:2])}})
	id = int64(a["user_id"].(float64))
	email = d.call(owner, "GET", fmt.Sprint("users/", id), nil)["user"].(map[string]any)["email"].(string)
	d.keys[email] = a["api_key"].(string)
	return email, id
}

// The scene in which another member got 503 for 40 s: 24 bots of one member ask for large pages and do not read them.
// Together they have the memory of one account, so the page of another member is answered.
func TestUnreadAnswersOfBots(t *testing.T) {
	const bots = 24
	d := startDemo(t)
	d.sendLarge(largeMessages)
	path := "messages?anchor=newest&num_before=1000&num_after=0&narrow=" +
		url.QueryEscape(`[{"operator":"channel","operand":"general"}]`)
	answers := map[int]int{}
	for n := range bots {
		email, _ := d.newBot("ann@example.org", n)
		c := d.dial(email, path, "1.1", "")
		defer c.Close()
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		c.SetReadDeadline(time.Now().Add(eventTimeout))
		// The first line says that the answer was built, or refused. The rest is not read.
		line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		status, _ := strconv.Atoi(strings.Fields(line)[1])
		answers[status]++
	}
	if answers[200] == 0 || answers[503] == 0 || answers[200]+answers[503] != bots {
		t.Errorf("the bots get %v: some must get their page, and some be refused", answers)
	}
	if limit := d.Server.http.Bounds().MaxAnswersPerCaller; d.Server.http.Stats().AnswerBytes > limit+limit/2 {
		t.Errorf("the answers of one member's bots take %d bytes, the limit of an account is %d",
			d.Server.http.Stats().AnswerBytes, limit)
	}
	for range 3 {
		r, body := d.get("bo@example.org", path, "1.1", "")
		if r.StatusCode != 200 || len(body) < 8<<20 {
			t.Fatalf("another member: %s, %d bytes: %.200s", r.Status, len(body), body)
		}
	}
	r, _ := d.get("ann@example.org", path, "1.1", "")
	if r.StatusCode != 503 {
		t.Errorf("the owner of the bots, who count with them: %s", r.Status)
	}
}

// session begins a browser session of a user and returns its cookies.
func (d *demoServer) session(email string) (cookie string) {
	d.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: eventTimeout}
	at, err := url.Parse(d.BaseURL())
	if err != nil {
		d.t.Fatal(err)
	}
	cookies := func() (all map[string]string) {
		all, cookie = map[string]string{}, ""
		for _, c := range jar.Cookies(at) {
			all[c.Name] = c.Value
			cookie += c.Name + "=" + c.Value + "; "
		}
		return all
	}
	page, err := client.Get(d.BaseURL() + "/login/")
	if err != nil {
		d.t.Fatal(err)
	}
	page.Body.Close()
	form := url.Values{"direct_email": {email}, "csrfmiddlewaretoken": {cookies()["csrftoken"]}}
	r, err := client.PostForm(d.BaseURL()+"/accounts/login/local/", form)
	if err != nil {
		d.t.Fatal(err)
	}
	r.Body.Close()
	if cookies()["sessionid"] == "" {
		d.t.Fatalf("%s, no session: %s", r.Status, cookie)
	}
	return cookie
}

// The requests of a person, by API key and in a browser, and those of the person's bots count together; other people
// count for themselves. The bots of an account that was deactivated still count as one.
func TestRequestsOfBotsCountForOwner(t *testing.T) {
	const limit = 40
	d := startDemo(t, func(s *Settings) { s.RateLimit, s.AnonymousRateLimit = limit, 0 })
	remaining := func(path, email, cookie string) int {
		t.Helper()
		r, err := http.NewRequest("GET", d.BaseURL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cookie != "" {
			r.Header.Set("Cookie", cookie)
		} else {
			r.SetBasicAuth(email, d.keys[email])
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusTooManyRequests {
			return -1
		}
		var body map[string]any
		json.NewDecoder(answer.Body).Decode(&body)
		n, err := strconv.Atoi(answer.Header.Get("X-RateLimit-Remaining"))
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s of %s: %s %v %v", path, email, answer.Status, answer.Header, body)
		}
		return n
	}
	const byKey, bySession = "/api/v1/users/me", "/json/users/me"
	bot, _ := d.newBot("ann@example.org", 1)
	bot2, _ := d.newBot("ann@example.org", 2)
	alone, aloneID := d.newBot("cy@example.org", 3)
	cookie := d.session("ann@example.org")

	at := remaining(byKey, "ann@example.org", "")
	for _, x := range []struct{ path, email, cookie string }{{byKey, bot, ""}, {bySession, "", cookie},
		{byKey, bot2, ""}, {byKey, "ann@example.org", ""}, {byKey, bot, ""}} {
		now := remaining(x.path, x.email, x.cookie)
		if now >= at {
			t.Errorf("a request of %s%s leaves %d of %d: it does not count for the owner", x.email, x.cookie, now, at)
		}
		at = now
	}
	before := remaining(byKey, "cy@example.org", "")
	if now := remaining(byKey, alone, ""); now >= before {
		t.Errorf("a bot of another person leaves %d of %d", now, before)
	}
	for remaining(byKey, bot, "") >= 0 {
	}
	for _, x := range []struct{ path, email, cookie string }{{byKey, "ann@example.org", ""}, {bySession, "", cookie},
		{byKey, bot2, ""}} {
		if n := remaining(x.path, x.email, x.cookie); n >= 0 {
			t.Errorf("the bot has used all requests, %s%s has %d", x.email, x.cookie, n)
		}
	}
	if n := remaining(byKey, "bo@example.org", ""); n < limit/2 {
		t.Errorf("another person has %d requests", n)
	}
	other, otherID := d.newBot("cy@example.org", 4)
	cy := d.call("olive@example.org", "GET", "users/cy@example.org", nil)["user"].(map[string]any)["user_id"]
	d.call("olive@example.org", "DELETE", fmt.Sprint("users/", cy), nil)
	if r, body := d.get(alone, "users/me", "1.1", ""); r.StatusCode != 401 {
		t.Errorf("the bot of a deactivated account gets %s %s", r.Status, body)
	}
	for _, id := range []int64{aloneID, otherID} {
		d.call("olive@example.org", "POST", fmt.Sprint("users/", id, "/reactivate"), nil)
	}
	at = remaining(byKey, alone, "")
	if now := remaining(byKey, other, ""); now >= at {
		t.Errorf("the bots of a deactivated account have %d and %d requests: they do not count as one", at, now)
	}
}

package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
)

// A member fills the organization with channels, whose descriptions expand to much HTML, and with groups, until the
// server refuses more. The registration of another user then has the size of the limit, not more. REGISTRATION=64 tries
// the default limit, in MiB.
func TestFullRegistration(t *testing.T) {
	size := 4
	if n, err := strconv.Atoi(os.Getenv("REGISTRATION")); err == nil {
		size = n
	}
	d := startDemo(t, func(s *Settings) { s.RegistrationSize = size })
	const refusal = "The lists of channels and groups of this organization cannot become larger"
	fill := func(path string, form func(i int) url.Values) (made int) {
		for ; ; made++ {
			msg, ok := d.tryPost("ann@example.org", path, form(made))
			if !ok && strings.Contains(msg, refusal) {
				return made
			}
			if !ok || made == 5000 {
				t.Fatalf("%s %d: %s", path, made, msg)
			}
		}
	}
	description := strings.Repeat(":o: ", 256)
	channels := fill("users/me/subscriptions", func(i int) url.Values {
		list, _ := json.Marshal([]map[string]string{{"name": fmt.Sprint("hostile ", i), "description": description}})
		return url.Values{"subscriptions": {string(list)}}
	})
	groups := fill("user_groups/create", func(i int) url.Values {
		return url.Values{"name": {fmt.Sprint("hostile ", i)}, "description": {description}, "members": {"[]"}}
	})
	r, err := http.NewRequest("POST", d.BaseURL()+"/api/v1/register",
		strings.NewReader(url.Values{"include_subscribers": {"true"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept-Encoding", "identity")
	r.SetBasicAuth("bo@example.org", d.keys["bo@example.org"])
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.Copy(io.Discard, answer.Body)
	if err != nil || answer.StatusCode != 200 {
		t.Fatal(answer.Status, err)
	}
	// settings, constants and the user's own lists are about 100 kB
	if limit := int64(size)<<20*105/100 + 200<<10; body > limit || body < int64(size)<<20/2 {
		t.Errorf("a registration has %d bytes, the limit is %d MiB", body, size)
	}
	t.Logf("%d channels and %d groups: the registration has %d bytes", channels, groups, body)
}

// tryPost sends a POST request as a user. It returns the message of a refusal, and whether it was a success.
func (d *demoServer) tryPost(email, path string, form url.Values) (msg string, ok bool) {
	d.t.Helper()
	r, err := http.NewRequest("POST", d.BaseURL()+"/api/v1/"+path, strings.NewReader(form.Encode()))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(email, d.keys[email])
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	var a struct{ Msg string }
	if err := json.NewDecoder(answer.Body).Decode(&a); err != nil {
		d.t.Fatal(err)
	}
	return a.Msg, answer.StatusCode == 200
}

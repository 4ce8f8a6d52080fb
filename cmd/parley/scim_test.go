package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// scimClient is a client of SCIM with a token.
type scimClient struct {
	*testing.T
	at, token string
}

// scimToken makes a token with the operator's command.
func scimToken(t *testing.T, at, data string, flags ...string) *scimClient {
	t.Helper()
	out := mustRun(t, append([]string{"scim", "token", "create", "--data", data, "--name", "Okta"}, flags...)...)
	m := regexp.MustCompile(`token: (scim_\w{40})\n`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no token: %s", out)
	}
	return &scimClient{t, at, m[1]}
}

// send sends a request with a body in JSON, "" for none, and returns the status and the answer.
func (c *scimClient) send(method, path, body string) (int, map[string]any) {
	c.Helper()
	q, err := http.NewRequest(method, c.at+"/scim/v2"+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+c.token)
	q.Header.Set("Content-Type", "application/scim+json")
	r, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		c.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		c.Fatal(err)
	}
	var answer map[string]any
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil || r.Header.Get("Content-Type") != "application/scim+json" {
			c.Fatalf("%s %s: %d %s %s", method, path, r.StatusCode, r.Header.Get("Content-Type"), text)
		}
	}
	return r.StatusCode, answer
}

// must is send whose answer has a status. It returns the answer.
func (c *scimClient) must(status int, method, path, body string) map[string]any {
	c.Helper()
	got, answer := c.send(method, path, body)
	if got != status {
		c.Fatalf("%s %s %s: %d, want %d: %v", method, path, body, got, status, answer)
	}
	return answer
}

// find returns the ids of the resources that a filter finds.
func (c *scimClient) find(path, filter string) (ids []string) {
	c.Helper()
	list := c.must(200, "GET", path+"?filter="+url.QueryEscape(filter), "")
	resources, _ := list["Resources"].([]any)
	for _, x := range resources {
		ids = append(ids, fmt.Sprint(x.(map[string]any)["id"]))
	}
	return ids
}

const patchOf = `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[%s]}`

// patch sends a PATCH request with operations, which has to succeed.
func (c *scimClient) patch(path, operations string) map[string]any {
	c.Helper()
	return c.must(200, "PATCH", path, fmt.Sprintf(patchOf, operations))
}

// A provider makes, finds, changes and deactivates accounts; with the account end its key, its queue and its session.
func TestScimUsers(t *testing.T) {
	_, at, data := browserDemo(t)
	c := scimToken(t, at, data)
	bo := demoAccount(t, at, "bo@example.org")
	watch := fmt.Sprint(bo.must(t, "POST", "register", url.Values{"event_types": {`["realm_user"]`}})["queue_id"])
	user := c.must(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],
		"userName":"dana@example.org","name":{"givenName":"Dana","familyName":"Ruiz"},"externalId":"e1",
		"password":"x"}`)
	id := fmt.Sprint(user["id"])
	if user["displayName"] != "Dana Ruiz" || user["active"] != true || user["externalId"] != "e1" ||
		!strings.Contains(fmt.Sprint(user["emails"]), "dana@example.org") ||
		fmt.Sprint(user["meta"].(map[string]any)["location"]) != at+"/scim/v2/Users/"+id {
		t.Errorf("the account: %v", user)
	}
	for filter, found := range map[string]bool{`userName eq "DANA@example.org"`: true, `externalId eq "e1"`: true,
		`id eq "` + id + `"`: true, `userName eq "nobody"`: false, `name.familyName sw "Ru" and active eq true`: true,
		`emails[value eq "dana@example.org"]`: true, `not (displayName co "Dana")`: false,
		`userName eq "x" or displayName ew "Ruiz"`: true} {
		if ids := c.find("/Users", filter); strings.Contains(fmt.Sprint(ids), id) != found {
			t.Errorf("%s: %v", filter, ids)
		}
	}
	setDemoPasswords(t, data, "dana@example.org")
	dana := newBrowser(t, at).logIn("dana@example.org", browserPassword)
	queue := fmt.Sprint(dana.must("POST", "register", nil)["queue_id"])
	key := demoAccount(t, at, "dana@example.org")
	c.patch("/Users/"+id, `{"op":"Replace","path":"active","value":"False"}`)
	if dana.loggedIn() {
		t.Error("the session of a deactivated account goes on")
	}
	if a := dana.send("GET", "/json/events?dont_block=true&last_event_id=-1&queue_id="+queue, nil); a.status != 401 {
		t.Errorf("the queue of a deactivated account: %d", a.status)
	}
	if a, err := key.call("GET", "users/me", nil); err == nil {
		t.Errorf("the key of a deactivated account: %v", a)
	}
	c.patch("/Users/"+id, `{"op":"replace","value":{"active":true,"name.familyName":"Diaz"}},
		{"op":"add","path":"emails[type eq \"work\"].value","value":"dana.diaz@example.org"},
		{"op":"remove","path":"externalId"}`)
	user = c.must(200, "GET", "/Users/"+id+"?attributes=displayName,emails,externalId", "")
	if user["displayName"] != "Dana Diaz" || user["externalId"] != nil || user["active"] != nil ||
		!strings.Contains(fmt.Sprint(user["emails"]), "dana.diaz@example.org") {
		t.Errorf("the changed account: %v", user)
	}
	c.must(204, "DELETE", "/Users/"+id, "")
	checkScimEvents(t, bo, watch, id)
	c.must(404, "GET", "/Users/"+id, "")
	c.must(404, "DELETE", "/Users/"+id, "")
	if ids := c.find("/Users", `displayName sw "Dana"`); len(ids) != 0 {
		t.Errorf("a deleted account is found: %v", ids)
	}
	again := c.must(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],
		"userName":"dana@example.org","displayName":"Dana"}`)
	if again["id"] != id {
		t.Errorf("the account comes back as %v, want %s", again["id"], id)
	}
}

// checkScimEvents reads the events of another user's queue: the account was added, deactivated, reactivated, renamed,
// given another address and deactivated again.
func checkScimEvents(t *testing.T, p *account, queue, id string) {
	t.Helper()
	var got []string
	a := p.must(t, "GET", "events", url.Values{"queue_id": {queue}, "last_event_id": {"-1"}, "dont_block": {"true"}})
	for _, x := range a["events"].([]any) {
		e := x.(map[string]any)
		person, _ := e["person"].(map[string]any)
		if fmt.Sprint(person["user_id"]) != id {
			continue
		}
		text := fmt.Sprint(e["op"])
		for _, field := range []string{"is_active", "full_name", "new_email"} {
			if value, has := person[field]; has {
				text += fmt.Sprint(" ", field, " ", value)
			}
		}
		got = append(got, text)
	}
	all := fmt.Sprint(got)
	for _, want := range []string{"add is_active true full_name Dana Ruiz", "update is_active false",
		"update is_active true", "update full_name Dana Diaz"} {
		if !strings.Contains(all, want) {
			t.Errorf("another user has no event %q: %q", want, got)
		}
	}
	if strings.Count(all, "update is_active false") != 2 {
		t.Errorf("the account is deactivated in the events: %q", got)
	}
}

// Groups of a provider are user groups. Members are added and removed one by one, and as a whole.
func TestScimGroups(t *testing.T) {
	_, at, data := browserDemo(t)
	c := scimToken(t, at, data)
	id := func(email string) string { return c.find("/Users", `emails[value eq "`+email+`"]`)[0] }
	ann, bo := id("ann@example.org"), id("bo@example.org")
	group := c.must(201, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],
		"displayName":"Cooks","externalId":"g1","members":[{"value":"`+ann+`"}]}`)
	path := "/Groups/" + fmt.Sprint(group["id"])
	members := func(want ...string) {
		t.Helper()
		list, _ := c.must(200, "GET", path, "")["members"].([]any)
		var got []string
		for _, x := range list {
			got = append(got, fmt.Sprint(x.(map[string]any)["value"]))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("members %v, want %v", got, want)
		}
	}
	members(ann)
	c.patch(path, `{"op":"add","path":"members","value":[{"value":"`+bo+`"},{"value":"`+ann+`"}]}`)
	members(ann, bo)
	c.patch(path, `{"op":"remove","path":"members[value eq \"`+ann+`\"]"}`)
	members(bo)
	c.patch(path, `{"op":"Remove","path":"members","value":[{"value":"`+bo+`"}]}`)
	members()
	c.patch(path, `{"op":"replace","value":{"displayName":"Chefs","members":[{"value":"`+ann+`"}]}}`)
	members(ann)
	if user := c.must(200, "GET", "/Users/"+ann, ""); !strings.Contains(fmt.Sprint(user["groups"]), "Chefs") {
		t.Errorf("the groups of the account: %v", user["groups"])
	}
	list := c.must(200, "GET", "/Groups?excludedAttributes=members", "")
	if strings.Contains(fmt.Sprint(list), "$ref") {
		t.Errorf("members are not left out: %v", list)
	}
	for _, body := range []string{`{"op":"add","path":"members","value":[{"value":"999"}]}`,
		`{"op":"add","path":"members","value":[{"value":"x"}]}`, `{"op":"replace","path":"displayName","value":"@x"}`,
		`{"op":"remove","path":"displayName"}`, `{"op":"add","path":"nothing","value":1}`, `{"op":"explode"}`} {
		c.must(400, "PATCH", path, fmt.Sprintf(patchOf, body))
	}
	members(ann)
	c.must(409, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"CHEFS"}`)
	c.must(404, "GET", "/Groups/1", "") // a group of the system
	c.must(204, "DELETE", path, "")
	c.must(404, "GET", path, "")
}

// Tokens: none, a wrong one, one of another right, an expired one, a revoked one. Owners are never changed.
func TestScimRefusals(t *testing.T) {
	_, at, data := browserDemo(t)
	c := scimToken(t, at, data)
	olive := c.find("/Users", `roles[value eq "owner"]`)
	if len(olive) != 1 {
		t.Fatalf("owners: %v", olive)
	}
	owner := "/Users/" + olive[0]
	c.must(200, "GET", owner, "")
	for _, x := range []struct{ method, body string }{{"DELETE", ""},
		{"PATCH", fmt.Sprintf(patchOf, `{"op":"replace","path":"active","value":false}`)},
		{"PATCH", fmt.Sprintf(patchOf, `{"op":"replace","path":"displayName","value":"Eve"}`)},
		{"PATCH", fmt.Sprintf(patchOf, `{"op":"replace","path":"roles","value":[{"value":"member"}]}`)},
		{"PUT", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"eve@example.org"}`}} {
		c.must(403, x.method, owner, x.body)
	}
	c.must(403, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],
		"userName":"boss@example.org","roles":[{"value":"owner"}]}`)
	readOnly := scimToken(t, at, data, "--scope", "read")
	onlyGroups := scimToken(t, at, data, "--scope", "groups", "--expires-in", "never")
	newUser := `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"x@example.org"}`
	newGroup := `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"Crew"}`
	readOnly.must(200, "GET", "/Users", "")
	for _, x := range []*scimClient{readOnly, onlyGroups} {
		x.must(403, "POST", "/Users", newUser)
		x.must(403, "DELETE", owner, "")
	}
	readOnly.must(403, "POST", "/Groups", newGroup)
	onlyGroups.must(201, "POST", "/Groups", newGroup)
	checkScimLogins(t, at, data)
	for _, token := range []string{"", "x", strings.Repeat("x", 300), c.token + "x", strings.ToUpper(c.token)} {
		(&scimClient{t, at, token}).must(401, "GET", "/Users", "")
	}
	list := mustRun(t, "scim", "token", "list", "--data", data)
	if strings.Contains(list, "scim_") || !strings.Contains(list, "scope=groups,users") ||
		!strings.Contains(list, "scope=read") || !strings.Contains(list, "expires=never") {
		t.Errorf("the list of tokens: %s", list)
	}
	mustRun(t, "scim", "token", "revoke", "--data", data, "--id", "1")
	c.must(401, "GET", "/Users", "")
	for _, flags := range [][]string{{"--scope", "owners"}, {"--expires-in", "soon"}, {"--name", ""}} {
		args := append([]string{"scim", "token", "create", "--data", data, "--name", "x"}, flags...)
		if out, code := runParley(args...); code == 0 {
			t.Errorf("%v: %s", flags, out)
		}
	}
	for _, path := range []string{"/Users?filter=userName+eq", "/Users?filter=nothing+eq+1", "/Users?count=x",
		"/Users?filter=" + strings.Repeat("(", 60), "/Users?filter=" + strings.Repeat("a", 2001)} {
		onlyGroups.must(400, "GET", path, "")
	}
	for _, path := range []string{"/Users/0", "/Users/-1", "/Users/01", "/Users/999", "/Users/x", "/Groups/9999",
		"/Nothing"} {
		onlyGroups.must(404, "GET", path, "")
	}
	deep := strings.Repeat("(", 500_000)
	for _, x := range []struct{ method, path, body string }{
		{"POST", "/Users/.search", `{"schemas":["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],
			"filter":"` + deep + `"}`},
		{"PATCH", owner, fmt.Sprintf(patchOf, `{"op":"remove","path":"emails[`+deep+`]"}`)},
		{"PATCH", owner, fmt.Sprintf(patchOf, `{"op":"add","value":{"emails[`+deep+`]":"x"}}`)},
	} {
		onlyGroups.must(400, x.method, x.path, x.body)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /scim/v2/Groups HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 1<<20+1000)
	if large, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || large.StatusCode != 413 {
		t.Errorf("a large request: %v %v", large, err)
	}
	checkScimDiscovery(t, onlyGroups)
}

// checkScimLogins sends what users log in with, of each role, to SCIM: it is refused.
func checkScimLogins(t *testing.T, at, data string) {
	t.Helper()
	for _, name := range []string{"olive", "ann", "bo"} {
		email := name + "@example.org"
		setDemoPasswords(t, data, email)
		if a := newBrowser(t, at).logIn(email, browserPassword).send("GET", "/scim/v2/Users", nil); a.status != 401 {
			t.Errorf("the session of %s: %d %s", name, a.status, a.body)
		}
		user := demoAccount(t, at, email)
		basic := "Basic " + base64.StdEncoding.EncodeToString([]byte(email+":"+user.key))
		for _, header := range []string{"Bearer " + user.key, basic} {
			q, err := http.NewRequest("GET", at+"/scim/v2/Users", nil)
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", header)
			r, err := http.DefaultTransport.RoundTrip(q)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if r.StatusCode != 401 || r.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("the API key of %s: %d", name, r.StatusCode)
			}
		}
	}
}

// checkScimDiscovery reads the features of the server; these addresses have no other method.
func checkScimDiscovery(t *testing.T, c *scimClient) {
	t.Helper()
	for _, path := range []string{"/ServiceProviderConfig", "/Schemas", "/ResourceTypes",
		"/Schemas/urn:ietf:params:scim:schemas:core:2.0:User", "/ResourceTypes/Group"} {
		c.must(200, "GET", path, "")
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			c.must(405, method, path, "{}")
		}
	}
	config := c.must(200, "GET", "/ServiceProviderConfig", "")
	for feature, want := range map[string]bool{"patch": true, "filter": true, "bulk": false, "sort": false,
		"etag": false, "changePassword": false} {
		if part, _ := config[feature].(map[string]any); part["supported"] != want {
			t.Errorf("%s: %v", feature, config[feature])
		}
	}
}

// Each field of an account is missing, null, empty and of another type, in a new account and in a replacement: nothing
// is made by half.
func TestScimFields(t *testing.T) {
	_, at, data := browserDemo(t)
	c := scimToken(t, at, data)
	fields := map[string]string{"userName": `"dana%d@example.org"`, "displayName": `"Dana"`, "active": `true`,
		"externalId": `"e1"`, "name": `{"formatted":"Dana Ruiz","givenName":"Dana","familyName":"Ruiz"}`,
		"emails": `[{"value":"dana%d@example.org","type":"work","primary":true}]`, "roles": `[{"value":"moderator"}]`}
	required := map[string]bool{"userName": true}
	n := 0
	body := func(name, value string) string {
		n++
		parts := []string{`"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"]`}
		for field, usual := range fields {
			if strings.Contains(usual, "%d") {
				usual = fmt.Sprintf(usual, n)
			}
			if field == name {
				usual = value
			}
			if usual != "" {
				parts = append(parts, `"`+field+`":`+usual)
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	accounts := func() any { return c.must(200, "GET", "/Users?count=0", "")["totalResults"] }
	kept := fmt.Sprint(c.must(201, "POST", "/Users", body("", ""))["id"])
	for name := range fields {
		for _, x := range []struct {
			value string
			ok    bool
		}{{"", !required[name]}, {"null", !required[name]}, {"7", false}, {`[7]`, false},
			{`{"x":[]}`, name == "name"}} {
			before := accounts()
			status, answer := c.send("POST", "/Users", body(name, x.value))
			if want := map[bool]int{true: 201, false: 400}[x.ok]; status != want {
				t.Errorf("POST with %s %q: %d, want %d: %v", name, x.value, status, want, answer)
			}
			if made := accounts() != before; made != (status == 201) {
				t.Errorf("POST with %s %q: %d, an account was made: %v", name, x.value, status, made)
			}
			status, answer = c.send("PUT", "/Users/"+kept, body(name, x.value))
			if want := map[bool]int{true: 200, false: 400}[x.ok]; status != want {
				t.Errorf("PUT with %s %q: %d, want %d: %v", name, x.value, status, want, answer)
			}
		}
	}
	for _, text := range []string{"", "null", "[]", "7", `"x"`, "{", `{"schemas":[]}`} {
		if status, answer := c.send("POST", "/Users", text); status != 400 {
			t.Errorf("POST %s: %d %v", text, status, answer)
		}
	}
}

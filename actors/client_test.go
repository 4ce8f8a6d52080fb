package actors

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/form"
)

// endpoint returns the endpoint with a method and path, such as "POST /messages".
func endpoint(name string) *wire.Endpoint {
	for _, e := range wire.Endpoints() {
		if e.Method+" "+e.Path == name {
			return &e
		}
	}
	panic("BUG: no endpoint " + name)
}

// response is the answer to a call.
type response struct {
	body   map[string]any
	status int
}

// responseChan is a Reply whose answer can be received.
type responseChan chan response

func (m responseChan) Answer(status int, parts ...[]byte) bool {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	h := response{status: status}
	if err := json.Unmarshal(all, &h.body); err != nil {
		panic(fmt.Sprintf("BUG: answer %q: %v", all, err))
	}
	m <- h
	return true
}

type params map[string]any

// valuesOf returns the parameters of a request to e. A parameter that is named in the path goes there, others into the
// query.
func valuesOf(e *wire.Endpoint, p params) *form.Values {
	v := &form.Values{}
	for k, x := range p {
		text, ok := x.(string)
		if !ok {
			data, err := json.Marshal(x)
			if err != nil {
				panic(err)
			}
			text = string(data)
		}
		if strings.Contains(e.Path, "{"+k+"}") || strings.Contains(e.Path, "{"+k+":*}") {
			v.Add(form.Path, k, text)
		} else {
			v.Add(form.Query, k, text)
		}
	}
	return v
}

// call sends a request to an endpoint, as httpd would. The answer arrives on the channel.
func call(srv *Server, u realm.UserID, name string, p params) responseChan {
	e, out := endpoint(name), make(responseChan, 1)
	v := valuesOf(e, p)
	a := &realm.Account{}
	srv.accounts.mu.RLock()
	known := srv.accounts.byUser[userKey{1, u}]
	srv.accounts.mu.RUnlock()
	if known != nil {
		a = known
	}
	c := &wire.Call{Server: srv, Tools: &wire.Tools{Renderer: srv.renderer.(*wire.Renderer), Token: Token,
		HashKey: HashKey, Version: wire.Version}, Realm: 1,
		Site: testSite(""), Caller: realm.Caller{User: u, Client: "test"}, Account: a, Params: v, Agent: "test",
		Files: func() ([]wire.File, error) { return nil, nil }}
	c.Park = func(func()) wire.Reply { return out }
	go func() {
		x, err := e.Run(c)
		if _, parked := x.(wire.Parked); parked && err == nil {
			return
		}
		if err != nil {
			status, body := wire.Failure(err)
			out.Answer(status, body)
			return
		}
		out.Answer(200, wire.Success(x, nil))
	}()
	return out
}

func testSite(name string) wire.Site {
	return wire.Site{URL: "http://chat.test", Host: "chat.test", Name: name}
}

// mustCall is call for a request that must be answered at once, with success.
func mustCall(t testing.TB, srv *Server, u realm.UserID, name string, p params) map[string]any {
	t.Helper()
	select {
	case a := <-call(srv, u, name, p):
		if a.status != 200 {
			t.Fatalf("%s %v: %d %v", name, p, a.status, a.body)
		}
		return a.body
	case <-time.After(time.Minute):
		t.Fatalf("%s %v: no answer", name, p)
	}
	return nil
}

// createOrganization creates an organization whose users are all in the channels one and two.
func createOrganization(t testing.TB, srv *Server, names ...string) (people []realm.UserID) {
	t.Helper()
	system := realm.Caller{System: true, Client: "Internal"}
	if _, err := srv.CreateRealm("", "Test"); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		u, err := srv.Turn(1, system, func(tn *realm.Turn) (any, error) {
			return realm.CreateUser{
				Email:      n + "@example.org",
				Name:       n,
				Role:       realm.Member,
				Key:        Token(32),
				First:      true,
				NoDefaults: true,
			}.Decide(tn)
		})
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, u.(realm.UserID))
	}
	for _, c := range []string{"one", "two"} {
		mustCall(t, srv, people[0], "POST /users/me/subscriptions",
			params{"subscriptions": []any{map[string]any{"name": c}}, "principals": people})
	}
	return people
}

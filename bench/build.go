package bench

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"parley/bench/crowd"
	"parley/bench/swarm"
)

// A person is a user of the crowd with the credentials for requests.
type person struct {
	ID    int64  `json:"user_id"`
	Email string `json:"email"`
	Key   string `json:"key"`
	Host  string `json:"host,omitempty"` // of the organization; empty: that of the target
	Admin bool   `json:"admin,omitempty"`

	auth     string
	password string // of an account that has no key yet
	realm    int
	presence int64 // newest presence update seen
	// quietUntil is the time before which the server does not accept requests of this user: it answered 429.
	quietUntil time.Duration
}

func (p *person) setAuth(host string) {
	p.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(p.Email+":"+p.Key))
	if p.Host == "" {
		p.Host = host
	}
}

// A channel is a channel of the crowd; Members are indexes of people.
type channel struct {
	ID       int64
	Name     string
	Members  []int32
	audience int32
	realm    int
	senders  []int32 // the members that send: those of this agent
}

// A population is a crowd with its ids on a server.
type population struct {
	people   []person
	channels []channel
	took     time.Duration
	how      string
}

// A Builder creates a crowd on a server. httpBuilder uses the public API. If the server creates the crowd itself
// (parley serve --demo-crowd), adoptBuilder reads it.
type Builder interface {
	Build(r *run, plan crowd.Plan) (*population, error)
}

// params are the values of a request.
type params = swarm.Form

// placePeople sets the credentials of people and numbers their organizations in the order of their hosts.
func (r *run) placePeople(people []person) {
	realms := map[string]int{}
	for i := range people {
		p := &people[i]
		p.setAuth(r.server.host)
		if _, ok := realms[p.Host]; !ok {
			realms[p.Host] = len(realms)
		}
		p.realm = realms[p.Host]
	}
}

// newCall returns a request by a user; nil means without credentials.
func (r *run) newCall(method, path string, user *person, p params) *swarm.Call {
	c := &swarm.Call{Method: method, Path: "/api/v1/" + path, Host: r.server.host}
	if user != nil {
		c.Host, c.Auth, c.Owner = user.Host, user.auth, user
	}
	q := p.Encode()
	if method == "GET" && q != "" {
		c.Path += "?" + q
	} else {
		c.Body = q
	}
	return c
}

// callAndWait sends one call, runs the loop until it is answered, and decodes the body into out.
func (r *run) callAndWait(c *swarm.Call, out any) error {
	var err error
	done := false
	c.Done = func(c *swarm.Call, a *swarm.Answer) {
		done = true
		err = answerError(c, a)
		if err == nil && out != nil {
			err = json.Unmarshal(a.Body, out)
		}
	}
	r.pool.Do(c)
	if lerr := r.loop.Run(func() bool { return done }); lerr != nil {
		return lerr
	}
	return err
}

// answerError returns an error that describes a failed call, nil for status 200.
func answerError(c *swarm.Call, a *swarm.Answer) error {
	path, _, _ := strings.Cut(c.Path, "?")
	if a.Err != nil {
		return fmt.Errorf("%s %s: %w", c.Method, path, a.Err)
	}
	if a.Status != 200 {
		body := string(a.Body)
		if len(body) > 300 {
			body = body[:300]
		}
		return fmt.Errorf("%s %s: status %d: %s", c.Method, path, a.Status, strings.TrimSpace(body))
	}
	return nil
}

const (
	// maxBuildTries bounds the repetitions of a rate limited request before the measurement. With Zulip's limit of 200
	// requests a minute, a request waits at most a few minutes.
	maxBuildTries = 20
	// defaultRetryAfter is the wait after an answer with status 429 that does not contain one.
	defaultRetryAfter = time.Second
	// minRetryAfter keeps a client from a busy loop if the server asks for no wait at all.
	minRetryAfter = 10 * time.Millisecond
)

// retryAfter returns the wait that a rate limited answer asks for: the header field, or the member of the body that
// the Zulip protocol documents.
func retryAfter(a *swarm.Answer) time.Duration {
	if wait, ok := a.RetryAfter(); ok {
		return max(wait, minRetryAfter)
	}
	var v struct {
		After float64 `json:"retry-after"`
	}
	if json.Unmarshal(a.Body, &v) == nil && v.After > 0 {
		return max(minRetryAfter, seconds(min(v.After, time.Hour.Seconds())))
	}
	return defaultRetryAfter
}

// callEach makes n calls, one for each connection of the pool at a time, and stops at the first error. onAnswer gets
// the body of each answer.
func (r *run) callEach(n int, makeCall func(i int) *swarm.Call, onAnswer func(i int, body []byte) error) error {
	var first error
	next, pending := 0, 0
	var start func()
	start = func() {
		for first == nil && next < n && pending < r.pool.Size {
			i := next
			next++
			c := makeCall(i)
			if c == nil {
				continue
			}
			pending++
			tries := 0
			c.Done = func(c *swarm.Call, a *swarm.Answer) {
				pending--
				if a.Status == 429 && tries < maxBuildTries {
					tries++
					pending++
					r.loop.At(r.loop.Now()+retryAfter(a), func() { r.pool.Do(c) })
					return
				}
				err := answerError(c, a)
				if err == nil && onAnswer != nil {
					err = onAnswer(i, a.Body)
				}
				if err != nil && first == nil {
					first = err
				}
				r.loop.At(r.loop.Now(), start)
			}
			r.pool.Do(c)
		}
	}
	start()
	if err := r.loop.Run(func() bool { return pending == 0 && (first != nil || next >= n) }); err != nil {
		return err
	}
	return first
}

// readCredentials reads JSON lines, one user each; users marked admin can create users.
func readCredentials(file string) ([]person, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []person
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		if strings.TrimSpace(sc.Text()) == "" {
			continue
		}
		var p person
		if err := json.Unmarshal(sc.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, p)
	}
	return out, sc.Err()
}

type devUsers struct {
	Admins []struct {
		Email string `json:"email"`
	} `json:"direct_admins"`
	Users []struct {
		Email string `json:"email"`
	} `json:"direct_users"`
}

// findAdmin returns an administrator that can create users: the one of the flags, or the first of the development
// login.
func (r *run) findAdmin(host string) (person, error) {
	if r.options.adminEmail != "" {
		p := person{Email: r.options.adminEmail, Key: r.options.adminKey, Host: host}
		p.setAuth(host)
		return p, nil
	}
	var list devUsers
	c := r.newCall("GET", "dev_list_users", nil, nil)
	c.Host = host
	if err := r.callAndWait(c, &list); err != nil {
		return person{}, fmt.Errorf("finding an administrator: no --user given and no development login: %w", err)
	}
	if len(list.Admins) == 0 {
		return person{}, errors.New("dev_list_users lists no administrator")
	}
	p := person{Email: list.Admins[0].Email, Host: host}
	return p, r.logIn(&p)
}

func (r *run) logIn(p *person) error {
	var k struct {
		Key   string `json:"api_key"`
		Email string `json:"email"`
		ID    int64  `json:"user_id"`
	}
	c := r.newCall("POST", "dev_fetch_api_key", nil, params{"username": p.Email})
	c.Host = p.Host
	if err := r.callAndWait(c, &k); err != nil {
		return err
	}
	p.Key, p.Email, p.ID = k.Key, k.Email, k.ID
	p.setAuth(p.Host)
	return nil
}

// httpBuilder creates a crowd with the public API alone.
type httpBuilder struct{}

func (httpBuilder) Build(r *run, plan crowd.Plan) (*population, error) {
	pop := &population{how: "over HTTP"}
	hosts := r.realmHosts()
	for realm, host := range hosts {
		admin, err := r.findAdmin(host)
		if err != nil {
			return nil, err
		}
		part := plan
		part.Users = plan.Users / len(hosts)
		part.Channels = max(1, plan.Channels/len(hosts))
		part.Seed += uint64(realm)
		if err := r.buildRealm(pop, part, realm, admin); err != nil {
			return nil, err
		}
	}
	return pop, nil
}

func (r *run) buildRealm(pop *population, plan crowd.Plan, realm int, admin person) error {
	first := len(pop.people)
	_, domain, _ := strings.Cut(admin.Email, "@")
	tag := strconv.FormatInt(time.Now().UnixNano()&0xffffff, 36)
	pop.people = append(pop.people, make([]person, plan.Users)...)
	mine := pop.people[first:]
	r.logf("creating %d users", plan.Users)
	const password = "a long bench password 2718281828"
	err := r.callEach(plan.Users, func(i int) *swarm.Call {
		mine[i] = person{Email: fmt.Sprintf("u%d-%s@%s", i, tag, domain), Host: admin.Host, realm: realm}
		return r.newCall("POST", "users", &admin, params{"email": mine[i].Email, "password": password,
			"full_name": fmt.Sprintf("User %d %s", i, tag)})
	}, func(i int, body []byte) error {
		var v struct {
			ID int64 `json:"user_id"`
		}
		err := json.Unmarshal(body, &v)
		mine[i].ID = v.ID
		return err
	})
	if err != nil {
		return err
	}
	if err := r.logInAll(mine, password); err != nil {
		return err
	}
	members := plan.Members()
	r.logf("subscribing them to %d channels", len(members))
	const slice = 500 // users in one request: keeps bodies small
	for c, users := range members {
		ch := channel{Name: fmt.Sprintf("bench %s %d", tag, c), Members: make([]int32, len(users)), realm: realm}
		if plan.Hundred > 0 && c == plan.Channels {
			ch.Name = fmt.Sprintf("bench %s hundred", tag)
		}
		for i, m := range users {
			ch.Members[i] = m + int32(first)
		}
		// One request after the other: the first one creates the channel.
		for at := 0; at < len(users); at += slice {
			var ids []int64
			for _, m := range users[at:min(at+slice, len(users))] {
				ids = append(ids, mine[m].ID)
			}
			call := r.newCall("POST", "users/me/subscriptions", &admin,
				params{"subscriptions": []map[string]string{{"name": ch.Name}}, "principals": ids,
					"send_new_subscription_messages": false})
			if err := r.callAndWait(call, nil); err != nil {
				return err
			}
		}
		pop.channels = append(pop.channels, ch)
	}
	// Ids come from the list of channels: the answers above contain only names.
	var list struct {
		Streams []struct {
			ID   int64  `json:"stream_id"`
			Name string `json:"name"`
		} `json:"streams"`
	}
	if err := r.callAndWait(r.newCall("GET", "streams", &admin, nil), &list); err != nil {
		return err
	}
	ids := map[string]int64{}
	for _, s := range list.Streams {
		ids[s.Name] = s.ID
	}
	for i := range pop.channels {
		if c := &pop.channels[i]; c.realm == realm {
			if c.ID = ids[c.Name]; c.ID == 0 {
				return fmt.Errorf("channel %q is missing in the answer to GET /streams", c.Name)
			}
		}
	}
	return nil
}

// logInAll fetches the API key of each user: by development login if possible, else by password.
func (r *run) logInAll(people []person, password string) error {
	r.logf("logging in %d users", len(people))
	path, extra := "dev_fetch_api_key", params{}
	if r.options.adminEmail != "" {
		path, extra = "fetch_api_key", params{"password": password}
	}
	return r.callEach(len(people), func(i int) *swarm.Call {
		p := params{"username": people[i].Email}
		for k, v := range extra {
			p[k] = v
		}
		c := r.newCall("POST", path, nil, p)
		c.Host = people[i].Host
		return c
	}, func(i int, body []byte) error {
		var v struct {
			Key   string `json:"api_key"`
			Email string `json:"email"`
			ID    int64  `json:"user_id"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		p := &people[i]
		p.Key = v.Key
		if v.ID != 0 {
			p.ID = v.ID
		}
		p.setAuth(r.server.host)
		return nil
	})
}

// adoptBuilder uses the users that a server already has: those of the development login or of a credentials file, and
// the channels they are subscribed to.
type adoptBuilder struct{ people []person }

func (a adoptBuilder) Build(r *run, plan crowd.Plan) (*population, error) {
	pop := &population{how: "adopted", people: a.people}
	if len(pop.people) == 0 {
		for _, host := range r.realmHosts() {
			var list devUsers
			c := r.newCall("GET", "dev_list_users", nil, nil)
			c.Host = host
			if err := r.callAndWait(c, &list); err != nil {
				return nil, err
			}
			for _, u := range list.Users {
				pop.people = append(pop.people, person{Email: u.Email, Host: host})
			}
		}
	}
	if len(pop.people) < plan.Users {
		return nil, fmt.Errorf("the server has %d users to adopt, but the scenario needs %d", len(pop.people),
			plan.Users)
	}
	pop.people = pop.people[:plan.Users]
	r.placePeople(pop.people)
	if pop.people[0].Key == "" {
		if err := r.logInAll(pop.people, ""); err != nil {
			return nil, err
		}
	}
	return pop, r.fetchSubscriptions(pop)
}

// fetchSubscriptions fetches the subscriptions of each user.
func (r *run) fetchSubscriptions(pop *population) error {
	r.logf("fetching the subscriptions of %d users", len(pop.people))
	at := map[[2]int64]int{}
	return r.callEach(len(pop.people), func(i int) *swarm.Call {
		return r.newCall("GET", "users/me/subscriptions", &pop.people[i], nil)
	}, func(i int, body []byte) error {
		var v struct {
			Subs []struct {
				ID   int64  `json:"stream_id"`
				Name string `json:"name"`
			} `json:"subscriptions"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		for _, s := range v.Subs {
			k := [2]int64{int64(pop.people[i].realm), s.ID}
			c, ok := at[k]
			if !ok {
				c = len(pop.channels)
				at[k] = c
				pop.channels = append(pop.channels, channel{ID: s.ID, Name: s.Name, realm: pop.people[i].realm})
			}
			pop.channels[c].Members = append(pop.channels[c].Members, int32(i))
		}
		return nil
	})
}

// realmHosts returns the Host names of the organizations.
func (r *run) realmHosts() []string {
	if len(r.options.hosts) > 0 {
		return r.options.hosts
	}
	out := []string{r.server.host}
	for i := 1; i < r.scenario.Realms && r.crowdByServer; i++ {
		out = append(out, fmt.Sprintf("r%d.%s", i, r.server.host))
	}
	return out
}

// findHistory fetches the first and last message id of a history that the server already has.
func (r *run) findHistory() error {
	for _, anchor := range []string{"oldest", "newest"} {
		var v struct {
			Messages []struct {
				ID int64 `json:"id"`
			} `json:"messages"`
		}
		ch := &r.population.channels[0]
		if err := r.callAndWait(r.newCall("GET", "messages", &r.population.people[ch.Members[0]],
			params{"anchor": anchor, "num_before": 1, "num_after": 1,
				"narrow": []any{map[string]any{"operator": r.channelWord(), "operand": ch.ID}}}), &v); err != nil {
			return err
		}
		for _, m := range v.Messages {
			if r.oldest == 0 || m.ID < r.oldest {
				r.oldest = m.ID
			}
			r.newest = max(r.newest, m.ID)
		}
	}
	return nil
}

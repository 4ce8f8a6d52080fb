// Package bouncertest is a push bouncer for tests: a server that forwards push notifications for chat servers. It is
// written from the description of the vendor's bouncer, not from this server's client, and it answers the requests in
// testdata, which were recorded at the reference's bouncer, as that one did. It keeps everything in memory.
//
// New returns a bouncer that has no server registered. Its exported fields may be set before the first request.
package bouncertest

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bouncer is a push bouncer. It implements http.Handler.
type Bouncer struct {
	Now func() time.Time
	// LookupMail reports whether the domain of an email address exists, and whether it has MX records.
	LookupMail func(domain string) (exists, mx bool)
	// Scheme is the scheme with which the bouncer fetches the proof of a hostname: "https", or "http" in tests.
	Scheme string
	// StrictTokens refuses tokens of Apple's devices that are not hexadecimal. Old bouncers accept them, and their
	// notifications never arrive.
	StrictTokens bool
	// RequestsPerMinute limits each server; 0: no limit.
	RequestsPerMinute int
	// NoServices: the bouncer has no credentials for Apple's and Google's services. It then checks fewer fields.
	NoServices bool
	// Dead are the tokens whose devices Apple's and Google's services no longer know.
	Dead map[string]bool
	// Fails makes the next requests to a path below /api/v1/remotes/ fail with status 500.
	Fails map[string]int
	// Loses makes the next requests to such a path succeed, but the connection ends before the answer.
	Loses map[string]int
	// Limits makes the next requests to such a path fail with status 429.
	Limits map[string]int
	// Paid are the organizations with a plan, by UUID. A value other than 0 is the end of the plan in Unix seconds.
	Paid map[string]int64

	mu         sync.Mutex
	servers    map[string]*remoteServer // by id
	realms     map[string]*remoteRealm  // by UUID
	devices    []*device
	encrypted  []*encryptedDevice
	publicKey  *[32]byte
	privateKey *[32]byte
	secrets    map[string]string // verification secrets by hostname
	deliveries []Delivery
	requests   []Request
}

// Request is a request that the bouncer has received.
type Request struct {
	Path   string // below /api/v1/remotes/
	Body   string
	Agent  string
	Status int
	Answer map[string]any
}

// Delivery is a notification that the bouncer has passed on to a device.
type Delivery struct {
	Token   string
	Payload map[string]any
}

type remoteServer struct {
	id, key, hostname, contact string
	deactivated                bool
	feature                    bool // the server has sent its feature level
	audited                    int64
	lastRealmCount             int64
	lastInstallationCount      int64
	lastAudit                  int64
	requests                   []int64
}

type remoteRealm struct {
	id             int64
	uuid, host     string
	server         *remoteServer
	secret         string
	locallyDeleted bool
	users          int
}

type device struct {
	server     *remoteServer
	user       *int64
	userUUID   string
	realm      *remoteRealm
	kind       int64
	token, app string
}

// New returns a bouncer that accepts every email address.
func New() *Bouncer {
	b := &Bouncer{
		Now:          time.Now,
		LookupMail:   func(string) (bool, bool) { return true, true },
		Scheme:       "https",
		StrictTokens: true,
		Dead:         map[string]bool{},
		Fails:        map[string]int{},
		Loses:        map[string]int{},
		Limits:       map[string]int{},
		Paid:         map[string]int64{},
		servers:      map[string]*remoteServer{},
		realms:       map[string]*remoteRealm{},
		secrets:      map[string]string{},
	}
	b.makeKey()
	return b
}

// Requests returns the requests so far, and forgets them.
func (b *Bouncer) Requests() []Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.requests
	b.requests = nil
	return out
}

// Deliveries returns the notifications that were passed on so far, and forgets them.
func (b *Bouncer) Deliveries() []Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.deliveries
	b.deliveries = nil
	return out
}

// Tokens returns all registered tokens, sorted.
func (b *Bouncer) Tokens() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, d := range b.devices {
		out = append(out, d.token)
	}
	slices.Sort(out)
	return out
}

// refusal is an answer other than success.
type refusal struct {
	status    int
	code, msg string
	more      map[string]any
}

func (r *refusal) Error() string { return r.msg }

func bad(format string, args ...any) error {
	return &refusal{status: 400, code: "BAD_REQUEST", msg: fmt.Sprintf(format, args...)}
}

// errInternal is the answer to a request that fails in the bouncer's own assertions.
var errInternal = &refusal{status: 500, msg: "Internal server error"}

func errMissing(name string) error {
	return &refusal{400, "REQUEST_VARIABLE_MISSING", "Missing '" + name + "' argument",
		map[string]any{"var_name": name}}
}

type answer = map[string]any

// call is a request during its handling.
type call struct {
	b      *Bouncer
	r      *http.Request
	body   []byte
	server *remoteServer
	form   form
}

// endpoint is one path below /api/v1/remotes/.
type endpoint struct {
	method string
	open   bool     // without credentials
	fields []string // of a form; nil: the body is JSON
	run    func(c *call) (answer, error)
}

var endpoints = map[string]endpoint{
	"server/register": {"POST", true,
		[]string{"zulip_org_id", "zulip_org_key", "hostname", "contact_email", "new_org_key"}, registerServer},
	"server/register/transfer":         {"POST", true, []string{"hostname"}, transferServer},
	"server/register/verify_challenge": {"POST", true, []string{"hostname", "access_token"}, verifyChallenge},
	"server/deactivate":                {"POST", false, nil, deactivateServer},
	"server/analytics/status":          {"GET", false, []string{}, analyticsStatus},
	"server/analytics": {"POST", false, []string{"realm_counts", "installation_counts", "realmauditlog_rows", "realms",
		"version", "merge_base", "api_feature_level"}, postAnalytics},
	"server/billing": {"POST", false, []string{"user", "realm", "uri_scheme", "next_page"}, billing},
	"push/register": {"POST", false,
		[]string{"token", "token_kind", "user_id", "user_uuid", "realm_uuid", "ios_app_id"}, registerDevice},
	"push/unregister": {"POST", false, []string{"token", "token_kind", "user_id", "user_uuid", "realm_uuid"},
		unregisterDevice},
	"push/unregister/all":    {"POST", false, []string{"user_id", "user_uuid", "realm_uuid"}, unregisterAll},
	"push/notify":            {"POST", false, nil, notify},
	"push/test_notification": {"POST", false, nil, testNotification},
	"push/e2ee/register": {"POST", false,
		[]string{"realm_uuid", "token_id", "encrypted_push_registration", "bouncer_public_key"}, registerEncrypted},
	"push/e2ee/notify": {"POST", false, nil, notifyEncrypted},
}

func (b *Bouncer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, below := strings.CutPrefix(r.URL.Path, "/api/v1/remotes/")
	e, ok := endpoints[path]
	if !below || !ok {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	c := &call{b: b, r: r, body: body}
	a, err := c.handle(path, e)
	status := http.StatusOK
	if err == nil {
		if a == nil {
			a = answer{}
		}
		a["result"], a["msg"] = "success", ""
		if ignored := c.form.unknown(e.fields); len(ignored) > 0 {
			a["ignored_parameters_unsupported"] = ignored
		}
	} else {
		f := err.(*refusal)
		status = f.status
		a = answer{"result": "error", "msg": f.msg}
		if f.code != "" {
			a["code"] = f.code
		}
		for k, v := range f.more {
			a[k] = v
		}
	}
	b.requests = append(b.requests, Request{path, string(body), r.UserAgent(), status, a})
	lost := b.Loses[path] > 0
	if lost {
		b.Loses[path]--
	}
	b.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="zulip"`)
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(a)
}

func (c *call) handle(path string, e endpoint) (answer, error) {
	if c.r.Method != e.method {
		return nil, &refusal{405, "", "Method Not Allowed", map[string]any{"allowed_methods": []string{e.method}}}
	}
	if c.b.Fails[path] > 0 {
		c.b.Fails[path]--
		return nil, errInternal
	}
	if c.b.Limits[path] > 0 {
		c.b.Limits[path]--
		return nil, &refusal{429, "RATE_LIMIT_HIT", "API usage exceeded rate limit", map[string]any{"retry-after": 60}}
	}
	if !e.open {
		if err := c.authenticate(); err != nil {
			return nil, err
		}
	}
	if e.fields != nil {
		c.form = parseForm(c.body)
	}
	return e.run(c)
}

func unauthorized(format string, args ...any) error {
	return &refusal{status: 401, code: "UNAUTHORIZED", msg: fmt.Sprintf(format, args...)}
}

const errDeactivated = "The mobile push notification service registration for your server has been deactivated"

func (c *call) authenticate() error {
	header := c.r.Header.Get("Authorization")
	if header == "" {
		return unauthorized("Missing authorization header for basic auth")
	}
	id, key, ok := c.r.BasicAuth()
	if !ok {
		return unauthorized("Invalid authorization header for basic auth")
	}
	if strings.Contains(id, "@") {
		return bad("Must validate with valid Zulip server API key")
	}
	s := c.b.servers[id]
	switch {
	case s == nil:
		return unauthorized("Zulip server auth failure: %s is not registered -- "+
			"did you run `manage.py register_server`?", id)
	case s.key != key:
		return unauthorized("Zulip server auth failure: key does not match role %s", id)
	case s.deactivated:
		return unauthorized(errDeactivated)
	}
	c.server = s
	now := c.b.Now().Unix()
	s.requests = slices.DeleteFunc(s.requests, func(at int64) bool { return at <= now-60 })
	if c.b.RequestsPerMinute > 0 && len(s.requests) >= c.b.RequestsPerMinute {
		return &refusal{429, "RATE_LIMIT_HIT", "API usage exceeded rate limit", map[string]any{"retry-after": 60}}
	}
	s.requests = append(s.requests, now)
	return nil
}

func randomText(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

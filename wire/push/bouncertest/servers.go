package bouncertest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rules of registrations (protocol).
const (
	idLength       = 36
	keyLength      = 64
	maxHostname    = 128
	secretLifetime = 10 * time.Second
	auditFresh     = 48 * time.Hour
	freeUsers      = 10
)

var (
	uuidPattern     = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	hostnamePattern = regexp.MustCompile(`^[a-zA-Z0-9.-]+(:[0-9]+)?$`)
	mailPattern     = regexp.MustCompile(`^[^@\s]+@([^@\s]+\.[^@\s]+)$`)
)

func checkHostname(h string) error {
	switch {
	case len(h) > maxHostname:
		return bad("hostname is too long (limit: %d characters)", maxHostname)
	case strings.ContainsAny(h, "/?#"):
		return bad("%s contains invalid components (e.g., path, query, fragment).", h)
	case !hostnamePattern.MatchString(h):
		return bad("%s is not a valid hostname", h)
	}
	return nil
}

func (c *call) checkContact(address string) error {
	m := mailPattern.FindStringSubmatch(address)
	switch {
	case m == nil:
		return bad("Enter a valid email address.")
	case m[1] == "mailinator.com":
		return bad("Please use your real email address.")
	case m[1] == "example.com":
		return bad("Invalid email address.")
	}
	exists, mx := c.b.LookupMail(m[1])
	switch {
	case !exists:
		return bad("%s does not exist", m[1])
	case !mx:
		return bad("%s is invalid because it does not have any MX records", m[1])
	}
	return nil
}

func registerServer(c *call) (answer, error) {
	f := c.form
	if err := f.require("zulip_org_id", "zulip_org_key", "hostname", "contact_email"); err != nil {
		return nil, err
	}
	id, key, host, contact := f.Get("zulip_org_id"), f.Get("zulip_org_key"), f.Get("hostname"), f.Get("contact_email")
	for _, x := range []struct {
		name   string
		length int
	}{{"zulip_org_id", idLength}, {"zulip_org_key", keyLength}, {"new_org_key", keyLength}} {
		if f.Has(x.name) && len(f.Get(x.name)) != x.length {
			return nil, bad("%s is not length %d", x.name, x.length)
		}
	}
	if err := checkHostname(host); err != nil {
		return nil, err
	}
	if err := c.checkContact(contact); err != nil {
		return nil, err
	}
	if !uuidPattern.MatchString(id) {
		return nil, bad("Invalid UUID")
	}
	s := c.b.servers[id]
	if s != nil && s.key != key {
		return nil, &refusal{400, "INVALID_ZULIP_SERVER",
			"Zulip server auth failure: key does not match role " + id, map[string]any{"role": id}}
	}
	if s != nil && s.deactivated {
		return nil, &refusal{status: 401, code: "REALM_DEACTIVATED", msg: errDeactivated}
	}
	for _, other := range c.b.servers {
		if other != s && other.hostname == host && !other.deactivated {
			return nil, &refusal{400, "HOSTNAME_ALREADY_IN_USE_BOUNCER_ERROR",
				fmt.Sprintf("A server with hostname %s already exists", host), map[string]any{"hostname": host}}
		}
	}
	created := s == nil
	if created {
		s = &remoteServer{id: id, key: key}
		c.b.servers[id] = s
	} else if f.Has("new_org_key") {
		s.key = f.Get("new_org_key")
	}
	s.hostname, s.contact = host, contact
	return answer{"created": created}, nil
}

func (b *Bouncer) serverAt(hostname string) *remoteServer {
	for _, s := range b.servers {
		if s.hostname == hostname && !s.deactivated {
			return s
		}
	}
	return nil
}

func transferServer(c *call) (answer, error) {
	if err := c.form.require("hostname"); err != nil {
		return nil, err
	}
	host := c.form.Get("hostname")
	if err := checkHostname(host); err != nil {
		return nil, err
	}
	if c.b.serverAt(host) == nil {
		return nil, bad("%s not yet registered", host)
	}
	at := strconv.FormatInt(c.b.Now().UnixMilli(), 10)
	secret := strings.ToUpper(hex.EncodeToString([]byte(host + "|" + at + "|" + randomText(32))))
	c.b.secrets[host] = secret
	return answer{"verification_secret": secret}, nil
}

// verifyChallenge asks the host for the secret that transferServer has given. It releases the lock meanwhile.
func verifyChallenge(c *call) (answer, error) {
	if err := c.form.require("hostname", "access_token"); err != nil {
		return nil, err
	}
	host := c.form.Get("hostname")
	if err := checkHostname(host); err != nil {
		return nil, err
	}
	s := c.b.serverAt(host)
	if s == nil {
		return nil, bad("Registration not found for this hostname")
	}
	scheme := c.b.Scheme
	c.b.mu.Unlock()
	secret, err := fetchSecret(scheme + "://" + host + "/api/v1/zulip-services/verify/" +
		c.form.Get("access_token") + "/")
	c.b.mu.Lock()
	if err != nil {
		return nil, err
	}
	text, _ := hex.DecodeString(secret)
	parts := strings.Split(string(text), "|")
	if secret == "" || secret != c.b.secrets[host] || len(parts) != 3 {
		return nil, bad("The verification secret is invalid")
	}
	at, _ := strconv.ParseInt(parts[1], 10, 64)
	if c.b.Now().Sub(time.UnixMilli(at)) > secretLifetime {
		return nil, bad("The verification secret has expired")
	}
	delete(c.b.secrets, host)
	s.key = randomText(48) // 64 characters
	return answer{"zulip_org_id": s.id, "zulip_org_key": s.key}, nil
}

func fetchSecret(address string) (string, error) {
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get(address)
	if err != nil {
		return "", bad("SSL / Connection error occurred while trying to reach the host: %v", err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	var a struct {
		Code   string `json:"code"`
		Secret string `json:"verification_secret"`
	}
	json.Unmarshal(text, &a)
	switch {
	case a.Code == "REMOTE_SERVER_VERIFICATION_SECRET_NOT_PREPARED":
		return "", bad("The host reported it has no verification secret.")
	case r.StatusCode != http.StatusOK:
		return "", bad("Error response received from the host: %d", r.StatusCode)
	}
	return a.Secret, nil
}

func deactivateServer(c *call) (answer, error) {
	c.server.deactivated = true
	return nil, nil
}

func analyticsStatus(c *call) (answer, error) {
	s := c.server
	return answer{"last_realm_count_id": s.lastRealmCount, "last_installation_count_id": s.lastInstallationCount,
		"last_realmauditlog_id": s.lastAudit}, nil
}

// countProperties are the statistics that servers may send.
var countProperties = []string{"messages_sent:is_bot:hour", "messages_sent:message_type:day",
	"messages_sent:client:day", "messages_in_stream:is_bot:day", "active_users_audit:is_bot:day", "1day_actives::day",
	"7day_actives::day", "15day_actives::day", "minutes_active::day", "messages_read::hour",
	"messages_read_interactions::hour", "realm_active_humans::day", "upload_quota_used_bytes::day"}

type count struct {
	ID       int64
	Property string
}

type auditRow struct {
	ID        int64           `json:"id"`
	Realm     int64           `json:"realm"`
	Time      *float64        `json:"event_time"`
	Backfill  *bool           `json:"backfilled"`
	ExtraData json.RawMessage `json:"extra_data"`
	Type      int             `json:"event_type"`
}

var auditTypes = []int{101, 102, 103, 104, 105, 201, 202, 229}

var realmKeys = []string{"id", "host", "url", "name", "org_type", "date_created", "deactivated", "is_system_bot_realm",
	"authentication_methods", "uuid", "uuid_owner_secret"}

var orgTypes = []int64{0, 10, 20, 30, 35, 40, 50, 60, 70, 80, 90, 100, 1000}

func postAnalytics(c *call) (answer, error) {
	f, s := c.form, c.server
	if err := f.require("realm_counts", "installation_counts"); err != nil {
		return nil, err
	}
	var realmCounts, counts []count
	var audit []auditRow
	var realms []map[string]any
	var version, mergeBase string
	var feature int
	hasAudit, hasRealms, hasFeature := false, false, false
	for _, x := range []struct {
		name string
		into any
		has  *bool
	}{
		{"realm_counts", &realmCounts, nil}, {"installation_counts", &counts, nil},
		{"realmauditlog_rows", &audit, &hasAudit}, {"realms", &realms, &hasRealms}, {"version", &version, nil},
		{"merge_base", &mergeBase, nil}, {"api_feature_level", &feature, &hasFeature},
	} {
		ok, err := f.json(x.name, x.into)
		if err != nil {
			return nil, err
		}
		if x.has != nil {
			*x.has = ok
		}
	}
	for i, x := range realms {
		if err := checkRealm(object{fmt.Sprintf("realms[%d]", i), x}); err != nil {
			return nil, err
		}
	}
	if err := c.checkRows(realmCounts, counts, audit); err != nil {
		return nil, err
	}
	out := answer{}
	if hasRealms {
		if err := c.syncRealms(realms); err != nil {
			return nil, err
		}
	}
	s.feature = s.feature || hasFeature
	for _, x := range realmCounts {
		s.lastRealmCount = x.ID
	}
	for _, x := range counts {
		s.lastInstallationCount = x.ID
	}
	if err := c.storeAudit(audit); err != nil {
		return nil, err
	}
	if hasAudit {
		s.audited = c.b.Now().Unix()
	}
	for _, x := range realms {
		uuid := x["uuid"].(string)
		can, end, _ := c.b.mayPush(s, c.b.realms[uuid])
		out[uuid] = answer{"can_push": can, "expected_end_timestamp": end}
	}
	return answer{"realms": out}, nil
}

func checkRealm(o object) error {
	if err := o.only(realmKeys...); err != nil {
		return err
	}
	if err := o.require("id", "host", "url", "date_created", "deactivated", "uuid", "uuid_owner_secret"); err != nil {
		return err
	}
	kind, err := o.integer("org_type")
	if err != nil {
		return err
	}
	if kind != nil && !slices.Contains(orgTypes, *kind) {
		return bad("Invalid %s: Value error, Not a valid org_type value", o.path("org_type"))
	}
	if uuid, _ := o.text("uuid"); !uuidPattern.MatchString(uuid) {
		return bad("Invalid UUID")
	}
	return nil
}

func (c *call) checkRows(realmCounts, counts []count, audit []auditRow) error {
	for _, x := range []struct {
		list []count
		mark int64
	}{{realmCounts, c.server.lastRealmCount}, {counts, c.server.lastInstallationCount}} {
		for _, n := range x.list {
			if !slices.Contains(countProperties, n.Property) {
				return bad("Invalid property %s", n.Property)
			}
			if n.ID <= x.mark {
				return bad("Data is out of order.")
			}
			x.mark = n.ID
		}
	}
	mark := c.server.lastAudit
	for _, row := range audit {
		if !slices.Contains(auditTypes, row.Type) {
			return bad("Invalid event type.")
		}
		if row.ID <= mark {
			return bad("Data is out of order.")
		}
		if row.Time == nil || row.Backfill == nil {
			return bad("realmauditlog_rows field is missing: Field required")
		}
		mark = row.ID
	}
	return nil
}

// syncRealms stores the organizations of a server. Those that are missing are marked deleted.
func (c *call) syncRealms(list []map[string]any) error {
	for _, x := range list {
		if have := c.b.realms[x["uuid"].(string)]; have != nil && have.server != c.server {
			return bad("Duplicate registration detected.")
		}
	}
	for _, r := range c.b.realms {
		if r.server == c.server {
			r.locallyDeleted = true
		}
	}
	for _, x := range list {
		uuid := x["uuid"].(string)
		r := c.b.realms[uuid]
		if r == nil {
			r = &remoteRealm{uuid: uuid, server: c.server, secret: x["uuid_owner_secret"].(string)}
			c.b.realms[uuid] = r
		}
		r.id, r.host, r.locallyDeleted = int64(x["id"].(float64)), x["host"].(string), false
	}
	return nil
}

// storeAudit counts the people of each organization by the newest row that has counts.
func (c *call) storeAudit(rows []auditRow) error {
	for _, row := range rows {
		c.server.lastAudit = row.ID
		text := row.ExtraData
		var quoted string
		if json.Unmarshal(text, &quoted) == nil {
			text = []byte(quoted)
		}
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		var extra map[string]struct {
			Humans map[string]int `json:"11"`
		}
		if json.Unmarshal(text, &extra) != nil {
			return bad("Malformed audit log data")
		}
		if _, ok := extra["10"]; !ok {
			continue
		}
		users := 0
		for _, n := range extra["10"].Humans {
			users += n
		}
		for _, r := range c.b.realms {
			if r.server == c.server && r.id == row.Realm {
				r.users = users
			}
		}
	}
	return nil
}

// mayPush returns whether notifications are forwarded, until when, and the reason if they are not.
func (b *Bouncer) mayPush(s *remoteServer, r *remoteRealm) (can bool, end any, reason string) {
	users := 0
	if r != nil {
		users = r.users
		if at, ok := b.Paid[r.uuid]; ok {
			if at == 0 || users <= freeUsers {
				return true, nil, ""
			}
			return true, at, ""
		}
	} else {
		for _, x := range b.realms {
			if x.server == s {
				users += x.users
			}
		}
	}
	switch {
	case s.audited == 0 || b.Now().Sub(time.Unix(s.audited, 0)) > auditFresh:
		return false, nil, "Missing data"
	case users > freeUsers:
		return false, nil, "Push notifications access with 10+ users requires signing up for a plan. " +
			"https://zulip.com/plans/"
	}
	return true, nil, ""
}

// checkPlan refuses notifications of servers or organizations that may send none.
func (c *call) checkPlan(r *remoteRealm) error {
	can, _, reason := c.b.mayPush(c.server, r)
	const text = "Your plan doesn't allow sending push notifications."
	switch {
	case can:
		return nil
	case !c.server.feature:
		return &refusal{status: 400, code: "INVALID_ZULIP_SERVER", msg: text}
	}
	return &refusal{status: 400, code: "PUSH_NOTIFICATIONS_DISALLOWED",
		msg: text + " Reason provided by the server: " + reason}
}

func billing(c *call) (answer, error) {
	if err := c.form.require("user", "realm", "uri_scheme"); err != nil {
		return nil, err
	}
	var r struct {
		UUID string `json:"uuid"`
	}
	if _, err := c.form.json("realm", &r); err != nil {
		return nil, err
	}
	have := c.b.realms[r.UUID]
	switch {
	case have == nil:
		return nil, errMissingRealm
	case have.server != c.server:
		return nil, errMismatch
	}
	return answer{"billing_access_url": "https://selfhosting.example/" + randomText(8)}, nil
}

var errMissingRealm = &refusal{status: 403, code: "MISSING_REMOTE_REALM", msg: "Organization not registered"}

// Move gives the server at a hostname another one, as its registration with that would.
func (b *Bouncer) Move(from, to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.serverAt(from); s != nil {
		s.hostname = to
	}
}

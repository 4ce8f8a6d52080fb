package push

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// Times of uploads (protocol): hourly, at a minute that differs between servers.
const (
	uploadMinute = 5 * time.Minute
	uploadSpread = 10 * time.Minute
	// minUploadPause is the shortest time between two uploads that are asked for.
	minUploadPause = 30 * time.Second
	// allowedRecently is how long a forwarded notification shows that a failed upload does not matter.
	allowedRecently = time.Hour
)

// maxAuditRows limits the rows of one upload (protocol).
const maxAuditRows = 10_000

// Types of audit rows (protocol).
const (
	auditUserCreated     = 101
	auditUserDeactivated = 103
	auditRoleChanged     = 105
)

// roleCounts are the numbers of active people of an organization by role, and of its active bots.
type roleCounts struct {
	people map[realm.Role]int
	bots   int
}

func (c roleCounts) total() (n int) {
	for _, x := range c.people {
		n += x
	}
	return n
}

func (c roleCounts) equal(d roleCounts) bool {
	return c.bots == d.bots && maps.Equal(c.people, d.people)
}

// Uploader tells the bouncer which organizations this server has and how many people are in each. Without that the
// bouncer forwards nothing ("Missing data"). Messages and activity are not uploaded: the bouncer does not need them.
//
// Audit rows need ids that only grow. They continue from the last id that the bouncer has, so that they are right even
// after this server was restored from a backup. A row has the counts of now; it is sent when they changed.
type Uploader struct {
	Bouncer *Bouncer
	Server  wire.Server
	Sites   func() map[realm.ID]wire.Site
	Log     *slog.Logger
	Now     func() time.Time
	// MayUpload is asked for each organization before each upload; see wire.Places. nil: all are uploaded.
	MayUpload func(realm.ID, realm.Place) error

	mu   sync.Mutex // held during an upload
	sent map[realm.ID]roleCounts
	// unanswered are the rows of an upload without an answer so far. The bouncer may have stored them.
	unanswered []sentRow

	wake    chan struct{}
	cancel  context.CancelFunc
	stopped chan struct{}
}

// Start begins to upload: at once and then hourly.
func (u *Uploader) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.wake, u.cancel, u.stopped = make(chan struct{}, 1), cancel, make(chan struct{})
	go u.run(ctx)
}

// Close stops. It does not wait for an upload in progress, whose result is lost.
func (u *Uploader) Close() {
	if u.cancel != nil {
		u.cancel()
	}
}

// Ask asks for an upload soon; it does not block.
func (u *Uploader) Ask() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *Uploader) run(ctx context.Context) {
	defer close(u.stopped)
	for {
		if u.Bouncer.Account().Org != "" {
			if _, err := u.Upload(); err != nil {
				u.Log.Warn("upload to the push bouncer failed", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(minUploadPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-u.wake:
		case <-time.After(u.untilNext()):
		}
	}
}

// untilNext returns the time until the next hourly upload.
func (u *Uploader) untilNext() time.Duration {
	h := sha256.Sum256([]byte(u.Bouncer.Account().Org))
	at := uploadMinute + time.Duration(binary.BigEndian.Uint64(h[:8])%uint64(uploadSpread/time.Second))*time.Second
	now := u.Now()
	next := now.Truncate(time.Hour).Add(at)
	if !next.After(now) {
		next = next.Add(time.Hour)
	}
	return next.Sub(now)
}

// OrgRights is the bouncer's answer about one organization.
type OrgRights struct {
	Realm realm.ID
	Site  wire.Site
	realm.SetPushRights
}

// Upload uploads now, and records the answer in each organization. It returns the answers in order of their ids.
func (u *Uploader) Upload() ([]OrgRights, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	answers, err := u.upload()
	var refused *wire.BouncerRefusal
	if errors.As(err, &refused) && u.Now().Unix()-u.Bouncer.lastAllowed.Load() > int64(allowedRecently/time.Second) {
		for id := range u.Sites() {
			if err := wire.SetPushRights(u.Server, id, realm.SetPushRights{Reason: refused.Text}); err != nil {
				u.Log.Warn("push rights not recorded", "realm", id, "err", err)
			}
		}
	}
	for _, a := range answers {
		if err := wire.SetPushRights(u.Server, a.Realm, a.SetPushRights); err != nil {
			u.Log.Warn("push rights not recorded", "realm", a.Realm, "err", err)
		}
	}
	return answers, err
}

// uploadedRealm is one organization in an upload. The bouncer refuses other members.
type uploadedRealm struct {
	ID         realm.ID        `json:"id"`
	Host       string          `json:"host"`
	URL        string          `json:"url"`
	Name       string          `json:"name"`
	Type       int64           `json:"org_type"`
	Created    float64         `json:"date_created"`
	Closed     bool            `json:"deactivated"`
	SystemBots bool            `json:"is_system_bot_realm"`
	Methods    map[string]bool `json:"authentication_methods"`
	UUID       string          `json:"uuid"`
	Secret     string          `json:"uuid_owner_secret"`

	counts roleCounts
}

type auditRow struct {
	ID         int64          `json:"id"`
	Realm      realm.ID       `json:"realm"`
	Time       float64        `json:"event_time"`
	Backfilled bool           `json:"backfilled"`
	ExtraData  map[string]any `json:"extra_data"`
	Type       int            `json:"event_type"`
}

func (u *Uploader) upload() ([]OrgRights, error) {
	sites, err := u.openSites()
	if err != nil || len(sites) == 0 {
		return nil, err
	}
	text, err := u.Bouncer.do(request{method: "GET", path: "server/analytics/status"})
	if err != nil {
		return nil, err
	}
	var status struct {
		LastAudit int64 `json:"last_realmauditlog_id"`
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return nil, err
	}
	realms, rows := []uploadedRealm{}, []auditRow{}
	u.settleUnanswered(status.LastAudit)
	var added []sentRow
	for _, id := range slices.Sorted(maps.Keys(sites)) {
		r, err := u.describe(id, sites[id])
		if err != nil {
			return nil, err
		}
		realms = append(realms, r)
		before, known := u.sent[id]
		if known && before.equal(r.counts) || len(rows) == maxAuditRows {
			continue
		}
		status.LastAudit++
		rows = append(rows, u.auditRow(status.LastAudit, id, r.counts, before, known))
		added = append(added, sentRow{status.LastAudit, id, r.counts})
	}
	form := url.Values{"realm_counts": {"[]"}, "installation_counts": {"[]"}}
	for name, v := range map[string]any{"realms": realms, "realmauditlog_rows": rows, "version": wire.Version,
		"merge_base": "", "api_feature_level": wire.FeatureLevel} {
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		form.Set(name, string(text))
	}
	u.unanswered = added
	text, err = u.Bouncer.do(request{method: "POST", path: "server/analytics", kind: formType, upload: true,
		body: []byte(form.Encode())})
	if err != nil {
		return nil, err
	}
	u.settleUnanswered(status.LastAudit)
	var answer struct{ Realms map[string]*rights }
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	var out []OrgRights
	for _, r := range realms {
		if c := answer.Realms[r.UUID].command(); c != nil {
			out = append(out, OrgRights{r.ID, sites[r.ID], *c})
		}
	}
	return out, nil
}

// openSites returns the organizations whose data the bouncer gets.
func (u *Uploader) openSites() (map[realm.ID]wire.Site, error) {
	sites := u.Sites()
	if u.MayUpload == nil {
		return sites, nil
	}
	for id := range sites {
		switch err := u.MayUpload(id, realm.PlaceMobilePush); {
		case errors.Is(err, wire.ErrPlaceClosed):
			delete(sites, id)
		case err != nil:
			return nil, err
		}
	}
	return sites, nil
}

// sentRow is an audit row of an upload: its id, and the counts of the organization in it.
type sentRow struct {
	id     int64
	realm  realm.ID
	counts roleCounts
}

// settleUnanswered records the rows of the last upload that the bouncer has: those up to its last id. They are not sent
// again, because the bouncer would store them as new rows.
func (u *Uploader) settleUnanswered(last int64) {
	for _, row := range u.unanswered {
		if row.id > last {
			continue
		}
		if u.sent == nil {
			u.sent = map[realm.ID]roleCounts{}
		}
		u.sent[row.realm] = row.counts
	}
	u.unanswered = nil
}

// auditRow returns the row that tells the counts of an organization. Its type follows from the difference to the counts
// before.
func (u *Uploader) auditRow(id int64, org realm.ID, now, before roleCounts, known bool) auditRow {
	kind := auditRoleChanged
	switch {
	case now.total() > before.total():
		kind = auditUserCreated
	case now.total() < before.total():
		kind = auditUserDeactivated
	}
	people := map[string]int{}
	for _, role := range []realm.Role{realm.Owner, realm.Administrator, realm.Moderator, realm.Member, realm.Guest} {
		people[strconv.Itoa(int(role))] = now.people[role]
	}
	return auditRow{
		ID: id, Realm: org, Time: float64(u.Now().UnixMilli()) / 1000, Backfilled: !known, Type: kind,
		ExtraData: map[string]any{"10": map[string]any{"11": people, "12": now.bots}},
	}
}

// describe returns one organization as the bouncer wants it, and its counts.
func (u *Uploader) describe(id realm.ID, site wire.Site) (uploadedRealm, error) {
	caller := realm.System
	v, err := u.Server.View(id, caller, func(v realm.View) (any, error) {
		o := v.Org()
		_, host, _ := strings.Cut(site.URL, "://")
		r := uploadedRealm{
			ID: id, Host: host, URL: site.URL, Name: o.Name, Type: v.OrgInt("org_type"), Created: float64(o.Created),
			Closed: o.Deactivated, Methods: map[string]bool{"Email": true}, UUID: o.UUID, Secret: v.PushState().Secret,
			counts: roleCounts{people: map[realm.Role]int{}},
		}
		v.EachUser(func(x *realm.User) {
			switch {
			case !x.Active || x.System:
			case x.IsBot():
				r.counts.bots++
			default:
				r.counts.people[x.Role]++
			}
		})
		return r, nil
	})
	if err != nil {
		return uploadedRealm{}, err
	}
	r := v.(uploadedRealm)
	if r.Secret == "" {
		v, err := u.Server.Turn(id, caller, func(t *realm.Turn) (any, error) {
			return realm.MakePushSecret{}.Decide(t)
		})
		if err != nil {
			return r, err
		}
		r.Secret = v.(string)
	}
	return r, nil
}

package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/sideshow/apns2"
	"github.com/sideshow/apns2/payload"
	"github.com/sideshow/apns2/token"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"parley/actors/realm"
	"parley/wire"
)

// Limits of requests to a push service.
const (
	timeout    = 15 * time.Second // of one request, as the reference
	maxAnswer  = 64 << 10         // bytes of an answer that are read
	timeToLive = "86400s"         // how long Google keeps a notification for a device that is offline; as for Apple
)

// Config of push notifications. Each service is used if it is configured.
type Config struct {
	APNsKey    string // path of the .p8 file
	APNsKeyID  string
	APNsTeam   string
	APNsServer string // "": Apple's service

	FCMAccount string // path of the file with a service account's credentials
	FCMServer  string // "": Google's service

	Bouncer BouncerAccount // without a URL there is none

	Web WebConfig // without a key there are no notifications of browsers

	// Ask is asked before each notification and registration of an organization; see wire.Places. nil: all are sent.
	Ask func(realm.ID, realm.Place) error
}

// errPlaceClosed is the failure of a notification that an organization does not send.
var errPlaceClosed = fmt.Errorf("%w: %w", wire.ErrPushNotConfigured, wire.ErrPlaceClosed)

// ask returns errPlaceClosed if an organization sends no data to a push service for phones, or for browsers.
func (p *Pusher) ask(id realm.ID, browser bool) error {
	if p.c.Ask == nil {
		return nil
	}
	place := realm.PlaceMobilePush
	if browser {
		place = realm.PlaceBrowserPush
	}
	err := p.c.Ask(id, place)
	if errors.Is(err, wire.ErrPlaceClosed) {
		return errPlaceClosed
	}
	return err
}

// Pusher sends to push services. It implements wire.Pusher and Service.
type Pusher struct {
	c       Config
	log     *slog.Logger
	apns    *apns2.Client
	fcm     *http.Client // authenticates its requests
	project string
	bouncer *Bouncer // nil: none
	web     webHosts
}

// New makes a pusher, or nil if nothing is configured.
func New(c Config, log *slog.Logger) (*Pusher, error) {
	p := &Pusher{c: c, log: log}
	if !p.ReachesPhones() && c.Web.Key == nil {
		return nil, nil
	}
	if c.Bouncer.URL != "" {
		p.bouncer = NewBouncer(c.Bouncer)
	}
	if c.APNsKey != "" {
		key, err := token.AuthKeyFromFile(c.APNsKey)
		if err != nil {
			return nil, fmt.Errorf("read the key for Apple's push service: %w", err)
		}
		p.apns = apns2.NewTokenClient(&token.Token{AuthKey: key, KeyID: c.APNsKeyID, TeamID: c.APNsTeam}).Production()
		if c.APNsServer != "" {
			p.apns.Host = c.APNsServer
		}
	}
	if c.FCMAccount != "" {
		if err := p.openFCM(); err != nil {
			return nil, fmt.Errorf("read the account for Google's push service: %w", err)
		}
	}
	return p, nil
}

const (
	fcmServer = "https://fcm.googleapis.com"
	fcmScope  = "https://www.googleapis.com/auth/firebase.messaging"
)

func (p *Pusher) openFCM() error {
	text, err := os.ReadFile(p.c.FCMAccount)
	if err != nil {
		return err
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF")) // editors of Windows add a byte order mark
	var account struct {
		Project string `json:"project_id"`
	}
	if err := json.Unmarshal(text, &account); err != nil {
		return err
	}
	jwt, err := google.JWTConfigFromJSON(text, fcmScope)
	if err != nil {
		return err
	}
	if p.c.FCMServer == "" {
		p.c.FCMServer = fcmServer
	}
	p.project = account.Project
	p.fcm = jwt.Client(context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: timeout}))
	p.fcm.Timeout = timeout
	return nil
}

// ReachesPhones reports whether a service for phones is configured.
func (p *Pusher) ReachesPhones() bool {
	return p.c.APNsKey != "" || p.c.FCMAccount != "" || p.c.Bouncer.URL != ""
}

// Bouncer returns the client of the bouncer, or nil if there is none.
func (p *Pusher) Bouncer() *Bouncer { return p.bouncer }

// Test shows a test notification on a device. It does nothing if no service for the device is configured.
func (p *Pusher) Test(n wire.PushOrigin, d realm.PushToken) error {
	if err := p.ask(n.RealmID, isBrowser(d)); err != nil {
		return err
	}
	var err error
	switch {
	case d.Kind == realm.PushWeb && p.c.Web.Key != nil:
		err = p.sendWeb(webTest(n), d)
	case d.Kind == realm.PushWeb:
		return nil
	case p.bouncer != nil:
		err = p.testByBouncer(n, d)
	case d.Kind == realm.PushAPNs && p.apns != nil:
		err = p.testByAPNs(n, d)
	case d.Kind == realm.PushFCM && p.fcm != nil:
		err = p.testByFCM(n, d)
	default:
		return nil // no service for this kind
	}
	if err != nil {
		p.log.Warn("push notification failed", "user", n.User.String(), "realm", n.RealmID, "err", err)
	}
	return err
}

func (p *Pusher) testByAPNs(n wire.PushOrigin, d realm.PushToken) error {
	data := map[string]any{
		"event":      "test",
		"realm_name": n.RealmName,
		"realm_url":  n.RealmURL,
		"realm_uri":  n.RealmURL,
		"user_id":    n.User,
	}
	load := payload.NewPayload().AlertTitle("Test notification").AlertBody(testText(n)).Sound("default")
	return p.sendAPNs(&apns2.Notification{
		DeviceToken: wire.APNsToken(d.Token), Topic: d.App, Payload: load.Custom("zulip", data),
	})
}

// sendAPNs sends one notification to one of Apple's devices.
func (p *Pusher) sendAPNs(n *apns2.Notification) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	answer, err := p.apns.PushWithContext(ctx, n)
	switch {
	case err != nil:
		return fmt.Errorf("reach Apple's push service: %w", err)
	case answer.Sent():
		return nil
	case answer.StatusCode == http.StatusGone,
		answer.Reason == apns2.ReasonBadDeviceToken,
		answer.Reason == apns2.ReasonDeviceTokenNotForTopic,
		answer.Reason == apns2.ReasonUnregistered:
		return wire.ErrDeviceUnknown
	case answer.StatusCode == http.StatusTooManyRequests, answer.StatusCode >= 500:
		return fmt.Errorf("%w: Apple's answered %d %s", wire.ErrPushFailed, answer.StatusCode, answer.Reason)
	}
	return fmt.Errorf("%w: Apple's answered %d %s", wire.ErrPushRefused, answer.StatusCode, answer.Reason)
}

func testText(n wire.PushOrigin) string {
	return "This is a test notification from " + n.RealmName + " (" + n.RealmURL + ")."
}

func (p *Pusher) testByFCM(n wire.PushOrigin, d realm.PushToken) error {
	return p.sendFCM(d.Token, "high", map[string]any{
		"event":      "test",
		"realm_name": n.RealmName,
		"realm_url":  n.RealmURL,
		"realm_uri":  n.RealmURL,
		"user_id":    n.User,
		"time":       time.Now().Unix(),
	})
}

// sendFCM sends one notification to one Android device. The service accepts only strings as values.
func (p *Pusher) sendFCM(token, priority string, data map[string]any) error {
	texts := map[string]string{}
	for k, v := range data {
		texts[k] = fmt.Sprint(v)
	}
	body := map[string]any{
		"message": map[string]any{
			"token":   token,
			"android": map[string]any{"priority": priority, "ttl": timeToLive},
			"data":    texts,
		},
	}
	status, answer, err := p.post(p.fcm, p.c.FCMServer+"/v1/projects/"+url.PathEscape(p.project)+"/messages:send", body)
	if err != nil {
		return fmt.Errorf("reach Google's push service: %w", err)
	}
	if status == http.StatusOK {
		return nil
	}
	var failure struct {
		Error struct {
			Status  string
			Details []struct{ ErrorCode string }
		}
	}
	json.Unmarshal(answer, &failure) // no details if the answer is not JSON
	for _, d := range failure.Error.Details {
		if d.ErrorCode == "UNREGISTERED" ||
			d.ErrorCode == "INVALID_ARGUMENT" && failure.Error.Status == "INVALID_ARGUMENT" {
			return wire.ErrDeviceUnknown
		}
	}
	if status == http.StatusTooManyRequests || status >= 500 {
		return fmt.Errorf("%w: Google's answered %d %s", wire.ErrPushFailed, status, failure.Error.Status)
	}
	return fmt.Errorf("%w: Google's answered %d %s", wire.ErrPushRefused, status, failure.Error.Status)
}

// post sends JSON and returns the status and the first maxAnswer bytes of the answer.
func (p *Pusher) post(client *http.Client, address string, body any) (int, []byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	return send(client, "POST", address, "application/json", text, func(*http.Request) {}, maxAnswer)
}

// send sends a request and returns the status and the first limit bytes of the answer.
func send(
	client *http.Client,
	method, address, kind string,
	text []byte,
	sign func(*http.Request),
	limit int64,
) (int, []byte, error) {
	r, err := http.NewRequest(method, address, bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	sign(r)
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, limit))
	return answer.StatusCode, text, err
}

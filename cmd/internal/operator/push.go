package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/wire"
	"parley/wire/push"
)

// PushService is the part of push notifications that the operator's commands use.
type PushService struct {
	Data     string               // data directory
	Fixed    bool                 // the settings name the account
	Proofs   *push.HostnameProofs // nil on a stopped server
	Pusher   *push.Pusher         // nil: no service is configured, or the server is stopped
	Bouncer  *push.Bouncer        // nil: the running server uses none, or the server is stopped
	Uploader *push.Uploader       // the same
}

// NewUploader returns the uploader of a server's organizations to its bouncer.
func NewUploader(b *push.Bouncer, orgs *actors.Server, site func(subdomain string) wire.Site, places *wire.Places,
	log *slog.Logger,
) *push.Uploader {
	return &push.Uploader{Bouncer: b, Server: orgs, Log: log, Now: time.Now, MayUpload: places.Ask,
		Sites: func() map[realm.ID]wire.Site {
			sites := map[realm.ID]wire.Site{}
			for name, id := range orgs.Realms() {
				sites[id] = site(name)
			}
			return sites
		}}
}

// connection returns the client of the bouncer and the uploader: those of the running server, else others that use the
// stored account.
func (o *Operator) connection(address string) (*push.Bouncer, *push.Uploader, error) {
	p := o.Push
	if p.Bouncer != nil && (address == "" || address == p.Bouncer.Account().URL) {
		return p.Bouncer, p.Uploader, nil
	}
	if p.Fixed {
		return nil, nil, errors.New("the settings name another push bouncer; change push-bouncer")
	}
	a, err := push.LoadAccount(p.Data)
	if err != nil {
		return nil, nil, err
	}
	if address != "" && a.URL != address {
		a = push.BouncerAccount{URL: address}
	}
	if a.URL == "" {
		a.URL = push.DefaultBouncer
	}
	b := push.NewBouncer(a)
	return b, NewUploader(b, o.Orgs, o.Site, wire.NewPlaces(o.Orgs, nil), slog.New(slog.DiscardHandler)), nil
}

// pushRegister registers the server at the bouncer. The account is stored before the bouncer learns it, so that its key
// cannot be lost in between.
func pushRegister(o *Operator, args map[string]string) (any, error) {
	if args["contact"] == "" {
		return nil, errors.New("--contact is required: an email address of the server's operator")
	}
	if args["agree"] != "true" {
		return nil, errors.New("--agree is required: the bouncer's operator asks for consent to its terms, which the " +
			"vendor has at https://zulip.com/policies/terms")
	}
	running := o.Push.Proofs != nil
	host := args["hostname"]
	if host == "" && running {
		_, host, _ = strings.Cut(o.Site("").URL, "://")
	}
	if host == "" {
		return nil, errors.New("--hostname is required while the server is stopped")
	}
	b, uploader, err := o.connection(strings.TrimSuffix(args["bouncer"], "/"))
	if err != nil {
		return nil, err
	}
	save := func(a push.BouncerAccount) error { return push.SaveAccount(o.Push.Data, a) }
	transfer, rotate := args["transfer"] == "true", args["rotate"] == "true"
	switch {
	case (transfer || rotate) && o.Push.Fixed:
		return nil, errors.New("the settings name the account, so that its key cannot be replaced; " +
			"remove push-bouncer-org and push-bouncer-key")
	case transfer && !running:
		return nil, errors.New("--transfer needs a running server: the bouncer checks over HTTP that the server has " +
			"the hostname")
	case transfer:
		a, err := b.TransferHostname(host, o.Push.Proofs)
		if err != nil {
			return nil, err
		}
		if err := save(a); err != nil {
			return nil, err
		}
	case b.Account().Org == "":
		a := push.NewAccount(b.Account().URL)
		if err := save(a); err != nil {
			return nil, err
		}
		b.SetAccount(a)
	}
	created, err := b.RegisterServer(
		push.ServerRegistration{Hostname: host, Contact: args["contact"], Rotate: rotate}, save)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"server": b.Account().Org, "hostname": host, "created": created}
	if o.Push.Bouncer != b && running {
		answer["next"] = "parley upgrade: the running server does not use the bouncer yet"
	}
	list, err := uploader.Upload()
	if err != nil {
		return nil, fmt.Errorf("registered, but the upload of the organizations failed: %w", err)
	}
	answer["organizations"] = o.describeRights(list)
	return answer, nil
}

// describeRights returns one line for each organization.
func (o *Operator) describeRights(list []push.OrgRights) []any {
	out := []any{}
	for _, x := range list {
		line := map[string]any{"organization": x.Site.URL, "notifications": "delivered"}
		switch {
		case x.End != 0:
			line["until"] = showTime(x.End)
		case !x.Allowed:
			line["notifications"] = "refused"
			v, _ := o.Orgs.View(x.Realm, realm.System, func(v realm.View) (any, error) {
				return v.PushState().Reason, nil
			})
			line["reason"], _ = v.(string)
		}
		out = append(out, line)
	}
	return out
}

// pushStatus asks the bouncer for the rights of the organizations.
func pushStatus(o *Operator, _ map[string]string) (any, error) {
	b, uploader, err := o.connection("")
	if err != nil {
		return nil, err
	}
	a := b.Account()
	if a.Org == "" {
		return nil, errors.New("the server is not registered at a push bouncer; run parley push register")
	}
	list, err := uploader.Upload()
	if err != nil {
		return nil, err
	}
	return map[string]any{"bouncer": a.URL, "server": a.Org, "organizations": o.describeRights(list)}, nil
}

// pushTest shows a test notification on every device of a user.
func pushTest(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	pusher := o.Push.Pusher
	if pusher == nil {
		b, _, err := o.connection("")
		if err != nil {
			return nil, err
		}
		if o.Push.Proofs != nil || b.Account().Org == "" {
			return nil, errors.New("no push notification service is configured")
		}
		if pusher, err = push.New(push.Config{Bouncer: b.Account(),
			Ask: wire.NewPlaces(o.Orgs, nil).Ask}, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
	}
	type target struct {
		origin  wire.PushOrigin
		tokens  []realm.PushToken
		devices []realm.Device
		now     int64
	}
	v, err := o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		devices := slices.DeleteFunc(v.DevicesOf(u), func(d realm.Device) bool {
			return d.TokenID == nil || d.KeyID == nil
		})
		return target{wire.PushOriginOf(v, u, o.SiteByID(id)), v.NotifiedPushTokens(u), devices, v.Now}, nil
	})
	if err != nil {
		return nil, err
	}
	to := v.(target)
	list := []any{}
	for _, d := range to.tokens {
		kind := map[realm.PushKind]string{
			realm.PushAPNs: "apns", realm.PushFCM: "fcm", realm.PushWeb: "browser",
		}[d.Kind]
		list = append(list, map[string]any{"device": kind, "result": resultText(pusher.Test(to.origin, d))})
	}
	for _, d := range to.devices {
		answer, err := pusher.TestEncrypted(to.origin, []realm.Device{d}, to.now)
		if err == nil && len(answer.Devices) > 0 {
			err = wire.ErrDeviceUnknown
		}
		list = append(list, map[string]any{
			"device": d.TokenKind + " encrypted " + strconv.FormatInt(d.ID, 10), "result": resultText(err)})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no registered device", args["email"])
	}
	return map[string]any{"devices": list}, nil
}

func resultText(err error) string {
	if err != nil {
		return err.Error()
	}
	return "sent"
}

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/push"
)

// PushAccountFile is the name of the file in the data directory with the server's account at the push bouncer. A backup
// does not contain it, as it does not contain the secret: parley push register --transfer gets the account back.
const PushAccountFile = "push-account.json"

// pushService is the part of push notifications that the operator's commands use.
type pushService struct {
	data     string
	fixed    bool                 // the settings name the account
	proofs   *push.HostnameProofs // nil on a stopped server
	pusher   *push.Pusher         // nil: no service is configured, or the server is stopped
	bouncer  *push.Bouncer        // nil: the running server uses none, or the server is stopped
	uploader *push.Uploader       // the same
}

// loadPushAccount reads the account in a data directory; it is empty if there is none.
func loadPushAccount(data string) (a push.BouncerAccount, err error) {
	path := filepath.Join(data, PushAccountFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		return a, fmt.Errorf("read the account at the push bouncer from %s: %w", path, err)
	}
	return a, nil
}

// savePushAccount writes the account. The file is complete or absent, whenever the machine fails.
func savePushAccount(data string, a push.BouncerAccount) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	path := filepath.Join(data, PushAccountFile)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the account at the push bouncer: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write the account at the push bouncer to %s: %w", path, err)
	}
	return nil
}

// bouncerAccount returns the account that the settings name, else the one that parley push register stored.
func (s *Server) bouncerAccount() (push.BouncerAccount, error) {
	if s.BouncerOrg != "" {
		return push.BouncerAccount{URL: s.Bouncer, Org: s.BouncerOrg, Key: s.BouncerKey}, nil
	}
	a, err := loadPushAccount(s.Data)
	if err != nil || s.Bouncer == "" || s.Bouncer == a.URL {
		return a, err
	}
	return push.BouncerAccount{URL: s.Bouncer}, nil // registered elsewhere, or not yet
}

func (s *Server) newUploader(b *push.Bouncer) *push.Uploader {
	return newUploader(b, &operator{orgs: s.orgs, sites: s.sites}, s.log)
}

func newUploader(b *push.Bouncer, o *operator, log *slog.Logger) *push.Uploader {
	return &push.Uploader{Bouncer: b, Server: o.orgs, Log: log, Now: time.Now, Sites: func() map[realm.ID]wire.Site {
		sites := map[realm.ID]wire.Site{}
		for name, id := range o.orgs.Realms() {
			sites[id] = o.sites.site(name)
		}
		return sites
	}}
}

// connection returns the client of the bouncer and the uploader: those of the running server, else others that use the
// stored account.
func (o *operator) connection(address string) (*push.Bouncer, *push.Uploader, error) {
	p := o.push
	if p.bouncer != nil && (address == "" || address == p.bouncer.Account().URL) {
		return p.bouncer, p.uploader, nil
	}
	if p.fixed {
		return nil, nil, errors.New("the settings name another push bouncer; change push-bouncer")
	}
	a, err := loadPushAccount(p.data)
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
	return b, newUploader(b, o, slog.New(slog.DiscardHandler)), nil
}

// pushRegister registers the server at the bouncer. The account is stored before the bouncer learns it, so that its key
// cannot be lost in between.
func pushRegister(o *operator, args map[string]string) (any, error) {
	if args["contact"] == "" {
		return nil, errors.New("--contact is required: an email address of the server's operator")
	}
	if args["agree"] != "true" {
		return nil, errors.New("--agree is required: the bouncer's operator asks for consent to its terms, which the " +
			"vendor has at https://zulip.com/policies/terms")
	}
	running := o.push.proofs != nil
	host := args["hostname"]
	if host == "" && running {
		_, host, _ = strings.Cut(o.sites.site("").URL, "://")
	}
	if host == "" {
		return nil, errors.New("--hostname is required while the server is stopped")
	}
	b, uploader, err := o.connection(strings.TrimSuffix(args["bouncer"], "/"))
	if err != nil {
		return nil, err
	}
	save := func(a push.BouncerAccount) error { return savePushAccount(o.push.data, a) }
	transfer, rotate := args["transfer"] == "true", args["rotate"] == "true"
	switch {
	case (transfer || rotate) && o.push.fixed:
		return nil, errors.New("the settings name the account, so that its key cannot be replaced; " +
			"remove push-bouncer-org and push-bouncer-key")
	case transfer && !running:
		return nil, errors.New("--transfer needs a running server: the bouncer checks over HTTP that the server has " +
			"the hostname")
	case transfer:
		a, err := b.TransferHostname(host, o.push.proofs)
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
	if o.push.bouncer != b && running {
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
func (o *operator) describeRights(list []push.OrgRights) []any {
	out := []any{}
	for _, x := range list {
		line := map[string]any{"organization": x.Site.URL, "notifications": "delivered"}
		switch {
		case x.End != 0:
			line["until"] = showTime(x.End)
		case !x.Allowed:
			line["notifications"] = "refused"
			v, _ := o.orgs.View(x.Realm, realm.System, func(v realm.View) (any, error) {
				return v.PushState().Reason, nil
			})
			line["reason"], _ = v.(string)
		}
		out = append(out, line)
	}
	return out
}

// pushStatus asks the bouncer for the rights of the organizations.
func pushStatus(o *operator, _ map[string]string) (any, error) {
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
func pushTest(o *operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	pusher := o.push.pusher
	if pusher == nil {
		b, _, err := o.connection("")
		if err != nil {
			return nil, err
		}
		if o.push.proofs != nil || b.Account().Org == "" {
			return nil, errors.New("no push notification service is configured")
		}
		if pusher, err = push.New(push.Config{Bouncer: b.Account()}, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
	}
	type target struct {
		origin  wire.PushOrigin
		tokens  []realm.PushToken
		devices []realm.Device
		now     int64
	}
	v, err := o.orgs.View(id, realm.System, func(v realm.View) (any, error) {
		devices := slices.DeleteFunc(v.DevicesOf(u), func(d realm.Device) bool {
			return d.TokenID == nil || d.KeyID == nil
		})
		return target{wire.PushOriginOf(v, u, o.sites.byID(id)), v.NotifiedPushTokens(u), devices, v.Now}, nil
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

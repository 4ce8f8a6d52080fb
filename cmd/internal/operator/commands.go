package operator

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/cmd/internal/cluster"
	"parley/snapshot"
	"parley/wire"
)

// commands is every command of the operator by its name in requests to the control socket, with the nodes from
// which the leader of a cluster takes it. The leader refuses all others.
var commands = map[string]command{
	"audit-export": {run: auditExport, from: cluster.FromCore},
	"audit-keep":   {run: auditKeep, from: cluster.FromCore},
	"audit-list":   {run: auditList, from: cluster.FromCore},

	"compliance-ask": {run: complianceAsk, from: cluster.FromCore},

	"channel-list":    {run: channelList, from: cluster.FromCore},
	"channel-archive": {run: channelArchive, from: cluster.FromCore},
	"channel-owners":  {run: channelOwners, from: cluster.FromCore},
	"invite-list":     {run: inviteList, from: cluster.FromCore},
	"invite-revoke":   {run: inviteRevoke, from: cluster.FromCore},
	"mail-test":       {run: mailTest, from: cluster.FromCore},
	"user-role":       {run: userRole, from: cluster.FromCore},
	"user-rename":     {run: userRename, from: cluster.FromCore},
	"user-deactivate": {run: userDeactivate, from: cluster.FromCore},
	"user-reactivate": {run: userReactivate, from: cluster.FromCore},

	"cluster-level":       {run: clusterLevel, from: cluster.FromCore},
	"cluster-move-leader": {run: clusterMoveLeader, from: cluster.FromCore},
	"cluster-promote":     {run: clusterPromote, from: cluster.FromCores, self: true},
	"cluster-remove":      {run: clusterRemove, from: cluster.FromCore},
	"cluster-status":      {run: clusterStatus, from: cluster.FromServing},
	"cluster-token":       {run: clusterToken, from: cluster.FromCore},
	"cluster-verify":      {run: clusterVerify, from: cluster.FromCore},

	"push-register": {run: pushRegister, from: cluster.FromCore},
	"push-status":   {run: pushStatus, from: cluster.FromCore},
	"push-test":     {run: pushTest, from: cluster.FromCore},
	"realm-create":  {run: realmCreate, from: cluster.FromCore},
	"realm-list":    {run: realmList, from: cluster.FromCore},
	"realm-close":   {run: realmClose, from: cluster.FromCore},
	"realm-reopen":  {run: realmReopen, from: cluster.FromCore},
	"realm-digest":  {run: realmDigest, from: cluster.FromCore},
	"realm-slowest": {run: realmSlowest, from: cluster.FromCore},
	"server-info":   {run: serverInfo, local: true},

	"retention-list":        {run: retentionList, from: cluster.FromCore},
	"retention-restore":     {run: retentionRestore, from: cluster.FromCore},
	"retention-hold-add":    {run: holdAdd, from: cluster.FromCore},
	"retention-hold-list":   {run: holdList, from: cluster.FromCore},
	"retention-hold-remove": {run: holdRemove, from: cluster.FromCore},

	"scim-token-create": {run: scimTokenCreate, from: cluster.FromCore},
	"scim-token-list":   {run: scimTokenList, from: cluster.FromCore},
	"scim-token-revoke": {run: scimTokenRevoke, from: cluster.FromCore},

	"upgrade":       {run: startUpgrade, local: true},
	"user-create":   {run: userCreate, from: cluster.FromCore},
	"user-list":     {run: userList, from: cluster.FromCore},
	"user-api-key":  {run: userKey, from: cluster.FromCore},
	"user-keys":     {run: userKeys, from: cluster.FromCore},
	"user-password": {run: userPassword, from: cluster.FromCore},
	"user-erase":    {run: userErase, from: cluster.FromCore},
	"user-grant":    {run: userGrant, from: cluster.FromCore},
	"user-sessions": {run: userSessions, from: cluster.FromCore},
	"user-help":     {run: userHelp, from: cluster.FromCore},
	"user-factor":   {run: userFactor, from: cluster.FromCore},
}

// realm returns the organization that the argument realm names by its subdomain.
func (o *Operator) realm(args map[string]string) (realm.ID, error) {
	id, _, ok := o.Orgs.RealmByName(args["realm"])
	if !ok {
		return 0, fmt.Errorf("no organization %q; parley realm list shows them", args["realm"])
	}
	return id, nil
}

func realmCreate(o *Operator, args map[string]string) (any, error) {
	name := args["name"]
	if name == "" {
		return nil, errors.New("--name is required: the name of the organization")
	}
	if err := wire.CheckSubdomain(args["realm"]); err != nil {
		return nil, err
	}
	if wire.ReservedSubdomain(args["realm"]) && args["allow-reserved"] != "true" {
		return nil, fmt.Errorf("%q is a reserved subdomain, where users expect a service of the server; choose "+
			"another one, or add --allow-reserved", args["realm"])
	}
	id, err := o.Orgs.CreateRealm(args["realm"], name)
	if err != nil {
		return nil, err
	}
	if _, err := realm.Execute(o.Orgs, id, realm.Operator, realm.CreateFirstChannels{}); err != nil {
		return nil, err
	}
	url := o.Site(args["realm"]).URL
	if args["owner"] == "" {
		return map[string]any{"id": id, "url": url}, nil
	}
	owner, err := o.createFirstOwner(id, url, args["owner"])
	if err != nil {
		return nil, fmt.Errorf("the organization was created without an owner, because %w; create one with "+
			"parley user create --role owner", err)
	}
	return owner, nil
}

// createFirstOwner creates the owner of a new organization with a random password, and returns the values that they
// need for their first message.
func (o *Operator) createFirstOwner(id realm.ID, url, email string) (any, error) {
	password := rand.Text()
	hash, err := o.Passwords.Hash(id, password)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(email, "@")
	if realm.CheckUserName(name) != nil { // such as o@example.org
		name = "Owner"
	}
	u, err := realm.Execute(o.Orgs, id, realm.Operator, realm.CreateUser{Email: email, Name: name, Password: hash,
		Role: realm.Owner, First: true})
	if err != nil {
		return nil, err
	}
	key, err := realm.Execute(o.Orgs, id, realm.Operator, realm.IssueAPIKey{User: u})
	if err != nil {
		return nil, err
	}
	return map[string]any{"id": id, "url": url, "email": email, "password": password, "api_key": key,
		"first_message": fmt.Sprintf("curl -sSu '%s:%s' %s/api/v1/messages -d type=stream -d to=general "+
			"-d topic=hello -d content=Hello", email, key, url)}, nil
}

func realmClose(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.CloseRealm{})
	return map[string]any{"id": id}, err
}

func realmReopen(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.ReopenRealm{})
	return map[string]any{"id": id}, err
}

func realmList(o *Operator, args map[string]string) (any, error) {
	list := []any{}
	realms := o.Orgs.Realms()
	for _, name := range slices.Sorted(maps.Keys(realms)) {
		if k, ok := o.Orgs.SleepingSummary(realms[name]); ok {
			list = append(list, map[string]any{"id": realms[name], "subdomain": name, "name": k.Name,
				"people": k.People, "closed": k.Closed, "facts": k.Seq, "url": o.Site(name).URL, "asleep": true})
			continue
		}
		x, err := o.Orgs.View(realms[name], realm.System, func(v realm.View) (any, error) {
			people := 0
			v.EachUser(func(u *realm.User) {
				if u.Active && !u.IsBot() && !u.System {
					people++
				}
			})
			return map[string]any{
				"id": v.ID(), "subdomain": name, "name": v.Org().Name, "people": people, "closed": v.Closed(),
				"facts": v.Seq(), "url": o.Site(name).URL,
			}, nil
		})
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return map[string]any{"realms": list}, nil
}

// realmDigest returns the digest of every organization's state. It blocks an organization while it reads all its
// rows.
func realmDigest(o *Operator, args map[string]string) (any, error) {
	list := []any{}
	realms := o.Orgs.Realms()
	for _, name := range slices.Sorted(maps.Keys(realms)) {
		x, err := o.Orgs.View(realms[name], realm.System, func(v realm.View) (any, error) {
			return snapshot.StateDigest(v.Realm).String(), nil
		})
		if err != nil {
			return nil, err
		}
		list = append(list, map[string]any{"state": x})
	}
	return map[string]any{"digests": list}, nil
}

// SlowestShown is the number of kinds of work that realm slowest lists.
const SlowestShown = 10

// realmSlowest lists the kinds of work that blocked an organization longest since the server started, longest first.
func realmSlowest(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	slow := fmt.Sprintf("over_%dms", actors.MaxTurnLatency.Milliseconds())
	list := []any{}
	for i, k := range o.Orgs.SlowestTurns(id, SlowestShown) {
		list = append(list, map[string]any{
			"rank": i + 1, "kind": k.Kind, "ms": InMilliseconds(k.Max), "at": k.MaxAt.UTC().Format(time.RFC3339),
			"user": k.MaxUser, "times": k.Count, "mean_ms": InMilliseconds(k.Total / time.Duration(k.Count)),
			slow: k.Slow,
		})
	}
	return map[string]any{"slowest": list}, nil
}

func InMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

var roles = map[string]realm.Role{
	"owner":         realm.Owner,
	"administrator": realm.Administrator,
	"moderator":     realm.Moderator,
	"member":        realm.Member,
	"guest":         realm.Guest,
}

func userCreate(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	role, ok := roles[args["role"]]
	if !ok {
		return nil, fmt.Errorf("--role must be owner, administrator, moderator, member or guest, not %q", args["role"])
	}
	cmd := realm.CreateUser{Email: args["email"], Name: args["name"], Role: role}
	if p := args["password"]; p != "" {
		if cmd.Password, err = o.Passwords.Hash(id, p); err != nil {
			return nil, err
		}
	}
	u, err := realm.Execute(o.Orgs, id, realm.Operator, cmd)
	if err != nil {
		return nil, err
	}
	key, err := realm.Execute(o.Orgs, id, realm.Operator, realm.IssueAPIKey{User: u})
	return map[string]any{"user_id": u, "email": args["email"], "api_key": key}, err
}

func userList(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	return o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		list := []any{}
		v.EachUser(func(u *realm.User) {
			if !u.System {
				list = append(list, map[string]any{
					"user_id": u.ID, "email": u.Email, "name": u.Name, "role": u.Role, "bot": u.IsBot(),
					"active": u.Active,
				})
			}
		})
		return map[string]any{"users": list}, nil
	})
}

// user returns the organization and the user that the arguments realm and email name.
func (o *Operator) user(args map[string]string) (realm.ID, realm.UserID, error) {
	id, err := o.realm(args)
	if err != nil {
		return 0, 0, err
	}
	a, ok := o.Orgs.AccountByEmail(id, args["email"])
	if !ok {
		return 0, 0, fmt.Errorf("no user %q", args["email"])
	}
	return id, a.User, nil
}

func userKey(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	key, err := realm.Execute(o.Orgs, id, realm.Operator, realm.IssueAPIKey{User: u, Only: args["only"] == "true"})
	return map[string]any{"email": args["email"], "api_key": key}, err
}

// userKeys lists the additional API keys of a user, after it added or revoked one.
func userKeys(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	if args["add"] != "" {
		return o.addKey(id, u, args)
	}
	if args["revoke"] != "" {
		key, err := strconv.ParseInt(args["revoke"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--revoke must be the id of a key, not %q", args["revoke"])
		}
		if _, err := realm.Execute(o.Orgs, id, realm.Operator, realm.RevokeKey{User: u, Key: key}); err != nil {
			return nil, err
		}
	}
	return o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		keys, err := v.AdditionalKeys(u)
		list := []any{}
		for _, k := range keys {
			list = append(list, map[string]any{"id": k.ID, "label": k.Label, "created": showTime(k.Created),
				"expires": showTime(k.Expires), "last_used": showTime(k.Used), "scope": k.Scope.String()})
		}
		return map[string]any{"keys": list}, err
	})
}

// showTime returns a time in Unix seconds for people, "never" for 0.
func showTime(at int64) string {
	if at == 0 {
		return "never"
	}
	return time.Unix(at, 0).UTC().Format(time.RFC3339)
}

func (o *Operator) addKey(id realm.ID, u realm.UserID, args map[string]string) (any, error) {
	c := realm.AddKey{User: u, Label: args["add"]}
	if text := args["expires-in"]; text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			return nil, fmt.Errorf("--expires-in must be a duration such as 720h, not %q", text)
		}
		c.Lifetime = int64(d / time.Second)
	}
	var err error
	if c.Scope, err = o.keyScope(id, args); err != nil {
		return nil, err
	}
	k, err := realm.Execute(o.Orgs, id, realm.Operator, c)
	return map[string]any{"email": args["email"], "id": k.ID, "api_key": k.Secret, "expires": showTime(k.Expires),
		"scope": k.Scope.String()}, err
}

// keyScope returns the scope that the flags of a new key describe, nil without any.
func (o *Operator) keyScope(id realm.ID, args map[string]string) (*realm.KeyScope, error) {
	list := func(name string) (out []string) {
		for x := range strings.SplitSeq(args[name], ",") {
			if x = strings.TrimSpace(x); x != "" {
				out = append(out, x)
			}
		}
		return out
	}
	s := &realm.KeyScope{Rights: list("rights"), Endpoints: list("endpoints"), Networks: list("networks"),
		Direct: args["direct"] == "true"}
	channels := list("channels")
	if s.Rights == nil && s.Endpoints == nil && s.Networks == nil && channels == nil && !s.Direct {
		return nil, nil
	}
	if s.Rights == nil {
		return nil, errors.New("--rights is required for a limited key, such as --rights read,send")
	}
	if err := wire.CheckEndpointNames(s.Endpoints); err != nil {
		return nil, err
	}
	_, err := o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		for _, c := range channels {
			name, topic, limited := strings.Cut(c, ">")
			channel := v.FindChannelByName(name)
			if channel == nil {
				return nil, fmt.Errorf("no channel %q; parley channel list shows them", name)
			}
			place := realm.KeyPlace{Channel: channel.ID}
			if limited {
				place.Topic = &topic
			}
			s.Places = append(s.Places, place)
		}
		return nil, nil
	})
	return s, err
}

func userPassword(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	hash, err := o.Passwords.Hash(id, args["password"])
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.SetPassword{
		User: u, Hash: hash, KeepKeys: args["keep-keys"] == "true"})
	return map[string]any{"email": args["email"]}, err
}

// userSessions ends the sessions of a user that the argument end names: one by its id, or all. Then it lists the
// others, the one used last first.
func userSessions(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	if which := args["end"]; which != "" {
		cmd := realm.EndBrowserSessions{User: u}
		if which != "all" {
			if cmd.ID, err = strconv.ParseInt(which, 10, 64); err != nil || cmd.ID <= 0 {
				return nil, fmt.Errorf("--end must be the id of a session, or all, not %q", which)
			}
		}
		if _, err := realm.Execute(o.Orgs, id, realm.Operator, cmd); err != nil {
			return nil, err
		}
	}
	return o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		list := []any{}
		for _, s := range v.BrowserSessions(u) {
			help := ""
			if s.IsHelp() {
				help = "of the operator until " + showTime(s.Until)
			}
			list = append(list, map[string]any{
				"id": s.ID, "help": help, "device": wire.DeviceText(s.Agent), "agent": s.Agent, "address": s.Address,
				"opened":   showTime(s.Opened),
				"last_use": time.Unix(s.Used, 0).UTC().Format(time.DateOnly),
			})
		}
		return map[string]any{"sessions": list}, nil
	})
}

// userFactor says whether a user has a second factor. With the argument remove it ends it.
func userFactor(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	if args["remove"] == "true" {
		_, err := realm.Execute(o.Orgs, id, realm.System, realm.RemoveFactor{User: u})
		return map[string]any{"email": args["email"], "factor": "removed"}, err
	}
	return o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		state := map[string]any{"email": args["email"], "factor": "none"}
		if f := v.FactorOf(u); f != nil {
			state["factor"], state["since"], state["recovery_codes"] = "on", showTime(f.Since), len(f.Recovery)
			state["app"], state["passkeys"] = f.Secret != "", len(v.PasskeysOf(u))
		}
		return state, nil
	})
}

func userGrant(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.Grant{
		User:         u,
		CreateUsers:  args["create-users"] == "true",
		ChangeEmails: args["change-emails"] == "true",
	})
	return map[string]any{"email": args["email"]}, err
}

// serverInfo returns the process id and the version of the server, and whether a successor is starting.
func serverInfo(o *Operator, _ map[string]string) (any, error) {
	info := map[string]any{"pid": os.Getpid(), "version": o.Version, "protocol": wire.Protocol}
	if o.Handover != nil {
		info["successor"] = o.Handover.HasSuccessor()
	}
	return info, nil
}

// startUpgrade starts the successor and returns its process id.
func startUpgrade(o *Operator, _ map[string]string) (any, error) {
	if o.Handover == nil {
		return nil, errors.New("no server is running in this data directory")
	}
	pid, err := o.Handover.StartSuccessor()
	return map[string]any{"pid": pid}, err
}

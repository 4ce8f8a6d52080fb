package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"parley/actors"
	"parley/actors/realm"
	"parley/snapshot"
)

// operatorCommands is every command of the operator, by name.
var operatorCommands = map[string]operatorCommand{
	"realm-create":  realmCreate,
	"realm-list":    realmList,
	"realm-close":   realmClose,
	"realm-reopen":  realmReopen,
	"realm-digest":  realmDigest,
	"realm-slowest": realmSlowest,
	"server-info":   serverInfoCommand,
	"upgrade":       upgradeCommand,
	"user-create":   userCreate,
	"user-list":     userList,
	"user-api-key":  userKey,
	"user-password": userPassword,
	"user-grant":    userGrant,
}

func (o *operator) realm(args map[string]string) (realm.ID, error) {
	id, _, ok := o.house.RealmByName(args["realm"])
	if !ok {
		return 0, fmt.Errorf("no organization %q; parley realm list shows them", args["realm"])
	}
	return id, nil
}

var systemCaller = realm.Caller{System: true, Client: "Internal"}

func realmCreate(o *operator, args map[string]string) (any, error) {
	name := args["name"]
	if name == "" {
		return nil, fmt.Errorf("an organization needs a --name")
	}
	if !validSubdomain(args["realm"]) {
		return nil, fmt.Errorf("%q is not a subdomain: letters, digits and dashes, at most 40", args["realm"])
	}
	id, err := o.house.CreateRealm(args["realm"], name)
	if err != nil {
		return nil, err
	}
	if _, err := execute(o.house, id, systemCaller, realm.CreateFirstChannels{}); err != nil {
		return nil, err
	}
	return map[string]any{"id": id, "url": o.sites.site(args["realm"]).URL}, nil
}

func validSubdomain(s string) bool {
	if len(s) > 40 || strings.HasPrefix(s, "-") || strings.HasSuffix(s, "-") || s == "www" {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func realmClose(o *operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	_, err = execute(o.house, id, systemCaller, realm.CloseRealm{})
	return map[string]any{"id": id}, err
}

func realmReopen(o *operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	_, err = execute(o.house, id, systemCaller, realm.ReopenRealm{})
	return map[string]any{"id": id}, err
}

func realmList(o *operator, args map[string]string) (any, error) {
	list := []any{}
	realms := o.house.Realms()
	for _, name := range slices.Sorted(maps.Keys(realms)) {
		x, err := o.house.View(realms[name], systemCaller, func(v realm.View) (any, error) {
			people := 0
			v.EachUser(func(u *realm.User) {
				if u.Active && !u.IsBot() && !u.System {
					people++
				}
			})
			return map[string]any{"id": v.ID(), "subdomain": name, "name": v.Org().Name, "people": people, "closed": v.Closed(), "facts": v.Seq(), "url": o.sites.site(name).URL}, nil
		})
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return map[string]any{"realms": list}, nil
}

// realmDigest is the digest of every organization's state; it holds each one while it reads all its rows.
func realmDigest(o *operator, args map[string]string) (any, error) {
	list := []any{}
	realms := o.house.Realms()
	for _, name := range slices.Sorted(maps.Keys(realms)) {
		x, err := o.house.View(realms[name], systemCaller, func(v realm.View) (any, error) { return snapshot.StateDigest(v.Realm).String(), nil })
		if err != nil {
			return nil, err
		}
		list = append(list, map[string]any{"state": x})
	}
	return map[string]any{"digests": list}, nil
}

// slowestShown is how many kinds of work realm slowest names.
const slowestShown = 10

// realmSlowest names what held an organization longest since the server began, one line a kind of work.
func realmSlowest(o *operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for i, k := range o.house.SlowestTurns(id, slowestShown) {
		list = append(list, map[string]any{"rank": i + 1, "kind": k.Kind, "ms": inMilliseconds(k.Max), "at": k.MaxAt.UTC().Format(time.RFC3339), "user": k.MaxUser, "times": k.Count,
			"mean_ms": inMilliseconds(k.Total / time.Duration(k.Count)), fmt.Sprintf("over_%dms", actors.MaxTurnLatency.Milliseconds()): k.Slow})
	}
	return map[string]any{"slowest": list}, nil
}

func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

var roles = map[string]realm.Role{"owner": realm.Owner, "administrator": realm.Administrator, "moderator": realm.Moderator, "member": realm.Member, "guest": realm.Guest}

func userCreate(o *operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	role, ok := roles[args["role"]]
	if !ok {
		return nil, fmt.Errorf("--role is owner, administrator, moderator, member or guest")
	}
	cmd := realm.CreateUser{Email: args["email"], Name: args["name"], Role: role}
	if p := args["password"]; p != "" {
		if cmd.Password, err = o.passwords.Hash(p); err != nil {
			return nil, err
		}
	}
	u, err := execute(o.house, id, systemCaller, cmd)
	if err != nil {
		return nil, err
	}
	key, err := execute(o.house, id, systemCaller, realm.IssueAPIKey{User: u})
	return map[string]any{"user_id": u, "email": args["email"], "api_key": key}, err
}

func userList(o *operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	return o.house.View(id, systemCaller, func(v realm.View) (any, error) {
		list := []any{}
		v.EachUser(func(u *realm.User) {
			if !u.System {
				list = append(list, map[string]any{"user_id": u.ID, "email": u.Email, "name": u.Name, "role": u.Role, "bot": u.IsBot(), "active": u.Active})
			}
		})
		return map[string]any{"users": list}, nil
	})
}

func (o *operator) user(args map[string]string) (realm.ID, realm.UserID, error) {
	id, err := o.realm(args)
	if err != nil {
		return 0, 0, err
	}
	a, ok := o.house.AccountByEmail(id, args["email"])
	if !ok {
		return 0, 0, fmt.Errorf("no user %q", args["email"])
	}
	return id, a.User, nil
}

func userKey(o *operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	key, err := execute(o.house, id, systemCaller, realm.IssueAPIKey{User: u, Only: args["only"] == "true"})
	return map[string]any{"email": args["email"], "api_key": key}, err
}

func userPassword(o *operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	if args["password"] == "" {
		return nil, fmt.Errorf("an empty password")
	}
	hash, err := o.passwords.Hash(args["password"])
	if err != nil {
		return nil, err
	}
	_, err = execute(o.house, id, systemCaller, realm.SetPassword{User: u, Hash: hash})
	return map[string]any{"email": args["email"]}, err
}

func userGrant(o *operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	_, err = execute(o.house, id, systemCaller, realm.Grant{User: u, CreateUsers: args["create-users"] == "true", ChangeEmails: args["change-emails"] == "true"})
	return map[string]any{"email": args["email"]}, err
}

// runOperator is `parley realm …` and `parley user …`.
func runOperator(noun string, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: parley %s %s", noun, map[string]string{"realm": "create|list|digest|slowest|close|reopen", "user": "create|list|api-key|password|grant"}[noun])
	}
	fs := flag.NewFlagSet(noun+" "+args[0], flag.ContinueOnError)
	data := fs.String("data", environmentOr("DATA", "./data"), "data directory, of a running or a stopped server")
	values := map[string]*string{}
	add := func(name, value, help string) { values[name] = fs.String(name, value, help) }
	add("realm", "", "subdomain of the organization; empty is the root organization")
	only := new(bool)
	switch noun + "-" + args[0] {
	case "realm-create":
		add("name", "", "name of the organization")
	case "user-create":
		add("email", "", "address")
		add("name", "", "full name")
		add("role", "member", "owner, administrator, moderator, member or guest")
		add("password", "", "password; - reads it from standard input")
	case "user-api-key":
		add("email", "", "address")
		fs.BoolVar(only, "only", false, "take back every other key of the account")
	case "user-password":
		add("email", "", "address")
		add("password", "-", "password; - reads it from standard input")
	case "user-grant":
		add("email", "", "address")
		add("create-users", "false", "may create users through the API")
		add("change-emails", "false", "may change addresses of others")
	case "realm-list", "realm-close", "realm-reopen", "realm-digest", "realm-slowest", "user-list":
	default:
		return fmt.Errorf("unknown command %q", noun+" "+args[0])
	}
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	send := map[string]string{"only": fmt.Sprint(*only)}
	for k, v := range values {
		send[k] = *v
	}
	if send["password"] == "-" {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil && line == "" {
			return fmt.Errorf("read the password from standard input: %w", err)
		}
		send["password"] = strings.TrimRight(line, "\r\n")
	}
	answer, err := runOnData(*data, noun+"-"+args[0], send)
	if err != nil {
		return err
	}
	printAnswer(out, answer)
	return nil
}

func environmentOr(name, otherwise string) string {
	if v := os.Getenv(environmentPrefix + name); v != "" {
		return v
	}
	return otherwise
}

// printAnswer prints an answer: a list as a line each, otherwise a line a field.
func printAnswer(out io.Writer, answer map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(answer)) {
		list, ok := answer[k].([]any)
		if !ok {
			fmt.Fprintf(out, "%s: %v\n", k, answer[k])
			continue
		}
		for _, x := range list {
			row, _ := x.(map[string]any)
			var fields []string
			for _, f := range slices.Sorted(maps.Keys(row)) {
				fields = append(fields, fmt.Sprintf("%s=%v", f, row[f]))
			}
			fmt.Fprintln(out, strings.Join(fields, "  "))
		}
	}
}

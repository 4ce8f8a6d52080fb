package operator

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/actors/realm"
)

// scimTokenCreate makes a token of SCIM, which is printed once.
func scimTokenCreate(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	c := realm.AddScimToken{Name: args["name"]}
	for x := range strings.SplitSeq(args["scope"], ",") {
		if x = strings.TrimSpace(x); x != "" && x != "read" { // each token may read
			c.Rights = append(c.Rights, x)
		}
	}
	if text := args["expires-in"]; text != "never" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			return nil, fmt.Errorf("--expires-in must be a duration such as 720h, or never, not %q", text)
		}
		c.Lifetime = int64(d / time.Second)
	}
	t, err := realm.Execute(o.Orgs, id, realm.Operator, c)
	return map[string]any{"id": t.ID, "name": t.Name, "scope": scimScope(t.ScimToken), "expires": showTime(t.Expires),
		"token": t.Secret, "url": o.Site(args["realm"]).URL + "/scim/v2"}, err
}

// scimScope returns the rights of a token as its flag has them.
func scimScope(t realm.ScimToken) string {
	if len(t.Rights) == 0 {
		return "read"
	}
	return strings.Join(t.Rights, ",")
}

// scimTokenList lists the tokens of SCIM without their secrets.
func scimTokenList(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	return o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		list := []any{}
		for _, t := range v.ScimTokens() {
			list = append(list, map[string]any{"id": t.ID, "name": t.Name, "scope": scimScope(t.ScimToken),
				"created": showTime(t.Created), "expires": showTime(t.Expires), "valid": t.IsValid(v.Now)})
		}
		return map[string]any{"tokens": list}, nil
	})
}

// scimTokenRevoke removes a token of SCIM.
func scimTokenRevoke(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(args["id"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("--id must be the number of a token, not %q; parley scim token list shows them",
			args["id"])
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.RevokeScimToken{ID: n})
	return map[string]any{"id": n, "revoked": err == nil}, err
}

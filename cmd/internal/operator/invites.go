package operator

import (
	"fmt"
	"strconv"
	"time"

	"parley/actors/realm"
)

// inviteList lists the open invitations.
func inviteList(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	return o.Orgs.View(id, realm.Operator, func(v realm.View) (any, error) {
		invites, err := v.ManagedInvites()
		if err != nil {
			return nil, err
		}
		list := []any{}
		for _, i := range invites {
			by, expires := "", "never"
			if u := v.Find(i.By); u != nil {
				by = u.Email
			}
			if i.Expires != 0 {
				expires = time.Unix(i.Expires, 0).UTC().Format(time.RFC3339)
			}
			list = append(list, map[string]any{"id": i.ID, "link": i.Multi, "email": i.Email, "role": roleName(i.Role),
				"by": by, "expires": expires})
		}
		return map[string]any{"invitations": list}, nil
	})
}

// roleName returns the name of a role in the arguments of commands.
func roleName(role realm.Role) string {
	for name, r := range roles {
		if r == role {
			return name
		}
	}
	return strconv.Itoa(int(role))
}

// inviteRevoke revokes an invitation. The links in emails and reusable links have ids of their own.
func inviteRevoke(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(args["id"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("--id must be the number of an invitation, not %q; parley invite list shows them",
			args["id"])
	}
	link := args["link"] == "true"
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.RevokeInvite{Multi: link, ID: n})
	return map[string]any{"id": n, "link": link}, err
}

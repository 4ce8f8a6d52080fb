package operator

import (
	"fmt"
	"strings"

	"parley/actors/realm"
)

// userRole changes the role of a user.
func userRole(o *Operator, args map[string]string) (any, error) {
	role, ok := roles[args["role"]]
	if !ok {
		return nil, fmt.Errorf("--role must be owner, administrator, moderator, member or guest, not %q", args["role"])
	}
	return o.changeUser(args, func(u realm.UserID) realm.Command[realm.Done] {
		return realm.EditUser{User: u, Role: &role}
	})
}

// userRename changes the name of a user.
func userRename(o *Operator, args map[string]string) (any, error) {
	name := args["name"]
	if strings.TrimSpace(name) == "" {
		return nil, fmt.Errorf("--name is required: the new name of the user")
	}
	return o.changeUser(args, func(u realm.UserID) realm.Command[realm.Done] {
		return realm.EditUser{User: u, Name: &name}
	})
}

// userDeactivate ends the access of a user. Their messages remain.
func userDeactivate(o *Operator, args map[string]string) (any, error) {
	return o.changeUser(args, func(u realm.UserID) realm.Command[realm.Done] {
		return realm.DeactivateUser{User: u}
	})
}

// userReactivate lets a deactivated user log in again.
func userReactivate(o *Operator, args map[string]string) (any, error) {
	return o.changeUser(args, func(u realm.UserID) realm.Command[realm.Done] {
		return realm.ReactivateUser{User: u}
	})
}

// changeUser executes a command on the user that the arguments name.
func (o *Operator) changeUser(args map[string]string, cmd func(realm.UserID) realm.Command[realm.Done]) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, cmd(u))
	return map[string]any{"email": args["email"]}, err
}

// channelList lists the channels.
func channelList(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	return o.Orgs.View(id, realm.Operator, func(v realm.View) (any, error) {
		list := []any{}
		v.EachChannel(func(c *realm.Channel) {
			creator := ""
			if u := v.Find(c.Creator); u != nil {
				creator = u.Email
			}
			list = append(list, map[string]any{"id": c.ID, "name": c.Name, "private": c.Private, "archived": c.Archived,
				"creator": creator})
		})
		return map[string]any{"channels": list}, nil
	})
}

// channelArchive archives a channel by its name.
func channelArchive(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	x, err := o.Orgs.View(id, realm.Operator, func(v realm.View) (any, error) {
		if c := v.FindChannelByName(args["channel"]); c != nil {
			return c.ID, nil
		}
		return nil, fmt.Errorf("no channel %q; parley channel list shows them", args["channel"])
	})
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.ArchiveChannel{Channel: x.(realm.ChannelID)})
	return map[string]any{"channel": args["channel"]}, err
}

// testEmail is a command that sends an email to any address.
type testEmail struct{ to, url string }

func (c testEmail) Decide(t *realm.Turn) (realm.Done, error) {
	if !realm.ValidEmail(c.to) {
		return realm.Done{}, realm.ErrInvalidEmail()
	}
	t.SendEmails(realm.Email{To: c.to, Subject: "Test of the email settings",
		Paragraphs: []string{"This server can send emails:", c.url}})
	return realm.Done{}, nil
}

// mailTest sends an email as the server sends all others.
func mailTest(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, testEmail{args["to"], o.Site(args["realm"]).URL})
	return map[string]any{"to": args["to"], "next": "the email waits to be sent; if it does not arrive, the log has " +
		"the mail server's answer"}, err
}

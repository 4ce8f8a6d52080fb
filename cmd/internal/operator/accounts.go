package operator

import (
	"errors"
	"fmt"
	"slices"
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

// channel returns the channel that the argument channel names.
func (o *Operator) channel(args map[string]string) (id realm.ID, channel realm.ChannelID, err error) {
	if id, err = o.realm(args); err != nil {
		return 0, 0, err
	}
	x, err := o.Orgs.View(id, realm.Operator, func(v realm.View) (any, error) {
		if c := v.FindChannelByName(args["channel"]); c != nil {
			return c.ID, nil
		}
		return nil, fmt.Errorf("no channel %q; parley channel list shows them", args["channel"])
	})
	if err != nil {
		return 0, 0, err
	}
	return id, x.(realm.ChannelID), nil
}

// channelArchive archives a channel by its name.
func channelArchive(o *Operator, args map[string]string) (any, error) {
	id, channel, err := o.channel(args)
	if err != nil {
		return nil, err
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.ArchiveChannel{Channel: channel})
	return map[string]any{"channel": args["channel"]}, err
}

// ownersSetting is the setting with the users and groups that administer a channel.
const ownersSetting = "can_administer_channel_group"

// changeOwners is a command that adds users to the owners of a channel and removes others, in one turn.
type changeOwners struct {
	channel     realm.ChannelID
	add, remove realm.UserID // 0: none
}

func (c changeOwners) Decide(t *realm.Turn) (realm.Done, error) {
	ch, err := t.AdministeredChannel(c.channel)
	if err != nil {
		return realm.Done{}, err
	}
	now := t.ChannelSetting(ch, ownersSetting)
	next := now
	if c.add != 0 {
		next = next.With(c.add)
	}
	if c.remove != 0 {
		if !slices.Contains(next.Members, c.remove) {
			return realm.Done{}, errors.New("the user of --remove is no owner of the channel, except by a group")
		}
		next = next.Without(c.remove)
	}
	change := realm.GroupChange{Name: ownersSetting, New: next}
	return realm.EditChannel{Channel: c.channel, Groups: []realm.GroupChange{change}}.Decide(t)
}

// channelOwners lists the users and groups that administer a channel, after it added or removed one.
func channelOwners(o *Operator, args map[string]string) (any, error) {
	id, channel, err := o.channel(args)
	if err != nil {
		return nil, err
	}
	change := changeOwners{channel: channel}
	for name, to := range map[string]*realm.UserID{"add": &change.add, "remove": &change.remove} {
		if args[name] == "" {
			continue
		}
		a, ok := o.Orgs.AccountByEmail(id, args[name])
		if !ok {
			return nil, fmt.Errorf("no user %q", args[name])
		}
		*to = a.User
	}
	if change.add != 0 || change.remove != 0 {
		if _, err := realm.Execute(o.Orgs, id, realm.Operator, change); err != nil {
			return nil, err
		}
	}
	return o.Orgs.View(id, realm.Operator, func(v realm.View) (any, error) {
		c, err := v.AdministeredChannel(channel)
		if err != nil {
			return nil, err
		}
		owners, list := v.ChannelSetting(c, ownersSetting), []any{}
		groups := owners.Subgroups
		if owners.Group != 0 {
			groups = []realm.GroupID{owners.Group}
		}
		for _, g := range groups {
			if group := v.FindGroup(g); group != nil {
				list = append(list, map[string]any{"group": group.Name})
			}
		}
		for _, u := range owners.Members {
			if user := v.Find(u); user != nil {
				list = append(list, map[string]any{"email": user.Email, "active": user.Active})
			}
		}
		return map[string]any{"owners": list}, nil
	})
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

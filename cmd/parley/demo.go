package main

import (
	"fmt"
	"io"
	"reflect"

	"parley/actors"
	"parley/actors/realm"
)

// execute runs a command of the operator in a realm.
func execute[A any](h *actors.Server, id realm.ID, c realm.Caller, cmd realm.Command[A]) (A, error) {
	c.Operation = reflect.TypeOf(cmd).String()
	v, err := h.Turn(id, c, func(t *realm.Turn) (any, error) {
		a, err := cmd.Decide(t)
		return a, err
	})
	a, _ := v.(A)
	return a, err
}

// demoRealm is an organization to try things in, being made.
type demoRealm struct {
	house *actors.Server
	realm realm.ID
	ids   map[string]realm.UserID // by the name before the @
}

var demoPeople = []struct {
	name, login string
	role        realm.Role
}{
	{"Olive Owner", "olive", realm.Owner},
	{"Ada Admin", "ada", realm.Administrator},
	{"Mo Moderator", "mo", realm.Moderator},
	{"Ann Lee", "ann", realm.Member},
	{"Bo Park", "bo", realm.Member},
	{"Cy Diaz", "cy", realm.Member},
	{"Di Novak", "di", realm.Member},
	{"Ed Okoro", "ed", realm.Member},
	{"Fay Rossi", "fay", realm.Member},
	{"Gus Guest", "gus", realm.Guest},
	{"Demo Bot", "demo-bot", realm.Member},
}

// createDemo fills an empty data directory with an organization to try things in, and prints how to log in.
func createDemo(h *actors.Server, url string, out io.Writer) error {
	id, err := h.CreateRealm("", "Parley Demo")
	if err != nil {
		return err
	}
	d := &demoRealm{h, id, map[string]realm.UserID{}}
	keys, err := d.createUsers()
	if err != nil {
		return err
	}
	for _, step := range []func() error{d.createChannels, d.sendMessages, d.createWebPublicChannel} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "Demo organization at %s\n\n", url)
	for _, p := range demoPeople {
		fmt.Fprintf(out, "  %-22s %-14s %s\n", demoEmail(p.login), p.name, keys[p.login])
	}
	fmt.Fprintf(out, "\nTry:\n  curl -su %s:%s %s/api/v1/messages -d type=stream -d to=general -d topic=hello --data-urlencode 'content=Hello, *Parley*!'\n\n", demoEmail("ann"), keys["ann"], url)
	return nil
}

func demoEmail(login string) string { return login + "@example.org" }

// caller is the caller who does something in the demo.
func (d *demoRealm) caller(login string) realm.Caller {
	return realm.Caller{User: d.ids[login], Client: "Internal"}
}

// createUsers makes everybody and returns their API keys.
func (d *demoRealm) createUsers() (map[string]string, error) {
	system, keys := realm.Caller{System: true, Client: "Internal"}, map[string]string{}
	for _, p := range demoPeople {
		join := realm.CreateUser{Email: demoEmail(p.login), Name: p.name, Role: p.role, First: true}
		if p.login == "demo-bot" {
			join.Bot, join.BotOwner = realm.GenericBot, d.ids["olive"]
		}
		u, err := execute(d.house, d.realm, system, join)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", join.Email, err)
		}
		d.ids[p.login] = u
		if keys[p.login], err = execute(d.house, d.realm, system, realm.IssueAPIKey{User: u}); err != nil {
			return nil, err
		}
	}
	for _, login := range []string{"olive", "ada"} {
		if _, err := execute(d.house, d.realm, system, realm.Grant{User: d.ids[login], CreateUsers: true, ChangeEmails: true}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func (d *demoRealm) createChannels() error {
	var members []string
	for _, p := range demoPeople {
		if p.role != realm.Guest && p.login != "demo-bot" {
			members = append(members, p.login)
		}
	}
	if err := d.createChannel("general", "Everything that concerns everybody", realm.NewChannel{}, members); err != nil {
		return err
	}
	if err := d.createChannel("engineering", "How it works", realm.NewChannel{}, members); err != nil {
		return err
	}
	return d.createChannel("leads", "Among a few", realm.NewChannel{Private: true}, members[:3])
}

// createChannel is made by Olive.
func (d *demoRealm) createChannel(name, about string, kind realm.NewChannel, members []string) error {
	var who []realm.Principal
	for _, login := range members {
		who = append(who, realm.Principal{ID: d.ids[login]})
	}
	_, err := execute(d.house, d.realm, d.caller("olive"), realm.Subscribe{Channels: []realm.ChannelToJoin{{Name: name, Description: about, DescriptionHTML: "<p>" + about + "</p>"}}, New: kind, Principals: who, AllOrNothing: true})
	return err
}

func (d *demoRealm) sendMessages() error {
	for _, m := range []struct{ from, to, topic, text string }{
		{"olive", "general", "welcome", "Welcome to Parley!"},
		{"ann", "general", "welcome", "Glad to be here."},
		{"bo", "engineering", "queues", "Event queues survive a restart."},
	} {
		_, err := execute(d.house, d.realm, d.caller(m.from), realm.SendMessage{ToChannel: true, ChannelName: m.to, Topic: m.topic, Body: realm.Body{Text: m.text, HTML: "<p>" + m.text + "</p>"}, ReadBySender: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// createWebPublicChannel makes a web-public channel. It can only be made while visitors are let in; the demo then leaves that decision
// to whoever tries it.
func (d *demoRealm) createWebPublicChannel() error {
	visitors := func(in bool) error {
		_, err := execute(d.house, d.realm, d.caller("olive"), realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "enable_spectator_access", Value: in}}})
		return err
	}
	if err := visitors(true); err != nil {
		return err
	}
	var everybody []string
	for _, p := range demoPeople {
		everybody = append(everybody, p.login)
	}
	if err := d.createChannel("open house", "For everybody, guests and visitors included", realm.NewChannel{WebPublic: true}, everybody); err != nil {
		return err
	}
	return visitors(false)
}

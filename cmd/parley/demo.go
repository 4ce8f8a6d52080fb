package main

import (
	"fmt"
	"io"
	"reflect"

	"parley/actors"
	"parley/actors/realm"
)

// do runs a command of the operator in a realm.
func do[A any](h *actors.House, id realm.ID, c realm.Caller, cmd realm.Command[A]) (A, error) {
	c.Doing = reflect.TypeOf(cmd).String()
	v, err := h.Turn(id, c, func(t *realm.Turn) (any, error) {
		a, err := cmd.Decide(t)
		return a, err
	})
	a, _ := v.(A)
	return a, err
}

// demoRealm is an organization to try things in, being made.
type demoRealm struct {
	house *actors.House
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

// makeDemo fills an empty data directory with an organization to try things in, and prints how to log in.
func makeDemo(h *actors.House, url string, out io.Writer) error {
	id, err := h.CreateRealm("", "Parley Demo")
	if err != nil {
		return err
	}
	d := &demoRealm{h, id, map[string]realm.UserID{}}
	keys, err := d.people()
	if err != nil {
		return err
	}
	for _, step := range []func() error{d.channels, d.talk, d.openHouse} {
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

// as is the caller who does something in the demo.
func (d *demoRealm) as(login string) realm.Caller {
	return realm.Caller{User: d.ids[login], Client: "Internal"}
}

// people makes everybody and returns their API keys.
func (d *demoRealm) people() (map[string]string, error) {
	system, keys := realm.Caller{System: true, Client: "Internal"}, map[string]string{}
	for _, p := range demoPeople {
		join := realm.JoinUser{Email: demoEmail(p.login), Name: p.name, Role: p.role, First: true}
		if p.login == "demo-bot" {
			join.Bot, join.BotOwner = realm.GenericBot, d.ids["olive"]
		}
		u, err := do(d.house, d.realm, system, join)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", join.Email, err)
		}
		d.ids[p.login] = u
		if keys[p.login], err = do(d.house, d.realm, system, realm.NewKey{User: u}); err != nil {
			return nil, err
		}
	}
	for _, login := range []string{"olive", "ada"} {
		if _, err := do(d.house, d.realm, system, realm.Grant{User: d.ids[login], CreateUsers: true, ChangeEmails: true}); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

func (d *demoRealm) channels() error {
	var members []string
	for _, p := range demoPeople {
		if p.role != realm.Guest && p.login != "demo-bot" {
			members = append(members, p.login)
		}
	}
	if err := d.channel("general", "Everything that concerns everybody", realm.NewChannel{}, members); err != nil {
		return err
	}
	if err := d.channel("engineering", "How it works", realm.NewChannel{}, members); err != nil {
		return err
	}
	return d.channel("leads", "Among a few", realm.NewChannel{Private: true}, members[:3])
}

// channel is made by Olive.
func (d *demoRealm) channel(name, about string, kind realm.NewChannel, members []string) error {
	var who []realm.Principal
	for _, login := range members {
		who = append(who, realm.Principal{ID: d.ids[login]})
	}
	_, err := do(d.house, d.realm, d.as("olive"), realm.Subscribe{Channels: []realm.Joining{{Name: name, Description: about, DescriptionHTML: "<p>" + about + "</p>"}}, New: kind, Principals: who, Fatal: true})
	return err
}

func (d *demoRealm) talk() error {
	for _, m := range []struct{ from, to, topic, text string }{
		{"olive", "general", "welcome", "Welcome to Parley!"},
		{"ann", "general", "welcome", "Glad to be here."},
		{"bo", "engineering", "queues", "Event queues survive a restart."},
	} {
		_, err := do(d.house, d.realm, d.as(m.from), realm.SendMessage{ToChannel: true, ChannelName: m.to, Topic: m.topic, Body: realm.Body{Text: m.text, HTML: "<p>" + m.text + "</p>"}, ReadBySender: true})
		if err != nil {
			return err
		}
	}
	return nil
}

// openHouse makes a web-public channel. It can only be made while visitors are let in; the demo then leaves that decision
// to whoever tries it.
func (d *demoRealm) openHouse() error {
	visitors := func(in bool) error {
		_, err := do(d.house, d.realm, d.as("olive"), realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "enable_spectator_access", Value: in}}})
		return err
	}
	if err := visitors(true); err != nil {
		return err
	}
	var everybody []string
	for _, p := range demoPeople {
		everybody = append(everybody, p.login)
	}
	if err := d.channel("open house", "For everybody, guests and visitors included", realm.NewChannel{WebPublic: true}, everybody); err != nil {
		return err
	}
	return visitors(false)
}

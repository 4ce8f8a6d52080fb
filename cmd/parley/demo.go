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

// makeDemo fills an empty data directory with an organization to try things in, and prints how to log in.
func makeDemo(h *actors.House, url string, out io.Writer) error {
	id, err := h.CreateRealm("", "Parley Demo")
	if err != nil {
		return err
	}
	system := realm.Caller{System: true, Client: "Internal"}
	people := []struct {
		name, email string
		role        realm.Role
		bot         realm.BotType
	}{
		{"Olive Owner", "olive@example.org", realm.Owner, 0},
		{"Ada Admin", "ada@example.org", realm.Administrator, 0},
		{"Mo Moderator", "mo@example.org", realm.Moderator, 0},
		{"Ann Lee", "ann@example.org", realm.Member, 0},
		{"Bo Park", "bo@example.org", realm.Member, 0},
		{"Cy Diaz", "cy@example.org", realm.Member, 0},
		{"Di Novak", "di@example.org", realm.Member, 0},
		{"Ed Okoro", "ed@example.org", realm.Member, 0},
		{"Fay Rossi", "fay@example.org", realm.Member, 0},
		{"Gus Guest", "gus@example.org", realm.Guest, 0},
		{"Demo Bot", "demo-bot@example.org", realm.Member, realm.GenericBot},
	}
	ids := map[string]realm.UserID{}
	fmt.Fprintf(out, "Demo organization at %s\n\n", url)
	for _, p := range people {
		u, err := do(h, id, system, realm.JoinUser{Email: p.email, Name: p.name, Role: p.role, Bot: p.bot, BotOwner: ids["olive@example.org"] * realm.UserID(min(p.bot, 1)), First: true})
		if err != nil {
			return fmt.Errorf("%s: %w", p.email, err)
		}
		key, err := do(h, id, system, realm.NewKey{User: u})
		if err != nil {
			return err
		}
		ids[p.email] = u
		fmt.Fprintf(out, "  %-22s %-14s %s\n", p.email, p.name, key)
		if p.email == "ann@example.org" {
			defer fmt.Fprintf(out, "\nTry:\n  curl -su %s:%s %s/api/v1/messages -d type=stream -d to=general -d topic=hello --data-urlencode 'content=Hello, *Parley*!'\n\n", p.email, key, url)
		}
	}
	for _, e := range []string{"olive@example.org", "ada@example.org"} {
		if _, err := do(h, id, system, realm.Grant{User: ids[e], CreateUsers: true, ChangeEmails: true}); err != nil {
			return err
		}
	}
	olive := realm.Caller{User: ids["olive@example.org"], Client: "Internal"}
	var everyone []realm.Principal
	for _, p := range people {
		if p.role != realm.Guest && p.bot == 0 {
			everyone = append(everyone, realm.Principal{ID: ids[p.email]})
		}
	}
	for _, c := range []struct {
		name, about string
		private     bool
	}{{"general", "Everything that concerns everybody", false}, {"engineering", "How it works", false}, {"leads", "Among a few", true}} {
		who := everyone
		if c.private {
			who = everyone[:3]
		}
		_, err := do(h, id, olive, realm.Subscribe{Channels: []realm.Joining{{Name: c.name, Description: c.about, DescriptionHTML: "<p>" + c.about + "</p>"}}, New: realm.NewChannel{Private: c.private}, Principals: who, Fatal: true})
		if err != nil {
			return err
		}
	}
	for _, m := range []struct{ from, to, topic, text string }{
		{"olive@example.org", "general", "welcome", "Welcome to Parley!"},
		{"ann@example.org", "general", "welcome", "Glad to be here."},
		{"bo@example.org", "engineering", "queues", "Event queues survive a restart."},
	} {
		_, err := do(h, id, realm.Caller{User: ids[m.from], Client: "Internal"}, realm.SendMessage{ToChannel: true, ChannelName: m.to, Topic: m.topic, Body: realm.Body{Text: m.text, HTML: "<p>" + m.text + "</p>"}, ReadBySender: true})
		if err != nil {
			return err
		}
	}
	// Web-public channels can only be made while visitors are let in; the demo then leaves that decision to whoever tries it.
	visitors := func(in bool) error {
		_, err := do(h, id, olive, realm.ChangeOrganization{Values: []realm.SettingValue{{Name: "enable_spectator_access", Value: in}}})
		return err
	}
	if err := visitors(true); err != nil {
		return err
	}
	house := append(everyone[:len(everyone):len(everyone)], realm.Principal{ID: ids["gus@example.org"]}, realm.Principal{ID: ids["demo-bot@example.org"]})
	const openHouse = "For everybody, guests and visitors included"
	if _, err := do(h, id, olive, realm.Subscribe{Channels: []realm.Joining{{Name: "open house", Description: openHouse, DescriptionHTML: "<p>" + openHouse + "</p>"}}, New: realm.NewChannel{WebPublic: true}, Principals: house, Fatal: true}); err != nil {
		return err
	}
	return visitors(false)
}

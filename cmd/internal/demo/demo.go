package demo

import (
	"fmt"
	"io"
	"strings"

	"parley/actors"
	"parley/actors/realm"
)

// builder creates the demo organization.
type builder struct {
	orgs    *actors.Server
	content Content
	realm   realm.ID
	ids     map[string]realm.UserID // by login
}

// accounts are the accounts of the demo organization. The login is the part of the email address before the @.
var accounts = []struct {
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

// Create creates the demo organization in an empty data directory and prints its accounts.
func Create(orgs *actors.Server, url string, content Content, out io.Writer) error {
	id, err := orgs.CreateRealm("", "Parley Demo")
	if err != nil {
		return err
	}
	d := &builder{orgs, content, id, map[string]realm.UserID{}}
	steps := []func() error{d.createUsers, d.createChannels, d.sendMessages, d.createWebPublicChannel}
	if content.Render != nil {
		steps = append(steps, d.createMoreChannels, d.createConversations)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return Print(orgs, id, url, out)
}

// Print prints the page, the accounts with their API keys and an example request of a demo organization. An account
// that is gone or deactivated is left out.
func Print(orgs *actors.Server, id realm.ID, url string, out io.Writer) error {
	var lines strings.Builder
	key := "KEY"
	for _, u := range accounts {
		a, ok := orgs.AccountByEmail(id, address(u.login))
		if !ok || !a.Active {
			continue
		}
		k, err := realm.Execute(orgs, id, realm.System, realm.IssueAPIKey{User: a.User})
		if err != nil {
			return err
		}
		if u.login == "ann" {
			key = k
		}
		fmt.Fprintf(&lines, "  %-22s %-14s %s\n", address(u.login), u.name, k)
	}
	if lines.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "Demo organization: open %s in a browser and choose an account.\n\n"+
		"Accounts and their API keys:\n%s\nTry:\n"+
		"  curl -sSu %s:%s %s/api/v1/messages -d type=stream -d to=general -d topic=hello "+
		"--data-urlencode 'content=Hello, *Parley*!'\n\n", url, &lines, address("ann"), key, url)
	return err
}

func address(login string) string { return login + "@example.org" }

// caller returns a user of the demo organization as the caller of a command.
func (d *builder) caller(login string) realm.Caller {
	return realm.Caller{User: d.ids[login], Client: "Internal"}
}

func (d *builder) createUsers() error {
	for _, u := range accounts {
		create := realm.CreateUser{Email: address(u.login), Name: u.name, Role: u.role, First: true}
		if u.login == "demo-bot" {
			create.Bot, create.BotOwner = realm.GenericBot, d.ids["olive"]
		}
		id, err := realm.Execute(d.past(usersAge), d.realm, realm.System, create)
		if err != nil {
			return fmt.Errorf("%s: %w", create.Email, err)
		}
		d.ids[u.login] = id
		if _, err = realm.Execute(d.orgs, d.realm, realm.System, realm.IssueAPIKey{User: id}); err != nil {
			return err
		}
	}
	for _, login := range []string{"olive", "ada"} {
		grant := realm.Grant{User: d.ids[login], CreateUsers: true, ChangeEmails: true}
		if _, err := realm.Execute(d.orgs, d.realm, realm.System, grant); err != nil {
			return err
		}
	}
	return nil
}

// Days before the start of the server at which the accounts and the first channels and messages of the demo
// organization were made, if it has conversations.
const (
	usersAge    = 9
	channelsAge = 7
)

// past returns turns some days ago. An organization without conversations has no past.
func (d *builder) past(days int) realm.Turns {
	if d.content.Render == nil {
		return d.orgs
	}
	return atTime{d.orgs, d.content.Now.Unix() - int64(days)*24*60*60}
}

// membersOfDemo returns the logins of all accounts that are neither guests nor bots.
func membersOfDemo() (logins []string) {
	for _, p := range accounts {
		if p.role != realm.Guest && p.login != "demo-bot" {
			logins = append(logins, p.login)
		}
	}
	return logins
}

// createMoreChannels creates the channels that only the conversations use.
func (d *builder) createMoreChannels() error {
	members := membersOfDemo()
	if err := d.createChannel("design", "What it looks like, and why", realm.NewChannel{}, members); err != nil {
		return err
	}
	return d.createChannel("random", "Books, pictures, cake", realm.NewChannel{}, members)
}

func (d *builder) createChannels() error {
	members := membersOfDemo()
	if err := d.createChannel("general", "Everything that concerns everybody", realm.NewChannel{},
		members); err != nil {
		return err
	}
	if err := d.createChannel("engineering", "How it works", realm.NewChannel{}, members); err != nil {
		return err
	}
	return d.createChannel("leads", "Among a few", realm.NewChannel{Private: true}, members[:3])
}

// createChannel creates a channel as Olive and subscribes the members.
func (d *builder) createChannel(name, about string, kind realm.NewChannel, members []string) error {
	var principals []realm.Principal
	for _, login := range members {
		principals = append(principals, realm.Principal{ID: d.ids[login]})
	}
	channel := realm.ChannelToJoin{Name: name, Description: about, DescriptionHTML: "<p>" + about + "</p>"}
	_, err := realm.Execute(d.past(channelsAge), d.realm, d.caller("olive"), realm.Subscribe{
		Channels:     []realm.ChannelToJoin{channel},
		New:          kind,
		Principals:   principals,
		AllOrNothing: true,
	})
	return err
}

func (d *builder) sendMessages() error {
	for _, m := range []struct{ from, to, topic, text string }{
		{"olive", "general", "welcome", "Welcome to Parley!"},
		{"ann", "general", "welcome", "Glad to be here."},
		{"bo", "engineering", "queues", "Event queues survive a restart."},
	} {
		_, err := realm.Execute(d.past(channelsAge), d.realm, d.caller(m.from), realm.SendMessage{
			ToChannel:    true,
			ChannelName:  m.to,
			Topic:        m.topic,
			Body:         realm.Body{Text: m.text, HTML: "<p>" + m.text + "</p>"},
			ReadBySender: true,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// createWebPublicChannel creates a web-public channel. Visitors have access to it when
// an owner allows that in the settings of the organization.
func (d *builder) createWebPublicChannel() error {
	var all []string
	for _, u := range accounts {
		all = append(all, u.login)
	}
	about := "For everybody, guests and visitors included"
	return d.createChannel("open house", about, realm.NewChannel{WebPublic: true}, all)
}

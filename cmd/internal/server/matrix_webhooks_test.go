package server

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/realm"
)

// matrixWebhooks checks the key of an incoming-webhook bot: it opens two endpoints, with the rights of the bot or its
// owner. Every caller tries keys in a URL.
func matrixWebhooks(t *testing.T, l *coverage) {
	s := newMatrixStage(t, l)
	visitor := s.outsiders()[0]
	elsewhere := s.outsiders()[1]
	rival := s.join(ours, ourHost, "rival", realm.Member, 0, 0)
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
	subscribers := []string{"neither", "bot", "owner", "both"} // which of bot and owner are subscribed
	type hookChannel struct {
		kind, in string
		id       int64
		name     string
		closed   bool // only the keeper and the bot's owner may post
		archived bool
	}
	var channels []*hookChannel
	for _, kind := range kinds {
		for _, in := range subscribers {
			for _, how := range []string{"", "closed", "archived"} {
				channels = append(channels, &hookChannel{kind: kind, in: in, name: kind + " " + in + " " + how,
					closed: how == "closed", archived: how == "archived"})
			}
		}
	}
	owners := map[string]*matrixUser{"member": s.by["member"], "guest": s.by["guest"], "admin": s.by["admin"]}
	for owned, owner := range owners {
		bot := s.join(ours, ourHost, "hook of "+owned, realm.Member, realm.IncomingWebhook, owner.id)
		named := *bot
		named.name = "webhook bot"
		for _, x := range channels {
			in := []int64{s.keeper.id}
			if x.in == "bot" || x.in == "both" {
				in = append(in, bot.id)
			}
			if x.in == "owner" || x.in == "both" {
				in = append(in, owner.id)
			}
			name := x.name + " of " + owned
			x.id = s.must(s.keeper, "POST", "/channels/create",
				append(pairs{"name", name, "subscribers", in, "send_new_subscription_messages", false},
					privacy(x.kind, "invite_only")...)...).int("id")
			if x.closed {
				s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", x.id), "can_send_message_group",
					map[string]any{"new": map[string]any{"direct_members": []int64{s.keeper.id, owner.id},
						"direct_subgroups": []int64{}}})
			}
			if x.archived {
				s.must(s.keeper, "DELETE", fmt.Sprintf("/streams/%d", x.id))
			}
			want := ""
			switch open := x.kind == "public" || x.kind == "web-public"; {
			case !open && x.in == "neither":
				want = fmt.Sprintf("Channel with ID '%d' does not exist", x.id)
			case x.archived:
				want = "Not authorized to send to channel '" + name + "'"
			}
			s.check(s.call(&named, "POST", "/messages", "type", "channel", "to", x.id, "topic", "t", "content",
				"x").msg(), want, "%s: of a %s: writes in %s", named.name, owned, x.name)
			if strings.HasPrefix(want, "Channel with ID") {
				want = "" // the owner of the bot is told that there is no such channel
			}
			s.check(s.call(&named, "POST", "/external/slack_incoming?api_key="+bot.key, "stream", name, "payload",
				`{"text":"x"}`).msg(), want, "%s: of a %s: a service writes in %s", named.name, owned, x.name)
		}
		// Direct messages: bots may write to every user.
		s.check(s.call(&named, "POST", "/messages", "type", "direct", "to", []int64{rival.id}, "content", "x").msg(),
			"", "%s: of a %s: writes to a person", named.name, owned)
		s.check(s.call(&named, "POST", "/external/slack_incoming?api_key="+bot.key, "payload", `{"text":"x"}`).msg(),
			"", "%s: of a %s: a service writes to the owner", named.name, owned)
		// The bot cannot use other endpoints, not even for the message it has just sent.
		id := s.must(bot, "POST", "/messages", "type", "direct", "to", []int64{owner.id}, "content", "x").int("id")
		for _, q := range []struct{ method, path string }{{"GET", fmt.Sprintf("/messages/%d", id)},
			{"PATCH", fmt.Sprintf("/messages/%d", id)}, {"DELETE", fmt.Sprintf("/messages/%d", id)},
			{"GET", "/users/me"}, {"GET", "/bot_storage"}, {"POST", "/register"}, {"GET", "/messages"},
			{"GET", fmt.Sprintf("/bots/%d/api_key", bot.id)}} {
			s.check(s.call(&named, q.method, q.path).msg(), "This API is not available to incoming webhook bots.",
				"%s: of a %s: %s %s", named.name, owned, q.method, q.path)
		}
		// Only the owner can get the key. A guest cannot: the bot is a member.
		for _, p := range []*matrixUser{owner, rival} {
			want := ""
			if p == rival || p.isGuest() {
				want = noPermission
			}
			s.check(s.call(p, "GET", fmt.Sprintf("/bots/%d/api_key", bot.id)).msg(), want,
				"%s: asks the key of the hook of a %s", p.name, owned)
		}
	}
	// The key in a URL: of every user who has a key here.
	const noKey = "Missing 'api_key' argument"
	for _, p := range append([]*matrixUser{visitor, elsewhere, s.by["webhook bot"]}, s.people...) {
		withKey := *p
		withKey.session = nil
		want := loginError(&withKey, false)
		switch {
		case p.key == "":
			want = noKey
		case p.firstKey != "":
			want = byAdditionalKey.expected(want)
		}
		path := "/external/slack_incoming"
		if p.key != "" {
			path += "?api_key=" + p.key
		}
		s.check(s.call(&matrixUser{name: p.name, host: p.host}, "POST", path, "payload", `{"text":"x"}`).msg(), want,
			"%s: a service with the user's key", p.name)
		other := "" // the bot may also log in, as the requests of some services do
		if p.host != ourHost {
			other = "Account is not associated with this subdomain"
		}
		s.check(s.call(&matrixUser{name: p.name, host: p.host, email: s.by["webhook bot"].email,
			key: s.by["webhook bot"].key}, "POST", "/external/slack_incoming", "payload", `{"text":"x"}`).msg(), other,
			"%s: a service with a login instead of a key", p.name)
	}
	s.summary()
}

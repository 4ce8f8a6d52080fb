package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
)

// matrixStage is the organization that the matrix asks about. It has users of every role, and channels of every kind;
// in one channel all users have the same relation to it. The keeper, who is not asked, has created the channels and
// sent the messages.
type matrixStage struct {
	*matrixServer
	keeper   *matrixUser // an owner who is in every channel and created everything
	people   []*matrixUser
	by       map[string]*matrixUser
	channels []*matrixChannel
	outsider *matrixUser // owner of the other organization, with requests to that organization
	groups   map[string]int64
	// With oldClients, each user also has a queue of a client without any capability.
	oldClients bool
	old        []*matrixUser
	settings   map[int64]map[string]any // of channels, as they were at the beginning
}

const (
	ours   realm.ID = 1
	theirs realm.ID = 2
)

// The relations a user can have to a channel. The messages were sent while the users of the relations subscribed,
// unsubscribed and resubscribed were subscribed.
const (
	subscribed      = "subscribed"
	subscribedLater = "subscribed later"
	neverSubscribed = "never subscribed"
	unsubscribed    = "left"
	resubscribed    = "left and back"
	maySubscribe    = "may subscribe"           // by can_subscribe_group, never subscribed
	mayAdminister   = "administers the channel" // by can_administer_channel_group, never subscribed
)

var relations = []string{subscribed, subscribedLater, neverSubscribed, unsubscribed, resubscribed, maySubscribe,
	mayAdminister}

var kinds = []string{"web-public", "public", "private", "protected"}

// matrixChannel is a channel to which all users have the same relation.
type matrixChannel struct {
	kind, relation string
	id             int64
	name           string
	topic          string
	message        int64   // of the keeper
	word           string  // only in that message
	file           string  // linked in that message
	spare          []int64 // more messages of the keeper, for cells that change or delete them
	own            map[string][]int64
	followed       int64 // a message in a topic that its readers follow
	poll           int64 // a poll of the keeper
}

func (s *matrixChannel) String() string { return s.kind + " channel, " + s.relation }

// nextSpare returns a message that no cell has used.
func (s *matrixChannel) nextSpare() int64 {
	id := s.spare[0]
	s.spare = s.spare[1:]
	return id
}

// missingID is an id that no object has.
const missingID = 2_000_000

// spareMessages is the number of messages per channel that cells can use.
const spareMessages = 140

const day = 86400

// poll is the text of a message with a poll, and vote the submessage of a vote in it.
const (
	poll = "/poll Tea?\nYes"
	vote = `{"type":"vote","key":"canned,0","vote":1}`
)

func newMatrixStage(t *testing.T, l *coverage) *matrixStage {
	s := &matrixStage{matrixServer: newMatrixServer(t, l), by: map[string]*matrixUser{}, groups: map[string]int64{},
		settings: map[int64]map[string]any{}}
	for _, name := range []string{"", "other"} {
		if _, err := s.orgs.CreateRealm(name, "Ours"); err != nil {
			t.Fatal(err)
		}
	}
	s.outsider = s.join(theirs, theirHost, "outsider", realm.Owner, 0, 0)
	s.keeper = s.join(ours, ourHost, "keeper", realm.Owner, 0, 0)
	add := func(name string, role realm.Role, bot realm.BotType, owner int64) *matrixUser {
		p := s.join(ours, ourHost, name, role, bot, owner)
		s.people, s.by[name] = append(s.people, p), p
		return p
	}
	add("owner", realm.Owner, 0, 0)
	add("admin", realm.Administrator, 0, 0)
	add("moderator", realm.Moderator, 0, 0)
	member := add("member", realm.Member, 0, 0)
	add("guest", realm.Guest, 0, 0)
	add("bot", realm.Member, realm.GenericBot, member.id)
	add("gone", realm.Member, 0, 0)
	s.by["webhook bot"] = s.join(ours, ourHost, "webhook bot", realm.Member, realm.IncomingWebhook, member.id)
	s.now.Add(10 * day)
	s.must(s.keeper, "PATCH", "/realm", "waiting_period_threshold", 3, "enable_spectator_access", true)
	add("newcomer", realm.Member, 0, 0)
	for _, g := range objects(s.must(s.keeper, "GET", "/user_groups").body["user_groups"]) {
		s.groups[g["name"].(string)] = num(g["id"])
	}
	if l.throughEdge || l.throughCore {
		s.putNodeBefore(l.throughCore)
	}
	return s
}

// outsiders returns callers without an account in the organization: a logged-out visitor and the owner of another
// organization.
func (s *matrixStage) outsiders() []*matrixUser {
	visitor := &matrixUser{name: "visitor", host: ourHost}
	s.by["visitor"] = visitor
	other := *s.outsider
	other.name, other.host = "owner elsewhere", ourHost
	return []*matrixUser{visitor, &other}
}

// createChannels creates the channels and gives every user the relation to each of them.
func (s *matrixStage) createChannels() {
	var everyone []int64
	for _, p := range s.people {
		everyone = append(everyone, p.id)
	}
	for _, kind := range kinds {
		for _, relation := range relations {
			x := &matrixChannel{kind: kind, relation: relation, name: kind + " " + relation, topic: "a topic",
				word: fmt.Sprintf("zebra%dx", len(s.channels)), own: map[string][]int64{}}
			s.createChannel(x, everyone)
			s.channels = append(s.channels, x)
		}
	}
	for _, x := range s.channels {
		switch x.relation {
		case unsubscribed, resubscribed:
			s.must(s.keeper, "DELETE", "/users/me/subscriptions", "subscriptions", []string{x.name}, "principals",
				everyone)
		}
		switch x.relation {
		case subscribedLater, resubscribed:
			s.must(s.keeper, "POST", "/users/me/subscriptions", "subscriptions",
				[]any{map[string]string{"name": x.name}}, "principals", everyone)
		}
	}
	s.waitForRead()
	s.must(s.keeper, "DELETE", fmt.Sprintf("/users/%d", s.by["gone"].id))
}

// waitForRead waits until the server has marked the messages as read that users left behind. It does so by itself, one
// channel after the other.
func (s *matrixStage) waitForRead() {
	s.Helper()
	at := slices.IndexFunc(s.channels,
		func(x *matrixChannel) bool { return x.kind == kinds[len(kinds)-1] && x.relation == resubscribed })
	ids := []int64{s.channels[at].message}
	eventually(s.T, "what was left is read", func() bool {
		found := objects(s.must(s.people[0], "GET", "/messages", "message_ids", ids).body["messages"])
		flags, _ := found[0]["flags"].([]any)
		return slices.Contains(flags, any("read"))
	})
}

func (s *matrixStage) createChannel(x *matrixChannel, everyone []int64) {
	in := []int64{s.keeper.id}
	if slices.Contains([]string{subscribed, unsubscribed, resubscribed}, x.relation) {
		in = append(in, everyone...)
	}
	params := pairs{"name", x.name, "subscribers", in, "send_new_subscription_messages", false}
	switch x.kind {
	case "web-public":
		params = append(params, "is_web_public", true)
	case "private":
		params = append(params, "invite_only", true, "history_public_to_subscribers", true)
	case "protected":
		params = append(params, "invite_only", true, "history_public_to_subscribers", false)
	}
	x.id = s.must(s.keeper, "POST", "/channels/create", params...).int("id")
	value := map[string]any{"direct_members": append([]int64{s.keeper.id}, everyone...), "direct_subgroups": []int64{}}
	switch x.relation {
	case maySubscribe:
		s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", x.id), "can_subscribe_group", map[string]any{"new": value})
	case mayAdminister:
		s.must(s.keeper, "PATCH", fmt.Sprintf("/streams/%d", x.id), "can_administer_channel_group",
			map[string]any{"new": value})
	}
	up := s.must(s.keeper, "POST", "/user_uploads", "file", "text of "+x.name)
	x.file = strings.TrimPrefix(up.body["url"].(string), "/")
	x.followed = s.must(s.keeper, "POST", "/messages", "type", "stream", "to", x.id, "topic", "followed", "content",
		"x").int("id")
	x.message = s.say(s.keeper, x, "The "+x.word+" is in [f.txt](/"+x.file+")")
	x.poll = s.say(s.keeper, x, poll)
	for range spareMessages {
		x.spare = append(x.spare, s.say(s.keeper, x, "another one"))
	}
	if slices.Contains([]string{subscribed, unsubscribed, resubscribed}, x.relation) {
		for _, p := range s.people {
			s.must(p, "POST", "/user_topics", "stream_id", x.id, "topic", "followed", "visibility_policy", 3)
			for range 6 {
				x.own[p.name] = append(x.own[p.name], s.say(p, x, "of "+p.name))
			}
		}
	}
}

func (s *matrixStage) say(p *matrixUser, x *matrixChannel, text string) int64 {
	s.Helper()
	return s.must(p, "POST", "/messages", "type", "stream", "to", x.id, "topic", x.topic, "content", text).int("id")
}

// The rules, in terms of the protocol.

// isSubscribed reports whether the users are subscribed now.
func (x *matrixChannel) isSubscribed() bool {
	return slices.Contains([]string{subscribed, subscribedLater, resubscribed}, x.relation)
}

// hasRecord reports whether the users were subscribed when the messages were sent, so that they have a record of them.
func (x *matrixChannel) hasRecord() bool {
	return slices.Contains([]string{subscribed, unsubscribed, resubscribed}, x.relation)
}

// hasSharedHistory reports whether readers of the channel can read messages from before they joined.
func (x *matrixChannel) hasSharedHistory() bool { return x.kind != "protected" }

func (p *matrixUser) isGuest() bool { return p.name == "guest" || p.name == "limited guest" }
func (p *matrixUser) isAdmin() bool { return p.name == "owner" || p.name == "admin" }

// isVisitor reports whether the server takes the caller for a logged-out visitor.
func (p *matrixUser) isVisitor() bool { return p.name == "visitor" || p.hasUselessSession() }

// canReadContent: subscribers; in public channels all but guests; in web-public channels every caller; and users that
// the channel grants it, but no guests.
func (x *matrixChannel) canReadContent(p *matrixUser) bool {
	switch {
	case x.kind == "web-public":
		return true
	case p.isVisitor():
		return false
	case x.isSubscribed():
		return true
	case p.isGuest():
		return false
	}
	return x.kind == "public" || x.relation == maySubscribe
}

// canReadMetadata: readers of the content; administrators of the organization; and administrators of the channel, but
// no guests.
func (x *matrixChannel) canReadMetadata(p *matrixUser) bool {
	return x.canReadContent(p) || p.isAdmin() || x.relation == mayAdminister && !p.isGuest() && !p.isVisitor()
}

// canReadMessage: readers of the content; with protected history only those with a record of the message.
func (x *matrixChannel) canReadMessage(p *matrixUser) bool {
	return x.canReadContent(p) && (x.hasSharedHistory() || x.hasRecord())
}

// keepsRecord: users with a record of the message who can still read it.
func (x *matrixChannel) keepsRecord(p *matrixUser) bool {
	return x.canReadContent(p) && x.hasRecord() && !p.isVisitor()
}

// canAdminister: administrators of the organization, and of the channel, but no guests.
func (x *matrixChannel) canAdminister(p *matrixUser) bool {
	return p.isAdmin() || x.relation == mayAdminister && !p.isGuest() && !p.isVisitor()
}

// loginError returns the error for callers that are not let in at all, or "".
func loginError(p *matrixUser, visitors bool) string {
	switch {
	case p.isVisitor() && visitors:
		return ""
	case p.isVisitor():
		return "Not logged in: API authentication or user session required"
	case p.name == "gone":
		return "Account is deactivated"
	case p.name == "owner elsewhere":
		return "Account is not associated with this subdomain"
	}
	return ""
}

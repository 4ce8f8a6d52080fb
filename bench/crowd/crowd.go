package crowd

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Kind is a kind of action.
type Kind string

const (
	Send        Kind = "send"         // a message to Channel under Topic
	DM          Kind = "dm"           // a direct message to Others
	Edit        Kind = "edit"         // new Text for Message
	Move        Kind = "move"         // Message to Topic
	Delete      Kind = "delete"       // Message
	React       Kind = "react"        // Emoji on Message
	Unreact     Kind = "unreact"      // Emoji off Message
	Flag        Kind = "flag"         // Flag on Message
	Unflag      Kind = "unflag"       // Flag off Message
	Subscribe   Kind = "subscribe"    // the user to Channel
	Unsubscribe Kind = "unsubscribe"  // the user from Channel
	Property    Kind = "property"     // a personal setting of the subscription to Channel
	Policy      Kind = "topic policy" // policy Number for Channel and Topic
	Rename      Kind = "rename"       // the user to Text
	Presence    Kind = "presence"
	Typing      Kind = "typing"     // to Others
	Register    Kind = "register"   // one additional queue
	DropQueue   Kind = "drop queue" // the user's newest additional queue
	Read        Kind = "read"       // GET a page of Channel
)

// An Expectation is the knowledge of the model about the outcome of an action.
type Expectation int

const (
	Unknown     Expectation = iota // depends on rules that the model does not have
	MustSucceed                    // a rejection would be wrong
	MustFail                       // success would be wrong
)

// An Action is one action of one user. Users, channels and messages are numbers in order of appearance; the caller
// maps them to ids.
type Action struct {
	No      int
	Kind    Kind
	User    int
	Channel int
	Message int
	Number  int
	Topic   string
	Text    string
	Emoji   string
	Flag    string
	Others  []int
	Expect  Expectation
}

func (a Action) String() string {
	s := fmt.Sprintf("#%d user %d: %s", a.No, a.User, a.Kind)
	switch a.Kind {
	case Send, Subscribe, Unsubscribe, Property, Policy, Read:
		s += fmt.Sprintf(" channel %d %q", a.Channel, a.Topic)
	case DM, Typing:
		s += fmt.Sprintf(" to %v", a.Others)
	case Edit, Move, Delete, React, Unreact, Flag, Unflag:
		s += fmt.Sprintf(" message %d %s%s%s", a.Message, a.Topic, a.Emoji, a.Flag)
	}
	return s
}

type message struct {
	author  int
	channel int // -1: direct
	others  []int
	topic   string
	deleted bool
	emoji   map[int]string // by user, at most one each
}

// A Crowd draws random actions and records their outcomes. It must learn each outcome (Done) before the next action,
// so the same seed and the same outcomes give the same sequence of actions.
type Crowd struct {
	Seed     uint64
	Users    int
	Channels int

	rng      *rand.Rand // of the step that is being drawn
	steps    []Step[actionStep]
	no       int
	members  [][]bool // by channel and user
	messages []message
	queues   []int // additional queues by user
}

// maxQueues bounds the additional queues of a user, maxMessages the recent messages that actions refer to.
const (
	maxQueues   = 3
	maxMessages = 400
)

// New returns a crowd of users that are members of the given channels.
func New(seed uint64, users int, members [][]int32) *Crowd {
	c := &Crowd{Seed: seed, Users: users, Channels: len(members), steps: actionSteps, queues: make([]int, users)}
	for _, m := range members {
		in := make([]bool, users)
		for _, u := range m {
			in[u] = true
		}
		c.members = append(c.members, in)
	}
	return c
}

// Members returns the users in a channel, in rising order.
func (c *Crowd) Members(channel int) []int {
	var out []int
	for u, in := range c.members[channel] {
		if in {
			out = append(out, u)
		}
	}
	return out
}

// Readers returns the audience of a message: the current members of its channel, or the participants of the
// conversation.
func (c *Crowd) Readers(a Action) []int {
	if a.Kind == DM {
		out := []int{a.User}
		for _, o := range a.Others {
			if o != a.User {
				out = append(out, o)
			}
		}
		return out
	}
	return c.Members(a.Channel)
}

// Next returns the next action.
func (c *Crowd) Next() Action {
	c.no++
	for _, s := range Draw(c.Seed, uint64(c.no), c.steps) {
		c.rng = s.Random
		for range stepTries {
			if a := (Action{No: c.no, Kind: Kind(s.Name), User: c.rng.IntN(c.Users)}); s.Do(c, &a) {
				return a
			}
		}
	}
	panic("BUG: no action is possible, not even presence")
}

// stepTries is how often a step looks for objects with which it is possible, before another step has the turn.
const stepTries = 3

var topics = []string{"lunch", "release", "bugs", "Lunch", "ideas ✨", ""}
var emoji = []string{"+1", "heart", "tada", "octopus"}
var words = strings.Fields("we should really look at this again before anybody goes home because *it* matters `a " +
	"lot` and **now** is better than later")

func (c *Crowd) text() string {
	n := 1 + c.rng.IntN(14)
	out := make([]string, n)
	for i := range out {
		out[i] = words[c.rng.IntN(len(words))]
	}
	return strings.Join(out, " ")
}

// An actionStep chooses the details of an action, whose kind is the name of the step. It returns false if the chosen
// action is impossible now.
type actionStep func(c *Crowd, a *Action) bool

// actionSteps are all kinds of action; the weights are percentages.
var actionSteps = []Step[actionStep]{
	{string(Send), 24, (*Crowd).send},
	{string(DM), 9, (*Crowd).sendDirect},
	{string(Edit), 7, (*Crowd).aboutMessage},
	{string(Move), 4, (*Crowd).aboutMessage},
	{string(Delete), 3, (*Crowd).aboutMessage},
	{string(React), 10, (*Crowd).aboutMessage},
	{string(Unreact), 3, (*Crowd).aboutMessage},
	{string(Flag), 10, (*Crowd).aboutMessage},
	{string(Unflag), 4, (*Crowd).aboutMessage},
	{string(Subscribe), 4, func(c *Crowd, a *Action) bool {
		a.Channel, a.Expect = c.rng.IntN(c.Channels), MustSucceed
		return !c.members[a.Channel][a.User]
	}},
	{string(Unsubscribe), 3, func(c *Crowd, a *Action) bool {
		a.Channel, a.Expect = c.rng.IntN(c.Channels), MustSucceed
		return c.members[a.Channel][a.User] && len(c.Members(a.Channel)) > 2
	}},
	{string(Property), 2, func(c *Crowd, a *Action) bool {
		a.Channel, a.Number, a.Expect = c.rng.IntN(c.Channels), c.rng.IntN(4), MustSucceed
		return c.members[a.Channel][a.User]
	}},
	{string(Policy), 3, func(c *Crowd, a *Action) bool {
		a.Channel, a.Topic, a.Number, a.Expect = c.rng.IntN(c.Channels), topics[c.rng.IntN(4)], c.rng.IntN(4),
			MustSucceed
		return c.members[a.Channel][a.User]
	}},
	{string(Rename), 1, func(c *Crowd, a *Action) bool {
		a.Text = fmt.Sprintf("Renamed %d %d", a.User, c.no)
		return true
	}},
	{string(Presence), 4, func(_ *Crowd, a *Action) bool { a.Expect = MustSucceed; return true }},
	{string(Typing), 3, func(c *Crowd, a *Action) bool {
		a.Expect, a.Others = MustSucceed, c.others(a.User, 1)
		return len(a.Others) > 0
	}},
	{string(Register), 2, func(c *Crowd, a *Action) bool {
		a.Expect = MustSucceed
		return c.queues[a.User] < maxQueues
	}},
	{string(DropQueue), 1, func(c *Crowd, a *Action) bool {
		a.Expect = MustSucceed
		return c.queues[a.User] > 0
	}},
	{string(Read), 3, func(c *Crowd, a *Action) bool {
		a.Channel, a.Expect = c.rng.IntN(c.Channels), MustSucceed
		return c.members[a.Channel][a.User]
	}},
}

func (c *Crowd) send(a *Action) bool {
	a.Channel, a.Topic, a.Text = c.rng.IntN(c.Channels), c.topic(), c.text()
	if c.members[a.Channel][a.User] {
		a.Expect = MustSucceed
	}
	return true
}

func (c *Crowd) sendDirect(a *Action) bool {
	a.Text, a.Expect = c.text(), MustSucceed
	a.Others = c.others(a.User, 1+c.rng.IntN(3))
	return len(a.Others) > 0
}

func (c *Crowd) topic() string { return topics[c.rng.IntN(len(topics))] }

func (c *Crowd) others(me, n int) []int {
	var out []int
	for i := 0; i < n; i++ {
		o := c.rng.IntN(c.Users)
		dup := o == me
		for _, x := range out {
			dup = dup || x == o
		}
		if !dup {
			out = append(out, o)
		}
	}
	return out
}

// aboutMessage picks a recent message and a user for an action on it: mostly a user with the permission, sometimes
// not.
func (c *Crowd) aboutMessage(a *Action) bool {
	if len(c.messages) == 0 {
		return false
	}
	a.Message = len(c.messages) - 1 - c.rng.IntN(min(len(c.messages), maxMessages))
	m := &c.messages[a.Message]
	if m.deleted {
		return false
	}
	sees := c.sees(a.User, m)
	switch a.Kind {
	case Edit:
		a.Text = c.text()
		if c.rng.IntN(10) > 0 {
			a.User, a.Expect = m.author, MustSucceed
			if !c.sees(a.User, m) {
				a.Expect = Unknown
			}
		} else if a.User != m.author {
			a.Expect = MustFail // only authors can edit the text
		}
	case Move:
		if m.channel < 0 || !sees {
			return false
		}
		a.Topic = topics[c.rng.IntN(4)]
		return a.Topic != m.topic
	case Delete:
		if c.rng.IntN(4) > 0 {
			a.User = m.author
		}
		return c.sees(a.User, m)
	case React:
		a.Emoji = emoji[c.rng.IntN(len(emoji))]
		switch {
		case m.channel < 0 && !sees:
			a.Expect = MustFail
		case sees && m.emoji[a.User] == a.Emoji:
			a.Expect = MustFail
		case sees && m.emoji[a.User] == "":
			a.Expect = MustSucceed
		default:
			return false
		}
	case Unreact:
		a.Emoji = m.emoji[a.User]
		a.Expect = MustSucceed
		return a.Emoji != "" && sees
	case Flag, Unflag:
		a.Flag = [...]string{"read", "starred", "read", "collapsed"}[c.rng.IntN(4)]
		a.Expect = MustSucceed
		return sees
	}
	return true
}

func (c *Crowd) sees(u int, m *message) bool {
	if m.channel >= 0 {
		return c.members[m.channel][u]
	}
	if m.author == u {
		return true
	}
	for _, o := range m.others {
		if o == u {
			return true
		}
	}
	return false
}

// Done tells the crowd whether an action succeeded. A sent message gets the next number.
func (c *Crowd) Done(a Action, ok bool) {
	if !ok {
		return
	}
	switch a.Kind {
	case Send, DM:
		m := message{author: a.User, channel: -1, others: a.Others, topic: a.Topic, emoji: map[int]string{}}
		if a.Kind == Send {
			m.channel = a.Channel
		}
		c.messages = append(c.messages, m)
	case Move:
		c.messages[a.Message].topic = a.Topic
	case Delete:
		c.messages[a.Message].deleted = true
	case React:
		c.messages[a.Message].emoji[a.User] = a.Emoji
	case Unreact:
		delete(c.messages[a.Message].emoji, a.User)
	case Subscribe:
		c.members[a.Channel][a.User] = true
	case Unsubscribe:
		c.members[a.Channel][a.User] = false
	case Register:
		c.queues[a.User]++
	case DropQueue:
		c.queues[a.User]--
	}
}

// Violation returns a description if the outcome contradicts the expectation, else "".
func (a Action) Violation(ok bool) string {
	switch {
	case a.Expect == MustSucceed && !ok:
		return a.String() + " was rejected, but must succeed"
	case a.Expect == MustFail && ok:
		return a.String() + " succeeded, but must be rejected"
	}
	return ""
}

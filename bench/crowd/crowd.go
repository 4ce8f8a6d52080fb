package crowd

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Kind says what a user does.
type Kind string

const (
	Send        Kind = "send"         // a message to Channel under Topic
	DM          Kind = "dm"           // a message to Others (and oneself)
	Edit        Kind = "edit"         // new Text for Message
	Move        Kind = "move"         // Message to Topic
	Delete      Kind = "delete"       // Message
	React       Kind = "react"        // Emoji on Message
	Unreact     Kind = "unreact"      // Emoji off Message
	Flag        Kind = "flag"         // Flag on Message
	Unflag      Kind = "unflag"       // Flag off Message
	Subscribe   Kind = "subscribe"    // oneself to Channel
	Unsubscribe Kind = "unsubscribe"  // oneself from Channel
	Property    Kind = "property"     // a personal setting of one's subscription to Channel
	Policy      Kind = "topic policy" // Number for Channel and Topic
	Rename      Kind = "rename"       // oneself to Text
	Presence    Kind = "presence"
	Typing      Kind = "typing"     // to Others
	Register    Kind = "register"   // one more queue
	DropQueue   Kind = "drop queue" // the newest of one's extra queues
	Read        Kind = "read"       // GET a page of Channel
)

// Must says what the model knows about the outcome.
type Must int

const (
	Maybe   Must = iota // depends on rules the model does not know
	Succeed             // a refusal would be wrong
	Fail                // success would be wrong
)

// An Action is one thing one user does. Users, channels and messages are numbers of the crowd, in order of appearance;
// whoever carries it out maps them to ids.
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
	Must    Must
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
	gone    bool
	emoji   map[int]string // by user, at most one each
}

// A Crowd makes up actions and remembers what came of them. It is told each outcome before it is asked for the next
// action, so the same seed and the same outcomes give the same story.
type Crowd struct {
	Seed     uint64
	Users    int
	Channels int

	rng      *rand.Rand
	no       int
	in       [][]bool // by channel and user
	messages []message
	queues   []int // extra queues by user
}

// maxQueues bounds a user's extra queues, maxMessages the messages that are still talked about.
const (
	maxQueues   = 3
	maxMessages = 400
)

// New makes a crowd of users who are members of channels as listed.
func New(seed uint64, users int, members [][]int32) *Crowd {
	c := &Crowd{Seed: seed, Users: users, Channels: len(members), rng: rand.New(rand.NewPCG(seed, 0x63726f7764)),
		queues: make([]int, users)}
	for _, m := range members {
		in := make([]bool, users)
		for _, u := range m {
			in[u] = true
		}
		c.in = append(c.in, in)
	}
	return c
}

// Members are the users in a channel, in order.
func (c *Crowd) Members(channel int) []int {
	var out []int
	for u, in := range c.in[channel] {
		if in {
			out = append(out, u)
		}
	}
	return out
}

// Readers are the users who were sent a message: its channel's members now, or the people of the conversation.
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

// Next is what somebody does next.
func (c *Crowd) Next() Action {
	c.no++
	for try := 0; try < 50; try++ {
		a := Action{No: c.no, User: c.rng.IntN(c.Users)}
		if c.fill(&a, c.rng.IntN(100)) {
			return a
		}
	}
	return Action{No: c.no, Kind: Presence, User: c.rng.IntN(c.Users), Must: Succeed}
}

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

// fill chooses by percent; it answers false where the choice makes no sense now.
func (c *Crowd) fill(a *Action, dice int) bool {
	switch {
	case dice < 24:
		a.Kind, a.Channel, a.Topic, a.Text = Send, c.rng.IntN(c.Channels), c.topic(), c.text()
		if c.in[a.Channel][a.User] {
			a.Must = Succeed
		}
		return true
	case dice < 33:
		a.Kind, a.Text, a.Must = DM, c.text(), Succeed
		a.Others = c.others(a.User, 1+c.rng.IntN(3))
		return len(a.Others) > 0
	case dice < 40:
		return c.aboutMessage(a, Edit)
	case dice < 44:
		return c.aboutMessage(a, Move)
	case dice < 47:
		return c.aboutMessage(a, Delete)
	case dice < 57:
		return c.aboutMessage(a, React)
	case dice < 60:
		return c.aboutMessage(a, Unreact)
	case dice < 70:
		return c.aboutMessage(a, Flag)
	case dice < 74:
		return c.aboutMessage(a, Unflag)
	case dice < 78:
		a.Kind, a.Channel, a.Must = Subscribe, c.rng.IntN(c.Channels), Succeed
		return !c.in[a.Channel][a.User]
	case dice < 81:
		a.Kind, a.Channel, a.Must = Unsubscribe, c.rng.IntN(c.Channels), Succeed
		return c.in[a.Channel][a.User] && len(c.Members(a.Channel)) > 2
	case dice < 83:
		a.Kind, a.Channel, a.Number, a.Must = Property, c.rng.IntN(c.Channels), c.rng.IntN(4), Succeed
		return c.in[a.Channel][a.User]
	case dice < 86:
		a.Kind, a.Channel, a.Topic, a.Number, a.Must = Policy, c.rng.IntN(c.Channels), topics[c.rng.IntN(4)],
			c.rng.IntN(4), Succeed
		return c.in[a.Channel][a.User]
	case dice < 87:
		a.Kind, a.Text = Rename, fmt.Sprintf("Renamed %d %d", a.User, c.no)
		return true
	case dice < 91:
		a.Kind, a.Must = Presence, Succeed
		return true
	case dice < 94:
		a.Kind, a.Must, a.Others = Typing, Succeed, c.others(a.User, 1)
		return len(a.Others) > 0
	case dice < 96:
		a.Kind, a.Must = Register, Succeed
		return c.queues[a.User] < maxQueues
	case dice < 97:
		a.Kind, a.Must = DropQueue, Succeed
		return c.queues[a.User] > 0
	}
	a.Kind, a.Channel, a.Must = Read, c.rng.IntN(c.Channels), Succeed
	return c.in[a.Channel][a.User]
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

// aboutMessage picks a message of late and somebody to do something with it: mostly somebody who may, sometimes not.
func (c *Crowd) aboutMessage(a *Action, k Kind) bool {
	if len(c.messages) == 0 {
		return false
	}
	a.Kind = k
	a.Message = len(c.messages) - 1 - c.rng.IntN(min(len(c.messages), maxMessages))
	m := &c.messages[a.Message]
	if m.gone {
		return false
	}
	sees := c.sees(a.User, m)
	switch k {
	case Edit:
		a.Text = c.text()
		if c.rng.IntN(10) > 0 {
			a.User, a.Must = m.author, Succeed
			if !c.sees(a.User, m) {
				a.Must = Maybe
			}
		} else if a.User != m.author {
			a.Must = Fail // nobody edits another's text
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
			a.Must = Fail
		case sees && m.emoji[a.User] == a.Emoji:
			a.Must = Fail
		case sees && m.emoji[a.User] == "":
			a.Must = Succeed
		default:
			return false
		}
	case Unreact:
		a.Emoji = m.emoji[a.User]
		a.Must = Succeed
		return a.Emoji != "" && sees
	case Flag, Unflag:
		a.Flag = [...]string{"read", "starred", "read", "collapsed"}[c.rng.IntN(4)]
		a.Must = Succeed
		return sees
	}
	return true
}

func (c *Crowd) sees(u int, m *message) bool {
	if m.channel >= 0 {
		return c.in[m.channel][u]
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

// Done tells the crowd whether an action was carried out. A message that was sent gets the next number.
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
		c.messages[a.Message].gone = true
	case React:
		c.messages[a.Message].emoji[a.User] = a.Emoji
	case Unreact:
		delete(c.messages[a.Message].emoji, a.User)
	case Subscribe:
		c.in[a.Channel][a.User] = true
	case Unsubscribe:
		c.in[a.Channel][a.User] = false
	case Register:
		c.queues[a.User]++
	case DropQueue:
		c.queues[a.User]--
	}
}

// Broke judges an outcome; it answers "" where nothing is wrong.
func (a Action) Broke(ok bool) string {
	switch {
	case a.Must == Succeed && !ok:
		return a.String() + " was refused, but had to succeed"
	case a.Must == Fail && ok:
		return a.String() + " succeeded, but had to be refused"
	}
	return ""
}

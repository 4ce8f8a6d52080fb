package wire

import (
	"strings"
	"time"
	"unicode/utf8"

	"parley/actors/realm"
	"parley/wire/form"
)

// Calls gives users access to the rooms of a LiveKit server; see package calls.
type Calls interface {
	// Address returns the address of the LiveKit server for browsers.
	Address() string
	// Join makes the room of a call and returns a token with which a user can join it, and when the token expires.
	Join(id realm.ID, call realm.Call, u realm.UserID, name string) (token string, expires time.Time, err error)
	// Watch looks at the calls of an organization from now on, because it has a new one.
	Watch(realm.ID)
}

// ErrCallServer is the refusal while LiveKit does not answer.
func ErrCallServer() error {
	return realm.Refuse(realm.Busy, "BAD_REQUEST", "The server for calls does not answer. Try again later.")
}

// roomEndpoints are an extension of the protocol: calls in rooms of LiveKit, besides the links to other providers.
var roomEndpoints = []Endpoint{
	Custom("POST", "/calls/livekit", startCall).extension(roomReason),
	Custom("GET", "/calls/livekit/{call_key}", showCall).atOwner().extension(roomReason),
	Custom("POST", "/calls/livekit/{call_key}/token", joinCall).extension(roomReason),
}

const roomReason = "calls in rooms of a LiveKit server, which Zulip does not have"

var roomEvents = []EventKind{
	EventOneOf(renderRinging).sends(formOf[ringEvent](), formOf[ringEndEvent]()),
}

// ringEvent says that the clients of a direct conversation ring until a time.
type ringEvent struct {
	_       struct{}        `const:"type=call op=ring"`
	Key     string          `json:"call_key"`
	Path    string          `json:"path"`
	Starter realm.UserID    `json:"user_id"`
	Message realm.MessageID `json:"message_id"`
	Until   int64           `json:"until"`
}

// ringEndEvent says that they stop.
type ringEndEvent struct {
	_   struct{} `const:"type=call op=ring_end"`
	Key string   `json:"call_key"`
}

func renderRinging(e *realm.CallRinging, _ *Recipient) any {
	if e.Stop {
		return &ringEndEvent{Key: e.Key}
	}
	return &ringEvent{Key: e.Key, Path: CallPath + e.Key, Starter: e.Starter, Message: e.Message, Until: e.Until}
}

// CallPath begins the paths of the pages of calls; the key follows.
const CallPath = "/calls/"

// calls returns the calls of the server, or a refusal if it has none.
func (c *Call) calls() (Calls, error) {
	if c.Tools.Calls == nil {
		return nil, realm.BadRequest("LiveKit is not configured.")
	}
	return c.Tools.Calls, nil
}

type startCallForm struct {
	Type  string           `form:"type,required,enum=direct|channel"`
	To    form.Recipients  `form:"to,required"`
	Topic form.Opt[string] `form:"topic,strip"`
	Label string           `form:"link_text,default=Join video call."`
}

// maxCallLabel limits the text of the link to a call, in code points.
const maxCallLabel = 60

type callStartedAnswer struct {
	Key     string          `json:"call_key"`
	Path    string          `json:"path"`
	Message realm.MessageID `json:"message_id"`
}

// startCall sends a message with the link to a new call, or returns the call that the conversation has.
func startCall(c *Call, f startCallForm) (*callStartedAnswer, error) {
	calls, err := c.calls()
	if err != nil {
		return nil, err
	}
	if err := checkPermission(c, realm.View.MayStartCalls); err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(f.Label) > maxCallLabel {
		return nil, realm.BadRequest("link_text is too long (limit: %d characters)", maxCallLabel)
	}
	key := c.Tools.Token(realm.CallKeyLength)
	label := strings.NewReplacer("[", "(", "]", ")", "\n", " ", "\\", "").Replace(f.Label)
	send := sendForm{Type: f.Type, To: f.To, Topic: f.Topic, Content: "[" + label + "](" + c.Site.URL + CallPath + key +
		")"}
	command, err := send.command(c)
	if err != nil {
		return nil, err
	}
	call, err := Execute(c, realm.StartCall{Send: command, Key: key})
	if err != nil {
		return nil, err
	}
	calls.Watch(c.Realm)
	return &callStartedAnswer{call.Key, CallPath + call.Key, call.Message}, nil
}

type callForm struct {
	Key string `path:"call_key"`
}

// callAnswer is a call as those see it that can join it.
type callAnswer struct {
	Message realm.MessageID   `json:"message_id"`
	Starter realm.UserID      `json:"user_id"`
	Started int64             `json:"started"`
	Channel realm.ChannelID   `json:"stream_id" zero:"null"`
	Topic   string            `json:"topic"`
	Present []callParticipant `json:"present"`
}

type callParticipant struct {
	ID   realm.UserID `json:"user_id"`
	Name string       `json:"full_name"`
}

// showCall returns the people in a call.
func showCall(c *Call, f callForm) (*callAnswer, error) {
	if _, err := c.calls(); err != nil {
		return nil, err
	}
	return Read(c, func(v realm.View) (*callAnswer, error) {
		call, m, err := v.JoinableCall(f.Key)
		if err != nil {
			return nil, err
		}
		a := &callAnswer{Message: call.Message, Starter: call.Starter, Started: call.Started, Channel: m.Channel,
			Topic: m.Topic, Present: []callParticipant{}}
		for _, u := range call.Present {
			name := unknownName
			if v.MaySeeUser(v.Find(u)) {
				name = v.Find(u).Name
			}
			a.Present = append(a.Present, callParticipant{u, name})
		}
		return a, nil
	})
}

// callTokenAnswer has a token for LiveKit. It lets its user join the call until it expires.
type callTokenAnswer struct {
	Address string `json:"url"`
	Token   string `json:"token"`
	Expires int64  `json:"expires"`
}

// joinCall returns a token for a call that the caller can join now.
func joinCall(c *Call, f callForm) (*callTokenAnswer, error) {
	calls, err := c.calls()
	if err != nil {
		return nil, err
	}
	name := ""
	call, err := Read(c, func(v realm.View) (realm.Call, error) {
		call, _, err := v.JoinableCall(f.Key)
		if err == nil {
			name = v.Me().Name
		}
		return call, err
	})
	if err != nil {
		return nil, err
	}
	token, expires, err := calls.Join(c.Realm, call, c.Caller.User, name)
	if err != nil {
		return nil, err
	}
	return &callTokenAnswer{calls.Address(), token, expires.Unix()}, nil
}

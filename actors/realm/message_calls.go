package realm

import (
	"slices"
	"strings"
)

// Calls are rooms of a LiveKit server, an extension of the protocol. A message in the conversation has the link to the
// call: users can join while they may read and answer this message, and in a channel while they are subscribed. The
// owner of the organization asks LiveKit for the people in the room, and removes users that lost the access.

// callsLevel is the rule level from which on there are calls.
const callsLevel uint16 = 5

// CallsSetting is the permission to start calls.
const CallsSetting = "can_start_calls_group"

const (
	// MaxCalls limits the calls of an organization at a time: the server asks LiveKit about each every two seconds.
	MaxCalls = 100
	// MaxOwnCalls limits the calls at a time that one user has started.
	MaxOwnCalls = 3
	// MaxCallPeople limits the people in a call: LiveKit sends the picture of each to all others.
	MaxCallPeople = 50
	// MaxRingPeople limits the people whose clients ring. Larger direct conversations get only the message.
	MaxRingPeople = 20
	// RingSeconds is for how long the clients of the other people ring.
	RingSeconds = 45
	// EmptyCallSeconds is for how long a call stays open without people.
	EmptyCallSeconds = 60
	// MaxCallSeconds is the longest call, for servers that LiveKit does not answer.
	MaxCallSeconds = secondsPerDay
	// CallKeyLength is the length of the secret in the link to a call, in characters.
	CallKeyLength = 24
)

// Call is the row of a call that has not ended.
type Call struct {
	ID         int64
	Key        string // the secret in the link
	Message    MessageID
	Starter    UserID
	Started    int64
	Present    []UserID // ascending
	EmptySince int64    // 0: a user is there
}

// StartCall asks to start a call in a conversation: Send has the link with the key. If the conversation has a call
// already, the answer is that one, and nothing is sent.
type StartCall struct {
	Send SendMessage
	Key  string
}

// MayStartCalls refuses users without the permission to start calls.
func (v View) MayStartCalls() error {
	me, err := v.RequireHuman()
	if err == nil && !v.HasPermission(me, CallsSetting) {
		err = errPermission()
	}
	if err == nil {
		err = v.CheckPlace(PlaceCallRooms)
	}
	return err
}

func (c StartCall) Decide(t *Turn) (Call, error) {
	if err := t.MayStartCalls(); err != nil {
		return Call{}, err
	}
	if t.Level() < callsLevel {
		return Call{}, errLowLevel()
	}
	me := t.Me()
	f, err := c.Send.plan(t, me)
	if err != nil {
		return Call{}, err
	}
	own := 0
	for _, id := range t.small.calls.keys() {
		x := t.small.calls.must(id)
		if t.isCallIn(x, f) {
			return *x, nil
		}
		if x.Starter == me.ID {
			own++
		}
	}
	if own >= MaxOwnCalls || t.small.calls.size() >= MaxCalls {
		return Call{}, BadRequest("Too many calls at the same time.")
	}
	x := Call{ID: t.nextID("call"), Key: c.Key, Starter: me.ID, Started: t.Now, EmptySince: t.Now}
	x.Message = t.send(me, f).ID
	t.Record(&CallChanged{Call: x})
	t.ring(&x, false)
	return x, nil
}

// isCallIn reports whether a call is in the conversation of a planned message.
func (r *Realm) isCallIn(x *Call, f *MessageSent) bool {
	m := r.message(x.Message)
	if m == nil {
		return false
	}
	i := r.messageInfo(x.Message, m)
	if f.Channel != 0 {
		return i.Channel == f.Channel && strings.EqualFold(i.Topic, f.TopicName)
	}
	return i.Channel == 0 && slices.Equal(sortUnique(userIDsOf(i.People)), sortUnique(slices.Clone(f.People)))
}

func userIDsOf(people []UserInfo) []UserID {
	out := make([]UserID, 0, len(people))
	for _, p := range people {
		out = append(out, p.ID)
	}
	return out
}

// ring sends to the other people of a direct conversation that their clients begin to ring, or stop.
func (t *Turn) ring(x *Call, stop bool) {
	m := t.message(x.Message)
	if m == nil {
		return
	}
	i := t.messageInfo(x.Message, m)
	if i.Channel != 0 || len(i.People) > MaxRingPeople {
		return
	}
	e := &CallRinging{Stop: stop, Key: x.Key, Starter: x.Starter, Message: x.Message, Until: x.Started + RingSeconds}
	var to []UserID
	for _, p := range i.People {
		if p.ID != x.Starter && !t.hasMuted(p.ID, x.Starter) {
			to = append(to, p.ID)
		}
	}
	t.SendEphemeral(Notice{To: t.usersAudience(to...), Event: e})
}

// CallRinging is the event that clients ring for a call, or stop.
type CallRinging struct {
	Stop    bool
	Key     string
	Starter UserID
	Message MessageID
	Until   int64 // Unix seconds
}

func (*CallRinging) EventType() string { return "call" }

func errNoCall() *Refusal {
	return Missing("The call has ended, or you cannot join its conversation.")
}

// JoinableCall returns a call that the caller can join now. A call that has ended and one of others look the same.
func (v View) JoinableCall(key string) (Call, MessageInfo, error) {
	me, err := v.RequireHuman()
	if err != nil {
		return Call{}, MessageInfo{}, err
	}
	if err := v.CheckPlace(PlaceCallRooms); err != nil {
		return Call{}, MessageInfo{}, err
	}
	for _, id := range v.small.calls.keys() {
		x := v.small.calls.must(id)
		if x.Key != key {
			continue
		}
		i, err := v.WritableMessage(x.Message)
		if err != nil || i.Channel != 0 && !v.Subscribed(me.ID, i.Channel) {
			break
		}
		return *x, i, nil
	}
	return Call{}, MessageInfo{}, errNoCall()
}

// Calls returns the calls that have not ended, for the server.
func (v View) Calls() (out []Call) {
	if !v.System {
		return nil
	}
	for _, id := range v.small.calls.keys() {
		out = append(out, *v.small.calls.must(id))
	}
	return out
}

// MayBeInCall reports whether a user may be in a call now.
func (v View) MayBeInCall(u UserID, key string) bool {
	if by := v.users.find(u); by == nil || !by.Active {
		return false
	}
	_, _, err := v.ViewAs(Caller{User: u}, v.Now).JoinableCall(key)
	return err == nil
}

// SetCallPeople is a command of the server: these people are in a call. The answer is whether the call has ended.
type SetCallPeople struct {
	ID      int64
	Present []UserID
	// Unknown says that LiveKit did not answer. The call then ends only after MaxCallSeconds.
	Unknown bool
}

func (c SetCallPeople) Decide(t *Turn) (bool, error) {
	row := t.small.calls.find(c.ID)
	if !t.System || row == nil {
		return false, errNoCall()
	}
	x := *row
	if !c.Unknown {
		x.Present = sortUnique(slices.Clone(c.Present))
	}
	switch {
	case len(x.Present) > 0:
		x.EmptySince = 0
	case x.EmptySince == 0:
		x.EmptySince = t.Now
	}
	empty := !c.Unknown && x.EmptySince != 0 && t.Now >= x.EmptySince+EmptyCallSeconds
	ended := empty || t.Now >= x.Started+MaxCallSeconds || t.message(x.Message) == nil ||
		!t.PlaceOpen(PlaceCallRooms)
	if !ended && x.EmptySince == row.EmptySince && slices.Equal(x.Present, row.Present) {
		return false, nil
	}
	t.Record(&CallChanged{Call: x, Ended: ended})
	if others := func(list []UserID) bool {
		return slices.ContainsFunc(list, func(u UserID) bool { return u != x.Starter })
	}; ended || others(x.Present) && !others(row.Present) {
		t.ring(&x, true)
	}
	return ended, nil
}

// CallChanged sets a call, or removes it because it has ended.
type CallChanged struct {
	Call  Call
	Ended bool
}

func (f *CallChanged) apply(r *Realm) {
	r.reserveID("call", f.Call.ID)
	if f.Ended {
		r.small.calls.remove(f.Call.ID)
		return
	}
	x := f.Call
	x.Present = slices.Clone(x.Present)
	r.small.calls.put(x.ID, &x)
}

func (*CallChanged) notices(*Realm) []Notice { return nil }

package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var pollForm = form.Of[getEventsForm]()

// request returns the poll that a form asks for, without its Reply.
func (f *getEventsForm) request(c *Call) PollRequest {
	p := NewPoll(c, realm.QueueID(f.Queue.Value), f.Last.Value)
	p.DontBlock = f.DontBlock
	return p
}

// NewPoll returns a poll of a queue with the credentials of a call, without its Reply.
func NewPoll(c *Call, queue realm.QueueID, last int64) PollRequest {
	p := PollRequest{Realm: c.Realm, User: c.Caller.User, Queue: queue, Last: last, AuthVersion: c.AuthVersion}
	if k := c.scopedKey(); k != nil {
		p.Key = k.ID
	}
	return p
}

// PreparePoll decodes an event poll for callers that must not block, such as the loop that reads requests. It reports
// false if the poll must be refused, opens a queue, or has unknown parameters, which the answer must list. Then the
// caller uses the endpoint.
func PreparePoll(c *Call) (PollRequest, bool) {
	var f getEventsForm
	if err := pollForm.Decode(c.Params, &f); err != nil || !f.Queue.Set || pollForm.Ignored(c.Params) != nil {
		return PollRequest{}, false
	}
	return f.request(c), true
}

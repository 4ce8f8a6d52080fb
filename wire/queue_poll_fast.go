package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var pollForm = form.Of[getEventsForm]()

// request returns the poll that a form asks for, without its Reply.
func (f *getEventsForm) request(c *Call) PollRequest {
	return PollRequest{Realm: c.Realm, User: c.Caller.User, Queue: realm.QueueID(f.Queue.Value), Last: f.Last.Value,
		DontBlock: f.DontBlock, AuthVersion: c.AuthVersion}
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

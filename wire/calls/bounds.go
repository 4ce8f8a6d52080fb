package calls

import (
	"sync/atomic"

	"parley/actors/admission"
	"parley/actors/realm"
	"parley/actors/registry"
)

// numbers are the counters of a service. Their methods are safe for concurrent use.
type numbers struct {
	// As the last look found them. The devices of a user are counted one by one.
	calls, mostCalls, people, mostPeople atomic.Int64

	removed          atomic.Int64 // people who lost the access
	answered, failed atomic.Int64 // requests to LiveKit
}

// counts are the numbers of one look.
type counts struct{ calls, mostCalls, people, mostPeople int64 }

// addCalls adds the calls of an organization.
func (c *counts) addCalls(n int) {
	c.calls += int64(n)
	c.mostCalls = max(c.mostCalls, int64(n))
}

// addPeople adds the people of a call.
func (c *counts) addPeople(n int) {
	c.people += int64(n)
	c.mostPeople = max(c.mostPeople, int64(n))
}

func (n *numbers) store(c counts) {
	n.calls.Store(c.calls)
	n.mostCalls.Store(c.mostCalls)
	n.people.Store(c.people)
	n.mostPeople.Store(c.mostPeople)
}

// numbersOf returns the numbers of a service; zeros if there is none, because LiveKit is not configured.
func numbersOf(x *Service) *numbers {
	if x == nil {
		return &numbers{}
	}
	return &x.numbers
}

// Bounds returns the bounds of calls.
func (x *Service) Bounds() []registry.Bound {
	joins := admission.NewPlaces(maxJoins, nil)
	if x != nil {
		joins = x.joins
	}
	n := numbersOf(x)
	return []registry.Bound{
		{
			Name:     "calls_per_organization",
			Of:       "calls of one organization at a time; used: the most of any",
			Overflow: "400",
			Reason:   "the server asks LiveKit about each every two seconds",
			Limit:    registry.Constant(realm.MaxCalls),
			Used:     n.mostCalls.Load,
			Whole:    registry.OfOne,
		},
		{
			Name:     "calls_per_user",
			Of:       "calls at a time that one user has started",
			Overflow: "400",
			Reason:   "one user must not use up the calls of the organization",
			Limit:    registry.Constant(realm.MaxOwnCalls),
		},
		{
			Name:     "people_per_call",
			Of:       "people in one call, with each of their devices; used: the most of any",
			Overflow: "LiveKit refuses further ones",
			Reason:   "LiveKit sends the picture of each to all others",
			Limit:    registry.Constant(realm.MaxCallPeople),
			Used:     n.mostPeople.Load,
			Whole:    registry.OfOne,
		},
		{
			Name:     "ringing_per_call",
			Of:       "people of a direct conversation whose clients ring for a call",
			Overflow: "no client rings; all get the message with the link",
			Reason:   "a call in a large conversation must not disturb everyone in it",
			Limit:    registry.Constant(realm.MaxRingPeople),
		},
		{
			Name:     "call_joins",
			Of:       "requests for tokens at a time that wait for LiveKit",
			Overflow: "503",
			Reason:   "each holds a request for up to five seconds if LiveKit does not answer",
			Limit:    registry.Constant(maxJoins),
			Used:     joins.Used,
			Hits:     joins.Refused,
			Halved:   "wire/calls TestJoinsAreShared",
		},
		{
			Name:     "call_answer_bytes",
			Of:       "bytes of one answer of LiveKit",
			Overflow: "the answer is not used, and the failure is logged",
			Reason:   "some kB for each person in a room; the address may be that of another program",
			Limit:    registry.Constant(maxAnswer),
		},
	}
}

// Metrics returns the metrics without labels.
func (x *Service) Metrics() []registry.Metric {
	n := numbersOf(x)
	return []registry.Metric{
		{Name: "parley_calls", Meaning: "Calls of all organizations that this server owns.", Read: n.calls.Load},
		{Name: "parley_call_people", Meaning: "People in these calls, with each of their devices.",
			Read: n.people.Load},
		{Name: "parley_call_removals_total", Counter: true,
			Meaning: "How often the server removed people from calls, because they may not be there any more.",
			Read:    n.removed.Load},
	}
}

// Labeled returns the metrics with a label.
func (x *Service) Labeled() []registry.Labeled {
	n := numbersOf(x)
	return []registry.Labeled{{Name: "parley_call_server_requests_total", Counter: true, Label: "result",
		Meaning: "Requests to the room service of LiveKit: answered or failed.",
		Each: func(send func(string, float64)) {
			send("answered", float64(n.answered.Load()))
			send("failed", float64(n.failed.Load()))
		}}}
}

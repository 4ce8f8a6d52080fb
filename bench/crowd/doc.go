// Package crowd decides about users: a Plan which users are in which channel, a Crowd their next action. It is
// plain data without clock, network or goroutine: the same seed gives the same crowd and, with the same outcomes,
// the same actions. The load harness sends the actions over HTTP, tests of the actors send them in memory.
//
// A Crowd models enough of the rules to know the audience of every message and the outcome of most actions. A
// RequestGenerator has no such model: it makes random requests to all parts of the API, and tests compare the state
// of clients afterwards.
package crowd

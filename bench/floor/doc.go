// Package floor is a server that does the minimum of work for a fan-out: one thread, one epoll, requests parsed by
// hand, one write for each delivery, and no state but the waiting polls and the last messages. It has no users and
// no rules. Parley and the floor are measured in turn on the same machine, so a ratio of both is independent of the
// machine.
//
// It has the endpoints that the harness needs: register, events and messages. A register sends the channels of the
// queue in the parameter floor_channels, as decimal numbers separated by points.
package floor

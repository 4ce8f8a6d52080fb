package server

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// countedCalls are calls without a LiveKit server. They count the tokens.
type countedCalls struct {
	testCalls
	joins, watches atomic.Int64
}

func (c *countedCalls) Join(realm.ID, realm.Call, realm.UserID, string) (string, time.Time, error) {
	n := c.joins.Add(1)
	return fmt.Sprint("token ", n), time.Unix(1_900_000_000, 0), nil
}

func (c *countedCalls) Watch(realm.ID) { c.watches.Add(1) }

// A call at an edge, and at a core that follows, is the same as at the owner: only the owner makes the rooms and signs
// the tokens, and refusals are those of the owner. A core that follows does not use its own LiveKit server, if it has
// any.
func TestForwardCalls(t *testing.T) {
	for _, x := range []struct {
		name   string
		isCore bool
		calls  func(*countedCalls) wire.Calls // of the node
	}{
		{"edge", false, nil},
		{"core", true, func(c *countedCalls) wire.Calls { return c }},
		{"core without the setting", true, func(*countedCalls) wire.Calls { return nil }},
	} {
		t.Run(x.name, func(t *testing.T) {
			core, there := newMatrixServer(t, newCoverage(byKey)), &countedCalls{}
			core.tools.Calls = there
			s := newCallStage(core)
			node, cluster := newFollower(t, core, x.isCore)
			own := &countedCalls{}
			if x.calls != nil {
				node.tools.Calls = x.calls(own)
			}
			s.expectCalls(node, there)
			s.expectSameRefusals(node, there)
			if n := own.joins.Load() + own.watches.Load(); n != 0 {
				t.Errorf("the node used its own LiveKit server %d times", n)
			}
			s.expectRemoval(node)
			if cluster.tries.Load() == 0 {
				t.Error("the owner got no request")
			}
		})
	}
}

// callStage is an organization with a channel of two users, and others who cannot join its calls.
type callStage struct {
	*matrixServer
	owner, member, outside, guest, bot, stranger *matrixUser
	place                                        pairs
	key                                          string
}

func newCallStage(core *matrixServer) *callStage {
	core.Helper()
	for _, name := range []string{"", "other"} {
		if _, err := core.orgs.CreateRealm(name, "Ours"); err != nil {
			core.Fatal(err)
		}
	}
	s := &callStage{matrixServer: core, owner: core.join(ours, ourHost, "owner", realm.Owner, 0, 0),
		member:  core.join(ours, ourHost, "member", realm.Member, 0, 0),
		outside: core.join(ours, ourHost, "outside", realm.Member, 0, 0),
		guest:   core.join(ours, ourHost, "guest", realm.Guest, 0, 0)}
	s.bot = core.join(ours, ourHost, "bot", realm.Member, realm.GenericBot, s.owner.id)
	s.stranger = core.join(theirs, theirHost, "stranger", realm.Owner, 0, 0)
	core.must(s.owner, "POST", "/channels/create", "name", "crew", "invite_only", true, "subscribers",
		[]int64{s.owner.id, s.member.id})
	s.place = pairs{"type", "channel", "to", "crew", "topic", "boats"}
	return s
}

// expectCalls starts and joins calls at a node.
func (s *callStage) expectCalls(node *matrixServer, there *countedCalls) {
	s.Helper()
	call := node.must(s.owner, "POST", "/calls/livekit", s.place...)
	s.key, _ = call.body["call_key"].(string)
	if there.watches.Load() != 1 {
		s.Errorf("the owner watches %d calls", there.watches.Load())
	}
	if again := node.must(s.member, "POST", "/calls/livekit", s.place...); again.body["call_key"] != s.key {
		s.Errorf("another call in the topic: %s", again.raw)
	}
	path := "/calls/livekit/" + s.key
	token := node.must(s.member, "POST", path+"/token")
	if token.body["token"] != "token 1" || token.body["url"] != there.Address() || there.joins.Load() != 1 {
		s.Errorf("the token: %s", token.raw)
	}
	calls, err := s.orgs.View(ours, realm.System, func(v realm.View) (any, error) { return v.Calls(), nil })
	if err != nil {
		s.Fatal(err)
	}
	command := realm.SetCallPeople{ID: calls.([]realm.Call)[0].ID, Present: []realm.UserID{realm.UserID(s.member.id)}}
	_, err = s.orgs.Turn(ours, realm.System, func(t *realm.Turn) (any, error) { return command.Decide(t) })
	if err != nil {
		s.Fatal(err)
	}
	here, owner := node.must(s.owner, "GET", path), s.must(s.owner, "GET", path)
	if present := ids(here.body["present"], "user_id"); len(present) != 1 || present[0] != s.member.id ||
		here.raw != owner.raw {
		s.Errorf("the node answers %s, the owner %s", here.raw, owner.raw)
	}
}

// expectSameRefusals expects refusals at a node that are those of the owner.
func (s *callStage) expectSameRefusals(node *matrixServer, there *countedCalls) {
	s.Helper()
	joins := there.joins.Load()
	path := "/calls/livekit/" + s.key
	s.must(s.owner, "PATCH", "/realm", "can_start_calls_group", map[string]any{"new": map[string]any{
		"direct_members": []int64{s.owner.id, s.outside.id, s.guest.id, s.bot.id}, "direct_subgroups": []int64{}}})
	visitor := &matrixUser{name: "visitor", host: ourHost}
	for _, who := range []*matrixUser{s.outside, s.guest, s.bot, s.stranger, visitor, s.member} {
		requests := [][2]string{{"POST", "/calls/livekit"}}
		if who != s.member { // may join, but not start
			requests = append(requests, [2]string{"GET", path}, [2]string{"POST", path + "/token"})
		}
		for _, r := range requests {
			var form pairs
			if r[1] == "/calls/livekit" {
				form = s.place
			}
			here, owner := node.send(who, r[0], r[1], form...), s.send(who, r[0], r[1], form...)
			if here.status < 400 || here.status != owner.status || here.raw != owner.raw {
				s.Errorf("%s, %s %s: the node answers %d %s, the owner %d %s", who.name, r[0], r[1], here.status,
					here.raw, owner.status, owner.raw)
			}
		}
	}
	node.must(s.member, "POST", path+"/token")
	if n := there.joins.Load() - joins; n != 1 {
		s.Errorf("%d tokens, want only that of the member", n)
	}
}

// expectRemoval expects that a user who leaves the channel through a node cannot see or join its call any more.
func (s *callStage) expectRemoval(node *matrixServer) {
	s.Helper()
	const gone = "The call has ended, or you cannot join its conversation."
	path := "/calls/livekit/" + s.key
	node.must(s.member, "DELETE", "/users/me/subscriptions", "subscriptions", []string{"crew"})
	for _, r := range [][2]string{{"GET", path}, {"POST", path + "/token"}} {
		if a := node.send(s.member, r[0], r[1]); a.status != 404 || a.msg() != gone {
			s.Errorf("%s after leaving: %d %s", r[0], a.status, a.raw)
		}
	}
}

package realm_test

import (
	"errors"
	"fmt"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// The permission matrix of accounts: which roles may change which accounts, and which users get events. It covers
// every role of the caller and of the target, and the caller's own account. It is repeated after a change of the
// caller's role, and with limits for guests. The expected results follow the protocol's description, not the code.

var matrixRoles = []Role{Owner, Administrator, Moderator, Member, Guest}

// matrixAction is a change of an account. refuse returns the protocol's refusal, or "" if the action is allowed.
type matrixAction struct {
	name   string
	do     func(s *realmtest.Scene, by, to UserID) error
	refuse func(by, to Role, self bool) string
	events int // least number of events for users that can see the target
}

func tryCommand[A any](s *realmtest.Scene, u UserID, c Command[A]) error {
	_, err := realmtest.Try(s, u, c)
	return err
}

const (
	matrixPermission = "Insufficient permission"
	matrixOwner      = "Must be an organization owner"
)

func matrixActions() (acts []matrixAction) {
	admins := func(by Role) string {
		if by > Administrator {
			return matrixPermission
		}
		return ""
	}
	acts = append(acts, matrixAction{"rename", func(s *realmtest.Scene, by, to UserID) error {
		name := fmt.Sprintf("Renamed %d", s.Realm.Seq())
		return tryCommand(s, by, EditUser{User: to, Name: &name})
	}, func(by, to Role, self bool) string { return admins(by) }, 1})
	for _, role := range matrixRoles {
		acts = append(acts, matrixAction{fmt.Sprintf("make role %d", role), func(
			s *realmtest.Scene, by, to UserID,
		) error {
			return tryCommand(s, by, EditUser{User: to, Role: &role})
		}, func(by, to Role, self bool) string {
			switch {
			case by > Administrator:
				return matrixPermission
			case role == to: // nothing changes
				return ""
			case (to == Owner || role == Owner) && by != Owner:
				return matrixOwner
			case to == Guest && role <= Administrator:
				return "Guests cannot be organization administrators"
			}
			return ""
		}, 0})
	}
	acts = append(acts, matrixAction{"deactivate", func(s *realmtest.Scene, by, to UserID) error {
		return tryCommand(s, by, DeactivateUser{User: to})
	}, func(by, to Role, self bool) string {
		if to == Owner && by == Administrator {
			return matrixOwner
		}
		return admins(by)
	}, 1})
	acts = append(acts, matrixAction{"reactivate", func(s *realmtest.Scene, by, to UserID) error {
		if err := tryCommand(s, realmtest.System, DeactivateUser{User: to}); err != nil {
			return err
		}
		return tryCommand(s, by, ReactivateUser{User: to})
	}, func(by, to Role, self bool) string {
		if to == Owner && by == Administrator {
			return matrixOwner
		}
		return admins(by)
	}, 1})
	return acts
}

func TestAccountPermissionMatrix(t *testing.T) {
	cells := 0
	for _, limit := range []bool{false, true} {
		for _, by := range matrixRoles {
			for _, was := range []Role{by, Member} { // a role the caller always had, or has just got
				for _, target := range matrixRoles {
					for _, self := range []bool{false, true} {
						if self && target != by {
							continue
						}
						for _, act := range matrixActions() {
							if self && act.name == "reactivate" || was != by && was == Member && by == Member {
								continue
							}
							cells++
							checkMatrixCell(t, limit, by, was, target, self, act)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}

func checkMatrixCell(t *testing.T, limit bool, by, was, target Role, self bool, act matrixAction) {
	s := realmtest.New(t)
	s.Join("Second Owner", Owner) // so that no other user is the only owner
	boss := s.Join("Boss", Owner)
	caller := s.Join("Caller", was)
	if was != by {
		realmtest.Do(s, realmtest.System, EditUser{User: caller, Role: &by})
	}
	to := caller
	if !self {
		to = s.Join("Target", target)
	}
	stranger, friend, member := s.Join("Stranger", Guest), s.Join("Friend", Guest), s.Join("Member Else")
	gone := s.Join("Gone")
	realmtest.Do(s, boss, Subscribe{Channels: channelsToJoin("with the target"),
		Principals: principals(to, friend), AllOrNothing: true})
	if limit {
		members := GroupValue{Group: s.Realm.SystemGroup("role:members")}
		limit := GroupChange{Name: "can_access_all_users_group", New: members}
		realmtest.Do(s, boss, ChangeOrganization{Groups: []GroupChange{limit}})
		for _, u := range []UserID{stranger, friend} {
			s.OpenQueue(u)
		}
	}
	realmtest.Do(s, boss, DeactivateUser{User: gone})
	before := s.Realm.Seq()
	err := act.do(s, caller, to)
	want := act.refuse(by, target, self)
	cell := fmt.Sprintf("limit %v: %d (was %d) does %q to %d, own account %v", limit, by, was, act.name, target, self)
	var r *Refusal
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: refused: %v", cell, err)
		return
	case want != "" && (!errors.As(err, &r) || r.Msg != want):
		t.Errorf("%s: %v, want %q", cell, err, want)
		return
	case want != "":
		if act.name != "reactivate" && s.Realm.Seq() != before {
			t.Errorf("%s: refused, but something changed", cell)
		}
		return
	}
	countEvents := func(u UserID) (n int) {
		for _, e := range s.ListEvents(u) {
			if c, ok := e.(*UserChanged); ok && c.ID == to {
				n++
			}
			if c, ok := e.(*UserVanished); ok && c.User == to { // for guests that knew the target through a channel
				n++
			}
		}
		return n
	}
	if countEvents(gone) != 0 {
		t.Errorf("%s: a deactivated account gets an event", cell)
	}
	if limit && countEvents(stranger) != 0 {
		t.Errorf("%s: a guest that cannot see the target gets an event", cell)
	}
	for _, u := range []UserID{boss, friend, member} {
		if countEvents(u) < act.events {
			t.Errorf("%s: user %d gets no event", cell, u)
		}
	}
	if !limit && countEvents(stranger) != countEvents(member) {
		t.Errorf("%s: guests get %d events, members %d", cell, countEvents(stranger), countEvents(member))
	}
}

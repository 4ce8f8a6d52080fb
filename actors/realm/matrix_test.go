package realm_test

import (
	"errors"
	"fmt"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// The matrix of who may do what to whom, and who hears of it: every role as the caller, every role as the target,
// oneself and another, before and after the caller's role changed, with and without limits to what guests see. The
// oracle beside it knows nothing of the rules' code.

var matrixRoles = []Role{Owner, Administrator, Moderator, Member, Guest}

// matrixAction is one thing to do to somebody, and what the protocol says of who may: "" or the refusal.
type matrixAction struct {
	name   string
	do     func(s *realmtest.Scene, by, to UserID) error
	refuse func(by, to Role, self bool) string
	events int // that somebody who may know the target hears of it at least
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
		acts = append(acts, matrixAction{fmt.Sprintf("make role %d", role), func(s *realmtest.Scene, by, to UserID) error {
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
			for _, was := range []Role{by, Member} { // the caller has always had the role, or has just got it
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
	s.Join("Second Owner", Owner) // so that no one is the only owner
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
	realmtest.Do(s, boss, Subscribe{Channels: channelsToJoin("with the target"), Principals: principals(to, friend), AllOrNothing: true})
	if limit {
		realmtest.Do(s, boss, ChangeOrganization{Groups: []GroupChange{{Name: "can_access_all_users_group", New: GroupValue{Group: s.Realm.SystemGroup("role:members")}}}})
		for _, u := range []UserID{stranger, friend} {
			s.OpenQueue(u)
		}
	}
	realmtest.Do(s, boss, DeactivateUser{User: gone})
	before := s.Realm.Seq()
	err := act.do(s, caller, to)
	want := act.refuse(by, target, self)
	cell := fmt.Sprintf("limit %v: %d (was %d) does %q to %d, himself %v", limit, by, was, act.name, target, self)
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
			t.Errorf("%s: refused, and something changed", cell)
		}
		return
	}
	heard := func(u UserID) (n int) {
		for _, e := range s.ListEvents(u) {
			if c, ok := e.(*UserChanged); ok && c.ID == to {
				n++
			}
			if c, ok := e.(*UserVanished); ok && c.User == to { // what a guest hears who knew him by a channel
				n++
			}
		}
		return n
	}
	if heard(gone) != 0 {
		t.Errorf("%s: a closed account hears of it", cell)
	}
	if limit && heard(stranger) != 0 {
		t.Errorf("%s: a guest who may not know him hears of it", cell)
	}
	for _, u := range []UserID{boss, friend, member} {
		if heard(u) < act.events {
			t.Errorf("%s: user %d hears nothing", cell, u)
		}
	}
	if !limit && heard(stranger) != heard(member) {
		t.Errorf("%s: guests hear %d, members %d", cell, heard(stranger), heard(member))
	}
}

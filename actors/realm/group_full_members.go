package realm

import (
	"cmp"
	"slices"
)

// Full members are those whose account is older than the organization's waiting period, and everybody above members. Who
// is one changes only by facts, so that whatever was told of it stays true until something else is told: the clock alone
// makes nobody a full member, the fact that his waiting period is over does.

// FullMember reports whether the account is older than the organization's waiting period (days), or above members.
func (r *Realm) FullMember(u *User) bool {
	if u.IsGuest() {
		return false
	}
	return u.IsModerator() || u.wasOldEnough(r.fullMembersAsOf(), r.OrgInt("waiting_period_threshold"))
}

// wasOldEnough reports whether the account was that many days old at a time.
func (u *User) wasOldEnough(at, days int64) bool { return (at-u.Joined)/secondsPerDay >= days }

// fullMembersAsOf is the time by which full members are told from new accounts; where none is written yet, by the clock.
func (r *Realm) fullMembersAsOf() int64 { return cmp.Or(r.Org().FullAt, r.index.clock) }

// listedAsFullMember reports whether the group of full members lists the account itself: roles above have their own groups.
func (r *Realm) listedAsFullMember(u *User) bool { return u.Role == Member && r.FullMember(u) }

// fullMemberChanges is who a waiting period of so many days makes a full member, and who is none any more by it.
func (t *Turn) fullMemberChanges(days int64) (full, waits []UserID) {
	for _, u := range t.activeUsers() {
		is, will := t.listedAsFullMember(u), u.wasOldEnough(t.Now, days)
		switch {
		case u.Role != Member || is == will:
		case will:
			full = append(full, u.ID)
		default:
			waits = append(waits, u.ID)
		}
	}
	return full, waits
}

// maxNewFullMembersPerTurn is about how many accounts become full members in one turn; those that joined in the same second do together.
const maxNewFullMembersPerTurn = 1000

// fullMembersDue finds the accounts whose waiting period is over. It looks at all of them, a fraction of a millisecond for ten
// thousand, and only where there is a waiting period.
func fullMembersDue(r *Realm, now int64) func(*Turn) (any, error) {
	days := r.OrgInt("waiting_period_threshold")
	if days == 0 {
		return nil
	}
	f := &FullMembersGrew{At: now}
	var due []*User
	if at := r.Org().FullAt; at != 0 { // else the clock counted so far, and nobody waits to be told of
		for _, u := range r.users.all() {
			if u.Active && !u.System && u.Role == Member && !u.wasOldEnough(at, days) && u.wasOldEnough(now, days) {
				due = append(due, u)
			}
		}
		if len(due) == 0 {
			return nil
		}
	}
	slices.SortFunc(due, func(a, b *User) int { return cmp.Or(cmp.Compare(a.Joined, b.Joined), cmp.Compare(a.ID, b.ID)) })
	for i, u := range due {
		if i >= maxNewFullMembersPerTurn && u.Joined != due[i-1].Joined {
			f.At = due[i-1].Joined + days*secondsPerDay
			break
		}
		f.Users = append(f.Users, u.ID)
	}
	slices.Sort(f.Users)
	return func(t *Turn) (any, error) {
		t.trackChannelVisibility(func() { t.Record(f) })
		return nil, nil
	}
}

// FullMembersGrew says the waiting period is over for everybody who joined long enough before a time.
type FullMembersGrew struct {
	At    int64
	Users []UserID // whom the group of full members lists by it, ascending
}

func (*FullMembersGrew) keepsMarkdownConfig() {}

func (f *FullMembersGrew) apply(r *Realm) {
	o := r.org.change(0)
	o.FullAt = max(o.FullAt, f.At)
}

func (f *FullMembersGrew) tell(r *Realm) []Notice {
	to := r.everyoneAudience()
	if len(f.Users) == 0 || len(to) == 0 {
		return nil
	}
	return []Notice{{To: to, Event: &GroupMembersChanged{Group: groupFullMembers, Joined: true, Users: f.Users}}}
}

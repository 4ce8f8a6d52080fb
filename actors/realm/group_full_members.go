package realm

import (
	"cmp"
	"slices"
)

// Full members are the members whose account is older than the organization's waiting period, and all users with a
// higher role. A user becomes a full member, or stops being one, only by a fact. So the data of clients about full
// members is correct until the next event. When a waiting period ends, the server records the fact FullMembersGrew; the
// clock alone changes nothing.

// FullMember reports whether the account is older than the organization's waiting period, or has a role above member.
func (r *Realm) FullMember(u *User) bool {
	if u.IsGuest() {
		return false
	}
	return u.IsModerator() || u.wasOldEnough(r.fullMembersAsOf(), r.OrgInt("waiting_period_threshold"))
}

// wasOldEnough reports whether the account was that many days old at a time.
func (u *User) wasOldEnough(at, days int64) bool { return (at-u.Joined)/secondsPerDay >= days }

// fullMembersAsOf returns the time at which the ages of accounts were last compared with the waiting period. If no fact
// has set it yet, it is the clock.
func (r *Realm) fullMembersAsOf() int64 { return cmp.Or(r.Org().FullAt, r.index.clock) }

// listedAsFullMember reports whether the group of full members lists the account itself. Users with higher roles belong
// to their own system groups.
func (r *Realm) listedAsFullMember(u *User) bool { return u.Role == Member && r.FullMember(u) }

// fullMemberChanges returns the users that a new waiting period makes full members, and those that it makes new members
// again.
func (t *Turn) fullMemberChanges(days int64) (becomeFull, becomeNew []UserID) {
	for _, u := range t.activeUsers() {
		isFull, willBe := t.listedAsFullMember(u), u.wasOldEnough(t.Now, days)
		switch {
		case u.Role != Member || isFull == willBe:
		case willBe:
			becomeFull = append(becomeFull, u.ID)
		default:
			becomeNew = append(becomeNew, u.ID)
		}
	}
	return becomeFull, becomeNew
}

// maxNewFullMembersPerTurn is about the number of accounts that become full members in one turn. Accounts that joined
// in the same second always do so together.
const maxNewFullMembersPerTurn = 1000

// fullMembersDue returns a turn for the accounts whose waiting period is over, or nil. If there is a waiting period, it
// checks all accounts: a fraction of a millisecond for 10,000.
func fullMembersDue(r *Realm, now int64) func(*Turn) (any, error) {
	days := r.OrgInt("waiting_period_threshold")
	if days == 0 {
		return nil
	}
	f := &FullMembersGrew{At: now}
	var due []*User
	// At 0 no fact has set the time. The clock decided until now, so clients need no event.
	if at := r.Org().FullAt; at != 0 {
		for _, u := range r.users.all() {
			if u.Active && !u.System && u.Role == Member && !u.wasOldEnough(at, days) && u.wasOldEnough(now, days) {
				due = append(due, u)
			}
		}
		if len(due) == 0 {
			return nil
		}
	}
	slices.SortFunc(due, func(a, b *User) int {
		return cmp.Or(cmp.Compare(a.Joined, b.Joined), cmp.Compare(a.ID, b.ID))
	})
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

// FullMembersGrew says that the waiting period is over for all users that joined long enough before At.
type FullMembersGrew struct {
	At    int64
	Users []UserID // users that the group of full members lists from now on, ascending
}

func (f *FullMembersGrew) apply(r *Realm) {
	o := r.org.change(0)
	o.FullAt = max(o.FullAt, f.At)
}

func (f *FullMembersGrew) notices(r *Realm) []Notice {
	to := r.everyoneAudience()
	if len(f.Users) == 0 || len(to) == 0 {
		return nil
	}
	return []Notice{{To: to, Event: &GroupMembersChanged{Group: groupFullMembers, Joined: true, Users: f.Users}}}
}

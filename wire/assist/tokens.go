package assist

import (
	"sync"

	"parley/actors/realm"
	"parley/actors/registry"
	"parley/wire"
)

// The cost of a call in tokens. Services that do not tell it get an estimate.
const (
	// bytesPerToken is a cautious estimate: English has about four bytes in a token, other languages less.
	bytesPerToken = 3
	// minTokens is the least that a call costs: the instruction. It also limits the users whose tokens are counted,
	// because those of an organization are used up before there are more.
	minTokens = 100
	// maxEstimateFactor limits the tokens that a service can count for a call, as a multiple of the estimate.
	maxEstimateFactor = 4
)

// tokens counts the tokens of a day by organization and user.
type tokens struct {
	perUser, perOrganization int64 // in a day, by UTC; 0: no limit

	mu    sync.Mutex
	day   int64
	spent map[realm.ID]*spent
	reading
}

// reading has the numbers for bounds and metrics.
type reading struct {
	user, organization         int64 // the most of one today
	userHits, organizationHits int64 // refused calls
	total                      int64 // since the start
}

// spent is the tokens of one organization.
type spent struct {
	all   int64
	users map[realm.UserID]int64
}

var (
	errUserTokens = realm.BadRequest(
		"You have used up your summaries and translations of today.")
	errOrganizationTokens = realm.BadRequest(
		"Your organization has used up its summaries and translations of today.")
)

const secondsPerDay = 24 * 3600

// reserve counts n tokens before a call, and refuses it if a limit is reached. now is in Unix seconds.
func (t *tokens) reserve(by wire.Asker, n, now int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if day := now / secondsPerDay; day != t.day || t.spent == nil {
		t.day, t.spent = day, map[realm.ID]*spent{}
	}
	s := t.spent[by.Realm]
	if s == nil {
		s = &spent{users: map[realm.UserID]int64{}}
		t.spent[by.Realm] = s
	}
	switch {
	case t.perUser > 0 && s.users[by.User]+n > t.perUser:
		t.userHits++
		return errUserTokens
	case t.perOrganization > 0 && s.all+n > t.perOrganization:
		t.organizationHits++
		return errOrganizationTokens
	}
	s.add(by.User, n)
	t.total += n
	return nil
}

// settle replaces reserved tokens by those that a call has cost.
func (t *tokens) settle(by wire.Asker, reserved, cost int64) {
	cost = min(max(cost, minTokens), maxEstimateFactor*reserved)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += cost - reserved
	if s := t.spent[by.Realm]; s != nil { // otherwise the day has ended
		s.add(by.User, cost-reserved)
	}
}

func (s *spent) add(u realm.UserID, n int64) {
	s.all = max(s.all+n, 0) // a call can begin before midnight and end after it
	s.users[u] = max(s.users[u]+n, 0)
}

// read returns the numbers of this moment.
func (t *tokens) read() reading {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.reading
	for _, s := range t.spent {
		out.organization = max(out.organization, s.all)
		out.user = max(out.user, registry.Largest(s.users))
	}
	return out
}

// estimate returns the tokens of a text, at most.
func estimate(text string) int64 { return int64(len(text))/bytesPerToken + 1 }

package assist

import (
	"errors"
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

// Turn runs a command of a user in an organization; it returns when its facts are on disk.
type Turn func(realm.ID, realm.Caller, func(*realm.Turn) (any, error)) (any, error)

// tokens lets organizations count the tokens of a day, and remembers their newest counts for bounds and metrics.
type tokens struct {
	perUser, perOrganization int64 // in a day, by UTC; 0: no limit
	turn                     Turn

	mu    sync.Mutex
	day   int64
	spent map[realm.ID]*spent
	reading
}

// reading has the numbers for bounds and metrics.
type reading struct {
	user, organization         int64 // the most of one today, of those who asked since the start
	userHits, organizationHits int64 // refused calls
	total                      int64 // since the start
}

// spent is the tokens of one organization.
type spent struct {
	all   int64
	users map[realm.UserID]int64
}

// reserve counts n tokens before a call, and refuses it if a limit is reached. It returns the day of the count.
func (t *tokens) reserve(by wire.Asker, n int64) (day int64, err error) {
	err = t.run(by, n, realm.ReserveTokens{Tokens: n, PerUser: t.perUser, PerOrganization: t.perOrganization}, &day)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case errors.Is(err, realm.ErrUserTokens):
		t.userHits++
	case errors.Is(err, realm.ErrOrganizationTokens):
		t.organizationHits++
	}
	return day, err
}

// settle replaces the tokens that were reserved on a day by those that a call has cost.
func (t *tokens) settle(by wire.Asker, day, reserved, cost int64) error {
	change := min(max(cost, minTokens), maxEstimateFactor*reserved) - reserved
	return t.run(by, change, realm.SettleTokens{Day: day, Change: change}, &day)
}

// run runs a command that changes a count by n, remembers the result and sets day.
func (t *tokens) run(by wire.Asker, n int64, c realm.Command[realm.TokensOfDay], day *int64) error {
	a, err := t.turn(by.Realm, realm.Caller{User: by.User}, func(turn *realm.Turn) (any, error) {
		return c.Decide(turn)
	})
	if err != nil {
		return err
	}
	now := a.(realm.TokensOfDay)
	*day = now.Day
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += n
	if now.Day > t.day || t.spent == nil {
		t.day, t.spent = now.Day, map[realm.ID]*spent{}
	}
	if now.Day < t.day {
		return nil
	}
	s := t.spent[by.Realm]
	if s == nil {
		s = &spent{users: map[realm.UserID]int64{}}
		t.spent[by.Realm] = s
	}
	s.all, s.users[by.User] = now.Organization, now.User
	return nil
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

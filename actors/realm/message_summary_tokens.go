package realm

// Summaries and translations cost tokens of a service. They are counted by facts, so that a restart or a change of the
// owner does not let users begin again at zero. Days are those of UTC.

// AssistantTokens is the row of the tokens of one user on one day. The row of user 0 has those of the organization,
// which contain the tokens of erased users.
type AssistantTokens struct {
	Day    int64 // since 1970
	Tokens int64
}

// TokensOfDay is the answer of ReserveTokens.
type TokensOfDay struct{ Day, User, Organization int64 }

// Refusals of ReserveTokens.
var (
	ErrUserTokens = BadRequest(
		"You have used up your summaries and translations of today.")
	ErrOrganizationTokens = BadRequest(
		"Your organization has used up its summaries and translations of today.")
)

// ReserveTokens counts tokens of the caller before a request to a service, and refuses them if a limit of the day would
// be exceeded. The answer contains them.
type ReserveTokens struct {
	Tokens                   int64
	PerUser, PerOrganization int64 // limits of a day; 0: no limit
}

func (c ReserveTokens) Decide(t *Turn) (out TokensOfDay, err error) {
	if me := t.Me(); me == nil || !me.Active {
		return out, errNotLoggedIn()
	}
	out.Day = t.Now / secondsPerDay
	out.User = t.assistantTokens(t.User, out.Day) + c.Tokens
	out.Organization = t.assistantTokens(0, out.Day) + c.Tokens
	switch {
	case c.Tokens <= 0:
		return out, BadRequest("Invalid number of tokens")
	case c.PerUser > 0 && out.User > c.PerUser:
		return out, ErrUserTokens
	case c.PerOrganization > 0 && out.Organization > c.PerOrganization:
		return out, ErrOrganizationTokens
	}
	t.Record(&TokensCounted{User: t.User, Day: out.Day, Tokens: c.Tokens})
	return out, nil
}

// SettleTokens changes the count of the caller after a request whose cost differs from the estimate. It does nothing
// after the day of the reservation.
type SettleTokens struct{ Day, Change int64 }

func (c SettleTokens) Decide(t *Turn) (out TokensOfDay, err error) {
	f := &TokensCounted{User: t.User, Day: c.Day, Tokens: c.Change}
	if x := t.small.assistantTokens.find(f.User); x == nil || x.Day != c.Day {
		f.User = 0 // the account was erased meanwhile: only the organization has a row
	}
	if x := t.small.assistantTokens.find(0); c.Change != 0 && x != nil && x.Day == c.Day {
		t.Record(f)
	}
	return TokensOfDay{c.Day, t.assistantTokens(t.User, c.Day), t.assistantTokens(0, c.Day)}, nil
}

// assistantTokens returns the tokens of a user on a day; of user 0 those of the organization.
func (r *Realm) assistantTokens(u UserID, day int64) int64 {
	if x := r.small.assistantTokens.find(u); x != nil && x.Day == day {
		return x.Tokens
	}
	return 0
}

// TokensCounted says that a user has used tokens on a day, or less than was counted. User 0 is an erased user.
type TokensCounted struct {
	User        UserID
	Day, Tokens int64
}

func (f *TokensCounted) apply(r *Realm) {
	r.addAssistantTokens(0, f)
	if f.User != 0 {
		r.addAssistantTokens(f.User, f)
	}
}

func (*TokensCounted) notices(*Realm) []Notice { return nil }

func (r *Realm) addAssistantTokens(u UserID, f *TokensCounted) {
	n := r.assistantTokens(u, f.Day) + f.Tokens
	r.small.assistantTokens.put(u, &AssistantTokens{f.Day, max(n, 0)})
}

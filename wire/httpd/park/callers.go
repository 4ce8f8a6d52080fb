package park

import "sync"

// Caller names who pays for the memory of an answer. The zero value is an unknown caller, which is not limited.
type Caller struct {
	// Organization is the organization in which the request was made; "" if there is none. All callers of an
	// organization together can use MaxAnswersPerOrganization and MaxPendingPerOrganization.
	Organization string
	Account      string // the account, or without login the client network
}

// callerBytes counts bytes of callers and of their organizations. It is safe for concurrent use.
type callerBytes struct {
	mu            sync.Mutex
	callers       map[Caller]int64
	organizations map[string]int64
}

// callerLimits are the numbers of bytes that one caller and one organization can have.
type callerLimits struct{ caller, organization int64 }

// add counts n more bytes of a caller, unless they would exceed a limit together with bytes of other requests. own is
// how many of the counted bytes belong to the same request. So a single request always fits.
func (b *callerBytes) add(c Caller, n, own int64, limits callerLimits) bool {
	if c == (Caller{}) {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if was := b.callers[c]; was > own && was+n > limits.caller {
		return false
	}
	if was := b.organizations[c.Organization]; was > own && was+n > limits.organization {
		return false
	}
	if b.callers == nil {
		b.callers, b.organizations = map[Caller]int64{}, map[string]int64{}
	}
	b.callers[c] += n
	if c.Organization != "" {
		b.organizations[c.Organization] += n
	}
	return true
}

// remove gives back n bytes of a caller.
func (b *callerBytes) remove(c Caller, n int64) {
	if c == (Caller{}) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.callers[c] -= n; b.callers[c] <= 0 {
		delete(b.callers, c)
	}
	if c.Organization == "" {
		return
	}
	if b.organizations[c.Organization] -= n; b.organizations[c.Organization] <= 0 {
		delete(b.organizations, c.Organization)
	}
}

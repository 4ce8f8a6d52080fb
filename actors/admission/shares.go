package admission

import "sync"

// Shares limits how much of a shared budget one organization has at a time: half. It does so only while the server has
// several organizations: then an organization leaves the other half free at every moment, also for one that asks later.
// A server's only organization has the whole budget. The owner of the budget limits what all have together. Shares is
// safe for concurrent use.
type Shares struct {
	half    int64
	several func() bool

	mu   sync.Mutex
	used map[string]int64 // by organization
}

// NewShares returns the shares of a budget of max units. several reports whether the server has several organizations;
// nil: it has one.
func NewShares(max int64, several func() bool) *Shares {
	return &Shares{half: Half(max), several: several, used: map[string]int64{}}
}

// Half returns the part of a budget that one organization can have: at least one unit.
func Half(max int64) int64 { return (max + 1) / 2 }

// Take counts n more units of an organization. It reports false, and counts nothing, if the organization would have
// more than its share; a single use always fits. "" is the key of requests that belong to no organization: they count
// together.
func (s *Shares) Take(organization string, n int64) bool {
	limited := s.several != nil && s.several()
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.used[organization]
	if limited && was > 0 && was+n > s.half {
		return false
	}
	s.used[organization] = was + n
	return true
}

// Give gives back n units that Take has counted.
func (s *Shares) Give(organization string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[organization] -= n; s.used[organization] <= 0 {
		delete(s.used, organization)
	}
}

// Used returns how many units an organization has.
func (s *Shares) Used(organization string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[organization]
}

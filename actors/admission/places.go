package admission

import "sync/atomic"

// Places limits what is done at a time by all organizations together, and by each one as Shares does. It is safe for
// concurrent use.
type Places struct {
	shares        *Shares
	max           int64
	used, refused atomic.Int64
}

// NewPlaces returns max places. several is as for NewShares.
func NewPlaces(max int64, several func() bool) *Places {
	return &Places{shares: NewShares(max, several), max: max}
}

// Enter takes a place for an organization. It returns nil if there is none; else leave gives the place back.
func (p *Places) Enter(organization string) (leave func()) {
	if !p.shares.Take(organization, 1) {
		p.refused.Add(1)
		return nil
	}
	leave = func() {
		p.used.Add(-1)
		p.shares.Give(organization, 1)
	}
	if p.used.Add(1) > p.max {
		leave()
		p.refused.Add(1)
		return nil
	}
	return leave
}

// Shares returns the shares of the organizations.
func (p *Places) Shares() *Shares { return p.shares }

// Used returns how many places are taken.
func (p *Places) Used() int64 { return p.used.Load() }

// Refused returns how often there was no place.
func (p *Places) Refused() int64 { return p.refused.Load() }

package contract

import "sync"

// A Deviation is an accepted finding with its reason.
type Deviation struct {
	Where  string // as in Finding; empty for everywhere
	Path   string // as in Finding, without indices
	What   string
	Reason string
}

// deviations lists all places where this server differs from the description on purpose.
var deviations = []Deviation{}

// uses counts which deviations a run needed. A deviation that no full run needs must be removed.
type uses struct {
	mu   sync.Mutex
	seen map[int]int
}

func (u *uses) allowed(f Finding) bool {
	for i, d := range deviations {
		if (d.Where == "" || d.Where == f.Where) && d.Path == f.GeneralPath() && d.What == f.What {
			u.mu.Lock()
			u.seen[i]++
			u.mu.Unlock()
			return true
		}
	}
	return false
}

// Unused returns the deviations that no check has needed since Load.
func (c *Contract) Unused() []Deviation {
	c.uses.mu.Lock()
	defer c.uses.mu.Unlock()
	var out []Deviation
	for i, d := range deviations {
		if c.uses.seen[i] == 0 {
			out = append(out, d)
		}
	}
	return out
}

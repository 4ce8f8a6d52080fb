package contract

import "sync"

// A Deviation is a finding we accept, and why.
type Deviation struct {
	Where  string // as in Finding; empty for everywhere
	Path   string // as in Finding, places left out
	What   string
	Reason string
}

// deviations is the one list of places where we knowingly differ from the description.
var deviations = []Deviation{}

// uses counts which deviations a run needed: one that a full run never needs should go.
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

// Unused lists the deviations nothing has needed since Load.
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

package realm

// SetClock sets the time from which the ages of accounts and channels are computed. The clock never goes back.
func (r *Realm) SetClock(now int64) { r.index.clock = max(r.index.clock, now) }

// Clock returns the clock reading with which a turn applies its facts.
func (r *Realm) Clock() int64 { return r.index.clock }

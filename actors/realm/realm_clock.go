package realm

// SetClock sets the time from which the ages of accounts and channels are computed. The clock never goes back.
func (r *Realm) SetClock(now int64) { r.index.clock = max(r.index.clock, now) }

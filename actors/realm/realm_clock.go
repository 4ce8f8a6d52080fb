package realm

// SetClock tells the realm the time: what depends on an account's or a channel's age goes by the last time told.
func (r *Realm) SetClock(now int64) { r.index.clock = max(r.index.clock, now) }

package realm

// Clock tells the realm the time: what depends on an account's or a channel's age goes by the last time told.
func (r *Realm) Clock(now int64) { r.by.clock = max(r.by.clock, now) }

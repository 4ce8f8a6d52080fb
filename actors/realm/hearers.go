package realm

// hearers is every listening user who hears of what happens to a message after it was sent: the participants of a
// conversation; a channel's subscribers; where everybody may read, also people who once received it. Where history is
// protected, only those of them who have a row.
func (r *Realm) hearers(id MessageID, m *message) []UserID {
	if m.channel == 0 {
		return r.only(r.talks.must(m.talk).Members...)
	}
	c := r.chans.must(ChannelID(m.channel))
	heard := r.heard(c.ID)
	if r.protected(c) {
		var out []UserID
		for _, u := range heard {
			if r.received(u, id, m) {
				out = append(out, u)
			}
		}
		return out
	}
	if c.Private {
		return heard
	}
	var further Set
	r.by.listening.Each(func(u int64) bool {
		if !r.by.channel[c.ID].subscribers.Has(u) && !r.users.must(UserID(u)).IsGuest() && r.received(UserID(u), id, m) {
			further.Add(u)
		}
		return true
	})
	if further.Empty() {
		return heard
	}
	return IDs[UserID](Either(SetOf(heard...), further))
}

// protected reports whether a message of the channel is only for those who received it.
func (r *Realm) protected(c *Channel) bool { return !c.History && !c.WebPublic }

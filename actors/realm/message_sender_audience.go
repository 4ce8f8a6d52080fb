package realm

// hiddenSenderAudience returns the users of an audience that may not see the sender: guests, where guests are
// limited.
func (r *Realm) hiddenSenderAudience(to []UserID, sender UserID) []UserID {
	if !r.GuestsLimited() {
		return nil
	}
	var out []UserID
	s := r.users.must(sender)
	for _, u := range to {
		if !r.maySeeUser(r.users.must(u), s) {
			out = append(out, u)
		}
	}
	return out
}

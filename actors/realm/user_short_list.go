package realm

const (
	// maxShortList is how many accounts a short list of users has, about 500 bytes each. maxShortListAdmins is how many
	// of them are owners, and likewise administrators, that the caller has no recent conversation with.
	maxShortList       = 150
	maxShortListAdmins = 20
)

// ShortUserList returns the accounts that a registration of the caller lists in a large organization: the caller, the
// users of the caller's recent direct conversations, newest first, and owners and administrators. The caller may see
// all of them. The system bots are not among them.
func (v View) ShortUserList() (out []*User) {
	seen := map[UserID]bool{}
	add := func(id UserID) bool {
		u := v.users.find(id)
		if u == nil || u.System || seen[id] || len(out) == maxShortList || !v.MaySeeUser(u) {
			return false
		}
		seen[id] = true
		out = append(out, u)
		return true
	}
	if v.Me() != nil {
		add(v.User)
		for _, c := range v.RecentConversations() {
			for _, id := range c.Members {
				add(id)
			}
		}
	}
	for _, g := range []GroupID{groupOwners, groupAdministrators} {
		for i, id := range v.roleMembers(g, maxShortListAdmins) {
			if i < maxShortListAdmins {
				add(id)
			}
		}
	}
	return out
}

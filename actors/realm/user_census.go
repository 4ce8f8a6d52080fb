package realm

// A registration of a large organization lists only some users: see package wire. The census has the numbers for it
// that would need a look at each account: how many there are, where the administrators are, and how large the complete
// list would be.

// UserCensus counts accounts without system bots.
type UserCensus struct {
	Bytes   int // about the size of all accounts, of any kind, in a registration
	Active  int // active accounts
	byGroup [groupInternet + 1]int
}

// Direct returns how many active users belong to a system group directly.
func (c *UserCensus) Direct(g GroupID) int { return c.byGroup[g] }

// userCensus is the census of each chunk of accounts, and its sum. Chunks that changed are counted again when a request
// needs the numbers.
type userCensus struct {
	chunks   []UserCensus // by chunk
	sum      UserCensus
	outdated map[int64]bool // nil: no chunk was counted yet
	at, days int64          // decide who is a full member
}

// markOutdated notes that an account changes.
func (c *userCensus) markOutdated(u UserID) {
	if c.outdated != nil {
		c.outdated[int64(u)/usersPerChunk] = true
	}
}

// add adds the numbers of a chunk, or with sign -1 takes them away.
func (c *UserCensus) add(x *UserCensus, sign int) {
	c.Bytes += sign * x.Bytes
	c.Active += sign * x.Active
	for i := range c.byGroup {
		c.byGroup[i] += sign * x.byGroup[i]
	}
}

// WarmCensus counts at most max outdated chunks, and reports whether none is left. Requests call it in views before
// they need the census, which would otherwise take a tenth of a second for a million accounts that were never counted.
func (r *Realm) WarmCensus(max int) bool {
	c := &r.cache.census
	at, days := int64(0), r.OrgInt("waiting_period_threshold")
	if days > 0 {
		at = r.fullMembersAsOf()
	}
	if c.outdated == nil || c.at != at || c.days != days {
		*c = userCensus{outdated: map[int64]bool{}, at: at, days: days}
	}
	for n := int(int64(r.Org().NextUser)/usersPerChunk) + 1; len(c.chunks) < n; max-- {
		if max <= 0 {
			return false
		}
		c.chunks = append(c.chunks, r.countChunk(len(c.chunks)))
		c.sum.add(&c.chunks[len(c.chunks)-1], 1)
		delete(c.outdated, int64(len(c.chunks)-1))
	}
	for chunk := range c.outdated {
		if max <= 0 {
			return false
		}
		if max--; int(chunk) < len(c.chunks) {
			c.sum.add(&c.chunks[chunk], -1)
			c.chunks[chunk] = r.countChunk(int(chunk))
			c.sum.add(&c.chunks[chunk], 1)
		}
		delete(c.outdated, chunk)
	}
	return true
}

// Census returns the numbers of all accounts.
func (r *Realm) Census() UserCensus {
	r.WarmCensus(1 << 30)
	return r.cache.census.sum
}

func (r *Realm) countChunk(i int) (c UserCensus) {
	for _, u := range r.usersInChunk(i) {
		c.Bytes += registeredUserBytes + len(u.Name) + 2*len(u.Email) + u.Profile.size() + u.ProfileHTML.size()
		if !u.Active || u.System {
			continue
		}
		c.Active++
		c.byGroup[groupOfRole(u.Role)]++
		if r.listedAsFullMember(u) {
			c.byGroup[groupFullMembers]++
		}
	}
	return c
}

// roleMembers returns at most max active users that belong to a system group directly, by ascending id.
func (r *Realm) roleMembers(g GroupID, max int) []UserID {
	r.WarmCensus(1 << 30)
	out := []UserID{}
	for i := range r.cache.census.chunks {
		if r.cache.census.chunks[i].byGroup[g] == 0 {
			continue
		}
		for _, u := range r.usersInChunk(i) {
			if !u.Active || u.System || !r.isDirectMember(u, g) {
				continue
			}
			if len(out) == max {
				return out
			}
			out = append(out, u.ID)
		}
	}
	return out
}

// isDirectMember reports whether a user belongs to a system group directly.
func (r *Realm) isDirectMember(u *User, g GroupID) bool {
	return groupOfRole(u.Role) == g || g == groupFullMembers && r.listedAsFullMember(u)
}

// FullMemberListLimit is the number of members from which clients with a short list of users do not get the members of
// a group.
const FullMemberListLimit = 250

// MembersShown are the members of a group for clients with a short list of users.
type MembersShown struct {
	IDs   []UserID // active and ascending; only the caller if there are too many
	Count int
	All   bool // IDs are all of them
}

// MembersShown returns the direct members of a group as far as clients with a short list get them. The caller is always
// among them, because clients derive the caller's rights from it.
func (v View) MembersShown(g *Group) MembersShown {
	me := v.Me()
	if g.System {
		census := v.Census()
		n := census.Direct(g.ID)
		if n < FullMemberListLimit {
			return MembersShown{v.roleMembers(g.ID, FullMemberListLimit), n, true}
		}
		out := MembersShown{IDs: []UserID{}, Count: n}
		if me != nil && v.isDirectMember(me, g.ID) {
			out.IDs = append(out.IDs, me.ID)
		}
		return out
	}
	if len(g.Members) < FullMemberListLimit {
		all := v.DirectMembers(g)
		return MembersShown{all, len(all), true}
	}
	out := MembersShown{IDs: []UserID{}, Count: v.largeGroupSize(g)}
	if me != nil && containsSorted(g.Members, me.ID) {
		out.IDs = append(out.IDs, me.ID)
	}
	return out
}

// largeGroupSize returns the number of active members of a large group. It is counted again after the group or the
// activity of an account changed.
func (r *Realm) largeGroupSize(g *Group) int {
	c := &r.cache
	key := [2]uint64{c.groupsVersion, uint64(r.index.groupDisplayVersion)}
	if c.groupSizes == nil || c.groupSizesOf != key {
		c.groupSizes, c.groupSizesOf = map[GroupID]int{}, key
	}
	n, known := c.groupSizes[g.ID]
	if !known {
		for _, u := range g.Members {
			if !r.isInactive(u) {
				n++
			}
		}
		c.groupSizes[g.ID] = n
	}
	return n
}

// ShortGroupJSON returns an encoded group for clients with a short list of users. encode encodes it; the result is
// cached until a group or the activity of an account changes. Groups whose members depend on the caller or on roles are
// not cached.
func (v View) ShortGroupJSON(g *Group, encode func() []byte) []byte {
	if g.System || len(g.Members) >= FullMemberListLimit {
		return encode()
	}
	c := &v.cache
	key := [2]uint64{c.groupsVersion, uint64(v.index.groupDisplayVersion)}
	if c.shortGroups == nil || c.shortGroupsOf != key {
		c.shortGroups, c.shortGroupsOf = map[GroupID][]byte{}, key
	}
	b := c.shortGroups[g.ID]
	if b == nil {
		b = encode()
		c.shortGroups[g.ID] = b
	}
	return b
}

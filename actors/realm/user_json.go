package realm

import "slices"

// A registration contains all accounts, and its content is the same for all viewers of one kind. The accounts are
// therefore encoded in chunks of consecutive ids. For each kind of viewer the realm caches the encoded chunks; a
// changed row invalidates its chunk, not the whole list. Package wire does the encoding; the realm only stores the
// bytes.

const (
	// usersPerChunk is how many ids one chunk spans. A change is cheap with small chunks; a list of 10,000 accounts has
	// about 160.
	usersPerChunk = 64
	// maxUserLists is how many kinds of viewers are cached: four roles that see email addresses differently, times two.
	// Clients that compute Gravatar URLs themselves get another list. One list takes about 450 bytes per account.
	maxUserLists = 8
)

// userListCache is the encoded accounts for one kind of viewer.
type userListCache struct {
	kind    any
	chunks  []userChunkJSON
	version uint64 // jsonCache.usersVersion of joined, plus 1
	joined  any    // result of join for all chunks
}

// userChunkJSON is one encoded chunk of accounts.
type userChunkJSON struct {
	version uint64 // version of the chunk, plus 1
	users   [][]byte
}

// jsonCache counts changes of rows and keeps JSON encoded from them.
type jsonCache struct {
	chunkVersions map[int64]uint64 // of chunks of users
	usersVersion  uint64
	groupsVersion uint64
	userLists     []userListCache // the most recently used one is last
	groupLists    []groupListJSON
	orgVersion    uint64
	orgs          []orgJSON

	// For clients with a short list of users; see user_census.go.
	census                      userCensus
	groupSizes                  map[GroupID]int
	shortGroups                 map[GroupID][]byte
	groupSizesOf, shortGroupsOf [2]uint64 // the versions that they were made from
	people                      peopleSearch
}

// orgJSON is the encoded organization row for one kind of viewer.
type orgJSON struct {
	kind               any
	org, deactivations uint64
	bytes              []byte
}

// maxOrgJSON is how many kinds of viewers are cached: two parts of the answer, for logged-in users and visitors. The
// number is doubled for the time when the server's settings change. Each takes some ten kilobytes.
const maxOrgJSON = 8

// groupListJSON is the encoded list of groups, with the versions it was made from.
type groupListJSON struct {
	key   groupListKey
	bytes []byte
}

type groupListKey struct {
	users, groups uint64
	waiting, full int64 // identify the full members when membership depends on account age
	deactivated   bool
}

// countVersions lets the tables count changes of users, groups and the organization.
func (r *Realm) countVersions() {
	r.cache.chunkVersions = map[int64]uint64{}
	r.users.onChange = func(u UserID) {
		r.cache.usersVersion++
		r.cache.chunkVersions[int64(u)/usersPerChunk]++
		r.cache.census.markOutdated(u)
		r.cache.people.markChanged(u)
	}
	r.groups.onChange = func(GroupID) { r.cache.groupsVersion++ }
	r.org.onChange = func(int) { r.cache.orgVersion++ }
}

// UserListJSON returns all accounts, ordered by id. encode encodes one chunk; the result is cached until an account of
// the chunk changes. join combines all chunks; its result is cached until any account changes. kind identifies
// everything else that the result depends on. If own is not 0, encodeOwn encodes the chunk of that account for this
// caller alone. Then the joined result is not cached, and join gets cached = false. The bytes are shared: read only.
func (r *Realm) UserListJSON(
	kind any, encode func([]*User) [][]byte, own UserID, encodeOwn func([]*User) [][]byte,
	join func(chunks [][][]byte, cached bool) any,
) any {
	l := r.userListCache(kind)
	if own == 0 && l.version == r.cache.usersVersion+1 {
		return l.joined
	}
	n := int(int64(r.Org().NextUser)/usersPerChunk) + 1
	for len(l.chunks) < n {
		l.chunks = append(l.chunks, userChunkJSON{})
	}
	out := make([][][]byte, n)
	for i := range n {
		if own != 0 && int64(own)/usersPerChunk == int64(i) {
			out[i] = encodeOwn(r.usersInChunk(i))
			continue
		}
		p := &l.chunks[i]
		if v := r.cache.chunkVersions[int64(i)] + 1; p.version != v {
			p.version, p.users = v, encode(r.usersInChunk(i))
		}
		out[i] = p.users
	}
	if own != 0 {
		return join(out, false)
	}
	l.version, l.joined = r.cache.usersVersion+1, join(out, true)
	return l.joined
}

// WarmUserListJSON encodes at most max outdated chunks, and reports whether none is left. It is called before a
// registration. Otherwise the first registration of a kind would encode all accounts in one turn.
func (r *Realm) WarmUserListJSON(kind any, encode func([]*User) [][]byte, max int) bool {
	l := r.userListCache(kind)
	for i := range int(int64(r.Org().NextUser)/usersPerChunk) + 1 {
		if i == len(l.chunks) {
			l.chunks = append(l.chunks, userChunkJSON{})
		}
		if v := r.cache.chunkVersions[int64(i)] + 1; l.chunks[i].version != v {
			if max == 0 {
				return false
			}
			max--
			l.chunks[i] = userChunkJSON{v, encode(r.usersInChunk(i))}
		}
	}
	return true
}

// userListCache returns the cached list for a kind of viewer. It replaces the least recently used list by a new one if
// there are maxUserLists.
func (r *Realm) userListCache(kind any) *userListCache {
	all := r.cache.userLists
	for i := range all {
		if all[i].kind == kind {
			x := all[i]
			copy(all[i:], all[i+1:])
			all[len(all)-1] = x
			return &all[len(all)-1]
		}
	}
	if len(all) == maxUserLists {
		copy(all, all[1:])
		all = all[:maxUserLists-1]
	}
	r.cache.userLists = append(all, userListCache{kind: kind})
	return &r.cache.userLists[len(r.cache.userLists)-1]
}

// usersInChunk returns the accounts of chunk i, ordered by id.
func (r *Realm) usersInChunk(i int) (out []*User) {
	for id := UserID(i * usersPerChunk); id < UserID((i+1)*usersPerChunk); id++ {
		if u := r.users.find(id); u != nil {
			out = append(out, u)
		}
	}
	return out
}

// GroupListJSON returns the encoded list of user groups. It is cached until an account or a group changes, or waiting
// periods end.
func (r *Realm) GroupListJSON(deactivated bool, encode func() []byte) []byte {
	k := groupListKey{users: r.cache.usersVersion, groups: r.cache.groupsVersion, deactivated: deactivated}
	if k.waiting = r.OrgInt("waiting_period_threshold"); k.waiting > 0 {
		k.full = r.fullMembersAsOf()
	}
	at := -1
	for i := range r.cache.groupLists {
		if r.cache.groupLists[i].key.deactivated == deactivated {
			at = i
		}
	}
	if at < 0 {
		at = len(r.cache.groupLists)
		r.cache.groupLists = append(r.cache.groupLists, groupListJSON{})
	}
	if l := &r.cache.groupLists[at]; l.bytes == nil || l.key != k {
		l.key, l.bytes = k, encode()
	}
	return r.cache.groupLists[at].bytes
}

// OrgJSON returns the encoded settings of the organization. They are cached until a setting changes, or an account that
// permission settings name is deactivated or reactivated.
func (r *Realm) OrgJSON(kind any, encode func() []byte) []byte {
	entry := orgJSON{kind: kind, org: r.cache.orgVersion, deactivations: uint64(r.index.groupDisplayVersion)}
	at := slices.IndexFunc(r.cache.orgs, func(f orgJSON) bool { return f.kind == kind })
	switch {
	case at >= 0 && r.cache.orgs[at].org == entry.org && r.cache.orgs[at].deactivations == entry.deactivations:
		return r.cache.orgs[at].bytes
	case at >= 0:
		r.cache.orgs = slices.Delete(r.cache.orgs, at, at+1)
	case len(r.cache.orgs) == maxOrgJSON:
		r.cache.orgs = slices.Delete(r.cache.orgs, 0, 1)
	}
	entry.bytes = encode()
	r.cache.orgs = append(r.cache.orgs, entry)
	return entry.bytes
}

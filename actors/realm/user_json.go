package realm

import "slices"

// A registration shows every account, and what it shows is the same for everybody of a kind of viewer. So accounts are
// shown in chunks of neighbouring ids, and each kind of viewer keeps the chunks as they were last encoded; a change to
// a row makes its chunk new, not the list. Encoding is the face's business, not the realm's.

const (
	// usersPerChunk is how many ids one chunk spans: small enough that a change costs little, large enough that a list
	// of ten thousand is some hundred pieces.
	usersPerChunk = 64
	// maxUserLists is how many kinds of viewers a realm keeps lists for: four roles that see addresses differently,
	// with and without pictures of their own making. One costs about 450 bytes an account.
	maxUserLists = 8
)

// userListCache is the accounts as one kind of viewer was last shown them.
type userListCache struct {
	kind    any
	chunks  []userChunkJSON
	version uint64 // jsonCache.users of whole, plus one
	joined  any    // what join made of all chunks
}

type userChunkJSON struct {
	version uint64 // jsonCache.users of the chunk, plus one
	users   [][]byte
}

// jsonCache counts changes to rows, so that what was made of them can be kept.
type jsonCache struct {
	chunkVersions map[int64]uint64 // of users
	usersVersion  uint64
	groupsVersion uint64
	userLists     []userListCache // the one used last is last
	groupLists    []groupListJSON
	orgVersion    uint64
	orgs          []orgJSON
}

// orgJSON is the organization's own row as it was last encoded for a kind of viewer.
type orgJSON struct {
	kind               any
	org, deactivations uint64
	bytes              []byte
}

// maxOrgJSON is for how many kinds of viewers the organization's row is kept as it was encoded: two parts of an answer,
// for people with and without login, and as many again while the settings of the server change. Each is some ten kilobytes.
const maxOrgJSON = 8

type groupListJSON struct {
	key   groupListKey
	bytes []byte
}

type groupListKey struct {
	users, groups uint64
	waiting, full int64 // who is a full member by his account's age
	deactivated   bool
}

func (r *Realm) countVersions() {
	r.cache.chunkVersions = map[int64]uint64{}
	r.users.onChange = func(u UserID) { r.cache.usersVersion++; r.cache.chunkVersions[int64(u)/usersPerChunk]++ }
	r.groups.onChange = func(GroupID) { r.cache.groupsVersion++ }
	r.org.onChange = func(int) { r.cache.orgVersion++ }
}

// UserListJSON is every account by ascending id as encode makes them, chunk by chunk, kept until somebody in the chunk
// changes, and what join makes of all chunks, kept until anybody changes. encode gets a chunk's accounts; kind stands for
// everything else it depends on. own is a chunk that is made for the caller alone, by its account; 0 for none. Then what is
// joined is for him alone, too, and channelJoin is told that it is not kept. The bytes are shared: read only.
func (r *Realm) UserListJSON(kind any, encode func([]*User) [][]byte, own UserID, encodeOwn func([]*User) [][]byte, join func(chunks [][][]byte, kept bool) any) any {
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

// WarmUserListJSON encodes anew at most max chunks that are out of date, and reports whether none is left. It is called before
// a registration: one of a kind nobody has asked for lately would otherwise encode every account in its one turn.
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

func (r *Realm) usersInChunk(i int) (out []*User) {
	for id := UserID(i * usersPerChunk); id < UserID((i+1)*usersPerChunk); id++ {
		if u := r.users.find(id); u != nil {
			out = append(out, u)
		}
	}
	return out
}

// GroupListJSON is the list of user groups as encode makes it, kept until an account or a group changes, or waiting periods end.
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

// OrgJSON is what encode makes of the organization's settings, kept until they change, or an account that a permission
// setting names comes or goes.
func (r *Realm) OrgJSON(kind any, encode func() []byte) []byte {
	of := orgJSON{kind: kind, org: r.cache.orgVersion, deactivations: uint64(r.index.groupDisplayVersion)}
	at := slices.IndexFunc(r.cache.orgs, func(f orgJSON) bool { return f.kind == kind })
	switch {
	case at >= 0 && r.cache.orgs[at].org == of.org && r.cache.orgs[at].deactivations == of.deactivations:
		return r.cache.orgs[at].bytes
	case at >= 0:
		r.cache.orgs = slices.Delete(r.cache.orgs, at, at+1)
	case len(r.cache.orgs) == maxOrgJSON:
		r.cache.orgs = slices.Delete(r.cache.orgs, 0, 1)
	}
	of.bytes = encode()
	r.cache.orgs = append(r.cache.orgs, of)
	return of.bytes
}

package realm

import "slices"

// A registration shows every account, and what it shows is the same for everybody of a kind of viewer. So accounts are
// shown in chunks of neighbouring ids, and each kind of viewer keeps the chunks as they were last encoded; a change to
// a row makes its chunk new, not the list. Encoding is the face's business, not the realm's.

const (
	// rosterChunk is how many ids one chunk spans: small enough that a change costs little, large enough that a list
	// of ten thousand is some hundred pieces.
	rosterChunk = 64
	// keptRosters is how many kinds of viewers a realm keeps lists for: four roles that see addresses differently,
	// with and without pictures of their own making. One costs about 450 bytes an account.
	keptRosters = 8
)

// roster is the accounts as one kind of viewer was last shown them.
type roster struct {
	kind   any
	chunks []rosterPiece
	of     uint64 // versions.users of whole, plus one
	whole  any    // what join made of all chunks
}

type rosterPiece struct {
	of    uint64 // versions.users of the chunk, plus one
	faces [][]byte
}

// versions counts changes to rows, so that what was made of them can be kept.
type versions struct {
	chunks  map[int64]uint64 // of users
	users   uint64
	groups  uint64
	rosters []roster // the one used last is last
	lists   []groupList
	org     uint64
	faces   []orgFace
}

// orgFace is the organization's own row as it was last encoded for a kind of viewer.
type orgFace struct {
	kind               any
	org, deactivations uint64
	bytes              []byte
}

// keptOrgFaces is for how many kinds of viewers the organization's row is kept as it was encoded: two parts of an answer,
// for people with and without login, and as many again while the settings of the server change. Each is some ten kilobytes.
const keptOrgFaces = 8

type groupList struct {
	of    groupListKey
	bytes []byte
}

type groupListKey struct {
	users, groups uint64
	waiting, full int64 // who is a full member by his account's age
	deactivated   bool
}

func (r *Realm) watchVersions() {
	r.kept.chunks = map[int64]uint64{}
	r.users.touched = func(u UserID) { r.kept.users++; r.kept.chunks[int64(u)/rosterChunk]++ }
	r.groups.touched = func(GroupID) { r.kept.groups++ }
	r.org.touched = func(int) { r.kept.org++ }
}

// UserFaces is every account by ascending id as encode makes them, chunk by chunk, kept until somebody in the chunk
// changes, and what join makes of all chunks, kept until anybody changes. encode gets a chunk's accounts; kind stands for
// everything else it depends on. own is a chunk that is made for the caller alone, by its account; 0 for none. Then what is
// joined is for him alone, too, and join is told that it is not kept. The bytes are shared: read only.
func (r *Realm) UserFaces(kind any, encode func([]*User) [][]byte, own UserID, encodeOwn func([]*User) [][]byte, join func(chunks [][][]byte, kept bool) any) any {
	l := r.roster(kind)
	if own == 0 && l.of == r.kept.users+1 {
		return l.whole
	}
	n := int(int64(r.Org().NextUser)/rosterChunk) + 1
	for len(l.chunks) < n {
		l.chunks = append(l.chunks, rosterPiece{})
	}
	out := make([][][]byte, n)
	for i := range n {
		if own != 0 && int64(own)/rosterChunk == int64(i) {
			out[i] = encodeOwn(r.chunk(i))
			continue
		}
		p := &l.chunks[i]
		if v := r.kept.chunks[int64(i)] + 1; p.of != v {
			p.of, p.faces = v, encode(r.chunk(i))
		}
		out[i] = p.faces
	}
	if own != 0 {
		return join(out, false)
	}
	l.of, l.whole = r.kept.users+1, join(out, true)
	return l.whole
}

// WarmUserFaces encodes anew at most max chunks that are out of date, and reports whether none is left. It is called before
// a registration: one of a kind nobody has asked for lately would otherwise encode every account in its one turn.
func (r *Realm) WarmUserFaces(kind any, encode func([]*User) [][]byte, max int) bool {
	l := r.roster(kind)
	for i := range int(int64(r.Org().NextUser)/rosterChunk) + 1 {
		if i == len(l.chunks) {
			l.chunks = append(l.chunks, rosterPiece{})
		}
		if v := r.kept.chunks[int64(i)] + 1; l.chunks[i].of != v {
			if max == 0 {
				return false
			}
			max--
			l.chunks[i] = rosterPiece{v, encode(r.chunk(i))}
		}
	}
	return true
}

func (r *Realm) roster(kind any) *roster {
	all := r.kept.rosters
	for i := range all {
		if all[i].kind == kind {
			x := all[i]
			copy(all[i:], all[i+1:])
			all[len(all)-1] = x
			return &all[len(all)-1]
		}
	}
	if len(all) == keptRosters {
		copy(all, all[1:])
		all = all[:keptRosters-1]
	}
	r.kept.rosters = append(all, roster{kind: kind})
	return &r.kept.rosters[len(r.kept.rosters)-1]
}

func (r *Realm) chunk(i int) (out []*User) {
	for id := UserID(i * rosterChunk); id < UserID((i+1)*rosterChunk); id++ {
		if u := r.users.find(id); u != nil {
			out = append(out, u)
		}
	}
	return out
}

// GroupFaces is the list of user groups as encode makes it, kept until an account or a group changes, or waiting periods end.
func (r *Realm) GroupFaces(deactivated bool, encode func() []byte) []byte {
	k := groupListKey{users: r.kept.users, groups: r.kept.groups, deactivated: deactivated}
	if k.waiting = r.OrgInt("waiting_period_threshold"); k.waiting > 0 {
		k.full = r.fullAt()
	}
	at := -1
	for i := range r.kept.lists {
		if r.kept.lists[i].of.deactivated == deactivated {
			at = i
		}
	}
	if at < 0 {
		at = len(r.kept.lists)
		r.kept.lists = append(r.kept.lists, groupList{})
	}
	if l := &r.kept.lists[at]; l.bytes == nil || l.of != k {
		l.of, l.bytes = k, encode()
	}
	return r.kept.lists[at].bytes
}

// OrgFace is what encode makes of the organization's settings, kept until they change, or an account that a permission
// setting names comes or goes.
func (r *Realm) OrgFace(kind any, encode func() []byte) []byte {
	of := orgFace{kind: kind, org: r.kept.org, deactivations: uint64(r.by.deactivations)}
	at := slices.IndexFunc(r.kept.faces, func(f orgFace) bool { return f.kind == kind })
	switch {
	case at >= 0 && r.kept.faces[at].org == of.org && r.kept.faces[at].deactivations == of.deactivations:
		return r.kept.faces[at].bytes
	case at >= 0:
		r.kept.faces = slices.Delete(r.kept.faces, at, at+1)
	case len(r.kept.faces) == keptOrgFaces:
		r.kept.faces = slices.Delete(r.kept.faces, 0, 1)
	}
	of.bytes = encode()
	r.kept.faces = append(r.kept.faces, of)
	return of.bytes
}

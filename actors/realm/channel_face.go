package realm

// A registration shows every channel, and most of what it shows is the same for everybody. So each channel keeps how it
// was last shown, with what that depended on; encoding is the face's business, not the realm's.

// face is a channel as it was last encoded, and its subscribers.
type face struct {
	of      faceKey
	bytes   []byte
	members []byte
	drawn   int // channelIndex.joins when members was made
}

// faceKey is everything that what clients are told of a channel depends on.
type faceKey struct {
	changes, deactivations int
	subscribers            int
	first                  MessageID
	traffic                int64
	active                 bool
}

// reface notes that a channel's row has changed; facts that change what clients are told call it.
func (r *Realm) reface(c ChannelID) { r.by.channel[c].changes++ }

// ChannelFace is a channel as encode makes it, kept until something about it changes. The bytes are shared: read only.
func (r *Realm) ChannelFace(c *Channel, encode func(ChannelInfo) []byte) []byte {
	r.reencode(c, encode)
	return r.by.channel[c.ID].face.bytes
}

// reencode reports whether the face had to be made anew.
func (r *Realm) reencode(c *Channel, encode func(ChannelInfo) []byte) bool {
	ix := r.by.channel[c.ID]
	first, _ := ix.ids.Min()
	k := faceKey{ix.changes, r.by.deactivations, ix.active.Len(), MessageID(first), r.weeklyTraffic(c), r.recentlyActive(c)}
	if ix.face.bytes != nil && ix.face.of == k {
		return false
	}
	ix.face.of, ix.face.bytes = k, encode(r.ChannelInfo(c))
	return true
}

// MembersFace is a channel's subscribers as encode makes them, kept until somebody joins or leaves.
func (r *Realm) MembersFace(c *Channel, encode func([]UserID) []byte) []byte {
	r.relist(c, encode)
	return r.by.channel[c.ID].face.members
}

// relist reports whether the list had to be made anew.
func (r *Realm) relist(c *Channel, encode func([]UserID) []byte) bool {
	ix := r.by.channel[c.ID]
	if ix.face.members != nil && ix.face.drawn == ix.joins {
		return false
	}
	ix.face.drawn, ix.face.members = ix.joins, encode(r.Subscribers(c.ID))
	return true
}

// What one look at channels does before a registration: about a millisecond.
const (
	warmedChannels = 400       // how many are looked at, of which most are as they were
	warmedBytes    = 64 * 1024 // after how much that had to be encoded it ends
)

// WarmChannelFaces encodes anew the faces that are out of date and, unless members is nil, the lists of subscribers that
// are, beginning with the channel from. It returns the channel to go on with, -1 after the last.
func (r *Realm) WarmChannelFaces(from ChannelID, encode func(ChannelInfo) []byte, members func([]UserID) []byte) ChannelID {
	end, made := r.Org().NextChannel, 0
	for id := from; id < end; id++ {
		if id == from+warmedChannels || made > warmedBytes {
			return id
		}
		c := r.chans.find(id)
		if c == nil {
			continue
		}
		if r.reencode(c, encode) {
			made += len(r.by.channel[id].face.bytes)
		}
		if members != nil && r.relist(c, members) {
			made += len(r.by.channel[id].face.members)
		}
	}
	return -1
}

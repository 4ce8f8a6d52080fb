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
	ix := r.by.channel[c.ID]
	first, _ := ix.ids.Min()
	k := faceKey{ix.changes, r.by.deactivations, ix.active.Len(), MessageID(first), r.weeklyTraffic(c), r.recentlyActive(c)}
	if ix.face.bytes == nil || ix.face.of != k {
		ix.face.of, ix.face.bytes = k, encode(r.ChannelInfo(c))
	}
	return ix.face.bytes
}

// MembersFace is a channel's subscribers as encode makes them, kept until somebody joins or leaves.
func (r *Realm) MembersFace(c *Channel, encode func([]UserID) []byte) []byte {
	ix := r.by.channel[c.ID]
	if ix.face.members == nil || ix.face.drawn != ix.joins {
		ix.face.drawn, ix.face.members = ix.joins, encode(r.Subscribers(c.ID))
	}
	return ix.face.members
}

package realm

// A registration shows every channel, and most of what it shows is the same for everybody. So each channel keeps how it
// was last shown, with what that depended on; encoding is the face's business, not the realm's.

// channelJSON is a channel as it was last encoded, and its subscribers.
type channelJSON struct {
	key                channelJSONKey
	channel            []byte
	subscribers        []byte
	subscribersVersion int // channelIndex.joins when members was made
}

// channelJSONKey is everything that what clients are told of a channel depends on.
type channelJSONKey struct {
	changes, deactivations int
	subscribers            int
	first                  MessageID
	traffic                int64
	active                 bool
}

// invalidateChannelJSON notes that a channel's row has changed; facts that change what clients are told call it.
func (r *Realm) invalidateChannelJSON(c ChannelID) { r.index.channels[c].infoChanges++ }

// ChannelJSON is a channel as encode makes it, kept until something about it changes. The bytes are shared: read only.
func (r *Realm) ChannelJSON(c *Channel, encode func(ChannelInfo) []byte) []byte {
	r.refreshChannelJSON(c, encode)
	return r.index.channels[c.ID].json.channel
}

// refreshChannelJSON reports whether the face had to be made anew.
func (r *Realm) refreshChannelJSON(c *Channel, encode func(ChannelInfo) []byte) bool {
	ix := r.index.channels[c.ID]
	first, _ := ix.ids.Min()
	k := channelJSONKey{ix.infoChanges, r.index.groupDisplayVersion, ix.active.Len(), MessageID(first), r.weeklyTraffic(c), r.recentlyActive(c)}
	if ix.json.channel != nil && ix.json.key == k {
		return false
	}
	ix.json.key, ix.json.channel = k, encode(r.ChannelInfo(c))
	return true
}

// SubscribersJSON is a channel's subscribers as encode makes them, kept until somebody joins or leaves.
func (r *Realm) SubscribersJSON(c *Channel, encode func([]UserID) []byte) []byte {
	r.refreshSubscribersJSON(c, encode)
	return r.index.channels[c.ID].json.subscribers
}

// refreshSubscribersJSON reports whether the list had to be made anew.
func (r *Realm) refreshSubscribersJSON(c *Channel, encode func([]UserID) []byte) bool {
	ix := r.index.channels[c.ID]
	if ix.json.subscribers != nil && ix.json.subscribersVersion == ix.activeChanges {
		return false
	}
	ix.json.subscribersVersion, ix.json.subscribers = ix.activeChanges, encode(r.Subscribers(c.ID))
	return true
}

// What one look at channels does before a registration: about a millisecond.
const (
	warmChannelsPerStep = 400       // how many are looked at, of which most are as they were
	warmBytesPerStep    = 64 * 1024 // after how much that had to be encoded it ends
)

// WarmChannelJSON encodes anew the faces that are out of date and, unless members is nil, the lists of subscribers that
// are, beginning with the channel from. It returns the channel to go on with, -1 after the last.
func (r *Realm) WarmChannelJSON(from ChannelID, encode func(ChannelInfo) []byte, members func([]UserID) []byte) ChannelID {
	end, made := r.Org().NextChannel, 0
	for id := from; id < end; id++ {
		if id == from+warmChannelsPerStep || made > warmBytesPerStep {
			return id
		}
		c := r.channels.find(id)
		if c == nil {
			continue
		}
		if r.refreshChannelJSON(c, encode) {
			made += len(r.index.channels[id].json.channel)
		}
		if members != nil && r.refreshSubscribersJSON(c, members) {
			made += len(r.index.channels[id].json.subscribers)
		}
	}
	return -1
}

package realm

// A registration contains every channel, and most of its JSON is the same for all users. So each channel caches its
// JSON together with a key of everything the JSON depends on. Package wire does the encoding.

// channelJSON is the cached JSON of a channel and of its subscribers.
type channelJSON struct {
	key                channelJSONKey
	channel            []byte
	subscribers        []byte
	subscribersVersion int // channelIndex.activeChanges when subscribers was encoded
}

// channelJSONKey has everything the JSON of a channel depends on.
type channelJSONKey struct {
	changes, deactivations int
	subscribers            int
	first                  MessageID
	traffic                int64
	active                 bool
}

// invalidateChannelJSON marks the JSON of a channel as out of date. Every fact that changes the row of a channel calls
// it.
func (r *Realm) invalidateChannelJSON(c ChannelID) { r.index.channels[c].infoChanges++ }

// ChannelJSON returns the cached JSON of a channel, and encodes it first if it is out of date. The bytes are shared:
// read only.
func (r *Realm) ChannelJSON(c *Channel, encode func(ChannelInfo) []byte) []byte {
	r.refreshChannelJSON(c, encode)
	return r.index.channels[c.ID].json.channel
}

// refreshChannelJSON encodes a channel if its JSON is out of date, and reports whether it did.
func (r *Realm) refreshChannelJSON(c *Channel, encode func(ChannelInfo) []byte) bool {
	ix := r.index.channels[c.ID]
	first, _ := ix.ids.Min()
	k := channelJSONKey{ix.infoChanges, r.index.groupDisplayVersion, ix.active.Len(), MessageID(first),
		r.weeklyTraffic(c), r.recentlyActive(c)}
	if ix.json.channel != nil && ix.json.key == k {
		return false
	}
	ix.json.key, ix.json.channel = k, encode(r.ChannelInfo(c))
	return true
}

// SubscribersJSON returns the cached JSON of a channel's subscribers, and encodes it first if the subscribers have
// changed. The bytes are shared: read only.
func (r *Realm) SubscribersJSON(c *Channel, encode func([]UserID) []byte) []byte {
	r.refreshSubscribersJSON(c, encode)
	return r.index.channels[c.ID].json.subscribers
}

// refreshSubscribersJSON encodes the subscribers if their JSON is out of date, and reports whether it did.
func (r *Realm) refreshSubscribersJSON(c *Channel, encode func([]UserID) []byte) bool {
	ix := r.index.channels[c.ID]
	if ix.json.subscribers != nil && ix.json.subscribersVersion == ix.activeChanges {
		return false
	}
	ix.json.subscribersVersion, ix.json.subscribers = ix.activeChanges, encode(r.Subscribers(c.ID))
	return true
}

// Bounds of one step of WarmChannelJSON: together about 1 ms.
const (
	warmChannelsPerStep = 400       // channels checked; most of them are up to date
	warmBytesPerStep    = 64 * 1024 // the step ends after it has encoded this much
)

// WarmChannelJSON encodes the channels whose JSON is out of date, beginning with the channel from. Unless members is
// nil, it encodes their subscribers too. It does one bounded step and returns the channel to continue with, or -1 after
// the last one.
func (r *Realm) WarmChannelJSON(from ChannelID, encode func(ChannelInfo) []byte,
	members func([]UserID) []byte) ChannelID {
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

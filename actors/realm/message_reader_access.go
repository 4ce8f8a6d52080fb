package realm

import "parley/actors/realm/ids"

// readerAccess caches the access of one reader to channels, for tests of many messages within one view.
type readerAccess struct {
	View
	reader          *User
	accessByChannel []channelAccess // by channel id
	directMessages  ids.Set         // of the reader
	readerMarks     *MessageMarks
	hasRowChanges   bool // the reader has Rows or Lost marks: rows that do not follow from subscriptions
	ready           bool
}

// channelAccess is the access of the reader to one channel.
type channelAccess struct {
	loaded       bool
	canRead      bool // has content access
	countsUnread bool // unread messages count: the reader is subscribed and the channel is not archived
	sub          *Subscription
	fromID       MessageID // the reader has rows of all messages sent here from this id on
}

// load looks up what all channels have in common. The methods that use it call it first.
func (p *readerAccess) load() {
	p.ready, p.accessByChannel, p.directMessages = true, make([]channelAccess, p.Org().NextChannel), ids.Set{}
	if p.reader != nil {
		p.readerMarks = p.marks.find(p.reader.ID)
		p.hasRowChanges = p.readerMarks != nil && !(p.readerMarks.Rows.Empty() && p.readerMarks.Lost.Empty())
		p.directMessages = findSet(p.index.directMessages, p.reader.ID)
	}
}

// channel returns the reader's access to a channel.
func (p *readerAccess) channel(c uint32) *channelAccess {
	x := &p.accessByChannel[c]
	if !x.loaded {
		p.loadChannel(x, ChannelID(c))
	}
	return x
}

// loadChannel looks up the access to a channel.
func (p *readerAccess) loadChannel(x *channelAccess, c ChannelID) {
	row := p.channels.must(c)
	x.loaded = true
	if !p.scope.HasChannel(c) {
		return
	}
	if p.reader == nil {
		x.canRead = !row.Archived && p.hasContentAccess(nil, row)
		return
	}
	x.sub = p.SubscriptionOf(p.reader.ID, row.ID)
	subscribed := x.sub != nil && x.sub.Active
	x.countsUnread = subscribed && !row.Archived
	x.canRead = subscribed || p.hasContentAccess(p.reader, row)
	x.fromID = MaxMessageID
	if x.sub != nil && len(x.sub.Spans) > 0 {
		if s := x.sub.Spans[len(x.sub.Spans)-1]; s.To == 0 {
			x.fromID = s.From
		}
	}
}

// countsAsUnread reports whether a message counts as unread for the reader if it is not read.
func (p *readerAccess) countsAsUnread(id MessageID, m *message) bool {
	if !p.ready {
		p.load()
	}
	if m.channel == 0 {
		return p.hasRow(id, m)
	}
	x := p.channel(m.channel)
	switch {
	case !x.countsUnread:
		return false
	case id >= x.fromID && m.bits&bitSentElsewhere == 0 && !p.hasRowChanges: // nearly all messages
		return true
	}
	return p.hasRow(id, m)
}

// hasRow reports whether the reader has a row of a message.
func (p *readerAccess) hasRow(id MessageID, m *message) bool {
	if p.reader == nil {
		return false
	}
	if p.hasRowChanges {
		if p.readerMarks.Rows.Has(int64(id)) {
			return true
		}
		if p.readerMarks.Lost.Has(int64(id)) {
			return false
		}
	}
	if m.channel == 0 {
		return p.directMessages.Has(int64(id))
	}
	x := p.channel(uint32(p.origin(id, m)))
	return id >= x.fromID || x.sub != nil && x.sub.covers(id)
}

// hasReadableRow reports whether the reader has a row of a message and may still read it.
func (p *readerAccess) hasReadableRow(id MessageID, m *message) bool {
	if !p.ready {
		p.load()
	}
	return p.hasRow(id, m) && (m.channel == 0 || p.channel(m.channel).canRead) && p.messageInScope(m)
}

// canRead reports whether the reader may read a message.
func (p *readerAccess) canRead(id MessageID, m *message) bool {
	if !p.ready {
		p.load()
	}
	switch {
	case p.System:
		return true
	case !p.messageInScope(m):
		return false
	case m.channel == 0:
		return p.directMessages.Has(int64(id))
	case !p.channel(m.channel).canRead:
		return false
	}
	c := p.channels.must(ChannelID(m.channel))
	return c.History || c.WebPublic || p.hasRow(id, m)
}

package realm

// places remembers what a reader may do where, for questions about many messages.
type places struct {
	View
	me       *User
	channels []place // by id
	direct   Set     // his direct messages
	rd       *Reading
	moved    bool // he has rows of messages he did not receive, or none of some he did
	ready    bool
}

// place is one channel for one reader.
type place struct {
	known   bool
	content bool // he may read it at all
	counts  bool // what is unread there counts as unread: not in channels he has left, nor in archived ones
	sub     *Subscription
	from    MessageID // with this one and later ones he has rows of everything sent here
}

func (p *places) prepare() {
	p.ready, p.channels, p.direct = true, make([]place, p.Org().NextChannel), Set{}
	if p.me != nil {
		p.rd = p.reading.find(p.me.ID)
		p.moved = p.rd != nil && !(p.rd.Rows.Empty() && p.rd.Lost.Empty())
		p.direct = setIn(p.by.direct, p.me.ID)
	}
}

// at is what the reader may do in a channel.
func (p *places) at(c uint32) *place {
	x := &p.channels[c]
	if !x.known {
		p.learn(x, ChannelID(c))
	}
	return x
}

// learn looks a channel up.
func (p *places) learn(x *place, c ChannelID) {
	row := p.chans.must(c)
	x.known = true
	if p.me == nil {
		x.content = !row.Archived && p.hasContent(nil, row)
		return
	}
	x.sub = p.SubscriptionOf(p.me.ID, row.ID)
	subscribed := x.sub != nil && x.sub.Active
	x.counts = subscribed && !row.Archived
	x.content = subscribed || p.hasContent(p.me, row)
	x.from = MaxMessageID
	if x.sub != nil && len(x.sub.Spans) > 0 {
		if s := x.sub.Spans[len(x.sub.Spans)-1]; s.To == 0 {
			x.from = s.From
		}
	}
}

// unread is whether a message, if it is not read, is among the reader's unread ones.
func (p *places) unread(id MessageID, m *message) bool {
	if !p.ready {
		p.prepare()
	}
	if m.channel == 0 {
		return p.received(id, m)
	}
	x := p.at(m.channel)
	switch {
	case !x.counts:
		return false
	case id >= x.from && m.bits&bitElsewhere == 0 && !p.moved: // nearly all
		return true
	}
	return p.received(id, m)
}

// received is whether the reader has a row of a message.
func (p *places) received(id MessageID, m *message) bool {
	if p.me == nil {
		return false
	}
	if p.moved {
		if p.rd.Rows.Has(int64(id)) {
			return true
		}
		if p.rd.Lost.Has(int64(id)) {
			return false
		}
	}
	if m.channel == 0 {
		return p.direct.Has(int64(id))
	}
	x := p.at(uint32(p.origin(id, m)))
	return id >= x.from || x.sub != nil && x.sub.covers(id)
}

// row is whether the reader has a row of a message and may still read it.
func (p *places) row(id MessageID, m *message) bool {
	if !p.ready {
		p.prepare()
	}
	return p.received(id, m) && (m.channel == 0 || p.at(m.channel).content)
}

// readable is whether the reader may read a message.
func (p *places) readable(id MessageID, m *message) bool {
	if !p.ready {
		p.prepare()
	}
	switch {
	case p.System:
		return true
	case m.channel == 0:
		return p.direct.Has(int64(id))
	case !p.at(m.channel).content:
		return false
	}
	c := p.chans.must(ChannelID(m.channel))
	return c.History || c.WebPublic || p.received(id, m)
}

package realm

import (
	"cmp"
	"encoding/binary"
	"slices"

	"parley/actors/realm/ids"
)

// The usage of an organization is counted from its facts, in the same step that applies them. So every node has the
// same counters, and a restart, a crash or a time out of memory loses none. Deleted messages stay counted. Days and
// hours are those of UTC.

// usageLevel is the rule level from which on usage is counted: older programs do not know the tables.
const usageLevel uint16 = 5

const (
	// maxUsageDays limits the days of an organization: five years. A day takes about 300 bytes, and 12 for each channel
	// that got a message.
	maxUsageDays = 5*365 + 1
	// maxUsageClients limits the client programs of a day, because clients choose their names. Further ones are
	// counted together, as the client 0.
	maxUsageClients = 100
	// fortnight is for how many days a person counts as active after the last activity: 15, as in the protocol.
	fortnight = 15
	// maxReadHours limits the hours in which a user's reading is counted: 30 days, about 3 bytes an hour.
	maxReadHours = 30 * 24
	// maxUsageScan limits how many of a user's messages one answer counts, so that a view takes a few milliseconds.
	// They are the newest ones.
	maxUsageScan = 20_000
)

// UsageDay is the row of an organization's messages and people of one day. Its key is the number of days since 1970.
// There is none for a day without facts.
type UsageDay struct {
	Hours    []UsageHour    // ascending; hours without messages are left out
	Kinds    [4]uint32      // messages of users by UsageKind
	Clients  []UsageCount   // messages of users by ClientID, ascending; 0: the programs above maxUsageClients
	Channels []ChannelUsage // ascending
	People   ids.Set        // the people that were active; empty for days that no fortnight contains any more
	// The state at the end of the day. Zero until the first fact of a later day.
	Active    int    // people that were active on the day
	Fortnight []int  // people active in the last 15 days, on this day and on the days after it without a row
	Humans    int    // accounts of people that are not deactivated
	Bots      int    // the same of bots
	FileBytes int64  // uploaded files
	Messages  uint64 // messages of users sent since counting began
}

// UsageHour is the messages of one hour.
type UsageHour struct {
	Hour               uint8
	People, Bots, Read uint32 // sent by people, sent by bots, and marked as read by users
}

// UsageCount is a number of messages of one client program.
type UsageCount struct {
	Client ClientID
	N      uint32
}

// ChannelUsage is the messages in one channel.
type ChannelUsage struct {
	Channel      ChannelID
	People, Bots uint32
}

// UsageKind is a kind of conversation.
type UsageKind int

const (
	InPublicChannel UsageKind = iota
	InPrivateChannel
	InDirect // with one other user, or of a user alone
	InGroup
)

// ReadCounts is the row of how many messages one user has read in the last 30 days.
type ReadCounts struct {
	Hour    int64  // hours since 1970 of the newest count
	N       uint64 // messages in that hour
	Earlier []byte // of each earlier hour, the newest last: hours since the one before, and messages, as varints
	First   int64  // the hour from which the first of Earlier is counted
}

// usageCounters are the tables of usage.
type usageCounters struct {
	days  table[int64, UsageDay]    // 120
	reads table[UserID, ReadCounts] // 121
	last  int64                     // key of the newest day; 0: none
}

func (u *usageCounters) init(r *Realm) {
	u.days.init(r, 120)
	u.days.tracksOrder = true
	u.reads.init(r, 121)
}

// rebuildIndexes finds the newest day.
func (u *usageCounters) rebuildIndexes() {
	for day := range u.days.all() {
		u.last = max(u.last, day)
	}
}

// countUsage counts a fact before it is applied.
func (r *Realm) countUsage(f Fact) {
	now := r.index.clock
	if now == 0 || r.Level() < usageLevel || !r.Founded() {
		return
	}
	if now/secondsPerDay > r.small.usage.last {
		r.beginUsageDay(now / secondsPerDay)
	}
	switch f := f.(type) {
	case *MessageSent:
		r.countSent(f)
	case *FlagsChanged:
		if f.Flag == FlagRead && f.Add {
			r.countRead(f.User, f.IDs.Len())
		}
	case *AllRead:
		r.countRead(f.User, r.unreadUpTo(f.User, f.Upto))
	case *QueueOpened:
		r.countActive(f.Queue.User)
	case *BrowserSessionOpened:
		r.countActive(f.User)
	}
}

// beginUsageDay completes the row of the newest day and adds one for a later day.
func (r *Realm) beginUsageDay(day int64) {
	u := &r.small.usage
	next := &UsageDay{}
	if last := u.last; last != 0 {
		d := u.days.change(last)
		r.endUsageDay(d, last, day)
		next.Messages = d.Messages
		for old := last - fortnight; old <= day-fortnight; old++ {
			if d := u.days.find(old); d != nil && !d.People.Empty() {
				u.days.change(old).People = ids.Set{}
			}
			if old > last {
				break
			}
		}
	}
	u.days.put(day, next)
	u.last = day
	for {
		first, ok := u.days.firstKey()
		if !ok || first > day-maxUsageDays {
			return
		}
		u.days.remove(first)
	}
}

// endUsageDay sets the state at the end of a day. next is the next day that has a row.
func (r *Realm) endUsageDay(d *UsageDay, day, next int64) {
	d.Active, d.FileBytes, d.Fortnight = d.People.Len(), r.index.uploadBytes, nil
	d.Humans, d.Bots = 0, 0
	var active ids.Set
	r.EachUser(func(u *User) {
		switch {
		case !u.Active || u.System:
		case u.IsBot():
			d.Bots++
		default:
			d.Humans++
			active.Add(int64(u.ID))
		}
	})
	for at := day; at < min(next, day+fortnight); at++ {
		var people ids.Set
		for old := at - fortnight + 1; old <= min(at, day); old++ {
			if o := r.small.usage.days.find(old); o != nil {
				people.Union(o.People)
			}
		}
		d.Fortnight = append(d.Fortnight, ids.Intersection(people, active).Len())
	}
}

// countSent counts a message that is being sent. Messages of system bots belong to no user of the organization; only
// their channel counts them.
func (r *Realm) countSent(f *MessageSent) {
	sender := r.users.find(f.Sender)
	if sender == nil {
		return
	}
	d, bot := r.small.usage.days.change(r.small.usage.last), sender.IsBot() || sender.System
	if f.Channel != 0 {
		i, found := slices.BinarySearchFunc(d.Channels, f.Channel, func(c ChannelUsage, id ChannelID) int {
			return cmp.Compare(c.Channel, id)
		})
		if !found {
			d.Channels = slices.Insert(d.Channels, i, ChannelUsage{Channel: f.Channel})
		}
		count(bot, &d.Channels[i].People, &d.Channels[i].Bots)
	}
	if sender.System {
		return
	}
	d.Messages++
	d.Kinds[r.usageKind(f.Channel, len(f.People))]++
	h := d.hour(r.index.clock)
	count(bot, &h.People, &h.Bots)
	d.client(f.ClientID).N++
	r.countActive(f.Sender)
}

// count adds one to the number of people or of bots.
func count(bot bool, people, bots *uint32) {
	if bot {
		*bots++
	} else {
		*people++
	}
}

// usageKind returns the kind of a conversation: of a channel, or of this many participants.
func (r *Realm) usageKind(channel ChannelID, people int) UsageKind {
	switch c := r.channels.find(channel); {
	case c != nil && c.Private:
		return InPrivateChannel
	case channel != 0:
		return InPublicChannel
	case people > 2:
		return InGroup
	}
	return InDirect
}

// hour returns the counters of the hour of a time of the day. It is the last one, because the clock never goes back.
func (d *UsageDay) hour(now int64) *UsageHour {
	hour := uint8(now % secondsPerDay / secondsPerHour)
	if n := len(d.Hours); n == 0 || d.Hours[n-1].Hour < hour {
		d.Hours = append(d.Hours, UsageHour{Hour: hour})
	}
	return &d.Hours[len(d.Hours)-1]
}

// client returns the counter of a client program.
func (d *UsageDay) client(id ClientID) *UsageCount {
	find := func(id ClientID) (int, bool) {
		return slices.BinarySearchFunc(d.Clients, id, func(c UsageCount, id ClientID) int {
			return cmp.Compare(c.Client, id)
		})
	}
	i, found := find(id)
	if !found && len(d.Clients) >= maxUsageClients {
		id = 0
		i, found = find(id)
	}
	if !found {
		d.Clients = slices.Insert(d.Clients, i, UsageCount{Client: id})
	}
	return &d.Clients[i]
}

// countActive records that a person was active on the newest day.
func (r *Realm) countActive(id UserID) {
	u := r.users.find(id)
	if u == nil || u.IsBot() || u.System {
		return
	}
	if d := r.small.usage.days.must(r.small.usage.last); !d.People.Has(int64(id)) {
		r.small.usage.days.change(r.small.usage.last).People.Add(int64(id))
	}
}

// countRead counts messages that a user marks as read.
func (r *Realm) countRead(id UserID, n int) {
	if r.countActive(id); n == 0 {
		return
	}
	r.small.usage.days.change(r.small.usage.last).hour(r.index.clock).Read += uint32(n)
	c, hour := r.small.usage.reads.ensure(id), r.index.clock/secondsPerHour
	if c.Hour != hour {
		c.begin(hour)
	}
	c.N += uint64(n)
}

// begin moves the newest count to the earlier ones, and removes those that are too old.
func (c *ReadCounts) begin(hour int64) {
	if c.N > 0 {
		before := c.First
		for h := range c.earlier {
			before = h
		}
		earlier := binary.AppendUvarint(slices.Clone(c.Earlier), uint64(c.Hour-before))
		c.Earlier = binary.AppendUvarint(earlier, c.N)
	}
	for len(c.Earlier) > 0 {
		since, k := binary.Uvarint(c.Earlier)
		if c.First+int64(since) > hour-maxReadHours {
			break
		}
		_, k2 := binary.Uvarint(c.Earlier[k:])
		c.First, c.Earlier = c.First+int64(since), c.Earlier[k+k2:]
	}
	c.Hour, c.N = hour, 0
}

// earlier iterates over the hours before the newest one, and their numbers of messages.
func (c *ReadCounts) earlier(yield func(hour int64, n uint64) bool) {
	hour := c.First
	for rest := c.Earlier; len(rest) > 0; {
		since, k := binary.Uvarint(rest)
		n, k2 := binary.Uvarint(rest[k:])
		hour, rest = hour+int64(since), rest[k+k2:]
		if !yield(hour, n) {
			return
		}
	}
}

// unreadUpTo returns how many messages up to one a user has not read.
func (r *Realm) unreadUpTo(u UserID, last MessageID) (n int) {
	var unread ids.Set
	unread.AddRange(1, int64(last))
	if m := r.marks.find(u); m != nil {
		unread.Subtract(r.readSet(m))
		unread.Subtract(ids.Difference(m.Lost, m.Rows))
	}
	var rows ids.Set
	r.eachRowSet(u, func(set ids.Set) bool {
		rows.Union(ids.Intersection(set, unread))
		return true
	})
	return rows.Len()
}

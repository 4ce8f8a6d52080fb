package realm

import (
	"cmp"
	"slices"
)

// UsageSpan is successive hours or days.
type UsageSpan struct {
	Begin int64 // Unix seconds
	Step  int64 // seconds of each: an hour or a day
	N     int
}

// Index returns the index of the hour or day that contains a time; false: the time is not in the span.
func (s UsageSpan) Index(at int64) (int, bool) {
	i := (at - s.Begin) / s.Step
	return int(i), at >= s.Begin && i < int64(s.N)
}

// Ends returns the end of each hour or day.
func (s UsageSpan) Ends() []int64 {
	out := make([]int64, s.N)
	for i := range out {
		out[i] = s.Begin + int64(i+1)*s.Step
	}
	return out
}

// MaxUsageSpan limits the numbers of a chart: the hours of as many days as are counted.
const MaxUsageSpan = maxUsageDays * 24

// NewUsageSpan returns the hours or days that end at or before end, the first of them at or after start; at least
// atLeast of them. It is limited to the newest MaxUsageSpan.
func NewUsageSpan(start, end, step int64, atLeast int) UsageSpan {
	end -= end % step
	n := int64(0)
	if end >= start {
		n = (end-start)/step + 1
	}
	n = min(max(n, int64(atLeast)), MaxUsageSpan, max(0, end/step))
	return UsageSpan{Begin: end - n*step, Step: step, N: int(n)}
}

// UsageReader refuses callers that must not see the usage of the organization: guests.
func (v View) UsageReader() error {
	if me := v.Me(); me != nil && me.IsGuest() {
		return errGuestsNotAllowed()
	}
	return nil
}

// UsagePair is the numbers of people and of bots in each part of a span.
type UsagePair struct{ People, Bots []int }

func newUsagePair(n int) UsagePair { return UsagePair{make([]int, n), make([]int, n)} }

// add adds to the numbers at a time.
func (p UsagePair) add(s UsageSpan, at int64, people, bots int) {
	if i, ok := s.Index(at); ok {
		p.People[i] += people
		p.Bots[i] += bots
	}
}

// eachUsageDay calls fn with the days that overlap a span, in order, with the Unix time of their beginning.
func (v View) eachUsageDay(s UsageSpan, fn func(at int64, d *UsageDay)) {
	u := &v.small.usage
	day := s.Begin / secondsPerDay
	for d, more := day, s.N > 0; more && d*secondsPerDay < s.Begin+int64(s.N)*s.Step; d, more = u.days.keyAfter(d) {
		if row := u.days.find(d); row != nil {
			fn(d*secondsPerDay, row)
		}
	}
}

// eachOwnMessage calls fn with the newest messages of the caller, at most maxUsageScan.
func (v View) eachOwnMessage(fn func(*message)) {
	n := 0
	findSet(v.index.bySender, v.User).EachBackward(func(id int64) bool {
		fn(v.message(MessageID(id)))
		n++
		return n < maxUsageScan
	})
}

// SentOverTime returns the messages that all users sent, and those of the caller.
func (v View) SentOverTime(s UsageSpan) (all, own UsagePair) {
	all, own = newUsagePair(s.N), newUsagePair(s.N)
	v.eachUsageDay(s, func(at int64, d *UsageDay) {
		for _, h := range d.Hours {
			all.add(s, at+int64(h.Hour)*secondsPerHour, int(h.People), int(h.Bots))
		}
	})
	bot := v.Me().IsBot()
	v.eachOwnMessage(func(m *message) {
		if bot {
			own.add(s, int64(m.time), 0, 1)
		} else {
			own.add(s, int64(m.time), 1, 0)
		}
	})
	return all, own
}

// SentByKind returns the messages that all users sent by UsageKind, and those of the caller.
func (v View) SentByKind(s UsageSpan) (all, own [4][]int) {
	for i := range all {
		all[i], own[i] = make([]int, s.N), make([]int, s.N)
	}
	v.eachUsageDay(s, func(at int64, d *UsageDay) {
		if i, ok := s.Index(at); ok {
			for k, n := range d.Kinds {
				all[k][i] += int(n)
			}
		}
	})
	v.eachOwnMessage(func(m *message) {
		if i, ok := s.Index(int64(m.time)); ok {
			people := 0
			if c := v.conversations.find(m.conversation); c != nil {
				people = len(c.Members)
			}
			own[v.usageKind(ChannelID(m.channel), people)][i]++
		}
	})
	return all, own
}

// SentByClient returns the messages that all users sent by client program, and those of the caller. Programs of other
// times have zeros. The name "" is of the programs that were counted together.
func (v View) SentByClient(s UsageSpan) (all, own map[string][]int) {
	all, own = map[string][]int{}, map[string][]int{}
	add := func(to map[string][]int, id ClientID, at int64, n int) {
		name := ""
		if c := v.clients.find(id); c != nil {
			name = c.Name
		}
		if to[name] == nil {
			to[name] = make([]int, s.N)
		}
		if i, ok := s.Index(at); ok {
			to[name][i] += n
		}
	}
	for day, d := range v.small.usage.days.all() {
		for _, c := range d.Clients {
			add(all, c.Client, day*secondsPerDay, int(c.N))
		}
	}
	v.eachOwnMessage(func(m *message) { add(own, m.client, int64(m.time), 1) })
	return all, own
}

// ReadOverTime returns the messages that all users marked as read, and those of the caller.
func (v View) ReadOverTime(s UsageSpan) (all, own []int) {
	all, own = make([]int, s.N), make([]int, s.N)
	v.eachUsageDay(s, func(at int64, d *UsageDay) {
		for _, h := range d.Hours {
			if i, ok := s.Index(at + int64(h.Hour)*secondsPerHour); ok {
				all[i] += int(h.Read)
			}
		}
	})
	if c := v.small.usage.reads.find(v.User); c != nil {
		add := func(hour int64, n uint64) bool {
			if i, ok := s.Index(hour * secondsPerHour); ok {
				own[i] += int(n)
			}
			return true
		}
		c.earlier(add)
		add(c.Hour, c.N)
	}
	return all, own
}

// SentToChannel returns the messages in one channel.
func (v View) SentToChannel(s UsageSpan, c ChannelID) UsagePair {
	out := newUsagePair(s.N)
	v.eachUsageDay(s, func(at int64, d *UsageDay) {
		for _, x := range d.Channels {
			if x.Channel == c {
				out.add(s, at, int(x.People), int(x.Bots))
			}
		}
	})
	return out
}

// PeopleCounts is numbers of people at the end of each day of a span.
type PeopleCounts struct {
	Day       []int // active on the day
	Fortnight []int // active in the last 15 days
	All       []int // accounts that were not deactivated
	FileBytes []int64
}

// PeopleOverTime returns how many people were active. The numbers of days without a row are those of the day before.
func (v View) PeopleOverTime(s UsageSpan) PeopleCounts {
	out := PeopleCounts{make([]int, s.N), make([]int, s.N), make([]int, s.N), make([]int64, s.N)}
	u := &v.small.usage
	first, last := s.Begin/secondsPerDay, s.Begin/secondsPerDay+int64(s.N) // the days of the span, without the last one
	for day, more := u.days.firstKey(); more && day < last; {
		next, hasNext := u.days.keyAfter(day)
		d := *u.days.must(day)
		if !hasNext {
			next = last
			v.endUsageDay(&d, day, last) // a copy
		}
		for at := max(first, day); at < min(next, last); at++ {
			i := at - first
			if at == day {
				out.Day[i] = d.Active
			}
			if since := at - day; since < int64(len(d.Fortnight)) {
				out.Fortnight[i] = d.Fortnight[since]
			}
			out.All[i], out.FileBytes[i] = d.Humans, d.FileBytes
		}
		day, more = next, hasNext
	}
	return out
}

// UsageTotals is the numbers of an organization at the present time.
type UsageTotals struct {
	People, Guests, Bots int    // accounts that are not deactivated; People includes Guests
	Active               int    // people that were active today
	Fortnight            int    // people that were active today or in the 14 days before
	Messages             uint64 // of users, sent since Since
	Since                int64  // Unix seconds of the day on which counting began; 0: it has not begun
	FileBytes            int64  // uploaded files
	Channels             []ChannelTotal
}

// ChannelTotal is the messages in one channel in a span.
type ChannelTotal struct {
	Channel      ChannelID
	People, Bots int
}

// UsageNumbers are numbers of an organization for the metrics of a server.
type UsageNumbers struct {
	Day       int64  // days since 1970, of Active
	Active    int    // people that were active on the day
	Messages  uint64 // messages of users since counting began
	FileBytes int64  // uploaded files
}

// Usage returns the numbers of the newest day.
func (r *Realm) Usage() UsageNumbers {
	n := UsageNumbers{Day: r.small.usage.last, FileBytes: r.index.uploadBytes}
	if d := r.small.usage.days.find(n.Day); d != nil {
		n.Active, n.Messages = d.People.Len(), d.Messages
	}
	return n
}

// Add adds the numbers of another organization. Those of an earlier day have no active people.
func (n *UsageNumbers) Add(x UsageNumbers) {
	if x.Day == n.Day {
		n.Active += x.Active
	}
	n.Messages += x.Messages
	n.FileBytes += x.FileBytes
}

// UsageTotals returns the numbers of the organization, and the messages by channel in the last days. Only owners and
// the operator are allowed to see them, because they name private channels.
func (v View) UsageTotals(days int64) (out UsageTotals, err error) {
	if err := v.checkAuditReader(); err != nil {
		return out, err
	}
	v.EachUser(func(u *User) {
		if u.Active && !u.System && !u.IsBot() && u.IsGuest() {
			out.Guests++
		}
	})
	u := &v.small.usage
	if u.last != 0 {
		d := *u.days.must(u.last)
		v.endUsageDay(&d, u.last, v.Now/secondsPerDay+1)
		if v.Now/secondsPerDay == u.last {
			out.Active = d.Active
		}
		if n := len(d.Fortnight); n > 0 && int64(n) == v.Now/secondsPerDay+1-u.last {
			out.Fortnight = d.Fortnight[n-1]
		}
		out.People, out.Bots, out.Messages = d.Humans, d.Bots, d.Messages
		first, _ := u.days.firstKey()
		out.Since = first * secondsPerDay
	}
	out.FileBytes = v.index.uploadBytes
	totals := map[ChannelID]*ChannelTotal{}
	span := UsageSpan{Begin: (v.Now/secondsPerDay - days + 1) * secondsPerDay, Step: secondsPerDay, N: int(days)}
	v.eachUsageDay(span, func(_ int64, d *UsageDay) {
		for _, c := range d.Channels {
			t := totals[c.Channel]
			if t == nil {
				t = &ChannelTotal{Channel: c.Channel}
				totals[c.Channel] = t
			}
			t.People += int(c.People)
			t.Bots += int(c.Bots)
		}
	})
	for _, t := range totals {
		out.Channels = append(out.Channels, *t)
	}
	slices.SortFunc(out.Channels, func(a, b ChannelTotal) int {
		return cmp.Or(b.People+b.Bots-a.People-a.Bots, int(a.Channel)-int(b.Channel))
	})
	return out, nil
}

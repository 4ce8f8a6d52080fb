package realm

import (
	"cmp"
	"slices"
)

// Digests are weekly emails about unread messages. One job for each user composes and sends the digest. The
// server adds the jobs on the organization's day, a few hundred at a time, in the order of the users' ids.

const (
	// digestHour is the hour, in UTC, from which digests are sent.
	digestHour = 8
	// minDigestGap keeps an organization that changes its day from sending two digests within a short time.
	minDigestGap = 4 // days
	// DigestPeriod is how old a message in a digest may be, in seconds.
	DigestPeriod = 7 * secondsPerDay
	// DigestAbsence is how long a user must not have been online to get a digest, in seconds (protocol).
	DigestAbsence = 5 * secondsPerDay
	// MaxDigests limits the waiting digests of an organization; the next ones are added when there are fewer.
	MaxDigests = 500 // about 100 bytes each
	// maxDigestsPerTurn is the number of accounts that one turn examines: a thousand take less than 1 ms.
	maxDigestsPerTurn = 1000
	// maxDigestTopics is how many topics a digest shows, and maxDigestMessages how many messages of each.
	maxDigestTopics   = 4
	maxDigestMessages = 2
)

// DigestState says which digests were sent. Day is the day on which sending began, in days since 1970. Next is the
// first account whose job was not added yet; 0: all were.
type DigestState struct {
	Day  int64
	Next UserID
}

// digestState returns the state of the organization's digests.
func (r *Realm) digestState() DigestState {
	if s := r.Org().Digest; s != nil {
		return *s
	}
	return DigestState{}
}

// hasDigests reports whether the organization sends digests.
func (r *Realm) hasDigests() bool {
	return r.Founded() && r.Level() >= mailLevel && !r.Org().Deactivated && r.OrgBool("digest_emails_enabled") &&
		r.PlaceOpen(PlaceMessageEmails)
}

// isDigestTime reports whether the digests of a week begin at a time.
func (r *Realm) isDigestTime(now int64) bool {
	day, hour := now/secondsPerDay, now%secondsPerDay/secondsPerHour
	weekday := (day + 3) % 7 // 0 is Monday (protocol); the first day of 1970 was a Thursday
	return weekday == r.OrgInt("digest_weekday") && hour >= digestHour && day-r.digestState().Day >= minDigestGap
}

// digestsDue returns a turn that adds the next jobs, or nil. Digests that were begun are continued on the next day.
func digestsDue(r *Realm, now int64) func(*Turn) (any, error) {
	if !r.hasDigests() {
		return nil
	}
	s := r.digestState()
	if s.Next == 0 {
		if !r.isDigestTime(now) {
			return nil
		}
		s = DigestState{Day: now / secondsPerDay, Next: firstUserID}
	}
	if r.small.outboxCount.count[outboxKey{kind: OutboxDigest}] >= MaxDigests {
		return nil
	}
	return func(t *Turn) (any, error) {
		t.stepDigests(s)
		return nil, nil
	}
}

// stepDigests adds the jobs of the next accounts.
func (t *Turn) stepDigests(s DigestState) {
	if t.Level() < mailLevel {
		return
	}
	var jobs []OutboxJob
	room := MaxDigests - t.small.outboxCount.count[outboxKey{kind: OutboxDigest}]
	end := t.Org().NextUser
	for n := 0; s.Next < end && n < maxDigestsPerTurn && len(jobs) < room; n++ {
		if t.env.EmailEnabled && t.wantsDigest(t.Find(s.Next)) {
			jobs = append(jobs, OutboxJob{Kind: OutboxDigest, User: s.Next})
		}
		s.Next++
	}
	if s.Next >= end {
		s.Next = 0
	}
	t.Record(&DigestsStepped{s})
	t.addOutboxJobs(jobs)
}

// wantsDigest reports whether a user gets digests.
func (r *Realm) wantsDigest(u *User) bool {
	return u != nil && u.Active && !u.System && !u.IsBot() && r.OrgBool("digest_emails_enabled") &&
		u.BoolSetting("enable_digest_emails")
}

// DigestsStepped records how far the digests of a week have been added.
type DigestsStepped struct{ State DigestState }

func (f *DigestsStepped) apply(r *Realm) {
	s := f.State
	r.org.change(0).Digest = &s
}

func (*DigestsStepped) notices(*Realm) []Notice { return nil }

// DigestEmail has the unread messages of a user: of the last week, in topics that the user has not muted, in channels
// that the user is subscribed to.
type DigestEmail struct {
	Direct int           // direct messages
	Topics []DigestTopic // the most lively first, at most maxDigestTopics
	More   int           // further topics
}

// DigestTopic is a topic of a digest.
type DigestTopic struct {
	Channel     ChannelID
	ChannelName string
	Topic       string
	Count       int           // unread messages
	Senders     int           // of these messages
	Messages    []MessageInfo // the first ones, at most maxDigestMessages
}

// DigestOf returns the digest of a user from the unread messages. It is empty if the user gets no digests.
func (v View) DigestOf(u *User, unread Unread, now int64) (d DigestEmail) {
	if !v.wantsDigest(u) {
		return d
	}
	me := v.ViewAs(Caller{User: u.ID}, v.Now)
	recent := func(all []MessageID) []MessageID { // the ids are ascending, and so are the times
		i, _ := slices.BinarySearchFunc(all, now-DigestPeriod, func(id MessageID, since int64) int {
			if m := v.message(id); m != nil {
				return cmp.Compare(int64(m.time), since)
			}
			return -1 // deleted since
		})
		return all[i:]
	}
	for _, c := range slices.Concat(unread.Direct, unread.Groups) {
		d.Direct += len(recent(c.IDs))
	}
	mutes := v.muteSettingsOf(u.ID)
	for _, x := range unread.Channels {
		list := recent(x.IDs)
		if len(list) == 0 || !v.Realm.Subscribed(u.ID, x.Channel) || mutes.isMuted(x.Channel, x.Topic) {
			continue
		}
		if t := me.digestTopic(x, list); t.Count > 0 {
			d.Topics = append(d.Topics, t)
		}
	}
	slices.SortStableFunc(d.Topics, func(a, b DigestTopic) int {
		return cmp.Or(cmp.Compare(b.Senders, a.Senders), cmp.Compare(b.Count, a.Count))
	})
	if d.More = len(d.Topics) - maxDigestTopics; d.More > 0 {
		d.Topics = d.Topics[:maxDigestTopics]
	}
	d.More = max(d.More, 0)
	return d
}

// digestTopic returns a topic with those messages that the caller may still read and has not read.
func (v View) digestTopic(x UnreadTopic, list []MessageID) DigestTopic {
	t := DigestTopic{Channel: x.Channel, ChannelName: v.channels.must(x.Channel).Name, Topic: x.Topic}
	senders := map[uint32]bool{}
	me := v.Me()
	for _, id := range list {
		m := v.message(id)
		if m == nil || ChannelID(m.channel) != x.Channel || !v.stillUnread(me, id) {
			continue
		}
		t.Count++
		senders[m.sender] = true
		if len(t.Messages) < maxDigestMessages {
			t.Messages = append(t.Messages, v.Realm.messageInfo(id, m))
		}
	}
	t.Senders = len(senders)
	return t
}

package realm

import (
	"parley/actors/realm/ids"
)

// The organization and each channel may limit for how many days messages are stored (message_retention_days). Direct
// messages follow the organization's limit. Older messages are deleted: they are moved to the archive, see
// message_archive.go.
//
// The server looks for due messages by itself, the oldest first. Messages of a conversation have ascending times, so
// only its oldest messages are looked at. The progress is not stored: after a restart the search begins again, and does
// not find messages that were deleted before.

// Limits of retention. With them a million messages that become due at once take 4 minutes in small channels, and 3
// hours in one with 10,000 connected subscribers. Other turns wait at most a few milliseconds.
const (
	// maxExpiredPerTurn is how many messages one turn deletes at most, as in a fact that users cause: see
	// maxDeletedPerTurn.
	maxExpiredPerTurn = maxDeletedPerTurn
	// maxExpiredProtected is the same in channels with protected history, where each message has an audience of its
	// own: up to half a millisecond each with 10,000 subscribers.
	maxExpiredProtected = 10
	// maxExpiredConversations is from how many direct conversations one turn deletes.
	maxExpiredConversations = 20
	// maxRetentionSteps is how many turns delete messages in one tick of the clock, which is every five seconds:
	// together they take about 70 ms.
	maxRetentionSteps = 200
	// maxRetentionDeliveries is how many users get events in one tick before the next step waits for the next tick: a
	// tenth of a second's work. A step in a channel with 10,000 connected subscribers has 20,000.
	maxRetentionDeliveries = 100_000
	// maxRetentionScan is how many channels and conversations one turn looks at: about half a millisecond.
	maxRetentionScan = 2000
	// retentionInterval is the time between two checks of all conversations, in seconds.
	retentionInterval = 60
)

// retentionProgress is how far the search for due messages is. It is not stored.
type retentionProgress struct {
	channel      ChannelID            // checked last
	conversation DirectConversationID // checked last, after all channels
	next         int64                // time of the next check of all conversations
	pace         pace
	deliveries   int   // of events about deletions in this tick
	lag          int64 // how long the message found last has been due, in seconds; 0: none is due
}

// retentionDays returns for how many days messages of a channel, or direct messages, are stored; -1: no limit. Earlier
// builds have stored numbers above MaxPeriod, whose seconds would overflow: every message would be due.
func (r *Realm) retentionDays(c ChannelID) int64 {
	if c != 0 {
		if days := r.channels.must(c).Retention; days != nil {
			return min(*days, MaxPeriod)
		}
	}
	if days, ok := r.OrgSetting("message_retention_days").(int64); ok && days > 0 {
		return min(days, MaxPeriod)
	}
	return -1
}

// RetentionDays returns for how many days messages of a channel, or direct messages (0), are stored; -1: no limit.
func (r *Realm) RetentionDays(c ChannelID) int64 { return r.retentionDays(c) }

// RetentionLag returns how long messages that are to be deleted have been due, in seconds.
func (r *Realm) RetentionLag() int64 { return r.retentionProgress.lag }

// restartExpirySearch begins the search for due messages again, because a policy changed.
func (r *Realm) restartExpirySearch() {
	r.retentionProgress = retentionProgress{pace: r.retentionProgress.pace, deliveries: r.retentionProgress.deliveries}
}

// retentionDue returns a turn that deletes the next messages that are due, or nil.
func retentionDue(r *Realm, now int64) func(*Turn) (any, error) {
	x := &r.retentionProgress
	if now < x.next || r.retentionPaused {
		return nil
	}
	for range maxRetentionScan {
		switch {
		case x.channel+1 < r.Org().NextChannel:
			c := x.channel + 1
			if ix := r.index.channels[c]; ix != nil && r.oldestExpired(c, &ix.ids, now) != 0 {
				return x.step(now, func(t *Turn) { t.expireInChannel(c) })
			}
			x.channel = c
		case x.conversation+1 < r.Org().NextTalk:
			ix := r.index.conversations[x.conversation+1]
			if ix != nil && r.oldestExpired(0, &ix.ids, now) != 0 {
				return x.step(now, (*Turn).expireDirect)
			}
			x.conversation++
		default:
			*x = retentionProgress{next: now + retentionInterval, pace: x.pace, deliveries: x.deliveries}
			return nil
		}
	}
	return nil
}

// step returns the turn unless there were enough in this tick.
func (x *retentionProgress) step(now int64, run func(*Turn)) func(*Turn) (any, error) {
	if x.pace.tick == now && x.deliveries >= maxRetentionDeliveries || !x.pace.allows(now, maxRetentionSteps) {
		return nil
	}
	if x.pace.steps == 1 {
		x.deliveries = 0
	}
	return func(t *Turn) (any, error) {
		run(t)
		for _, p := range t.publications {
			for _, n := range p.Notices {
				x.deliveries += len(n.To)
			}
		}
		return nil, nil
	}
}

// oldestExpired returns the oldest of a conversation's messages if it is due, else 0.
func (r *Realm) oldestExpired(c ChannelID, messages *ids.Set, now int64) MessageID {
	first, ok := messages.Min()
	if !ok || !r.expired(c, MessageID(first), now) {
		return 0
	}
	due := int64(r.message(MessageID(first)).time) + r.retentionDays(c)*secondsPerDay
	r.retentionProgress.lag = now - due
	return MessageID(first)
}

// expired reports whether a message of a channel, or a direct message, is due.
func (r *Realm) expired(c ChannelID, id MessageID, now int64) bool {
	days := r.retentionDays(c)
	return days >= 0 && int64(r.message(id).time)+days*secondsPerDay <= now
}

// expiredIn returns the oldest messages of a conversation that are due, at most limit.
func (r *Realm) expiredIn(c ChannelID, messages *ids.Set, limit int, now int64) (out []MessageID) {
	messages.Each(func(id int64) bool {
		if len(out) == limit || !r.expired(c, MessageID(id), now) {
			return false
		}
		out = append(out, MessageID(id))
		return true
	})
	return out
}

// expireInChannel deletes due messages of the topic with the channel's oldest message.
func (t *Turn) expireInChannel(c ChannelID) {
	oldest := t.oldestExpired(c, &t.index.channels[c].ids, t.Now)
	if oldest == 0 {
		return
	}
	limit := maxExpiredPerTurn
	if t.hasProtectedHistory(t.channels.must(c)) {
		limit = maxExpiredProtected
	}
	messages := t.expiredIn(c, &t.topicIndexOf(t.message(oldest)).ids, limit, t.Now)
	t.deleteMessages(messages, DeletedByPolicy, 0)
}

// expireDirect deletes due messages of the next direct conversations.
func (t *Turn) expireDirect() {
	var groups []ArchivedGroup
	left := maxExpiredPerTurn
	from := t.retentionProgress.conversation + 1
	for c := from; c < min(t.Org().NextTalk, from+maxRetentionScan) && left > 0 &&
		len(groups) < maxExpiredConversations; c++ {
		ix := t.index.conversations[c]
		if ix == nil {
			continue
		}
		messages := t.expiredIn(0, &ix.ids, left, t.Now)
		if len(messages) == 0 {
			continue
		}
		groups = append(groups, ArchivedGroup{IDs: messages})
		left -= len(messages)
	}
	if len(groups) > 0 {
		t.archiveMessages(groups, DeletedByPolicy, 0)
	}
}

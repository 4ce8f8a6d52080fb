package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Push notifications. When a message is sent, the settings of its recipients decide which of them may get one.
// Whether a recipient is active in a client is checked just before the notification leaves the server.

// Reasons for a notification, in the protocol's words. Emails use the same.
const (
	triggerDirect                  = "direct_message"
	triggerMention                 = "mentioned"
	triggerTopicWildcard           = "topic_wildcard_mentioned"
	triggerChannelWildcard         = "stream_wildcard_mentioned"
	triggerTopicWildcardFollowed   = "topic_wildcard_mentioned_in_followed_topic"
	triggerChannelWildcardFollowed = "stream_wildcard_mentioned_in_followed_topic"
	triggerFollowedTopic           = "followed_topic_push_notify"
	triggerChannel                 = "stream_push_notify"
)

// ShownNotifications is the row of the messages of which a user's devices show notifications.
type ShownNotifications struct{ Messages ids.Set }

// HasPushDevice reports whether a user has a device that can be notified.
func (r *Realm) HasPushDevice(u UserID) bool { return r.small.pushReachable.Has(int64(u)) }

// updatePushReachable updates the index behind HasPushDevice. It is called after changes of a user's tokens or
// devices.
func (r *Realm) updatePushReachable(u UserID) {
	has := r.small.pushTokens.find(u) != nil
	for _, id := range r.small.devicesOf[u] {
		d := r.small.devices.must(id)
		has = has || d.TokenID != nil && d.KeyID != nil
	}
	if has {
		r.small.pushReachable.Add(int64(u))
	} else {
		r.small.pushReachable.Remove(int64(u))
	}
}

// pushCandidates returns the recipients of a message that have a device to notify.
func (t *Turn) pushCandidates(f *MessageSent) ids.Set {
	switch {
	case !t.env.PushEnabled || t.small.pushReachable.Empty(),
		!t.PlaceOpen(PlaceMobilePush) && !t.PlaceOpen(PlaceBrowserPush):
		return ids.Set{}
	case f.Channel != 0:
		return ids.Intersection(t.index.channels[f.Channel].active, t.small.pushReachable)
	}
	return ids.Intersection(ids.SetOf(f.People...), t.small.pushReachable)
}

// notificationSettings are the names of a user's settings that decide about one kind of notification (push or email).
type notificationSettings struct {
	personal    string // for direct messages and mentions
	alternative string // if this setting and personal are both off, there is no notification; "" checks neither
	followed    string // for all messages in followed topics
	channel     string // for all messages in channels; the subscription may override it
	override    func(*Subscription) *bool
}

var (
	pushSettings = notificationSettings{
		personal:    "enable_offline_push_notifications",
		alternative: "enable_online_push_notifications",
		followed:    "enable_followed_topic_push_notifications",
		channel:     "enable_stream_push_notifications",
		override:    func(s *Subscription) *bool { return s.Push },
	}
	emailSettings = notificationSettings{
		personal: "enable_offline_email_notifications",
		followed: "enable_followed_topic_email_notifications",
		channel:  "enable_stream_email_notifications",
		override: func(s *Subscription) *bool { return s.Email },
	}
)

// notificationTrigger returns why a user is to be notified of a message, or "". There is no notification of messages
// that the user sent, or that are read at once because the user muted the sender.
func (r *Realm) notificationTrigger(u *User, f *MessageSent, by notificationSettings) string {
	if !u.Active || u.IsBot() || u.ID == f.Sender || containsSorted(f.ReadBy, u.ID) {
		return ""
	}
	personal := u.BoolSetting(by.personal)
	if !personal && by.alternative != "" && !u.BoolSetting(by.alternative) {
		return ""
	}
	if f.Channel == 0 {
		if personal {
			return triggerDirect
		}
		return ""
	}
	if personal && (containsSorted(f.Mentioned, u.ID) || containsSorted(f.GroupMentioned, u.ID)) {
		return triggerMention
	}
	sub := r.SubscriptionOf(u.ID, f.Channel)
	if sub == nil || !sub.Active {
		return ""
	}
	policy := r.TopicPolicyOf(u.ID, f.Channel, f.TopicName)
	followed := policy == TopicFollowed
	visible := policy != TopicMuted && (!sub.Muted || policy == TopicUnmuted || followed)
	topicWildcard := containsSorted(f.TopicMentioned, u.ID)
	if personal && (topicWildcard || f.Content.ChannelWildcard) {
		switch all := visible && valueOr(sub.Wildcard, u.BoolSetting("wildcard_mentions_notify")); {
		case followed && u.BoolSetting("enable_followed_topic_wildcard_mentions_notify") && topicWildcard:
			return triggerTopicWildcardFollowed
		case followed && u.BoolSetting("enable_followed_topic_wildcard_mentions_notify"):
			return triggerChannelWildcardFollowed
		case all && topicWildcard:
			return triggerTopicWildcard
		case all:
			return triggerChannelWildcard
		}
	}
	switch {
	case followed && u.BoolSetting(by.followed):
		return triggerFollowedTopic
	case visible && valueOr(by.override(sub), u.BoolSetting(by.channel)):
		return triggerChannel
	}
	return ""
}

// PushMessage returns the message of a push job as its user may read it. ok is false if no notification is to be
// shown any more: the message was read, deleted, moved out of the user's access, or is shown already.
func (v View) PushMessage(e *OutboxJob) (m MessageInfo, ok bool) {
	if s := v.small.shownNotifications.find(e.User); s != nil && s.Messages.Has(int64(e.Message)) {
		return m, false
	}
	return v.UnreadJobMessage(e)
}

// UnreadJobMessage returns the message of an outbox job as its user may read it. ok is false if the user has read it
// or can no longer access it, or if it was deleted.
func (v View) UnreadJobMessage(e *OutboxJob) (m MessageInfo, ok bool) {
	u := v.Find(e.User)
	if u == nil || !u.Active || !v.stillUnread(u, e.Message) {
		return m, false
	}
	m, err := v.ViewAs(Caller{User: u.ID}, v.Now).ReadableMessage(e.Message)
	return m, err == nil
}

// mentionedGroup returns the group by which a message mentions a user, or 0 if it mentions the user by name. Of
// several groups it is the one with the fewest direct members, as the most specific.
func (t *Turn) mentionedGroup(u *User, f *MessageSent) (best GroupID) {
	if containsSorted(f.Mentioned, u.ID) {
		return 0
	}
	for _, g := range f.Content.Groups {
		smaller := best == 0 || len(t.groups.must(g).Members) < len(t.groups.must(best).Members)
		if smaller && t.inAnyGroup(u, []GroupID{g}) {
			best = g
		}
	}
	return best
}

// stillUnread reports whether a message exists and the user can access it and has not read it.
func (r *Realm) stillUnread(u *User, id MessageID) bool {
	m := r.message(id)
	if m == nil || !r.mayRead(u, id, m) {
		return false
	}
	return !r.hasRead(r.marks.find(u.ID), int64(id))
}

// maxUnpushUsers limits for how many users one turn checks whether shown messages have been read.
const maxUnpushUsers = 200

// unpushDue returns a turn that removes notifications of messages that were read or deleted. The server calls it at
// intervals. So one removal covers all messages that a user read in the last seconds.
func unpushDue(r *Realm, _ int64) func(*Turn) (any, error) {
	if len(r.small.staleNotifications) == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		var users []UserID
		for u := range t.small.staleNotifications {
			if users = append(users, u); len(users) == maxUnpushUsers {
				break
			}
		}
		slices.Sort(users)
		var list []OutboxJob
		f := &ShownCleared{}
		for _, id := range users {
			delete(t.small.staleNotifications, id)
			u, s := t.users.find(id), t.small.shownNotifications.find(id)
			if u == nil || s == nil {
				continue
			}
			var gone ids.Set
			s.Messages.Each(func(m int64) bool {
				if !u.Active || !t.stillUnread(u, MessageID(m)) {
					gone.Add(m)
				}
				return true
			})
			if gone.Empty() {
				continue
			}
			f.Users, f.Messages = append(f.Users, id), append(f.Messages, gone)
			if removed := ids.IDs[MessageID](gone); t.env.PushEnabled && t.HasPushDevice(id) {
				removed = removed[max(0, len(removed)-maxPushRemovals):]
				list = append(list, OutboxJob{Kind: OutboxPushRemoval, User: id, Gone: removed})
			}
		}
		if len(f.Users) > 0 {
			t.Record(f)
		}
		t.addOutboxJobs(list)
		return nil, nil
	}
}

// ShownCleared says that devices no longer show notifications of some messages.
type ShownCleared struct {
	Users    []UserID
	Messages []ids.Set // for each of Users
}

func (f *ShownCleared) apply(r *Realm) {
	for i, u := range f.Users {
		s := r.small.shownNotifications.change(u)
		if s.Messages.Subtract(f.Messages[i]); s.Messages.Empty() {
			r.small.shownNotifications.remove(u)
		}
	}
}

func (*ShownCleared) notices(*Realm) []Notice { return nil }

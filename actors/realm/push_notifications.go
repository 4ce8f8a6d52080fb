package realm

import (
	"slices"

	"parley/actors/realm/ids"
)

// Notifications of phones. Who is to be notified of a message is settled when it is sent, from everybody's settings;
// whether he sits at a client just now is looked at when the notification is about to leave.

// Why somebody is notified, in the protocol's words.
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

// ShownNotifications is the row of the messages that somebody's devices show notifications of.
type ShownNotifications struct{ Messages ids.Set }

// HasPushDevice reports whether a user has a device that could be notified.
func (r *Realm) HasPushDevice(u UserID) bool { return r.small.pushReachable.Has(int64(u)) }

// updatePushReachable notes whether a user has a device that could be notified. It is called when that may have changed.
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

// pushCandidates is everybody whose devices might show a message.
func (t *Turn) pushCandidates(f *MessageSent) ids.Set {
	switch {
	case !t.env.PushEnabled || t.small.pushReachable.Empty():
		return ids.Set{}
	case f.Channel != 0:
		return ids.Intersection(t.index.channels[f.Channel].active, t.small.pushReachable)
	}
	return ids.Intersection(ids.SetOf(f.People...), t.small.pushReachable)
}

// notificationSettings is a way to tell somebody of a message who may not be here: the names of the settings that say of what.
type notificationSettings struct {
	personal    string // direct messages and mentions
	alternative string // unless this or personal is set, nothing; "" asks for neither
	followed    string // all of followed topics
	channel     string // all of channels
	override    func(*Subscription) *bool
}

var (
	pushSettings = notificationSettings{"enable_offline_push_notifications", "enable_online_push_notifications", "enable_followed_topic_push_notifications", "enable_stream_push_notifications",
		func(s *Subscription) *bool { return s.Push }}
	emailSettings = notificationSettings{"enable_offline_email_notifications", "", "enable_followed_topic_email_notifications", "enable_stream_email_notifications",
		func(s *Subscription) *bool { return s.Email }}
)

// notificationTrigger is why somebody is to be told of a message, or "". Of a message that he has read at once, be it as its sender
// valueOr because he muted the sender, he is not.
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

// PushMessage is the message of a push errand as its user may read it; ok is false if nothing is to be shown any more: it
// was read, deleted or moved out of his sight, or is shown already.
func (v View) PushMessage(e *OutboxJob) (m MessageInfo, ok bool) {
	if s := v.small.shownNotifications.find(e.User); s != nil && s.Messages.Has(int64(e.Message)) {
		return m, false
	}
	return v.UnreadJobMessage(e)
}

// UnreadJobMessage is the message of an errand as its user may read it; ok is false if he has read it, or it is gone or out of his
// sight.
func (v View) UnreadJobMessage(e *OutboxJob) (m MessageInfo, ok bool) {
	u := v.Find(e.User)
	if u == nil || !u.Active || !v.stillUnread(u, e.Message) {
		return m, false
	}
	m, err := v.ViewAs(Caller{User: u.ID}, v.Now).ReadableMessage(e.Message)
	return m, err == nil
}

// mentionedGroup is the group by which a message mentions somebody, if it does not mention him by name: the one with the
// fewest members of its own, as that says most.
func (t *Turn) mentionedGroup(u *User, f *MessageSent) (best GroupID) {
	if containsSorted(f.Mentioned, u.ID) {
		return 0
	}
	for _, g := range f.Content.Groups {
		if t.inAnyGroup(u, []GroupID{g}) && (best == 0 || len(t.groups.must(g).Members) < len(t.groups.must(best).Members)) {
			best = g
		}
	}
	return best
}

// stillUnread reports whether a message is there and its reader has not read it.
func (r *Realm) stillUnread(u *User, id MessageID) bool {
	m := r.message(id)
	if m == nil || !r.mayRead(u, id, m) {
		return false
	}
	return !r.hasRead(r.marks.find(u.ID), int64(id))
}

// maxUnpushUsers is how many users one turn looks at whose devices may show what they have read.
const maxUnpushUsers = 200

// unpushDue takes notifications back of messages that were read, or are gone. It runs with the clock, so one
// notification takes back what was read in some seconds.
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
			if ids := ids.IDs[MessageID](gone); t.env.PushEnabled && t.HasPushDevice(id) {
				list = append(list, OutboxJob{Kind: OutboxPushRemoval, User: id, Gone: ids[max(0, len(ids)-maxPushRemovals):]})
			}
		}
		if len(f.Users) > 0 {
			t.Record(f)
		}
		t.addOutboxJobs(list)
		return nil, nil
	}
}

// ShownCleared says devices are to show some messages no longer.
type ShownCleared struct {
	Users    []UserID
	Messages []ids.Set // one for each
}

func (f *ShownCleared) apply(r *Realm) {
	for i, u := range f.Users {
		s := r.small.shownNotifications.change(u)
		if s.Messages.Subtract(f.Messages[i]); s.Messages.Empty() {
			r.small.shownNotifications.remove(u)
		}
	}
}

func (*ShownCleared) tell(*Realm) []Notice { return nil }
func (*ShownCleared) keepsMarkdownConfig() {}

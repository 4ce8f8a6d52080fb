package realm

import "slices"

// Notifications of phones. Who is to be notified of a message is settled when it is sent, from everybody's settings;
// whether he sits at a client just now is looked at when the notification is about to leave.

// Why somebody is notified, in the protocol's words.
const (
	pushDirect                = "direct_message"
	pushMention               = "mentioned"
	pushTopicWildcard         = "topic_wildcard_mentioned"
	pushChannelWildcard       = "stream_wildcard_mentioned"
	pushTopicWildcardFollow   = "topic_wildcard_mentioned_in_followed_topic"
	pushChannelWildcardFollow = "stream_wildcard_mentioned_in_followed_topic"
	pushFollowed              = "followed_topic_push_notify"
	pushChannel               = "stream_push_notify"
)

// Shown is the row of the messages that somebody's devices show notifications of.
type Shown struct{ Messages Set }

// Reachable reports whether a user has a device that could be notified.
func (r *Realm) Reachable(u UserID) bool { return r.nouns.reachable.Has(int64(u)) }

// learnDevices notes whether a user has a device that could be notified. It is called when that may have changed.
func (r *Realm) learnDevices(u UserID) {
	has := r.nouns.pushTokens.find(u) != nil
	for _, id := range r.nouns.devicesOf[u] {
		d := r.nouns.devices.must(id)
		has = has || d.TokenID != nil && d.KeyID != nil
	}
	if has {
		r.nouns.reachable.Add(int64(u))
	} else {
		r.nouns.reachable.Remove(int64(u))
	}
}

// mayPush is everybody whose devices might show a message.
func (t *Turn) mayPush(f *MessageSent) Set {
	switch {
	case !t.moment.Pushes || t.nouns.reachable.Empty():
		return Set{}
	case f.Channel != 0:
		return Both(t.by.channel[f.Channel].active, t.nouns.reachable)
	}
	return Both(SetOf(f.People...), t.nouns.reachable)
}

// medium is a way to tell somebody of a message who may not be here: the names of the settings that say of what.
type medium struct {
	personal string // direct messages and mentions
	needs    string // unless this or personal is set, nothing; "" asks for neither
	followed string // all of followed topics
	channel  string // all of channels
	own      func(*Subscription) *bool
}

var (
	phones = medium{"enable_offline_push_notifications", "enable_online_push_notifications", "enable_followed_topic_push_notifications", "enable_stream_push_notifications",
		func(s *Subscription) *bool { return s.Push }}
	mails = medium{"enable_offline_email_notifications", "", "enable_followed_topic_email_notifications", "enable_stream_email_notifications",
		func(s *Subscription) *bool { return s.Email }}
)

// trigger is why somebody is to be told of a message, or "". Of a message that he has read at once, be it as its sender
// or because he muted the sender, he is not.
func (r *Realm) trigger(u *User, f *MessageSent, by medium) string {
	if !u.Active || u.IsBot() || u.ID == f.Sender || contains(f.ReadBy, u.ID) {
		return ""
	}
	personal := u.Flag(by.personal)
	if !personal && by.needs != "" && !u.Flag(by.needs) {
		return ""
	}
	if f.Channel == 0 {
		if personal {
			return pushDirect
		}
		return ""
	}
	if personal && (contains(f.Mentioned, u.ID) || contains(f.GroupMentioned, u.ID)) {
		return pushMention
	}
	sub := r.SubscriptionOf(u.ID, f.Channel)
	if sub == nil || !sub.Active {
		return ""
	}
	policy := r.TopicPolicyOf(u.ID, f.Channel, f.TopicName)
	followed := policy == TopicFollowed
	visible := policy != TopicMuted && (!sub.Muted || policy == TopicUnmuted || followed)
	topicWildcard := contains(f.TopicMentioned, u.ID)
	if personal && (topicWildcard || f.Content.ChannelWildcard) {
		switch all := visible && or(sub.Wildcard, u.Flag("wildcard_mentions_notify")); {
		case followed && u.Flag("enable_followed_topic_wildcard_mentions_notify") && topicWildcard:
			return pushTopicWildcardFollow
		case followed && u.Flag("enable_followed_topic_wildcard_mentions_notify"):
			return pushChannelWildcardFollow
		case all && topicWildcard:
			return pushTopicWildcard
		case all:
			return pushChannelWildcard
		}
	}
	switch {
	case followed && u.Flag(by.followed):
		return pushFollowed
	case visible && or(by.own(sub), u.Flag(by.channel)):
		return pushChannel
	}
	return ""
}

// Notifiable is the message of a push errand as its user may read it; ok is false if nothing is to be shown any more: it
// was read, deleted or moved out of his sight, or is shown already.
func (v View) Notifiable(e *Errand) (m MessageInfo, ok bool) {
	if s := v.nouns.shown.find(e.User); s != nil && s.Messages.Has(int64(e.Message)) {
		return m, false
	}
	return v.Unheard(e)
}

// Unheard is the message of an errand as its user may read it; ok is false if he has read it, or it is gone or out of his
// sight.
func (v View) Unheard(e *Errand) (m MessageInfo, ok bool) {
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
	if contains(f.Mentioned, u.ID) {
		return 0
	}
	for _, g := range f.Content.Groups {
		if t.inSome(u, []GroupID{g}) && (best == 0 || len(t.groups.must(g).Members) < len(t.groups.must(best).Members)) {
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
	return !r.hasRead(r.reading.find(u.ID), int64(id))
}

// unpushedAtOnce is how many users one turn looks at whose devices may show what they have read.
const unpushedAtOnce = 200

// unpushDue takes notifications back of messages that were read, or are gone. It runs with the clock, so one
// notification takes back what was read in some seconds.
func unpushDue(r *Realm, _ int64) func(*Turn) (any, error) {
	if len(r.nouns.reread) == 0 {
		return nil
	}
	return func(t *Turn) (any, error) {
		var users []UserID
		for u := range t.nouns.reread {
			if users = append(users, u); len(users) == unpushedAtOnce {
				break
			}
		}
		slices.Sort(users)
		var list []Errand
		f := &ShownCleared{}
		for _, id := range users {
			delete(t.nouns.reread, id)
			u, s := t.users.find(id), t.nouns.shown.find(id)
			if u == nil || s == nil {
				continue
			}
			var gone Set
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
			if ids := IDs[MessageID](gone); t.moment.Pushes && t.Reachable(id) {
				list = append(list, Errand{Kind: UnpushErrand, User: id, Gone: ids[max(0, len(ids)-maxUnpushed):]})
			}
		}
		if len(f.Users) > 0 {
			t.Record(f)
		}
		t.errand(list)
		return nil, nil
	}
}

// ShownCleared says devices are to show some messages no longer.
type ShownCleared struct {
	Users    []UserID
	Messages []Set // one for each
}

func (f *ShownCleared) apply(r *Realm) {
	for i, u := range f.Users {
		s := r.nouns.shown.change(u)
		if s.Messages.Subtract(f.Messages[i]); s.Messages.Empty() {
			r.nouns.shown.remove(u)
		}
	}
}

func (*ShownCleared) tell(*Realm) []Notice { return nil }
func (*ShownCleared) calm()                {}

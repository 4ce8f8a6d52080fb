package realmtest

import (
	"fmt"
	"math/rand"
	"slices"

	"parley/actors/realm"
	"parley/actors/realm/ids"
)

// Size of the large organization for benchmarks, for any number of messages. The performance goals assume a million
// messages.
const (
	LargeUsers    = 10_000
	LargeChannels = 1_000
	LargeTopics   = 20 // in each channel
	LargeUnread   = 50_000
)

// LargeRealm is a large organization, with the users that benchmarks use.
type LargeRealm struct {
	Realm         *realm.Realm
	First         realm.UserID // the other users have the ids after it
	InAllChannels realm.UserID // owner, in all channels, with half the history unread
	Guest         realm.UserID
	InFewChannels realm.UserID // in about twenty channels
	OneMessage    realm.UserID // has sent one message, long ago
	// ManyUnread is in all channels, too, with about LargeUnread unread messages.
	ManyUnread realm.UserID

	random        *rand.Rand
	conversations map[string]realm.DirectConversationID
	topics        map[realm.TopicID]bool
	last          realm.MessageID
}

// FillLargeRealm adds the users and channels of a large organization to an empty one, by facts, without messages. The
// result is the same every time.
func FillLargeRealm(r *realm.Realm) *LargeRealm {
	b := &LargeRealm{Realm: r, random: rand.New(rand.NewSource(1)),
		conversations: map[string]realm.DirectConversationID{}, topics: map[realm.TopicID]bool{}}
	r.Replay(&realm.Founded{Name: "Big", At: 1_700_000_000})
	b.First = r.Org().NextUser
	b.InAllChannels, b.Guest, b.InFewChannels = b.First+1, b.First+2, b.First+5
	b.OneMessage, b.ManyUnread = b.First+7, b.First+8
	for i := range LargeUsers {
		id, role := b.First+realm.UserID(i), realm.Member
		switch id {
		case b.Guest:
			role = realm.Guest
		case b.InAllChannels:
			role = realm.Owner
		}
		r.Replay(&realm.UserJoined{User: realm.User{ID: id, Name: fmt.Sprint("User ", i),
			Email: fmt.Sprintf("user%d@example.com", i), Role: role, Active: true, Settings: map[string]any{}}})
	}
	for c := realm.ChannelID(1); c <= LargeChannels; c++ {
		r.Replay(&realm.ChannelCreated{Channel: realm.Channel{ID: c, Name: fmt.Sprint("channel ", c),
			Private: c%10 == 0, History: c%20 != 0, TopicsPolicy: "inherit", Creator: b.InAllChannels}})
		var members ids.Set
		members.Add(int64(b.InAllChannels))
		members.Add(int64(b.ManyUnread))
		for range 200 {
			members.Add(int64(b.randomUser()))
		}
		if c <= 3 {
			members.AddRange(int64(b.First), int64(b.First)+LargeUsers-1)
		}
		users := ids.IDs[realm.UserID](members)
		r.Replay(&realm.Subscribed{Channel: c, From: 1, Users: users, Colors: make([]string, len(users))})
	}
	return b
}

// randomUser returns one of the users.
func (b *LargeRealm) randomUser() realm.UserID {
	return b.First + realm.UserID(b.random.Intn(LargeUsers))
}

// WriteMessages adds messages. One of twenty is a direct message; the others are in channels of very different sizes.
func (b *LargeRealm) WriteMessages(messages int) {
	channels := rand.NewZipf(b.random, 1.2, 10, LargeChannels-1)
	for range messages {
		b.last++
		f := &realm.MessageSent{ID: b.last, Sender: b.randomUser(), At: 1_700_000_000 + int64(b.last),
			Client: "website", ClientID: 1}
		switch {
		case b.last == 1000:
			f.Sender = b.OneMessage
		case f.Sender == b.OneMessage:
			f.Sender++
		}
		if b.random.Intn(20) == 0 && b.last != 1000 {
			other := b.randomUser()
			if b.random.Intn(20) == 0 {
				other = b.InAllChannels
			}
			f.People = slices.Compact([]realm.UserID{min(f.Sender, other), max(f.Sender, other)})
			key := fmt.Sprint(f.People)
			if f.Talk = b.conversations[key]; f.Talk == 0 {
				f.Talk, f.NewTalk = realm.DirectConversationID(len(b.conversations)+1), true
				b.conversations[key] = f.Talk
			}
		} else {
			f.Channel = realm.ChannelID(1 + channels.Uint64())
			f.Topic = realm.TopicID(f.Channel-1)*LargeTopics + realm.TopicID(b.random.Intn(LargeTopics)) + 1
			f.TopicName, f.NewTopic = fmt.Sprint("topic ", f.Topic%LargeTopics), !b.topics[f.Topic]
			b.topics[f.Topic] = true
			f.Content.Link = b.random.Intn(10) == 0
			f.Content.Image = b.random.Intn(1000) == 0
			if b.random.Intn(50) == 0 {
				f.Mentioned = []realm.UserID{b.InAllChannels}
			}
			if b.random.Intn(50_000) == 0 {
				f.Alerted = []realm.UserID{b.InAllChannels}
			}
		}
		b.Realm.Replay(f)
	}
}

// AddActivity marks messages as read and starred for some users.
func (b *LargeRealm) AddActivity() {
	r, n := b.Realm, int64(b.last)
	r.Replay(&realm.AllRead{User: b.InFewChannels, Upto: realm.MessageID(n * 9 / 10)})
	r.Replay(&realm.AllRead{User: b.InAllChannels, Upto: realm.MessageID(n / 2)})
	r.Replay(&realm.AllRead{User: b.ManyUnread, Upto: realm.MessageID(max(1, n-LargeUnread*20/19))})
	for i := range 2000 { // these users have read all but the last thousand messages
		u := b.First + 10 + realm.UserID(i)
		r.Replay(&realm.AllRead{User: u, Upto: realm.MessageID(max(1, n-1000))})
	}
	var stars ids.Set
	for range 200 {
		stars.Add(1 + int64(b.random.Intn(int(n))))
	}
	r.Replay(&realm.FlagsChanged{User: b.InAllChannels, Flag: realm.FlagStarred, Add: true, IDs: stars})
}

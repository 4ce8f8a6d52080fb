package realmtest

import (
	"fmt"
	"math/rand"
	"slices"

	"parley/actors/realm"
)

// The large organization of the benchmarks, whatever the number of messages: the goals of the specification are for
// a million of them.
const (
	BigUsers    = 10_000
	BigChannels = 1_000
	BigTopics   = 20 // in each channel
	BigUnread   = 50_000
)

// Big is a large organization: who is who in it.
type Big struct {
	Realm *realm.Realm
	First realm.UserID // the other users follow
	All   realm.UserID // an owner, in all channels, who has half the history unread
	Guest realm.UserID
	Few   realm.UserID // in twenty channels or so
	Once  realm.UserID // wrote one message, long ago
	// Behind is in all channels, too, and has about BigUnread messages unread.
	Behind realm.UserID

	random *rand.Rand
	talks  map[string]realm.TalkID
	topics map[realm.TopicID]bool
	last   realm.MessageID
}

// FillBig puts the people and channels of a large organization into an empty one, by facts, and no message yet. It is the
// same every time.
func FillBig(r *realm.Realm) *Big {
	b := &Big{Realm: r, random: rand.New(rand.NewSource(1)), talks: map[string]realm.TalkID{}, topics: map[realm.TopicID]bool{}}
	r.Replay(&realm.Founded{Name: "Big", At: 1_700_000_000})
	b.First = r.Org().NextUser
	b.All, b.Guest, b.Few, b.Once, b.Behind = b.First+1, b.First+2, b.First+5, b.First+7, b.First+8
	for i := range BigUsers {
		id, role := b.First+realm.UserID(i), realm.Member
		switch id {
		case b.Guest:
			role = realm.Guest
		case b.All:
			role = realm.Owner
		}
		r.Replay(&realm.UserJoined{User: realm.User{ID: id, Name: fmt.Sprint("User ", i), Email: fmt.Sprintf("user%d@example.com", i), Role: role, Active: true, Settings: map[string]any{}}})
	}
	for c := realm.ChannelID(1); c <= BigChannels; c++ {
		r.Replay(&realm.ChannelCreated{Channel: realm.Channel{ID: c, Name: fmt.Sprint("channel ", c), Private: c%10 == 0, History: c%20 != 0, TopicsPolicy: "inherit", Creator: b.All}})
		var members realm.Set
		members.Add(int64(b.All))
		members.Add(int64(b.Behind))
		for range 200 {
			members.Add(int64(b.user()))
		}
		if c <= 3 {
			members.AddRange(int64(b.First), int64(b.First)+BigUsers-1)
		}
		users := realm.IDs[realm.UserID](members)
		r.Replay(&realm.Subscribed{Channel: c, From: 1, Users: users, Colors: make([]string, len(users))})
	}
	return b
}

func (b *Big) user() realm.UserID { return b.First + realm.UserID(b.random.Intn(BigUsers)) }

// Write adds so many messages: one of twenty is direct, the others lie in channels of very different sizes.
func (b *Big) Write(messages int) {
	channels := rand.NewZipf(b.random, 1.2, 10, BigChannels-1)
	for range messages {
		b.last++
		f := &realm.MessageSent{ID: b.last, Sender: b.user(), At: 1_700_000_000 + int64(b.last), Client: "website", ClientID: 1}
		switch {
		case b.last == 1000:
			f.Sender = b.Once
		case f.Sender == b.Once:
			f.Sender++
		}
		if b.random.Intn(20) == 0 && b.last != 1000 {
			other := b.user()
			if b.random.Intn(20) == 0 {
				other = b.All
			}
			f.People = slices.Compact([]realm.UserID{min(f.Sender, other), max(f.Sender, other)})
			key := fmt.Sprint(f.People)
			if f.Talk = b.talks[key]; f.Talk == 0 {
				f.Talk, f.NewTalk = realm.TalkID(len(b.talks)+1), true
				b.talks[key] = f.Talk
			}
		} else {
			f.Channel = realm.ChannelID(1 + channels.Uint64())
			f.Topic = realm.TopicID(f.Channel-1)*BigTopics + realm.TopicID(b.random.Intn(BigTopics)) + 1
			f.TopicName, f.NewTopic = fmt.Sprint("topic ", f.Topic%BigTopics), !b.topics[f.Topic]
			b.topics[f.Topic] = true
			f.Content.Link = b.random.Intn(10) == 0
			f.Content.Image = b.random.Intn(1000) == 0
			if b.random.Intn(50) == 0 {
				f.Mentioned = []realm.UserID{b.All}
			}
			if b.random.Intn(50_000) == 0 {
				f.Alerted = []realm.UserID{b.All}
			}
		}
		b.Realm.Replay(f)
	}
}

// Live has the people read and star, mute and follow a little.
func (b *Big) Live() {
	r, n := b.Realm, int64(b.last)
	r.Replay(&realm.AllRead{User: b.Few, Upto: realm.MessageID(n * 9 / 10)})
	r.Replay(&realm.AllRead{User: b.All, Upto: realm.MessageID(n / 2)})
	r.Replay(&realm.AllRead{User: b.Behind, Upto: realm.MessageID(max(1, n-BigUnread*20/19))})
	for i := range 2000 { // most people read what is old, and a little here and there
		u := b.First + 10 + realm.UserID(i)
		r.Replay(&realm.AllRead{User: u, Upto: realm.MessageID(max(1, n-1000))})
	}
	var stars realm.Set
	for range 200 {
		stars.Add(1 + int64(b.random.Intn(int(n))))
	}
	r.Replay(&realm.FlagsChanged{User: b.All, Flag: realm.FlagStarred, Add: true, IDs: stars})
}

package realm

import (
	"slices"
	"testing"

	"parley/actors/realm/ids"
)

// What a registration tells of messages is what looking at every message for itself gives: in worlds with moved messages,
// channels that were left and archived, and rows given and taken away.
func TestRegistrationMatchesMessageByMessage(t *testing.T) {
	found := 0
	for seed := range int64(12) {
		w := newRandomRealm(t, seed, 400)
		for _, u := range w.users {
			v := w.realm.ViewAs(Caller{User: u}, w.now)
			unread, starred := []MessageID{}, []MessageID{}
			newest := MessageID(0)
			for id := MessageID(1); id <= w.realm.LastMessageID(); id++ {
				m := w.realm.message(id)
				if m == nil || !w.realm.hasRow(u, id, m) {
					continue
				}
				newest = id
				rd := w.realm.marks.find(u)
				c := w.realm.channels.find(ChannelID(m.channel))
				if (c == nil || !c.Archived && w.realm.Subscribed(u, c.ID)) && (rd == nil || !rd.Read.Has(int64(id))) {
					unread = append(unread, id)
				}
				if rd != nil && rd.Starred.Has(int64(id)) {
					starred = append(starred, id)
				}
			}
			told := []MessageID{}
			x := v.Unread().Sorted()
			for _, list := range [][]UnreadConversation{x.Direct, x.Groups} {
				for _, y := range list {
					told = append(told, y.IDs...)
				}
			}
			for _, y := range x.Channels {
				if !slices.IsSorted(y.IDs) {
					t.Errorf("seed %d: user %d: out of order: %v", seed, u, y.IDs)
				}
				told = append(told, y.IDs...)
			}
			slices.Sort(told)
			if !slices.Equal(told, unread) || !slices.Equal(v.Starred(), starred) || w.realm.NewestReceived(u) != newest {
				t.Errorf("seed %d: user %d: unread %v, want %v; starred %v, want %v; newest %d, want %d", seed, u, told, unread, v.Starred(), starred, w.realm.NewestReceived(u), newest)
			}
			// A walk that was cut short says so, that whole sets are worked out instead.
			f := UnreadMessages{conversations: map[DirectConversationID][]UserID{}}
			p := readerAccess{View: v, reader: v.Me()}
			var all ids.Set
			all.AddRange(1, int64(w.realm.LastMessageID()))
			if f.scan(&p, &all, 3) {
				t.Errorf("seed %d: three messages are enough of %d", seed, all.Len())
			}
			found += len(unread) + len(starred)
		}
	}
	if found < 500 {
		t.Errorf("only %d messages were told of", found)
	}
}

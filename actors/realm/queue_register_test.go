package realm

import (
	"slices"
	"testing"

	"parley/actors/realm/ids"
)

// A registration contains the messages found by looking at every message alone. The random
// organizations have moved messages, former and archived channels, and rows added and removed by moves.
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
			listed := []MessageID{}
			x := v.Unread().Sorted()
			for _, list := range [][]UnreadConversation{x.Direct, x.Groups} {
				for _, y := range list {
					listed = append(listed, y.IDs...)
				}
			}
			for _, y := range x.Channels {
				if !slices.IsSorted(y.IDs) {
					t.Errorf("seed %d: user %d: out of order: %v", seed, u, y.IDs)
				}
				listed = append(listed, y.IDs...)
			}
			slices.Sort(listed)
			newestGot := w.realm.NewestReceived(u)
			if !slices.Equal(listed, unread) || !slices.Equal(v.Starred(), starred) || newestGot != newest {
				t.Errorf("seed %d: user %d: unread %v, want %v; starred %v, want %v; newest %d, want %d",
					seed, u, listed, unread, v.Starred(), starred, newestGot, newest)
			}
			// A walk that stops at its limit returns false, so that whole sets are combined instead.
			f := UnreadMessages{conversations: map[DirectConversationID][]UserID{}}
			p := readerAccess{View: v, reader: v.Me()}
			var all ids.Set
			all.AddRange(1, int64(w.realm.LastMessageID()))
			if f.scan(&p, &all, 3) {
				t.Errorf("seed %d: a walk limited to three messages claims to cover all %d", seed, all.Len())
			}
			found += len(unread) + len(starred)
		}
	}
	if found < 500 {
		t.Errorf("only %d unread and starred messages in all registrations", found)
	}
}

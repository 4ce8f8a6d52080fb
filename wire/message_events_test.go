package wire

import (
	"testing"

	"parley/actors/realm"
)

// TestMessageEventsMatchObjects checks that a message event written directly has the same bytes as one made from the
// object.
func TestMessageEventsMatchObjects(t *testing.T) {
	sender := realm.UserInfo{ID: 8, Name: `A "quoted" <name>`, Email: "a@example.org"}
	seen := sender
	seen.EmailPublic, seen.Avatar, seen.AvatarFile = true, "U", "f"
	face := sender
	face.EmailPublic, face.Avatar = true, "G"
	body := &realm.Body{Text: "*text* \u2028 \x01", HTML: "<p><em>text</em></p>"}
	link := []realm.TopicLink{{Text: "t", URL: "https://example.org"}}
	for _, m := range []realm.MessageInfo{
		{ID: 1, Sender: sender, Client: "web", Time: 17, Channel: 3, ChannelName: "général", Topic: "t", Body: body},
		{ID: 2, Sender: seen, Client: "web", Time: 18, Channel: 3, ChannelName: "c", Me: true, Edited: 19, Moved: 20,
			Links: link, Body: body},
		{
			ID:          3,
			Sender:      face,
			Talk:        5,
			People:      []realm.UserInfo{sender, seen},
			Body:        body,
			Reactions:   []realm.Reaction{{User: 9, Name: "smile", Code: "1f600", Type: "unicode_emoji"}},
			Submessages: []realm.Submessage{{ID: 1, Sender: 8, Type: "widget", Content: "{}"}},
		},
		{ID: 4, Talk: 5, Body: &realm.Body{}},
	} {
		for _, c := range []Client{{}, {Markdown: true, Gravatar: true, Caps: realm.CapEmptyTopicName}} {
			for _, unknown := range []bool{false, true} {
				for _, local := range []string{"", `1"7`} {
					v := variant{client: c, flags: realm.FlagRead | realm.FlagMentioned, hideSender: unknown}
					site := Site{Host: "chat.example.org", Name: "chat", URL: "https://chat.example.org"}
					o := messageEvent{Message: newMessage(&m, *m.Body, c, site, unknown), Flags: flagNames(v.flags),
						LocalID: local}
					got := encodeMessageEvent(&realm.MessageArrived{Message: m}, v, RenderContext{Site: site}, local)
					if want := withoutClosingBrace(encode(o)); string(got) != string(want) {
						t.Errorf("message %d, %+v:\n%s\nwant\n%s", m.ID, c, got, want)
					}
				}
			}
		}
	}
}

// BenchmarkMessageEvent encodes a message directly, beside the struct with the same bytes. The server does it once for
// each kind of client, not for each client. Directly it takes two thirds of the time.
//
//	go test -run - -bench MessageEvent -count 10 ./wire
func BenchmarkMessageEvent(b *testing.B) {
	m := realm.MessageInfo{ID: 1, Sender: realm.UserInfo{ID: 8, Name: "Ann Lee", Email: "a@example.org"}, Client: "web",
		Time: 1_700_000_000, Channel: 3, ChannelName: "general", Topic: "a topic"}
	body := realm.Body{Text: "Some words.", HTML: "<p>Some words of a message.</p>"}
	c, site := Client{Markdown: true}, Site{Host: "chat.example.org", Name: "chat"}
	b.Run("direct", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		for range b.N {
			out = appendMessage(out[:0], &m, body, c, site, false)
		}
	})
	b.Run("struct", func(b *testing.B) {
		b.ReportAllocs()
		var out []byte
		for range b.N {
			out = appendJSON(out[:0], newMessage(&m, body, c, site, false))
		}
	})
}

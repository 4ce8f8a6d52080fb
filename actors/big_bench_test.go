package actors

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/owner"
	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/realm/realmtest"
	"parley/wire"
)

var (
	bigMessages = flag.Int("big", 100_000, "how many messages the benchmark's organization has")
	bigAsked    = flag.String("asked", "", "part of the name of the requests to send; several are separated by |")
	bigTimes    = flag.Int("times", 5, "how often each request is sent")
	bigListen   = flag.Bool("listen", true, "every user of the benchmark's organization has an event queue")
)

// bigDisk is a disk with a large organization on it.
type bigDisk struct {
	*slowDisk
	big *realmtest.LargeRealm
}

// bigFacts returns how many facts bigDisk replays for that many messages. The disk must say so before it replays them.
func bigFacts(messages int) realm.Seq {
	r := realm.New(1)
	b := realmtest.FillLargeRealm(r)
	b.WriteMessages(1)
	b.AddActivity()
	openBenchQueues(b)
	return r.Seq() + realm.Seq(messages) - 1
}

// openBenchQueues gives every user a profile, a phone and an event queue.
func openBenchQueues(b *realmtest.LargeRealm) {
	for f := range int64(8) {
		b.Realm.Replay(&realm.ProfileFieldChanged{Field: realm.ProfileField{
			ID:       f + 1,
			Type:     1,
			Name:     fmt.Sprint("About ", f),
			Order:    int(f) + 1,
			Editable: true,
		}})
	}
	for i := range realm.UserID(realmtest.LargeUsers) {
		for f := range int64(8) {
			b.Realm.Replay(&realm.ProfileChanged{User: b.First + i, Field: f + 1, Value: "something"})
		}
		b.Realm.Replay(&realm.PushTokensChanged{
			User: b.First + i,
			List: []realm.PushToken{{Kind: realm.PushFCM, Token: "token"}},
		})
	}
	if !*bigListen {
		return
	}
	for i := range realm.UserID(realmtest.LargeUsers) {
		b.Realm.Replay(&realm.QueueOpened{Queue: realm.Queue{
			ID:          realm.QueueID(fmt.Sprint("queue-", i)),
			User:        b.First + i,
			At:          b.Realm.Seq() + 1,
			Created:     time.Now().Unix(),
			Idle:        realm.MaxIdle,
			Markdown:    true,
			Subscribers: "partial",
			Caps:        1<<12 - 1,
		}})
	}
}

func (d *bigDisk) Load(_ realm.ID, r *realm.Realm, _ *presence.Table) ([]realm.Publication, error) {
	d.big = realmtest.FillLargeRealm(r)
	d.big.WriteMessages(*bigMessages)
	d.big.AddActivity()
	openBenchQueues(d.big)
	return nil, nil
}

// BenchmarkTurnLatency sends a large organization every kind of request that can take long, through the endpoints. It
// prints the slowest kinds: the least of several tries of each turn and view, and the longest. The goal is 5 ms with a
// million messages:
//
//	go test ./actors -run XXX -bench TurnLatency -benchtime 1x -big 1000000
func BenchmarkTurnLatency(b *testing.B) {
	p := newDiskContents()
	p.rows = bigFacts(*bigMessages)
	d := &bigDisk{slowDisk: &slowDisk{diskContents: p}}
	began := time.Now()
	srv := openServer(b, d)
	defer closeServer(b, srv)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.Logf("%d messages open in %v, heap %d MB", *bigMessages, time.Since(began).Round(time.Millisecond),
		m.HeapAlloc>>20)
	srv.pushEnabled.Store(true)
	srv.mailEnabled.Store(true)
	for range b.N {
		measureAll(b, srv, d.big)
	}
}

// viewCounter gives each view a kind of its own, so that it can be compared with the same view of another try.
type viewCounter struct {
	*Server
	views int
}

func (h *viewCounter) View(id realm.ID, c realm.Caller, view func(realm.View) (any, error)) (any, error) {
	h.views++
	c.Operation = fmt.Sprint("view ", h.views)
	return h.Server.View(id, c, view)
}

// benchSelected reports whether the -asked flag selects a request.
func benchSelected(name string) bool {
	return slices.ContainsFunc(strings.Split(*bigAsked, "|"),
		func(part string) bool { return strings.Contains(name, part) })
}

// benchRequest is a kind of request under the benchmark's name, and how long its turns took.
type benchRequest struct {
	name       string
	least, max time.Duration // least of several tries of the slowest turn; the longest turn of all
	which      string        // which of the turns was slowest
	longest    string        // kind of the turn that took max
}

// largeBench sends requests to a large organization and collects their latencies.
type largeBench struct {
	b         *testing.B
	srv       *Server
	x         *realmtest.LargeRealm
	all       []benchRequest
	everyone  []realm.UserID
	most      []any    // nine of ten channels, as parameters of a subscription
	mostNames []string // their names
	group     realm.GroupID
	out       bool // 5,000 users are out of the group
}

func measureAll(b *testing.B, srv *Server, x *realmtest.LargeRealm) {
	m := &largeBench{b: b, srv: srv, x: x, everyone: make([]realm.UserID, realmtest.LargeUsers)}
	for i := range m.everyone {
		m.everyone[i] = x.First + realm.UserID(i)
	}
	for c := realm.ChannelID(4); c <= realmtest.LargeChannels; c++ {
		if c%10 != 0 {
			name := fmt.Sprint("channel ", c)
			m.most, m.mostNames = append(m.most, map[string]any{"name": name}), append(m.mostNames, name)
		}
	}
	waitUntilIdle(srv)
	for _, measure := range []func(){m.reads, m.lists, m.flags, m.messages, m.channels, m.subscriptions,
		m.groups, m.accounts, m.exports, m.followed, m.laterMessages, m.veryLong, m.ends, m.snapshots} {
		measure()
	}
	slowestTable(b, m.all)
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.Logf("heap %d MB at the end", mem.HeapAlloc>>20)
}

// tryAs sends one request several times; p makes the parameters of each.
func (m *largeBench) tryAs(name string, who func(i int) realm.UserID, endpoint string, p func(i int) params) {
	if !benchSelected(name) {
		return
	}
	a := benchRequest{name: name}
	var tries []map[string][]time.Duration
	for i := range *bigTimes {
		q := params{}
		if p != nil {
			q = p(i)
		}
		holds := recordLatencies(m.srv)
		out := <-call(m.srv, who(i), endpoint, q)
		if out.status != 200 {
			m.b.Errorf("%s: %d %.300v", name, out.status, out.body)
			return
		}
		waitUntilIdle(m.srv)
		tries = append(tries, holds())
		for kind, list := range tries[i] {
			if d := slices.Max(list); d > a.max {
				a.max, a.longest = d, kind
			}
		}
	}
	a.least, a.which = longestLatency(tries)
	m.all = append(m.all, a)
}

func (m *largeBench) try(name string, u realm.UserID, endpoint string, p func(i int) params) {
	m.tryAs(name, func(int) realm.UserID { return u }, endpoint, p)
}

func same(p params) func(int) params { return func(int) params { return p } }

// sendTo makes the parameters of messages in a topic.
func sendTo(topic string, to any) func(int) params {
	return func(i int) params {
		return params{"type": "channel", "to": to, "topic": topic, "content": fmt.Sprint("hello ", i)}
	}
}

// view returns the result of a function that reads as a user; 0 is the system.
func (m *largeBench) view(u realm.UserID, read func(v realm.View) (any, error)) any {
	x, err := m.srv.View(1, realm.Caller{System: u == 0, User: u}, read)
	if err != nil {
		m.b.Fatal(err)
	}
	return x
}

// last returns the last message in a topic.
func (m *largeBench) last(c realm.ChannelID, topic string) realm.MessageID {
	return m.view(0, func(v realm.View) (any, error) {
		id, _ := v.LastMessageInTopic(c, topic)
		return id, nil
	}).(realm.MessageID)
}

// ids returns messages spread over the whole history.
func (m *largeBench) ids(n int) []realm.MessageID {
	all := m.view(m.x.InAllChannels, func(v realm.View) (any, error) {
		n, err := v.Narrow(nil, nil)
		return n.AllIDs(nil), err
	}).([]realm.MessageID)
	out := make([]realm.MessageID, 0, n)
	for k := range n {
		out = append(out, all[k*len(all)/n])
	}
	return slices.Compact(out)
}

// role returns the group of a role.
func (m *largeBench) role(name string) realm.GroupID {
	return m.view(0, func(v realm.View) (any, error) {
		id := realm.GroupID(0)
		v.EachGroup(func(g *realm.Group) {
			if g.Name == name {
				id = g.ID
			}
		})
		return id, nil
	}).(realm.GroupID)
}

// outAndIn takes 5,000 users out of the group, and adds them again the next time.
func (m *largeBench) outAndIn() params {
	m.out = !m.out
	return params{"user_group_id": m.group, map[bool]string{true: "delete", false: "add"}[m.out]: m.everyone[:5000]}
}

// reads sends the requests that return large parts of the organization.
func (m *largeBench) reads() {
	x := m.x
	everything := params{"apply_markdown": true, "client_gravatar": true, "include_subscribers": true,
		"client_capabilities": map[string]any{"archived_channels": true, "bulk_message_deletion": true,
			"empty_topic_name": true, "notification_settings_null": true, "user_avatar_url_field_optional": true,
			"user_list_incomplete": true}}
	m.try("register, behind", x.ManyUnread, "POST /register", same(everything))
	m.try("register, all channels", x.InAllChannels, "POST /register", same(everything))
	m.try("register, few channels", x.InFewChannels, "POST /register", same(everything))
	m.try("register, guest", x.Guest, "POST /register", same(everything))
	m.try("register, many unread", x.InFewChannels, "POST /register", same(everything))
	m.try("users", x.InFewChannels, "GET /users", nil)
	m.try("users, guest", x.Guest, "GET /users", nil)
	m.try("users and profiles", x.InFewChannels, "GET /users", same(params{"include_custom_profile_fields": true}))
	m.try("subscriptions", x.InAllChannels, "GET /users/me/subscriptions", same(params{"include_subscribers": true}))
	m.try("channels of a user", x.InAllChannels, "GET /users/{user_id}/channels", same(params{"user_id": x.ManyUnread}))
	m.try("groups", x.InAllChannels, "GET /user_groups", nil)
	m.try("members of a role", x.InAllChannels, "GET /user_groups/{user_group_id}/members",
		same(params{"user_group_id": 4}))
	m.try("consents", x.InAllChannels, "GET /export/realm/consents", nil)
	m.try("presence", x.InAllChannels, "GET /realm/presence", nil)
	m.try("receipts", x.InAllChannels, "GET /messages/{message_id}/read_receipts",
		func(i int) params { return params{"message_id": m.last(1, "topic 3")} })
	m.try("channels", x.InAllChannels, "GET /streams", same(params{"include_all_active": false}))
	m.try("all channels", x.InAllChannels, "GET /streams", same(params{"include_all": true, "include_default": true}))
	m.try("topics of a channel", x.InAllChannels, "GET /users/me/{stream_id}/topics", same(params{"stream_id": 1}))
	m.try("members of a channel", x.InAllChannels, "GET /streams/{stream_id}/members", same(params{"stream_id": 1}))
}

// lists asks for messages by every kind of narrow.
func (m *largeBench) lists() {
	x := m.x
	for _, anchor := range []string{"newest", "oldest", "first_unread"} {
		is := func(what string) []any { return []any{map[string]any{"operator": "is", "operand": what}} }
		term := func(operator string, operand any) map[string]any {
			return map[string]any{"operator": operator, "operand": operand}
		}
		for name, narrow := range map[string][]any{"all": {}, "unread": is("unread"), "dm": is("dm"),
			"starred": is("starred"), "mentioned": is("mentioned"), "alerted": is("alerted"),
			"resolved": is("resolved"), "followed": is("followed"),
			"muted": is("muted"), "channel": {term("channel", 1)},
			"topic": {term("channel", 1), term("topic", "topic 3")}, "sender": {term("sender", x.OneMessage)},
			"dm-with": {term("dm-including", x.OneMessage)}, "link": {term("has", "link")},
			"reaction": {term("has", "reaction")}, "public": {term("channels", "public")},
			"not": {map[string]any{"operator": "channel", "operand": 1, "negated": true},
				term("sender", x.InFewChannels)}} {
			m.try("messages "+name+" "+anchor, x.InAllChannels, "GET /messages",
				same(params{"anchor": anchor, "num_before": 50, "num_after": 50, "narrow": narrow}))
		}
	}
	m.try("5000 messages", x.InAllChannels, "GET /messages",
		same(params{"anchor": "newest", "num_before": 5000, "num_after": 0}))
	m.try("flags by narrow", x.InAllChannels, "POST /messages/flags/narrow", func(i int) params {
		return params{"anchor": "oldest", "num_before": 0, "num_after": 5000,
			"narrow": []any{map[string]any{"operator": "channel", "operand": 1}}, "op": []string{"remove", "add"}[i%2],
			"flag": "read"}
	})
}

// flags changes flags of many messages.
func (m *largeBench) flags() {
	x := m.x
	m.try("flags of 50,000", x.InAllChannels, "POST /messages/flags", func(i int) params {
		return params{"messages": m.ids(50_000), "op": []string{"add", "remove"}[i%2], "flag": "read"}
	})
	m.try("stars of 50,000", x.InAllChannels, "POST /messages/flags", func(i int) params {
		return params{"messages": m.ids(50_000), "op": []string{"add", "remove"}[i%2], "flag": "starred"}
	})
	m.try("mark topic as read", x.InAllChannels, "POST /mark_topic_as_read",
		func(i int) params { return params{"stream_id": 3, "topic_name": fmt.Sprint("topic ", i)} })
	m.try("mute a user", x.InAllChannels, "POST /users/me/muted_users/{muted_user_id}",
		func(i int) params { return params{"muted_user_id": x.OneMessage + 20 + realm.UserID(i)} })
	m.tryAs("mark all as read, most", func(i int) realm.UserID { return x.First + 5000 + realm.UserID(i) },
		"POST /mark_all_as_read", nil)
	m.try("mark all as read, behind", x.ManyUnread, "POST /mark_all_as_read", nil)
	m.try("mark all as read", x.InFewChannels, "POST /mark_all_as_read", nil)
	m.try("mark channel as read", x.InAllChannels, "POST /mark_stream_as_read", same(params{"stream_id": 1}))
}

// messages sends, moves, edits and deletes messages.
func (m *largeBench) messages() {
	b, srv, x := m.b, m.srv, m.x
	m.try("send", x.InAllChannels, "POST /messages", sendTo("topic 3", 1))
	m.try("send everybody", x.InAllChannels, "POST /messages", func(int) params {
		return params{"type": "channel", "to": 2, "topic": "topic 5", "content": "@**all** hello"}
	})
	count, _ := srv.View(1, realm.Caller{User: x.InAllChannels}, func(v realm.View) (any, error) {
		n, err := v.Narrow([]realm.Term{
			{Operator: "channel", SentOperator: "channel", Operand: realm.Operand{IsID: true, ID: 1}},
			{Operator: "topic", SentOperator: "topic", Operand: realm.Operand{Text: "topic 3"}},
		}, nil)
		return len(n.AllIDs(nil)), err
	})
	b.Logf("topic 3 has %v messages", count)
	m.try("resolve a topic", x.InAllChannels, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": m.last(1, []string{"topic 3", "✔ topic 3"}[i%2]),
			"topic": []string{"✔ topic 3", "topic 3"}[i%2], "propagate_mode": "change_all"}
	})
	m.try("move a topic to a channel", x.InAllChannels, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": m.last(1, fmt.Sprint("topic ", 4+i)), "stream_id": 2,
			"propagate_mode": "change_all"}
	})
	m.try("react", x.InAllChannels, "POST /messages/{message_id}/reactions", func(i int) params {
		return params{"message_id": m.last(1, fmt.Sprint("topic ", 9+i)), "emoji_name": "wave"}
	})
	m.try("typing", x.InAllChannels, "POST /typing",
		same(params{"type": "stream", "op": "start", "stream_id": 1, "topic": "topic 3"}))
	m.try("edit with @all", x.InAllChannels, "PATCH /messages/{message_id}", func(i int) params {
		sent := mustCall(b, srv, x.InAllChannels, "POST /messages", sendTo("topic 3", 1)(i))
		return params{"message_id": sent["id"], "content": "@**all** of you"}
	})
	m.try("delete one message", x.InAllChannels, "DELETE /messages/{message_id}",
		func(i int) params { return params{"message_id": m.last(1, "topic 10")} })
	m.try("delete a topic", x.InAllChannels, "POST /streams/{stream_id}/delete_topic",
		func(i int) params { return params{"stream_id": 1, "topic_name": fmt.Sprint("topic ", 12+i)} })
}

// channels changes channels and subscribes all users.
func (m *largeBench) channels() {
	x := m.x
	m.try("privacy of a channel", x.InAllChannels, "PATCH /streams/{stream_id}",
		func(i int) params { return params{"stream_id": 3, "is_private": i%2 == 0} })
	m.try("history of a channel", x.InAllChannels, "PATCH /streams/{stream_id}", func(i int) params {
		return params{"stream_id": 3, "is_private": true, "history_public_to_subscribers": i%2 == 0}
	})
	m.try("who may send", x.InAllChannels, "PATCH /streams/{stream_id}", func(i int) params {
		return params{"stream_id": 3, "can_send_message_group": map[string]any{"new": []int{3, 4}[i%2]}}
	})
	m.try("rename a channel", x.InAllChannels, "PATCH /streams/{stream_id}",
		func(i int) params { return params{"stream_id": 2, "new_name": fmt.Sprint("other ", i)} })
	m.try("subscribe 10,000", x.InAllChannels, "POST /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": []any{map[string]any{"name": fmt.Sprint("crowd ", i)}}, "principals": m.everyone}
	})
	m.try("unsubscribe 1,000", x.InAllChannels, "DELETE /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": []any{fmt.Sprint("crowd ", i)}, "principals": m.everyone[100:1100]}
	})
	m.try("unsubscribe 10,000", x.InAllChannels, "DELETE /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": []any{fmt.Sprint("crowd ", i)}, "principals": m.everyone}
	})
}

// subscriptions changes many subscriptions of one user, and of some users.
func (m *largeBench) subscriptions() {
	x := m.x
	colors := [2][]any{}
	for c := realm.ChannelID(4); c <= realmtest.LargeChannels; c++ {
		for i := range colors {
			colors[i] = append(colors[i],
				map[string]any{"stream_id": c, "property": "color", "value": fmt.Sprint("#12345", i)},
				map[string]any{"stream_id": c, "property": "is_muted", "value": i == 0})
		}
	}
	m.try("2,000 properties", x.InAllChannels, "POST /users/me/subscriptions/properties",
		func(i int) params { return params{"subscription_data": colors[i%2]} })
	many := [2][]any{}
	for i := range many {
		for k := range realm.MaxPropertiesPerRequest {
			c := colors[i][k/6%len(colors[i])].(map[string]any)["stream_id"]
			property := []string{"is_muted", "pin_to_top", "push_notifications", "audible_notifications",
				"desktop_notifications", "email_notifications"}[k%6]
			many[i] = append(many[i], map[string]any{"stream_id": c, "property": property, "value": i == 0})
		}
	}
	m.try("most properties", x.InAllChannels, "POST /users/me/subscriptions/properties",
		func(i int) params { return params{"subscription_data": many[i%2]} })
	m.tryAs("subscribe to 900", func(i int) realm.UserID { return x.First + 7000 + realm.UserID(i) },
		"POST /users/me/subscriptions", same(params{"subscriptions": m.most}))
	m.tryAs("unsubscribe from 900", func(i int) realm.UserID { return x.First + 7000 + realm.UserID(i) },
		"DELETE /users/me/subscriptions", same(params{"subscriptions": m.mostNames}))
	hundred := m.everyone[8000:8100]
	m.try("subscribe 20 to 900", x.InAllChannels, "POST /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": m.most, "principals": hundred[20*(i%5) : 20*(i%5)+20]}
	})
	m.try("unsubscribe 20 from 900", x.InAllChannels, "DELETE /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": m.mostNames, "principals": hundred[20*(i%5) : 20*(i%5)+20]}
	})
}

// groups makes and changes a group of all users.
func (m *largeBench) groups() {
	b, srv, x := m.b, m.srv, m.x
	m.try("create a group of 10,000", x.InAllChannels, "POST /user_groups/create", func(i int) params {
		return params{"name": fmt.Sprint("group ", i), "description": "", "members": m.everyone}
	})
	srv.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
		v.EachGroup(func(g *realm.Group) { m.group = max(m.group, g.ID) })
		return nil, nil
	})
	group := m.group
	m.try("take 5,000 out of a group", x.InAllChannels, "POST /user_groups/{user_group_id}/members", func(int) params {
		return m.outAndIn()
	})
	m.try("who may mention a group", x.InAllChannels, "PATCH /user_groups/{user_group_id}", func(i int) params {
		return params{"user_group_id": group, "can_mention_group": map[string]any{"new": []int{3, 4}[i%2]}}
	})
	m.try("send to a group", x.InAllChannels, "POST /messages", func(int) params {
		return params{"type": "channel", "to": 2, "topic": "topic 5", "content": "@*group 0* hello"}
	})
	m.try("edit with a group", x.InAllChannels, "PATCH /messages/{message_id}", func(i int) params {
		sent := mustCall(b, srv, x.InAllChannels, "POST /messages", sendTo("topic 3", 2)(i))
		return params{"message_id": sent["id"], "content": "@*group 0* hello"}
	})
	m.try("a channel for a group", x.InAllChannels, "PATCH /streams/{stream_id}", func(i int) params {
		return params{"stream_id": 3, "can_subscribe_group": map[string]any{"new": []any{2, group}[i%2]}}
	})
	m.try("subgroup of a group", x.InAllChannels, "POST /user_groups/{user_group_id}/subgroups", func(i int) params {
		return params{"user_group_id": group - 1, []string{"add", "delete"}[i%2]: []any{group}}
	})
	m.try("end a group", x.InAllChannels, "POST /user_groups/{user_group_id}/deactivate", func(i int) params {
		made := mustCall(b, srv, x.InAllChannels, "POST /user_groups/create",
			params{"name": fmt.Sprint("short-lived ", i), "description": "", "members": m.everyone})
		return params{"user_group_id": made["group_id"]}
	})
}

// accounts changes accounts and the organization.
func (m *largeBench) accounts() {
	x := m.x
	someone := x.First + 6000
	m.try("role of a user", x.InAllChannels, "PATCH /users/{user_id}",
		func(i int) params { return params{"user_id": someone, "role": []int{600, 400, 200, 300, 400}[i%5]} })
	m.try("name of a user", x.InAllChannels, "PATCH /users/{user_id}",
		func(i int) params { return params{"user_id": someone, "full_name": fmt.Sprint("Renamed ", i)} })
	m.try("name of one in all channels", x.InAllChannels, "PATCH /users/{user_id}",
		func(i int) params { return params{"user_id": x.ManyUnread, "full_name": fmt.Sprint("Behind ", i)} })
	m.try("status", x.InAllChannels, "POST /users/me/status",
		func(i int) params { return params{"status_text": fmt.Sprint("away ", i)} })
	m.try("a new field", x.InAllChannels, "POST /realm/profile_fields",
		func(i int) params { return params{"name": fmt.Sprint("Field ", i), "field_type": 1} })
	m.try("rename a field", x.InAllChannels, "PATCH /realm/profile_fields/{field_id}",
		func(i int) params { return params{"field_id": 1, "name": fmt.Sprint("Other ", i)} })
	m.try("end a field", x.InAllChannels, "DELETE /realm/profile_fields/{field_id}",
		func(i int) params { return params{"field_id": 1 + i} })
	m.try("waiting period", x.InAllChannels, "PATCH /realm",
		func(i int) params { return params{"waiting_period_threshold": 100_000 * (1 - i%2)} })
	m.try("whom guests see", x.InAllChannels, "PATCH /realm", func(i int) params {
		return params{"can_access_all_users_group": map[string]any{
			"new": m.role([]string{"role:members", "role:m.everyone"}[i%2])}}
	})
	m.try("name of the organization", x.InAllChannels, "PATCH /realm",
		func(i int) params { return params{"name": fmt.Sprint("Big ", i)} })
	m.try("a default channel", x.InAllChannels, "POST /default_streams",
		func(i int) params { return params{"stream_id": 4 + i} })
	m.try("follow a topic", x.InAllChannels, "POST /user_topics", func(i int) params {
		return params{"stream_id": 2, "topic": fmt.Sprint("topic ", i), "visibility_policy": 3}
	})
	m.try("a view for exports", x.InAllChannels, "GET /export/realm", nil)
}

// exports measures the views of an export.
func (m *largeBench) exports() {
	b, srv, x := m.b, m.srv, m.x
	oneOfThree := func(i int) realm.UserID {
		return []realm.UserID{x.InAllChannels, x.ManyUnread, x.InFewChannels}[i%3]
	}
	m.tryAs("consent", oneOfThree, "PATCH /settings", same(params{"allow_private_data_export": true}))
	for _, kind := range []string{realm.PublicExport, realm.CompleteExport, realm.ConsentExport} {
		if !benchSelected("export " + kind) {
			continue
		}
		least, a := map[string]time.Duration{}, benchRequest{name: "export " + kind} // the least of each view
		for range *bigTimes {
			resetLatencies(srv)
			export := realm.Export{By: x.InAllChannels, Kind: kind}
			if err := wire.WriteExport(&viewCounter{Server: srv}, 1, testSite(""), export, io.Discard); err != nil {
				b.Fatal(err)
			}
			for _, k := range srv.SlowestTurns(1, math.MaxInt) {
				if d, ok := least[k.Kind]; !ok || k.Max < d {
					least[k.Kind] = k.Max
				}
				a.max = max(a.max, k.Max)
			}
		}
		for _, d := range least {
			a.least = max(a.least, d)
		}
		m.all = append(m.all, a)
	}
}

// followed sends to a topic that all users follow, and to all users.
func (m *largeBench) followed() {
	b, srv, x := m.b, m.srv, m.x
	srv.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
		t.Record(&realm.TopicPoliciesSet{
			Users:   m.everyone,
			Channel: 2,
			Topic:   "followed",
			Policy:  realm.TopicFollowed,
			At:      t.Now,
		})
		return nil, nil
	})
	m.try("send, 10,000 are told outside", x.InAllChannels, "POST /messages", sendTo("followed", 2))
	m.try("resolve what 10,000 follow", x.InAllChannels, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": m.last(2, []string{"followed", "✔ followed"}[i%2]),
			"topic": []string{"✔ followed", "followed"}[i%2], "propagate_mode": "change_all"}
	})
	m.try("create a channel for 10,000", x.InAllChannels, "POST /channels/create",
		func(i int) params { return params{"name": fmt.Sprint("for all ", i), "subscribers": m.everyone} })
	m.try("hide one's address", x.ManyUnread, "PATCH /settings",
		func(i int) params { return params{"email_address_visibility": []int{4, 1}[i%2]} })
	m.try("a channel for 5,000 fewer", x.InAllChannels, "POST /user_groups/{user_group_id}/members", func(int) params {
		mustCall(b, srv, x.InAllChannels, "PATCH /streams/{stream_id}",
			params{"stream_id": 10, "can_subscribe_group": map[string]any{"new": m.group}})
		return m.outAndIn()
	})
}

// laterMessages asks for drafts and scheduled messages.
func (m *largeBench) laterMessages() {
	srv, x := m.srv, m.x
	m.try("200 drafts", x.InFewChannels, "POST /drafts", func(int) params {
		draft := params{"type": "stream", "to": []int{1}, "topic": "t", "content": "later"}
		return params{"drafts": slices.Repeat([]any{draft}, 200)}
	})
	m.try("drafts", x.InFewChannels, "GET /drafts", nil)
	m.try("matches of 5,000", x.InAllChannels, "GET /messages/matches_narrow", func(int) params {
		return params{"msg_ids": m.ids(5000), "narrow": []any{map[string]any{"operator": "channel", "operand": 1}}}
	})
	m.try("500 scheduled messages", x.InAllChannels, "GET /scheduled_messages", func(i int) params {
		for k := range 500 {
			srv.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
				t.Record(&realm.MessageScheduled{Message: realm.ScheduledMessage{
					ID:      int64(1000 + 500*i + k),
					User:    x.InAllChannels,
					Channel: 1,
					Topic:   "topic 3",
					Client:  "website",
					At:      t.Now,
				}})
				return nil, nil
			})
		}
		return params{}
	})
}

// veryLong is about one channel that is large in every respect: one topic has 100,000 messages, 20,000 topics have one
// message each, and one message has 10,000 reactions.
func (m *largeBench) veryLong() {
	b, srv, x := m.b, m.srv, m.x
	long := realm.ChannelID(mustCall(b, srv, x.InAllChannels, "POST /channels/create",
		params{"name": "long", "subscribers": []realm.UserID{x.InAllChannels}})["id"].(float64))
	topics := map[string]realm.TopicID{}
	write := func(n int, topic func(k int) string) {
		srv.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
			for k := range n {
				name := topic(k)
				id, known := topics[name]
				if !known {
					id = t.Org().NextTopic
					topics[name] = id
				}
				t.Record(&realm.MessageSent{
					ID:        t.LastMessageID() + 1,
					Sender:    x.InAllChannels,
					At:        t.Now,
					Client:    "website",
					ClientID:  1,
					Channel:   long,
					Topic:     id,
					TopicName: name,
					NewTopic:  !known,
				})
			}
			return nil, nil
		})
	}
	if benchSelected("very long") {
		write(20_000, func(k int) string { return fmt.Sprint("subject ", k) })
		write(100_000, func(int) string { return "endless" })
		srv.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
			for _, u := range m.everyone {
				t.Record(&realm.ReactionAdded{
					Message:  t.LastMessageID(),
					Reaction: realm.Reaction{User: u, Name: "wave", Code: "1f44b", Type: "unicode_emoji"},
				})
			}
			return nil, nil
		})
	}
	m.try("topics, very long", x.InAllChannels, "GET /users/me/{stream_id}/topics", same(params{"stream_id": long}))
	m.try("messages, very long", x.InAllChannels, "GET /messages",
		same(params{"anchor": "newest", "num_before": 100, "num_after": 0,
			"narrow": []any{map[string]any{"operator": "channel", "operand": long}}}))
	m.try("react, very long", x.InAllChannels, "POST /messages/{message_id}/reactions", func(i int) params {
		emoji := []string{"+1", "heart", "tada", "smile", "eyes"}[i%5]
		return params{"message_id": m.last(long, "endless"), "emoji_name": emoji}
	})
	m.try("read a topic, very long", x.InAllChannels, "POST /mark_topic_as_read",
		same(params{"stream_id": long, "topic_name": "endless"}))
	m.try("move a topic, very long", x.InAllChannels, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": m.last(long, []string{"endless", "elsewhere"}[i%2]),
			"topic": []string{"elsewhere", "endless"}[i%2], "propagate_mode": "change_all"}
	})
	m.try("delete a topic, very long", x.InAllChannels, "POST /streams/{stream_id}/delete_topic", func(i int) params {
		write(20_000, func(int) string { return fmt.Sprint("short-lived ", i) })
		return params{"stream_id": long, "topic_name": fmt.Sprint("short-lived ", i)}
	})
}

// ends deactivates accounts and archives channels.
func (m *largeBench) ends() {
	b, srv, x := m.b, m.srv, m.x
	m.try("retention", x.InAllChannels, "PATCH /streams/{stream_id}",
		func(i int) params { return params{"stream_id": 6 + i, "message_retention_days": 1} })
	account := func(method, path string) func(int) params { // of two users in all channels, in turns
		return func(i int) params {
			if i > 0 || method == "DELETE" && !benchSelected("deactivate a user") {
				mustCall(b, srv, x.InAllChannels, method+" "+path, params{"user_id": x.ManyUnread})
			}
			return params{"user_id": x.ManyUnread}
		}
	}
	m.try("deactivate a user", x.InAllChannels, "DELETE /users/{user_id}",
		account("POST", "/users/{user_id}/reactivate"))
	m.try("reactivate a user", x.InAllChannels, "POST /users/{user_id}/reactivate",
		account("DELETE", "/users/{user_id}"))
	m.try("deactivate with messages", x.InAllChannels, "DELETE /users/{user_id}", func(i int) params {
		u := x.ManyUnread + realm.UserID(i)
		mustCall(b, srv, x.InAllChannels, "POST /users/me/subscriptions",
			params{"subscriptions": m.most, "principals": []realm.UserID{u}})
		return params{"user_id": u, "actions": map[string]any{"delete_profile": true,
			"delete_public_channel_messages": true, "delete_private_channel_messages": true,
			"delete_direct_messages": true}}
	})
	m.try("archive a channel", x.InAllChannels, "DELETE /streams/{stream_id}",
		func(i int) params { return params{"stream_id": 1 + i} })
}

// snapshots writes snapshots of everything.
func (m *largeBench) snapshots() {
	b, srv, x := m.b, m.srv, m.x
	if benchSelected("snapshot") { // of everything, as no row has been written yet
		resetLatencies(srv)
		// the first ones are archived by now
		mustCall(b, srv, x.InAllChannels, "POST /messages", sendTo("topic 3", realmtest.LargeChannels/2)(0))
		done := make(chan error, 1)
		srv.runtime.Send(srv.find(1).pid, closeRealm{done})
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		for _, k := range srv.SlowestTurns(1, 100) {
			if k.Kind == "snapshot" {
				m.all = append(m.all, benchRequest{name: "snapshot", least: k.Total / time.Duration(k.Count),
					max: k.Max})
				b.Logf("a snapshot in %d slices", k.Count)
			}
		}
	}
	// A row that waits to be written and is about to change is encoded in the turn. So a topic is moved, and moved back
	// while the snapshot of that change is written, in the largest channel that is not archived.
	busy := realm.ChannelID(*bigTimes + 1)
	written := make(chan error, 1)
	written <- nil
	const moving = "move a topic while a snapshot is written"
	m.try(moving, x.InAllChannels, "PATCH /messages/{message_id}", func(int) params {
		if err := <-written; err != nil {
			b.Fatal(err)
		}
		moved := m.last(busy, "topic 3")
		move := func(topic string) params {
			return params{"message_id": moved, "topic": topic, "propagate_mode": "change_all"}
		}
		mustCall(b, srv, x.InAllChannels, "PATCH /messages/{message_id}", move("elsewhere"))
		resetLatencies(srv)
		srv.runtime.Send(srv.find(1).pid, closeRealm{written})
		return move("topic 3")
	})
}

// waitUntilIdle lets the organization run everything that is due.
func waitUntilIdle(srv *Server) {
	for seq := realm.Seq(0); ; {
		for srv.Metrics.Undelivered.Load() > 0 {
			runtime.Gosched()
		}
		srv.runtime.Send(srv.find(1).pid, owner.ContinueJobs{})
		now, _ := srv.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Seq(), nil })
		if now == seq {
			return
		}
		seq = now.(realm.Seq)
	}
}

// recordLatencies records the latency of every turn from now on. The function that it returns ends that and returns the
// latencies by kind, in order.
func recordLatencies(srv *Server) func() map[string][]time.Duration {
	l := &srv.find(1).latencies
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string][]time.Duration{}
	l.onObserve = func(kind string, took time.Duration) { all[kind] = append(all[kind], took) }
	return func() map[string][]time.Duration {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.onObserve = nil
		return all
	}
}

// longestLatency returns the slowest turn of a request that was sent several times. Other work on the machine only adds
// time, so the least of the tries counts for each turn. If the tries have different numbers of turns of one kind, the
// turns cannot be matched, and the least of the tries' longest turns counts. A request that every second try undoes
// counts by the slower of the two directions.
func longestLatency(tries []map[string][]time.Duration) (longest time.Duration, which string) {
	for parity := range min(2, len(tries)) {
		least := maps.Clone(tries[parity])
		for i := parity + 2; i < len(tries); i += 2 {
			for kind, l := range least {
				switch list := tries[i][kind]; {
				case list == nil: // the server's own work, which happened in only one of the tries
					delete(least, kind)
				case len(l) != len(list):
					least[kind] = []time.Duration{min(slices.Max(l), slices.Max(list))}
				default:
					for k, d := range list {
						l[k] = min(l[k], d)
					}
				}
			}
		}
		for kind, list := range least {
			if d := slices.Max(list); d > longest {
				longest, which = d, fmt.Sprintf("%s, %d of %d", kind, slices.Index(list, d)+1, len(list))
			}
		}
	}
	return longest, which
}

// resetLatencies forgets the latencies so far.
func resetLatencies(srv *Server) {
	l := &srv.find(1).latencies
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds = nil
}

func slowestTable(b *testing.B, all []benchRequest) {
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			if all[j].least > all[i].least {
				all[i], all[j] = all[j], all[i]
			}
		}
	}
	over := 0
	var table strings.Builder
	for i, a := range all {
		if a.least > MaxTurnLatency {
			over++
		}
		if i < slowestShown {
			fmt.Fprintf(&table, "\n%2d. %-32s least %8.3f ms (%s), longest %8.3f ms (%s)", i+1, a.name,
				float64(a.least.Microseconds())/1000, a.which, float64(a.max.Microseconds())/1000, a.longest)
		}
	}
	fmt.Fprintln(os.Stderr, table.String()) // a benchmark's log is cut off at ten lines
	b.ReportMetric(float64(all[0].least.Microseconds())/1000, "ms-slowest")
	b.ReportMetric(float64(over), "kinds-over-5ms")
}

// slowestShown is how many requests the benchmark prints.
const slowestShown = 20

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

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/actors/realm/realmtest"
	"parley/wire"
)

var (
	bigMessages = flag.Int("big", 100_000, "how many messages the benchmark's organization has")
	bigAsked    = flag.String("asked", "", "only what has this, or one of several with | between them, in its name is asked of the benchmark's organization")
	bigTimes    = flag.Int("times", 5, "how often each thing is asked of the benchmark's organization")
	bigListen   = flag.Bool("listen", true, "everybody in the benchmark's organization has a queue")
)

// bigDisk is a disk with a large organization on it.
type bigDisk struct {
	*slowDisk
	who *realmtest.Big
}

// bigFacts is how many facts bigDisk plays for so many messages: it says so before it plays them.
func bigFacts(messages int) realm.Seq {
	r := realm.New(1)
	b := realmtest.FillBig(r)
	b.Write(1)
	b.Live()
	listen(b)
	return r.Seq() + realm.Seq(messages) - 1
}

// listen gives everybody a profile, a phone, and a queue.
func listen(b *realmtest.Big) {
	for f := range int64(8) {
		b.Realm.Replay(&realm.ProfileFieldChanged{Field: realm.ProfileField{ID: f + 1, Type: 1, Name: fmt.Sprint("About ", f), Order: int(f) + 1, Editable: true}})
	}
	for i := range realm.UserID(realmtest.BigUsers) {
		for f := range int64(8) {
			b.Realm.Replay(&realm.ProfileChanged{User: b.First + i, Field: f + 1, Value: "something"})
		}
		b.Realm.Replay(&realm.PushTokensChanged{User: b.First + i, List: []realm.PushToken{{Kind: realm.PushFCM, Token: "token"}}})
	}
	if !*bigListen {
		return
	}
	for i := range realm.UserID(realmtest.BigUsers) {
		b.Realm.Replay(&realm.QueueOpened{Queue: realm.Queue{ID: realm.QueueID(fmt.Sprint("queue-", i)), User: b.First + i, At: b.Realm.Seq() + 1, Created: time.Now().Unix(), Idle: realm.MaxIdle,
			Markdown: true, Subscribers: "partial", Caps: 1<<12 - 1}})
	}
}

func (d *bigDisk) Load(_ realm.ID, r *realm.Realm, _ *presence.Book) ([]realm.Told, error) {
	d.who = realmtest.FillBig(r)
	d.who.Write(*bigMessages)
	d.who.Live()
	listen(d.who)
	return nil, nil
}

// BenchmarkHold asks everything a large organization is asked that can be long, through the endpoints, and names the ten
// kinds that held the realm longest: each turn and view by the least of several times, and by the longest. The goal is 5 ms with a million messages: go test -run XXX -bench Hold -benchtime 1x -big 1000000 ./actors
func BenchmarkHold(b *testing.B) {
	p := newPlatter()
	p.rows = bigFacts(*bigMessages)
	d := &bigDisk{slowDisk: &slowDisk{platter: p}}
	began := time.Now()
	h := openHouse(b, d)
	defer endHouse(b, h)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.Logf("%d messages open in %v, heap %d MB", *bigMessages, time.Since(began).Round(time.Millisecond), m.HeapAlloc>>20)
	h.pushes.Store(true)
	h.mails.Store(true)
	for range b.N {
		holdAll(b, h, d.who)
	}
}

// counted has each view count by itself: the same one may be compared with itself of another time.
type counted struct {
	*House
	views int
}

func (h *counted) View(id realm.ID, c realm.Caller, look func(realm.View) (any, error)) (any, error) {
	h.views++
	c.Doing = fmt.Sprint("view ", h.views)
	return h.House.View(id, c, look)
}

// wanted reports whether something is to be asked.
func wanted(name string) bool {
	return slices.ContainsFunc(strings.Split(*bigAsked, "|"), func(part string) bool { return strings.Contains(name, part) })
}

// asked is a kind of request as the benchmark names it, and how long it held the realm.
type asked struct {
	name       string
	least, max time.Duration
	which      string // of its holds the longest was
	longest    string // kind of the one that took max
}

func holdAll(b *testing.B, h *House, x *realmtest.Big) {
	var all []asked
	// try carries one request out several times; each gets its parameters anew.
	tryAs := func(name string, who func(i int) realm.UserID, endpoint string, p func(i int) params) {
		if !wanted(name) {
			return
		}
		a := asked{name: name}
		var tries []map[string][]time.Duration
		for i := range *bigTimes {
			q := params{}
			if p != nil {
				q = p(i)
			}
			holds := eachHold(h)
			out := <-call(h, who(i), endpoint, q)
			if out.status != 200 {
				b.Errorf("%s: %d %.300v", name, out.status, out.body)
				return
			}
			settle(h)
			tries = append(tries, holds())
			for kind, list := range tries[i] {
				if d := slices.Max(list); d > a.max {
					a.max, a.longest = d, kind
				}
			}
		}
		a.least, a.which = longestHold(tries)
		all = append(all, a)
	}
	try := func(name string, u realm.UserID, endpoint string, p func(i int) params) {
		tryAs(name, func(int) realm.UserID { return u }, endpoint, p)
	}
	same := func(p params) func(int) params { return func(int) params { return p } }
	everything := params{"apply_markdown": true, "client_gravatar": true, "include_subscribers": true, "client_capabilities": map[string]any{"archived_channels": true, "bulk_message_deletion": true, "empty_topic_name": true,
		"notification_settings_null": true, "user_avatar_url_field_optional": true, "user_list_incomplete": true}}
	last := func(c realm.ChannelID, topic string) realm.MessageID {
		id, err := h.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) { m, _ := v.LastInTopic(c, topic); return m, nil })
		if err != nil {
			b.Fatal(err)
		}
		return id.(realm.MessageID)
	}
	settle(h)
	try("register, behind", x.Behind, "POST /register", same(everything))
	try("register, all channels", x.All, "POST /register", same(everything))
	try("register, few channels", x.Few, "POST /register", same(everything))
	try("register, guest", x.Guest, "POST /register", same(everything))
	try("register, many unread", x.Few, "POST /register", same(everything))
	try("users", x.Few, "GET /users", nil)
	try("users, guest", x.Guest, "GET /users", nil)
	try("users and profiles", x.Few, "GET /users", same(params{"include_custom_profile_fields": true}))
	try("subscriptions", x.All, "GET /users/me/subscriptions", same(params{"include_subscribers": true}))
	try("channels of a user", x.All, "GET /users/{user_id}/channels", same(params{"user_id": x.Behind}))
	try("groups", x.All, "GET /user_groups", nil)
	try("members of a role", x.All, "GET /user_groups/{user_group_id}/members", same(params{"user_group_id": 4}))
	try("consents", x.All, "GET /export/realm/consents", nil)
	try("presence", x.All, "GET /realm/presence", nil)
	try("receipts", x.All, "GET /messages/{message_id}/read_receipts", func(i int) params { return params{"message_id": last(1, "topic 3")} })
	try("channels", x.All, "GET /streams", same(params{"include_all_active": false}))
	try("all channels", x.All, "GET /streams", same(params{"include_all": true, "include_default": true}))
	try("topics of a channel", x.All, "GET /users/me/{stream_id}/topics", same(params{"stream_id": 1}))
	try("members of a channel", x.All, "GET /streams/{stream_id}/members", same(params{"stream_id": 1}))
	for _, anchor := range []string{"newest", "oldest", "first_unread"} {
		is := func(what string) []any { return []any{map[string]any{"operator": "is", "operand": what}} }
		term := func(operator string, operand any) map[string]any {
			return map[string]any{"operator": operator, "operand": operand}
		}
		for name, narrow := range map[string][]any{"all": {}, "unread": is("unread"), "dm": is("dm"), "starred": is("starred"), "mentioned": is("mentioned"), "alerted": is("alerted"), "resolved": is("resolved"), "followed": is("followed"),
			"muted": is("muted"), "channel": {term("channel", 1)}, "topic": {term("channel", 1), term("topic", "topic 3")}, "sender": {term("sender", x.Once)}, "dm-with": {term("dm-including", x.Once)}, "link": {term("has", "link")},
			"reaction": {term("has", "reaction")}, "public": {term("channels", "public")}, "not": {map[string]any{"operator": "channel", "operand": 1, "negated": true}, term("sender", x.Few)}} {
			try("messages "+name+" "+anchor, x.All, "GET /messages", same(params{"anchor": anchor, "num_before": 50, "num_after": 50, "narrow": narrow}))
		}
	}
	try("5000 messages", x.All, "GET /messages", same(params{"anchor": "newest", "num_before": 5000, "num_after": 0}))
	try("flags by narrow", x.All, "POST /messages/flags/narrow", func(i int) params {
		return params{"anchor": "oldest", "num_before": 0, "num_after": 5000, "narrow": []any{map[string]any{"operator": "channel", "operand": 1}}, "op": []string{"remove", "add"}[i%2], "flag": "read"}
	})
	visible, err := h.View(1, realm.Caller{User: x.All}, func(v realm.View) (any, error) {
		n, err := v.Narrow(nil, nil)
		return n.Matching(nil), err
	})
	if err != nil {
		b.Fatal(err)
	}
	ids := func(n int) []realm.MessageID { // what is spread over the whole history
		all := visible.([]realm.MessageID)
		out := make([]realm.MessageID, 0, n)
		for k := range n {
			out = append(out, all[k*len(all)/n])
		}
		return slices.Compact(out)
	}
	role := func(name string) (id realm.GroupID) {
		h.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
			v.EachGroup(func(g *realm.Group) {
				if g.Name == name {
					id = g.ID
				}
			})
			return nil, nil
		})
		return id
	}
	try("flags of 50,000", x.All, "POST /messages/flags", func(i int) params {
		return params{"messages": ids(50_000), "op": []string{"add", "remove"}[i%2], "flag": "read"}
	})
	try("stars of 50,000", x.All, "POST /messages/flags", func(i int) params {
		return params{"messages": ids(50_000), "op": []string{"add", "remove"}[i%2], "flag": "starred"}
	})
	try("mark topic as read", x.All, "POST /mark_topic_as_read", func(i int) params { return params{"stream_id": 3, "topic_name": fmt.Sprint("topic ", i)} })
	try("mute a user", x.All, "POST /users/me/muted_users/{muted_user_id}", func(i int) params { return params{"muted_user_id": x.Once + 20 + realm.UserID(i)} })
	tryAs("mark all as read, most", func(i int) realm.UserID { return x.First + 5000 + realm.UserID(i) }, "POST /mark_all_as_read", nil)
	try("mark all as read, behind", x.Behind, "POST /mark_all_as_read", nil)
	try("mark all as read", x.Few, "POST /mark_all_as_read", nil)
	try("mark channel as read", x.All, "POST /mark_stream_as_read", same(params{"stream_id": 1}))
	send := func(topic string, to any) func(int) params {
		return func(i int) params {
			return params{"type": "channel", "to": to, "topic": topic, "content": fmt.Sprint("hello ", i)}
		}
	}
	try("send", x.All, "POST /messages", send("topic 3", 1))
	try("send everybody", x.All, "POST /messages", func(int) params {
		return params{"type": "channel", "to": 2, "topic": "topic 5", "content": "@**all** hello"}
	})
	count, _ := h.View(1, realm.Caller{User: x.All}, func(v realm.View) (any, error) {
		n, err := v.Narrow([]realm.Term{{Operator: "channel", Sent: "channel", Operand: realm.Operand{IsID: true, ID: 1}}, {Operator: "topic", Sent: "topic", Operand: realm.Operand{Text: "topic 3"}}}, nil)
		return len(n.Matching(nil)), err
	})
	b.Logf("topic 3 has %v messages", count)
	try("resolve a topic", x.All, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": last(1, []string{"topic 3", "✔ topic 3"}[i%2]), "topic": []string{"✔ topic 3", "topic 3"}[i%2], "propagate_mode": "change_all"}
	})
	try("move a topic to a channel", x.All, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": last(1, fmt.Sprint("topic ", 4+i)), "stream_id": 2, "propagate_mode": "change_all"}
	})
	try("react", x.All, "POST /messages/{message_id}/reactions", func(i int) params {
		return params{"message_id": last(1, fmt.Sprint("topic ", 9+i)), "emoji_name": "wave"}
	})
	try("typing", x.All, "POST /typing", same(params{"type": "stream", "op": "start", "stream_id": 1, "topic": "topic 3"}))
	try("edit with @all", x.All, "PATCH /messages/{message_id}", func(i int) params {
		sent := must(b, h, x.All, "POST /messages", send("topic 3", 1)(i))
		return params{"message_id": sent["id"], "content": "@**all** of you"}
	})
	try("delete one message", x.All, "DELETE /messages/{message_id}", func(i int) params { return params{"message_id": last(1, "topic 10")} })
	try("delete a topic", x.All, "POST /streams/{stream_id}/delete_topic", func(i int) params { return params{"stream_id": 1, "topic_name": fmt.Sprint("topic ", 12+i)} })
	try("privacy of a channel", x.All, "PATCH /streams/{stream_id}", func(i int) params { return params{"stream_id": 3, "is_private": i%2 == 0} })
	try("history of a channel", x.All, "PATCH /streams/{stream_id}", func(i int) params {
		return params{"stream_id": 3, "is_private": true, "history_public_to_subscribers": i%2 == 0}
	})
	try("who may send", x.All, "PATCH /streams/{stream_id}", func(i int) params {
		return params{"stream_id": 3, "can_send_message_group": map[string]any{"new": []int{3, 4}[i%2]}}
	})
	try("rename a channel", x.All, "PATCH /streams/{stream_id}", func(i int) params { return params{"stream_id": 2, "new_name": fmt.Sprint("other ", i)} })
	everyone := make([]realm.UserID, realmtest.BigUsers)
	for i := range everyone {
		everyone[i] = x.First + realm.UserID(i)
	}
	try("subscribe 10,000", x.All, "POST /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": []any{map[string]any{"name": fmt.Sprint("crowd ", i)}}, "principals": everyone}
	})
	try("unsubscribe 1,000", x.All, "DELETE /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": []any{fmt.Sprint("crowd ", i)}, "principals": everyone[100:1100]}
	})
	try("unsubscribe 10,000", x.All, "DELETE /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": []any{fmt.Sprint("crowd ", i)}, "principals": everyone}
	})
	var all1000 []any
	colors := [2][]any{}
	var left []string
	for c := realm.ChannelID(4); c <= realmtest.BigChannels; c++ {
		for i := range colors {
			colors[i] = append(colors[i], map[string]any{"stream_id": c, "property": "color", "value": fmt.Sprint("#12345", i)}, map[string]any{"stream_id": c, "property": "is_muted", "value": i == 0})
		}
		if c%10 != 0 {
			all1000, left = append(all1000, map[string]any{"name": fmt.Sprint("channel ", c)}), append(left, fmt.Sprint("channel ", c))
		}
	}
	try("2,000 properties", x.All, "POST /users/me/subscriptions/properties", func(i int) params { return params{"subscription_data": colors[i%2]} })
	many := [2][]any{}
	for i := range many {
		for k := range realm.MaxPropertiesAsked {
			c := colors[i][k/6%len(colors[i])].(map[string]any)["stream_id"]
			many[i] = append(many[i], map[string]any{"stream_id": c, "property": []string{"is_muted", "pin_to_top", "push_notifications", "audible_notifications", "desktop_notifications", "email_notifications"}[k%6], "value": i == 0})
		}
	}
	try("most properties", x.All, "POST /users/me/subscriptions/properties", func(i int) params { return params{"subscription_data": many[i%2]} })
	tryAs("subscribe to 900", func(i int) realm.UserID { return x.First + 7000 + realm.UserID(i) }, "POST /users/me/subscriptions", same(params{"subscriptions": all1000}))
	tryAs("unsubscribe from 900", func(i int) realm.UserID { return x.First + 7000 + realm.UserID(i) }, "DELETE /users/me/subscriptions", same(params{"subscriptions": left}))
	hundred := everyone[8000:8100]
	try("subscribe 20 to 900", x.All, "POST /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": all1000, "principals": hundred[20*(i%5) : 20*(i%5)+20]}
	})
	try("unsubscribe 20 from 900", x.All, "DELETE /users/me/subscriptions", func(i int) params {
		return params{"subscriptions": left, "principals": hundred[20*(i%5) : 20*(i%5)+20]}
	})
	group := realm.GroupID(0)
	try("create a group of 10,000", x.All, "POST /user_groups/create", func(i int) params {
		return params{"name": fmt.Sprint("group ", i), "description": "", "members": everyone}
	})
	h.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) {
		v.EachGroup(func(g *realm.Group) { group = max(group, g.ID) })
		return nil, nil
	})
	out := false
	outAndIn := func() params { // takes 5,000 out, and the next time puts them back
		out = !out
		return params{"user_group_id": group, map[bool]string{true: "delete", false: "add"}[out]: everyone[:5000]}
	}
	try("take 5,000 out of a group", x.All, "POST /user_groups/{user_group_id}/members", func(int) params {
		return outAndIn()
	})
	try("who may mention a group", x.All, "PATCH /user_groups/{user_group_id}", func(i int) params {
		return params{"user_group_id": group, "can_mention_group": map[string]any{"new": []int{3, 4}[i%2]}}
	})
	try("send to a group", x.All, "POST /messages", func(int) params {
		return params{"type": "channel", "to": 2, "topic": "topic 5", "content": "@*group 0* hello"}
	})
	try("edit with a group", x.All, "PATCH /messages/{message_id}", func(i int) params {
		sent := must(b, h, x.All, "POST /messages", send("topic 3", 2)(i))
		return params{"message_id": sent["id"], "content": "@*group 0* hello"}
	})
	try("a channel for a group", x.All, "PATCH /streams/{stream_id}", func(i int) params {
		return params{"stream_id": 3, "can_subscribe_group": map[string]any{"new": []any{2, group}[i%2]}}
	})
	try("subgroup of a group", x.All, "POST /user_groups/{user_group_id}/subgroups", func(i int) params {
		return params{"user_group_id": group - 1, []string{"add", "delete"}[i%2]: []any{group}}
	})
	try("end a group", x.All, "POST /user_groups/{user_group_id}/deactivate", func(i int) params {
		made := must(b, h, x.All, "POST /user_groups/create", params{"name": fmt.Sprint("short-lived ", i), "description": "", "members": everyone})
		return params{"user_group_id": made["group_id"]}
	})
	someone := x.First + 6000
	try("role of a user", x.All, "PATCH /users/{user_id}", func(i int) params { return params{"user_id": someone, "role": []int{600, 400, 200, 300, 400}[i%5]} })
	try("name of a user", x.All, "PATCH /users/{user_id}", func(i int) params { return params{"user_id": someone, "full_name": fmt.Sprint("Anew ", i)} })
	try("name of one in all channels", x.All, "PATCH /users/{user_id}", func(i int) params { return params{"user_id": x.Behind, "full_name": fmt.Sprint("Behind ", i)} })
	try("status", x.All, "POST /users/me/status", func(i int) params { return params{"status_text": fmt.Sprint("away ", i)} })
	try("a new field", x.All, "POST /realm/profile_fields", func(i int) params { return params{"name": fmt.Sprint("Field ", i), "field_type": 1} })
	try("rename a field", x.All, "PATCH /realm/profile_fields/{field_id}", func(i int) params { return params{"field_id": 1, "name": fmt.Sprint("Other ", i)} })
	try("end a field", x.All, "DELETE /realm/profile_fields/{field_id}", func(i int) params { return params{"field_id": 1 + i} })
	try("waiting period", x.All, "PATCH /realm", func(i int) params { return params{"waiting_period_threshold": 100_000 * (1 - i%2)} })
	try("whom guests see", x.All, "PATCH /realm", func(i int) params {
		return params{"can_access_all_users_group": map[string]any{"new": role([]string{"role:members", "role:everyone"}[i%2])}}
	})
	try("name of the organization", x.All, "PATCH /realm", func(i int) params { return params{"name": fmt.Sprint("Big ", i)} })
	try("a default channel", x.All, "POST /default_streams", func(i int) params { return params{"stream_id": 4 + i} })
	try("follow a topic", x.All, "POST /user_topics", func(i int) params {
		return params{"stream_id": 2, "topic": fmt.Sprint("topic ", i), "visibility_policy": 3}
	})
	try("a view for exports", x.All, "GET /export/realm", nil)
	tryAs("consent", func(i int) realm.UserID { return []realm.UserID{x.All, x.Behind, x.Few}[i%3] }, "PATCH /settings", same(params{"allow_private_data_export": true}))
	for _, kind := range []string{realm.PublicExport, realm.CompleteExport, realm.ConsentExport} {
		if !wanted("export " + kind) {
			continue
		}
		least, a := map[string]time.Duration{}, asked{name: "export " + kind} // least of each view
		for range *bigTimes {
			forget(h)
			if err := wire.WriteExport(&counted{House: h}, 1, testSite(""), kind, io.Discard); err != nil {
				b.Fatal(err)
			}
			for _, k := range h.Slowest(1, math.MaxInt) {
				if d, ok := least[k.Kind]; !ok || k.Max < d {
					least[k.Kind] = k.Max
				}
				a.max = max(a.max, k.Max)
			}
		}
		for _, d := range least {
			a.least = max(a.least, d)
		}
		all = append(all, a)
	}
	h.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
		t.Record(&realm.TopicPoliciesSet{Users: everyone, Channel: 2, Topic: "followed", Policy: realm.TopicFollowed, At: t.Now})
		return nil, nil
	})
	try("send, 10,000 are told outside", x.All, "POST /messages", send("followed", 2))
	try("resolve what 10,000 follow", x.All, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": last(2, []string{"followed", "✔ followed"}[i%2]), "topic": []string{"✔ followed", "followed"}[i%2], "propagate_mode": "change_all"}
	})
	try("create a channel for 10,000", x.All, "POST /channels/create", func(i int) params { return params{"name": fmt.Sprint("for all ", i), "subscribers": everyone} })
	try("hide one's address", x.Behind, "PATCH /settings", func(i int) params { return params{"email_address_visibility": []int{4, 1}[i%2]} })
	try("a channel for 5,000 fewer", x.All, "POST /user_groups/{user_group_id}/members", func(int) params {
		must(b, h, x.All, "PATCH /streams/{stream_id}", params{"stream_id": 10, "can_subscribe_group": map[string]any{"new": group}})
		return outAndIn()
	})
	try("200 drafts", x.Few, "POST /drafts", func(int) params {
		return params{"drafts": slices.Repeat([]any{params{"type": "stream", "to": []int{1}, "topic": "t", "content": "later"}}, 200)}
	})
	try("drafts", x.Few, "GET /drafts", nil)
	try("matches of 5,000", x.All, "GET /messages/matches_narrow", func(int) params {
		return params{"msg_ids": ids(5000), "narrow": []any{map[string]any{"operator": "channel", "operand": 1}}}
	})
	try("500 scheduled messages", x.All, "GET /scheduled_messages", func(i int) params {
		for k := range 500 {
			h.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
				t.Record(&realm.MessageScheduled{Message: realm.Scheduled{ID: int64(1000 + 500*i + k), User: x.All, Channel: 1, Topic: "topic 3", Client: "website", At: t.Now}})
				return nil, nil
			})
		}
		return params{}
	})
	// What one channel is asked in which everything is long: one topic has 100,000 messages, 20,000 have one each, and one
	// message has 10,000 reactions.
	long := realm.ChannelID(must(b, h, x.All, "POST /channels/create", params{"name": "long", "subscribers": []realm.UserID{x.All}})["id"].(float64))
	topics := map[string]realm.TopicID{}
	write := func(n int, topic func(k int) string) {
		h.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
			for k := range n {
				name := topic(k)
				id, known := topics[name]
				if !known {
					id = t.Org().NextTopic
					topics[name] = id
				}
				t.Record(&realm.MessageSent{ID: t.LastMessage() + 1, Sender: x.All, At: t.Now, Client: "website", ClientID: 1, Channel: long, Topic: id, TopicName: name, NewTopic: !known})
			}
			return nil, nil
		})
	}
	if wanted("very long") {
		write(20_000, func(k int) string { return fmt.Sprint("subject ", k) })
		write(100_000, func(int) string { return "endless" })
		h.Turn(1, realm.Caller{System: true}, func(t *realm.Turn) (any, error) {
			for _, u := range everyone {
				t.Record(&realm.ReactionAdded{Message: t.LastMessage(), Reaction: realm.Reaction{User: u, Name: "wave", Code: "1f44b", Type: "unicode_emoji"}})
			}
			return nil, nil
		})
	}
	try("topics, very long", x.All, "GET /users/me/{stream_id}/topics", same(params{"stream_id": long}))
	try("messages, very long", x.All, "GET /messages", same(params{"anchor": "newest", "num_before": 100, "num_after": 0, "narrow": []any{map[string]any{"operator": "channel", "operand": long}}}))
	try("react, very long", x.All, "POST /messages/{message_id}/reactions", func(i int) params {
		return params{"message_id": last(long, "endless"), "emoji_name": []string{"+1", "heart", "tada", "smile", "eyes"}[i%5]}
	})
	try("read a topic, very long", x.All, "POST /mark_topic_as_read", same(params{"stream_id": long, "topic_name": "endless"}))
	try("move a topic, very long", x.All, "PATCH /messages/{message_id}", func(i int) params {
		return params{"message_id": last(long, []string{"endless", "elsewhere"}[i%2]), "topic": []string{"elsewhere", "endless"}[i%2], "propagate_mode": "change_all"}
	})
	try("delete a topic, very long", x.All, "POST /streams/{stream_id}/delete_topic", func(i int) params {
		write(20_000, func(int) string { return fmt.Sprint("short-lived ", i) })
		return params{"stream_id": long, "topic_name": fmt.Sprint("short-lived ", i)}
	})
	try("retention", x.All, "PATCH /streams/{stream_id}", func(i int) params { return params{"stream_id": 6 + i, "message_retention_days": 1} })
	account := func(method, path string) func(int) params { // of one in all channels, after the other of the two
		return func(i int) params {
			if i > 0 || method == "DELETE" && !wanted("deactivate a user") {
				must(b, h, x.All, method+" "+path, params{"user_id": x.Behind})
			}
			return params{"user_id": x.Behind}
		}
	}
	try("deactivate a user", x.All, "DELETE /users/{user_id}", account("POST", "/users/{user_id}/reactivate"))
	try("reactivate a user", x.All, "POST /users/{user_id}/reactivate", account("DELETE", "/users/{user_id}"))
	try("deactivate with messages", x.All, "DELETE /users/{user_id}", func(i int) params {
		u := x.Behind + realm.UserID(i)
		must(b, h, x.All, "POST /users/me/subscriptions", params{"subscriptions": all1000, "principals": []realm.UserID{u}})
		return params{"user_id": u, "actions": map[string]any{"delete_profile": true, "delete_public_channel_messages": true, "delete_private_channel_messages": true, "delete_direct_messages": true}}
	})
	try("archive a channel", x.All, "DELETE /streams/{stream_id}", func(i int) params { return params{"stream_id": 1 + i} })
	if wanted("snapshot") { // of everything: no row has been written yet
		forget(h)
		must(b, h, x.All, "POST /messages", send("topic 3", realmtest.BigChannels/2)(0)) // the first ones are archived by now
		done := make(chan error, 1)
		h.stage.send(h.find(1).pid, finish{done})
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		for _, k := range h.Slowest(1, 100) {
			if k.Kind == "snapshot" {
				all = append(all, asked{name: "snapshot", least: k.Total / time.Duration(k.Times), max: k.Max})
				b.Logf("a snapshot in %d slices", k.Times)
			}
		}
	}
	// A row that is about to change and waits to be written is encoded in the turn: a topic that was moved is moved back, in
	// the largest channel that is not archived by now, while what has changed is written.
	busy := realm.ChannelID(*bigTimes + 1)
	written := make(chan error, 1)
	written <- nil
	try("move a topic while a snapshot is written", x.All, "PATCH /messages/{message_id}", func(int) params {
		if err := <-written; err != nil {
			b.Fatal(err)
		}
		m := last(busy, "topic 3")
		move := func(topic string) params {
			return params{"message_id": m, "topic": topic, "propagate_mode": "change_all"}
		}
		must(b, h, x.All, "PATCH /messages/{message_id}", move("elsewhere"))
		forget(h)
		h.stage.send(h.find(1).pid, finish{written})
		return move("topic 3")
	})
	slowestTable(b, all)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.Logf("heap %d MB after all that", m.HeapAlloc>>20)
}

// settle has the organization do all that is left to do by itself.
func settle(h *House) {
	for seq := realm.Seq(0); ; {
		for h.Metrics.Undelivered.Load() > 0 {
			runtime.Gosched()
		}
		h.stage.send(h.find(1).pid, goOn{})
		now, _ := h.View(1, realm.Caller{System: true}, func(v realm.View) (any, error) { return v.Seq(), nil })
		if now == seq {
			return
		}
		seq = now.(realm.Seq)
	}
}

// eachHold has every single hold noted from now on, and returns what ends that and says how long each was, by kind and in
// order.
func eachHold(h *House) func() map[string][]time.Duration {
	x := &h.find(1).holds
	x.mu.Lock()
	defer x.mu.Unlock()
	all := map[string][]time.Duration{}
	x.each = func(kind string, took time.Duration) { all[kind] = append(all[kind], took) }
	return func() map[string][]time.Duration {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.each = nil
		return all
	}
}

// longestHold is the longest hold of what was asked several times, each by the least of those times, as other work on the
// machine only ever adds. Where one kind held the realm a different number of times, they cannot be told from each other,
// and the least of its longest ones counts. What every other time undoes the one before counts by the slower of the two.
func longestHold(tries []map[string][]time.Duration) (longest time.Duration, which string) {
	for parity := range min(2, len(tries)) {
		least := maps.Clone(tries[parity])
		for i := parity + 2; i < len(tries); i += 2 {
			for kind, l := range least {
				switch list := tries[i][kind]; {
				case list == nil: // other work of the server's own, which came in between once
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

// forget has what held the realm until now not count.
func forget(h *House) {
	x := &h.find(1).holds
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kinds = nil
}

func slowestTable(b *testing.B, all []asked) {
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
		if a.least > MaxHold {
			over++
		}
		if i < slowestNamed {
			fmt.Fprintf(&table, "\n%2d. %-32s least %8.3f ms (%s), longest %8.3f ms (%s)", i+1, a.name, float64(a.least.Microseconds())/1000, a.which, float64(a.max.Microseconds())/1000, a.longest)
		}
	}
	fmt.Fprintln(os.Stderr, table.String()) // a benchmark's log is cut off at ten lines
	b.ReportMetric(float64(all[0].least.Microseconds())/1000, "ms-slowest")
	b.ReportMetric(float64(over), "kinds-over-5ms")
}

// slowestNamed is how many the benchmark names.
const slowestNamed = 20

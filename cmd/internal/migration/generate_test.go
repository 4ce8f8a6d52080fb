package migration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

type obj = map[string]any

// writeZulip writes an export with so many messages by 100 users in 50 channels, each message with 20 rows of flags.
func writeZulip(t testing.TB, dir string, messages int) {
	t.Helper()
	const users, channels, receivers = 100, 50, 20
	rng := rand.New(rand.NewPCG(1, 2))
	realm := obj{"zerver_realm": []obj{{"id": 1, "name": "Generated", "date_created": 1.6e9}}}
	var us, streams, recipients, subs, reactions []obj
	for u := range users {
		us = append(
			us,
			obj{
				"id":             10 + u,
				"delivery_email": fmt.Sprintf("u%d@example.com", u),
				"full_name":      fmt.Sprintf("User %d", u),
				"is_active":      true,
				"role":           400,
				"date_joined":    1.6e9,
			},
		)
		recipients = append(recipients, obj{"id": 1000 + u, "type": 1, "type_id": 10 + u})
	}
	for c := range channels {
		streams = append(streams, obj{"id": 1 + c, "name": fmt.Sprintf("channel %d", c), "date_created": 1.6e9})
		recipients = append(recipients, obj{"id": 1 + c, "type": 2, "type_id": 1 + c})
		for i := range receivers {
			subs = append(
				subs,
				obj{"id": len(subs), "user_profile": 10 + (c+i*5)%users, "recipient": 1 + c, "active": true},
			)
		}
	}
	for i := range messages / 4 {
		reactions = append(reactions, obj{"message": 1 + i*4, "user_profile": 10 + i%users, "emoji_name": "+1",
			"emoji_code": "1f44d", "reaction_type": "unicode_emoji"})
	}
	realm["zerver_userprofile"], realm["zerver_stream"], realm["zerver_recipient"] = us, streams, recipients
	realm["zerver_subscription"], realm["zerver_reaction"] = subs, reactions
	realm["zerver_client"] = []obj{{"id": 1, "name": "website"}}
	data, _ := json.Marshal(realm)
	if err := os.WriteFile(filepath.Join(dir, "realm.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	words := []string{
		"the",
		"deploy",
		"is",
		"**done**",
		"see",
		"`code`",
		"@**User 3**",
		"#**channel 4**",
		"later",
		":tada:",
		"https://example.com/x",
		"meeting",
		"at",
		"noon",
		"please",
		"review",
	}
	for file, id := 1, 1; id <= messages; file++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("messages-%06d.json", file)))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		flags := []byte(nil)
		w.WriteString(`{"zerver_message":[`)
		for n := 0; n < 1000 && id <= messages; n, id = n+1, id+1 {
			text := ""
			for range 8 + rng.IntN(20) {
				text += words[rng.IntN(len(words))] + " "
			}
			c := rng.IntN(channels)
			if n > 0 {
				w.WriteByte(',')
			}
			row, _ := json.Marshal(obj{"id": id, "sender": 10 + (c+rng.IntN(receivers)*5)%users, "recipient": 1 + c,
				"subject": fmt.Sprintf(
					"topic %d",
					rng.IntN(40),
				), "content": text, "date_sent": float64(1_600_000_000 + id*30),
				"sending_client": 1, "rendered_content": "<p>" + text + "</p>"})
			w.Write(row)
			for i := range receivers {
				if len(flags) > 0 {
					flags = append(flags, ',')
				}
				flags = fmt.Appendf(flags, `{"id":%d,"user_profile":%d,"message":%d,"flags_mask":%d}`, id*100+i,
					10+(c+i*5)%users, id, 1-rng.IntN(50)/49)
			}
		}
		w.WriteString(`],"zerver_usermessage":[`)
		w.Write(flags)
		w.WriteString(`]}`)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// generators write exports with so many messages into a folder.
var generators = map[string]func(t testing.TB, dir string, messages int){
	"mattermost": writeMattermost, "rocketchat": writeRocketChat, "slack": writeSlack,
	"teams": writeTeams, "zulip": writeZulip,
}

// TestGenerate writes a generated export for measurements: PARLEY_GENERATE is its folder, PARLEY_GENERATE_FORMAT its
// format and PARLEY_GENERATE_MESSAGES the number of its messages.
func TestGenerate(t *testing.T) {
	dir := os.Getenv("PARLEY_GENERATE")
	if dir == "" {
		t.Skip("PARLEY_GENERATE is not set")
	}
	n, err := strconv.Atoi(os.Getenv("PARLEY_GENERATE_MESSAGES"))
	write := generators[os.Getenv("PARLEY_GENERATE_FORMAT")]
	if err != nil || write == nil {
		t.Fatalf("PARLEY_GENERATE_FORMAT must be a format and PARLEY_GENERATE_MESSAGES a number: %v", err)
	}
	write(t, dir, n)
}

// Numbers of things in generated exports of the other servers.
const (
	generatedUsers    = 100
	generatedChannels = 50
	generatedStart    = 1_600_000_000 // time of the first message, in Unix seconds
)

// generatedText returns the text of a message in which mention means a mention of a user.
func generatedText(rng *rand.Rand, mention string) string {
	words := []string{
		"the",
		"deploy",
		"is",
		"done",
		"see",
		"`code`",
		mention,
		"later",
		"https://example.com/x",
		"meeting",
		"at",
		"noon",
		"please",
		"review",
	}
	var text []string
	for range 8 + rng.IntN(20) {
		text = append(text, words[rng.IntN(len(words))])
	}
	return strings.Join(text, " ")
}

// lines writes a file line by line.
type lines struct {
	testing.TB
	f *os.File
	w *bufio.Writer
}

func newLines(t testing.TB, dir, name string) *lines {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return &lines{t, f, bufio.NewWriterSize(f, 1<<20)}
}

func (l *lines) put(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		l.Fatal(err)
	}
	l.w.Write(append(data, '\n'))
}

func (l *lines) close() {
	if err := errors.Join(l.w.Flush(), l.f.Close()); err != nil {
		l.Fatal(err)
	}
}

// writeMattermost writes a bulk export. Every fifth message is a reply, and every fourth has a reaction.
func writeMattermost(t testing.TB, dir string, messages int) {
	rng := rand.New(rand.NewPCG(1, 2))
	l := newLines(t, dir, "import.jsonl")
	defer l.close()
	l.put(obj{"type": "version", "version": 1})
	l.put(obj{"type": "team", "team": obj{"name": "team", "display_name": "Team", "type": "O"}})
	var memberships []obj
	for c := range generatedChannels {
		name := fmt.Sprintf("channel-%d", c)
		l.put(obj{"type": "channel", "channel": obj{"team": "team", "name": name, "display_name": name, "type": "O"}})
		memberships = append(memberships, obj{"name": name, "roles": "channel_user"})
	}
	for u := range generatedUsers {
		l.put(
			obj{
				"type": "user",
				"user": obj{"username": fmt.Sprintf("u%d", u), "email": fmt.Sprintf("u%d@example.com", u),
					"teams": []obj{{"name": "team", "roles": "team_user", "channels": memberships}}},
			},
		)
	}
	post := func(n int) obj {
		p := obj{"team": "team", "channel": fmt.Sprintf("channel-%d", rng.IntN(generatedChannels)),
			"user": fmt.Sprintf("u%d", rng.IntN(generatedUsers)), "message": generatedText(rng, "@u3"),
			"create_at": (generatedStart + int64(n)*30) * 1000}
		if n%4 == 0 {
			p["reactions"] = []obj{{"user": fmt.Sprintf("u%d", n%generatedUsers), "emoji_name": "+1"}}
		}
		return p
	}
	for n := 0; n < messages; n++ {
		p := post(n)
		if n%5 == 0 && n+1 < messages {
			n++
			p["replies"] = []obj{post(n)}
		}
		l.put(obj{"type": "post", "post": p})
	}
}

// writeSlack writes an export. Every fifth message is a reply, and every fourth has a reaction.
func writeSlack(t testing.TB, dir string, messages int) {
	rng := rand.New(rand.NewPCG(1, 2))
	write := func(name string, rows []obj) {
		l := newLines(t, dir, name)
		l.put(rows)
		l.close()
	}
	var users, channels []obj
	var members []string
	for u := range generatedUsers {
		id := fmt.Sprintf("U%d", u)
		members = append(members, id)
		users = append(users, obj{"id": id, "name": fmt.Sprintf("u%d", u),
			"profile": obj{"email": fmt.Sprintf("u%d@example.com", u)}})
	}
	for c := range generatedChannels {
		name := fmt.Sprintf("channel-%d", c)
		channels = append(channels, obj{"id": fmt.Sprintf("C%d", c), "name": name, "members": members,
			"created": generatedStart})
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("users.json", users)
	write("channels.json", channels)
	const perDay = 24 * 60 * 2 // messages
	for day := 0; day*perDay < messages; day++ {
		rows := make([][]obj, generatedChannels)
		for n := day * perDay; n < min((day+1)*perDay, messages); n++ {
			c := rng.IntN(generatedChannels)
			m := obj{"type": "message", "user": members[rng.IntN(generatedUsers)], "text": generatedText(rng, "<@U3>"),
				"ts": fmt.Sprintf("%d.%06d", generatedStart+n*30, n%1_000_000)}
			if n%4 == 0 {
				m["reactions"] = []obj{{"name": "+1", "users": []string{members[n%generatedUsers]}}}
			}
			if n%5 == 0 && len(rows[c]) > 0 {
				m["thread_ts"] = rows[c][0]["ts"]
			}
			rows[c] = append(rows[c], m)
		}
		date := time.Unix(generatedStart+int64(day)*24*60*60, 0).UTC().Format(time.DateOnly)
		for c, list := range rows {
			if len(list) > 0 {
				write(fmt.Sprintf("channel-%d/%s.json", c, date), list)
			}
		}
	}
}

// writeRocketChat writes a dump. Every fifth message is a reply, and every fourth has a reaction.
func writeRocketChat(t testing.TB, dir string, messages int) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := rocketDump{}
	var rooms []string
	for c := range generatedChannels {
		rooms = append(rooms, fmt.Sprintf("room%d", c))
		d.add("rocketchat_room", bson.M{"_id": rooms[c], "t": "c", "name": fmt.Sprintf("channel-%d", c),
			"ts": rocketTime(0)})
	}
	for u := range generatedUsers {
		d.add("users", rocketUser(fmt.Sprintf("id%d", u), fmt.Sprintf("u%d", u), "user", rooms))
	}
	d.write(t, dir)
	l := newLines(t, dir, "rocketchat_message.bson")
	defer l.close()
	mentions := bson.A{bson.M{"_id": "id3", "username": "u3"}}
	for n := range messages {
		u := rng.IntN(generatedUsers)
		m := bson.M{"_id": fmt.Sprintf("message%010d", n), "rid": rooms[rng.IntN(len(rooms))],
			"ts": bson.DateTime((generatedStart + int64(n)*30) * 1000), "msg": generatedText(rng, "@u3"),
			"u": bson.M{"_id": fmt.Sprintf("id%d", u), "username": fmt.Sprintf("u%d", u)}, "mentions": mentions}
		if n%4 == 0 {
			m["reactions"] = bson.M{":thumbsup:": bson.M{"usernames": bson.A{fmt.Sprintf("u%d", n%generatedUsers)}}}
		}
		if n%5 == 0 {
			m["tmid"] = fmt.Sprintf("message%010d", n/100*100)
		}
		data, err := bson.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		l.w.Write(data)
	}
}

// Generated exports of each format import completely.
func TestGeneratedFormats(t *testing.T) {
	for format, write := range generators {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, 1000)
			p := openPlace(t, t.TempDir())
			defer p.store.Close()
			o := p.options(format, dir)
			o.Team, o.Threads = "team", true
			reports, err := Run(context.Background(), o, p.target)
			if err != nil {
				t.Fatal(err)
			}
			r := reports[0]
			r.Dropped = slices.DeleteFunc(r.Dropped, func(c Count) bool { return c.Kind == "roles" }) // of Teams
			if r.Messages != 1000 || r.Reactions != 250 || len(r.Dropped) != 0 || r.Users != 100 {
				t.Errorf("%d messages, %d reactions, %d users, dropped %v", r.Messages, r.Reactions, r.Users, r.Dropped)
			}
		})
	}
}

// Small memory limits change nothing: runs are merged, flags and reactions are joined from disk.
func TestGeneratedImport(t *testing.T) {
	dir := t.TempDir()
	writeZulip(t, dir, 12_000)
	var want string
	for _, memory := range []int64{DefaultMemory, 1 << 20} {
		p := openPlace(t, t.TempDir())
		o := p.options("zulip", dir)
		o.Memory = memory
		reports, err := Run(context.Background(), o, p.target)
		if err != nil {
			t.Fatal(err)
		}
		if r := reports[0]; r.Messages != 12_000 || r.Reactions != 3000 || len(r.Dropped) != 0 {
			t.Errorf("%d messages, %d reactions, dropped %v", r.Messages, r.Reactions, r.Dropped)
		}
		if got := p.digest(t).String(); want == "" {
			want = got
		} else if got != want {
			t.Errorf("with little memory the state is\n%s, otherwise\n%s", got, want)
		}
		p.store.Close()
	}
}

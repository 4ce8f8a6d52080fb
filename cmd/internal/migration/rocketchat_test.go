package migration

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/wire/imports"
	"parley/wire/markdown/emoji"
)

// rocketDump is a dump in the making: documents by the collection's name.
type rocketDump map[string][]any

func (d rocketDump) add(collection string, documents ...any) {
	d[collection] = append(d[collection], documents...)
}

// write writes the files of the dump as mongodump does.
func (d rocketDump) write(t testing.TB, dir string) {
	t.Helper()
	for name, documents := range d {
		var out []byte
		for _, x := range documents {
			data, err := bson.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, data...)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".bson"), out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// rocketTime is the time of the n-th message.
func rocketTime(n int) bson.DateTime { return bson.DateTime(1_600_000_000_000 + int64(n)*1500) }

func rocketUser(id, username, kind string, rooms []string, roles ...string) bson.M {
	return bson.M{"_id": id, "username": username, "name": strings.ToUpper(username[:1]) + username[1:], "type": kind,
		"roles": roles, "createdAt": rocketTime(0), "active": true, "__rooms": rooms,
		"services": bson.M{"password": bson.M{"bcrypt": "a password hash"}},
		"emails":   bson.A{bson.M{"address": username + "@example.com", "verified": true}}}
}

// message returns a message with further fields.
func (d rocketDump) message(room, sender, msg string, more bson.M) {
	n := len(d["rocketchat_message"])
	m := bson.M{"_id": fmt.Sprintf("m%d", n), "rid": room, "ts": rocketTime(n), "msg": msg,
		"u": bson.M{"_id": sender, "username": "x"}, "md": bson.A{bson.M{"type": "PARAGRAPH"}}, "urls": bson.A{}}
	for key, value := range more {
		m[key] = value
	}
	d.add("rocketchat_message", m)
}

// upload adds a file in pieces, which the dump has in the wrong order.
func (d rocketDump) upload(bucket, id string, pieces ...string) {
	length := 0
	for n := len(pieces) - 1; n >= 0; n-- {
		length += len(pieces[n])
		d.add(
			bucket+".chunks",
			bson.M{"_id": bson.NewObjectID(), "files_id": id, "n": int32(n), "data": []byte(pieces[n])},
		)
	}
	d.add(bucket+".files", bson.M{"_id": id, "length": int64(length), "chunkSize": int32(261120)})
}

// rocketSample is a dump with the numbers of things that the description of the format names for its sample.
func rocketSample(t testing.TB) rocketDump {
	d := rocketDump{}
	d.add("instances", bson.M{"_id": "x", "_createdAt": bson.DateTime(1_590_000_000_000)})
	d.add("users",
		rocketUser("rocket.cat", "rocket.cat", "bot", nil, "bot"),
		rocketUser("u1", "ann", "user", []string{"c1", "c2", "p1", "d1", "d2", "g1", "disc1"}, "user", "admin"),
		rocketUser("u2", "bo.b", "user", []string{"c1", "c2", "p1", "d1", "g1"}, "user"),
		rocketUser("u3", "cy", "user", []string{"c1", "team1", "team2", "d2", "g1"}, "guest"),
		rocketUser("u4", "di", "user", []string{"c1"}, "user"),
		bson.M{"_id": "u5", "username": "visitor-1", "type": "unknown", "roles": bson.A{}, "createdAt": rocketTime(0)})
	room := func(id, kind, name string, more bson.M) {
		m := bson.M{"_id": id, "t": kind, "name": name, "ts": rocketTime(0), "u": bson.M{"_id": "u1"}, "msgs": int32(9)}
		for key, value := range more {
			m[key] = value
		}
		d.add("rocketchat_room", m)
	}
	room("c1", "c", "general", bson.M{"description": "The\nfirst", "default": true})
	room("c2", "c", strings.Repeat("long", 20), bson.M{"ro": true})
	room("p1", "p", "secret", nil)
	room("team1", "c", "crew", bson.M{"teamId": "t", "teamMain": true})
	room("team2", "c", "plans", bson.M{"teamId": "t", "description": "What next"})
	room("c3", "c", "empty", nil)
	room("disc1", "c", "x1", bson.M{"prid": "c1", "fname": "Where to eat"})
	room("disc2", "p", "x2", bson.M{"prid": "p1", "fname": "Not public"})
	room("disc3", "c", "x3", bson.M{"prid": "disc1", "fname": "Inside of another"})
	room("disc4", "p", "x4", bson.M{"prid": "d1", "fname": "Of two"})
	room("disc5", "c", "x5", bson.M{"prid": "c1", "fname": "Silent"})
	room("d1", "d", "", bson.M{"uids": bson.A{"u1", "u2"}})
	room("d2", "d", "", bson.M{"uids": bson.A{"u3", "u1"}})
	room("g1", "d", "", bson.M{"uids": bson.A{"u1", "u2", "u3"}})
	room("l1", "l", "", nil)
	room("l2", "l", "", nil)

	for n := range 19 {
		d.message("c1", "u1", fmt.Sprintf("text %d", n), nil)
	}
	d.message("c1", "u2", "hello @ann, @bo.b. and @here, see #general and #x1 but not `@ann` or @di", bson.M{
		"mentions": bson.A{bson.M{"_id": "u1", "username": "ann"}, bson.M{"_id": "u2", "username": "bo.b"},
			bson.M{"_id": "here", "username": "here"}},
		"channels": bson.A{bson.M{"_id": "c1", "name": "general"}, bson.M{"_id": "disc1", "name": "x1"},
			bson.M{"_id": "disc4", "name": "x4"}}})
	for thread := range 3 {
		root := fmt.Sprintf("m%d", len(d["rocketchat_message"]))
		d.message("c2", "u1", "root", bson.M{"replies": bson.A{"u2"}, "tcount": int32(1)})
		d.message("c2", "u2", "reply", bson.M{"tmid": root, "tshow": thread == 0})
	}
	reactions := bson.M{":thumbsup:": bson.M{"usernames": bson.A{"ann", "bo.b", "cy"}},
		":parrot:": bson.M{"usernames": bson.A{"ann", "di"}}, ":bird:": bson.M{"usernames": bson.A{"ann"}},
		":wave_tone3:": bson.M{"usernames": bson.A{"ann", "bo.b", "cy", "di", "nobody"}},
		":no_such:":    bson.M{"usernames": bson.A{"ann"}}}
	d.message("p1", "u1", "look", bson.M{"reactions": reactions})
	for n := range 8 {
		d.message([]string{"disc1", "disc2", "disc3", "disc1"}[n%4], "u2", "discussed", nil)
	}
	file := func(id string) bson.M { return bson.M{"_id": id, "name": id, "type": "text/plain"} }
	d.message("g1", "u1", "", bson.M{"file": file("f1")})
	d.message("g1", "u2", "see", bson.M{"file": file("f2")})
	d.message("g1", "u3", "", bson.M{"file": file("f3"), "files": bson.A{file("f3"),
		bson.M{"_id": "f3t", "name": "thumb-f3", "typeGroup": "thumb"}}})
	d.message("g1", "u1", "gone", bson.M{"file": file("f9")})
	d.message("d1", "u1", "one", bson.M{"pinned": true})
	d.message("d2", "u3", "two", bson.M{"file": file("f4"), "starred": bson.A{bson.M{"_id": "u3"}}})
	d.message("disc4", "u2", "three", nil)
	d.message("d1", "u1", "four", nil)
	for n := range 44 {
		switch n % 4 {
		case 0:
			d.message("l1", "u5", "help", nil)
		case 1:
			d.message("c1", "u1", "ann", bson.M{"t": "uj"})
		case 2:
			d.message("d2", "u1", "secret", bson.M{"t": "e2e"})
		case 3:
			d.message("c1", "u1", "before the edit", bson.M{"_hidden": true})
		}
	}
	for n, pieces := range [][]string{{"first", "second", "third"}, {"whole"}, {"three"}, {"four"}} {
		id := fmt.Sprintf("f%d", n+1)
		d.upload("rocketchat_uploads", id, pieces...)
		d.add(
			"rocketchat_uploads",
			bson.M{"_id": id, "name": id + ".txt", "description": "about " + id, "userId": "u1"},
		)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	d.upload("custom_emoji", "parrot.png", picture.String())
	d.add(
		"rocketchat_custom_emoji",
		bson.M{"_id": "e", "name": "parrot", "aliases": bson.A{"bird"}, "extension": "png"},
	)
	return d
}

// A dump with the numbers of the sample of the format's description imports with the numbers named there.
func TestRocketChatSample(t *testing.T) {
	dir := t.TempDir()
	rocketSample(t).write(t, dir)
	p, reports := importAll(t, "rocketchat", dir)
	r := reports[0]
	expectCounts(t, []count{
		{"users", r.Users, 6}, {"channels", r.Channels, 6}, {"messages", r.Messages, 43},
		{"direct messages", r.DirectMessages, 8}, {"threads", len(r.PerThread), 3}, {"reactions", r.Reactions, 10},
		{"attachments", r.Attachments, 4}, {"emoji", r.Emoji, 2}, {"subscriptions", r.Subscriptions, 10},
		{"live chats", droppedAs(r, "rooms", "live chats"), 2},
		{"messages left out", droppedAs(r, "messages", ""), 44},
		{"messages of live chats", droppedAs(r, "messages", "live chats"), 11},
		{"system messages", droppedAs(r, "messages", "system messages"), 11},
		{"encrypted messages", droppedAs(r, "messages", "encrypted"), 11},
		{"hidden messages", droppedAs(r, "messages", "earlier version"), 11},
		{"unknown reactions", droppedAs(r, "reactions", ""), 2}, {"pins", droppedAs(r, "pins", ""), 1},
		{"saved messages", droppedAs(r, "saved messages", ""), 1},
		{"missing uploads", droppedAs(r, "attachments", "missing"), 1},
	})
	checkRocketSample(t, p)
	if t.Failed() {
		t.Logf("dropped: %v", r.Dropped)
	}
}

// checkRocketSample checks the stored accounts, channels, topics and texts.
func checkRocketSample(t *testing.T, p *place) {
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	v := x.Realm.ViewAs(realm.Caller{}, 0)
	for _, c := range []struct {
		email  string
		role   realm.Role
		active bool
		bot    bool
	}{
		{"ann@example.com", realm.Owner, true, false}, {"bo.b@example.com", realm.Member, true, false},
		{"cy@example.com", realm.Guest, true, false}, {"rocket.cat@example.com", realm.Member, false, true},
		{"visitor-1-unknown@moved.test", realm.Member, false, false},
	} {
		u := v.FindByEmail(c.email)
		if u == nil || u.Role != c.role || u.Active != c.active || u.IsBot() != c.bot || u.Password != "" {
			t.Errorf("%s is %+v", c.email, u)
		}
	}
	if v.Org().Created != 1_590_000_000 || v.Org().Description != "Organization imported from Rocket.Chat!" {
		t.Errorf("the organization: %+v", v.Org())
	}
	channels := map[string]*realm.Channel{}
	v.EachChannel(func(c *realm.Channel) { channels[c.Name] = c })
	long := strings.Repeat("long", 20)[:55] + " [c2]"
	for name, check := range map[string]func(c *realm.Channel) bool{
		"general":     func(c *realm.Channel) bool { return c.Description == "The first" && c.Default && c.History },
		long:          func(c *realm.Channel) bool { return len(c.Settings) == 1 },
		"secret":      func(c *realm.Channel) bool { return c.Private && !c.History },
		"plans":       func(c *realm.Channel) bool { return c.Description == "[Team crew channel]. What next" },
		"empty":       func(c *realm.Channel) bool { return c.Archived },
		"[TEAM] crew": func(c *realm.Channel) bool { return !c.Archived },
	} {
		if c := channels[name]; c == nil || !check(c) {
			t.Errorf("channel %q is %+v", name, c)
		}
	}
	checkRocketTopics(t, x.Realm.ViewAs(realm.Caller{System: true}, 0), channels, long)
	all := p.texts(t)
	for _, want := range []string{
		"hello @**Ann**, @**Bo.b**. and @**all**, see #**general** and " +
			"#**general>Where to eat (Imported from Rocket.Chat)** but not `@ann` or @di",
		"about f1\n\n[f1.txt](/user_uploads/f1.txt)", "see\nabout f2\n\n[f2.txt](/user_uploads/f2.txt)", "gone",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("no message %q", want)
		}
	}
	for _, text := range all {
		if strings.Contains(text, "before the edit") || strings.Contains(text, "hash") {
			t.Errorf("imported: %q", text)
		}
	}
	checkRocketFile(t, p, x.Realm, "f1.txt", "firstsecondthird")
}

var uploadPath = regexp.MustCompile(`/user_uploads/[^ )]*/`)

// texts returns the stored texts of the organization, with short addresses of files.
func (p *place) texts(t *testing.T) (all []string) {
	t.Helper()
	if err := p.disk.EachText(1, func(_ realm.BodyRef, body func() (realm.Body, error)) error {
		b, err := body()
		all = append(all, uploadPath.ReplaceAllString(b.Text, "/user_uploads/"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// checkRocketTopics checks the topics of each channel.
func checkRocketTopics(t *testing.T, v realm.View, channels map[string]*realm.Channel, long string) {
	const end = " (Imported from Rocket.Chat)"
	for name, want := range map[string][]string{
		"general": {"Imported from Rocket.Chat", "Inside of another" + end, "Where to eat" + end},
		long:      {"Thread 1" + end, "Thread 2" + end, "Thread 3" + end},
		"secret":  {"Imported from Rocket.Chat", "Not public" + end},
	} {
		var got []string
		for _, x := range v.Topics(channels[name]) {
			got = append(got, x.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("topics of %s: %q, want %q", name, got, want)
		}
	}
}

// checkRocketFile checks the content of an upload.
func checkRocketFile(t *testing.T, p *place, r *realm.Realm, name, want string) {
	found := false
	r.EachRow(func(_ uint16, _, row any) {
		if u, ok := row.(*realm.Upload); ok && u.Name == name {
			found = true
			var data bytes.Buffer
			_, ok, err := copyStored(p.files, realm.ContentFile, u.Hash,
				func() (io.Writer, error) { return &data, nil })
			if !ok || err != nil || data.String() != want {
				t.Errorf("%s contains %q: %v", name, data.String(), err)
			}
		}
	})
	if !found {
		t.Errorf("no upload %s", name)
	}
}

// A damaged or hostile dump is refused or counted, and leaves nothing half there.
func TestHostileRocketChat(t *testing.T) {
	plain := func() rocketDump {
		d := rocketDump{}
		d.add("users", rocketUser("u1", "ann", "user", []string{"c1"}, "admin"))
		d.add("rocketchat_room", bson.M{"_id": "c1", "t": "c", "name": "general"})
		d.message("c1", "u1", "hi", nil)
		return d
	}
	whole, err := bson.Marshal(bson.M{"_id": "x", "rid": "c1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		want, file string
		data       []byte
		change     func(d rocketDump)
	}{
		"nothing":         {want: "not a Rocket.Chat dump", change: func(d rocketDump) { clear(d) }},
		"cut off":         {want: "not a BSON document", file: "rocketchat_message", data: whole[:len(whole)-3]},
		"cut in a length": {want: "not a BSON document", file: "users", data: []byte{5, 0}},
		"huge length":     {want: "not a BSON document", file: "users", data: []byte{0xff, 0xff, 0xff, 0x7f, 0}},
		"negative length": {want: "not a BSON document", file: "users", data: []byte{0xff, 0xff, 0xff, 0xff, 0}},
		"large, not there": {want: "not a BSON document", file: "rocketchat_uploads.chunks",
			data: []byte{0, 0, 0, 1, 0}},
		"not BSON": {want: "not a BSON document", file: "rocketchat_room", data: []byte(`{"_id": "c1"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			dir, d := t.TempDir(), plain()
			if c.change != nil {
				c.change(d)
			}
			d.write(t, dir)
			if c.file != "" {
				if err := os.WriteFile(filepath.Join(dir, c.file+".bson"), c.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := openPlace(t, t.TempDir())
			defer p.store.Close()
			_, err := Run(context.Background(), p.options("rocketchat", dir), p.target)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if _, last, _ := p.disk.Bounds(1); last != 0 {
				t.Error("a part of an organization is stored")
			}
			if left, _ := filepath.Glob(filepath.Join(p.dir, "imports", "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Rooms in a circle, missing references, repeated ids, values of wrong types and damaged files are left out and
// counted; the rest is imported.
func TestRocketChatWithGaps(t *testing.T) {
	d := rocketDump{}
	d.add("users", rocketUser("u1", "ann", "user", []string{"c1", "nowhere"}, "admin"))
	d.add("users", d["users"][0], bson.M{"username": "x"},
		bson.M{"_id": "u2", "username": "bo", "emails": bson.A{bson.M{"address": "not one"}}})
	d.add("rocketchat_room", bson.M{"_id": "c1", "t": "c", "name": "general"}, bson.M{"_id": "c1", "t": "p"},
		bson.M{"_id": "a", "t": "c", "prid": "b"}, bson.M{"_id": "b", "t": "c", "prid": "a"},
		bson.M{"_id": "d", "t": "d"}, bson.M{"_id": "o", "t": "omni"}, bson.M{"_id": "s", "t": "d",
			"uids": bson.A{"u1", "former"}})
	for _, room := range []string{"a", "b", "d", "o", "none"} {
		d.message(room, "u1", "lost", nil)
	}
	d.message("c1", "left", "of a stranger", bson.M{"u": bson.M{"_id": "left", "username": "lee"}})
	d.message("s", "u1", "to a stranger", nil)
	d.message("c1", "u1", "odd types", bson.M{"ts": 1.6e12, "mentions": "x", "reactions": bson.A{1}, "file": int32(7),
		"re": bson.Regex{Pattern: "(", Options: "i"}, "dec": bson.NewDecimal128(1, 2), "js": bson.JavaScript("x"),
		"min": bson.MinKey{}, "stamp": bson.Timestamp{T: 1}, "sym": bson.Symbol("s"),
		"deep": bson.M{"a": bson.A{bson.M{}}}})
	d.message("c1", "u1", "first", bson.M{"_id": "same"})
	d.message("c1", "u1", "again, later", bson.M{"_id": "same"})
	for _, id := range []string{"gap", "short", "none"} {
		d.message("c1", "u1", "file", bson.M{"file": bson.M{"_id": id, "name": "../../" + id}})
		d.add("rocketchat_uploads", bson.M{"_id": id, "name": "../../" + id})
	}
	d.add("rocketchat_uploads.chunks", bson.M{"files_id": "gap", "n": int32(1), "data": []byte("x")},
		bson.M{"files_id": "short", "n": int32(0), "data": []byte("x")})
	d.add("rocketchat_uploads.files", bson.M{"_id": "short", "length": int64(2)})
	dir := t.TempDir()
	d.write(t, dir)
	_, reports := importAll(t, "rocketchat", dir)
	r := reports[0]
	expectCounts(t, []count{
		{"users", r.Users, 4}, {"messages", r.Messages, 7}, {"direct messages", r.DirectMessages, 1},
		{"second rooms", droppedAs(r, "rooms", "same id"), 1}, {"second users", droppedAs(r, "users", "same id"), 1},
		{"users without an id", droppedAs(r, "users", "the id is missing"), 1},
		{"bad addresses", droppedAs(r, "values", "not an email address"), 1},
		{"in a circle", droppedAs(r, "messages", "the parent of the discussion"), 2},
		{"without members", droppedAs(r, "messages", "the members"), 1},
		{"of unknown rooms", droppedAs(r, "messages", "unknown type"), 1},
		{"without a room", droppedAs(r, "messages", "the room is missing"), 1},
		{"repeated", droppedAs(r, "messages", "same id"), 1},
		{"damaged files", droppedAs(r, "attachments", "not in the archive"), 3}, {"attachments", r.Attachments, 0},
	})
	if t.Failed() {
		t.Logf("dropped: %v", r.Dropped)
	}
}

// A short name means the emoji that the exporting server shows for it, also where the protocol gives the name to
// another one.
func TestShortNamesOfEmoji(t *testing.T) {
	for short, want := range map[string]string{"thumbsup": "1f44d", "smile": "1f604", "heart": "2764", "tada": "1f389",
		"working_on_it": "1f6e0", "thinking_face": "1f914", "robot_face": "1f916", "slightly_smiling_face": "1f642",
		"simple_smile": "1f642", "frame_with_picture": "1f5bc", "wave_medium_light_skin_tone": "1f44b",
		"+1_dark_skin_tone": "1f44d", "clock1": "1f550", "skin-tone-2": "1f3fb", "no_such": "",
		"no_such_tone3": ""} {
		if _, code, ok := emojiOfShortName(short); code != want || ok != (want != "") {
			t.Errorf("%s is %s, want %s", short, code, want)
		}
	}
}

// Each short name of Slack is the emoji of its code. The reaction has the protocol's name of it, if there is one.
func TestEveryShortName(t *testing.T) {
	data, err := os.ReadFile("../../../wire/markdown/emoji/short_names.txt")
	if err != nil {
		t.Fatal(err)
	}
	names, nameless := 0, 0
	x := &importer{emojiKeys: map[string]string{}}
	for line := range strings.Lines(string(data)) {
		parts := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, short := range parts[1:] {
			names++
			r, known := x.reaction(imports.Reaction{Name: short})
			want, named := emoji.NameOf(parts[0])
			if !named {
				nameless++
				want = short
			}
			if !known || r.Code != parts[0] || r.Type != unicodeEmoji || r.Name != want {
				t.Errorf("%s is %+v, %v; want the emoji %s %s", short, r, known, want, parts[0])
			}
		}
	}
	if names < 1900 || nameless > 40 {
		t.Errorf("%d names, %d of them without a name in the protocol", names, nameless)
	}
}

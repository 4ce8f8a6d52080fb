package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
)

// teamsExport is an export in the making: the rows of each file.
type teamsExport map[string][]obj

func (e teamsExport) write(t testing.TB, dir string) {
	t.Helper()
	for name, rows := range e {
		data, err := json.Marshal(rows)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (e teamsExport) user(id, name, principal string) {
	e["users/usersList.json"] = append(e["users/usersList.json"], obj{"Id": id, "DisplayName": name, "UserId": nil,
		"Mail": principal, "UserPrincipalName": principal, "BusinessPhones": []string{}, "JobTitle": nil})
}

// team adds a team with its members; "" in visibility: it has no settings.
func (e teamsExport) team(id, name, visibility string, members ...string) {
	row := obj{"GroupsId": id, "Name": name, "Privacy": nil, "Description": "All of\n" + name, "Owners": nil}
	e["teams/teamsList.json"] = append(e["teams/teamsList.json"], row)
	if visibility != "" {
		row["Privacy"] = "Public" // the settings decide
		e["teams/teamsSettings.json"] = append(e["teams/teamsSettings.json"], obj{"Id": id, "DisplayName": name,
			"Visibility": visibility, "IsArchived": name == "Old", "Summary": obj{"OwnersCount": "1"}})
	}
	for _, m := range members {
		file := "teams/" + id + "/teamMembers_" + id + ".json"
		e[file] = append(e[file], obj{"UserId": m, "Name": m, "Role": nil})
	}
}

func (e teamsExport) channel(team, id, name, membership string) {
	file := "teams/" + team + "/channels_" + team + ".json"
	e[file] = append(e[file], obj{"Id": id, "DisplayName": name, "CreatedDateTime": "2020-09-13T12:26:40.1Z",
		"Description": "x", "MembershipType": membership, "IsArchived": false, "IsFavoriteByDefault": nil})
}

func teamsPerson(id, name string) obj {
	return obj{"Application": nil, "Device": nil, "User": obj{"Id": id, "DisplayName": name, "TenantId": "x"}}
}

// teamsMessage returns a message that was sent n minutes after the first one.
func teamsMessage(n int, sender, content string, more obj) obj {
	at := time.Unix(1_600_000_000+int64(n)*60, 250_000_000).UTC()
	m := obj{"Id": fmt.Sprint(at.UnixMilli()), "Body": obj{"ContentType": "html", "Content": content},
		"CreatedDateTime": at.Format("2006-01-02T15:04:05.999-07:00"), "LastEditedDateTime": nil,
		"DeletedDateTime": nil,
		"Subject":         "", "ReplyToId": nil, "From": teamsPerson(sender, "Person "+sender), "Attachments": []obj{},
		"Mentions": []obj{}, "Reactions": []obj{}, "MessageHistory": nil, "MessageType": "message",
		"ChannelIdentity": nil, "ChatId": nil, "PolicyViolation": nil}
	maps.Copy(m, more)
	return m
}

// post adds a message of a channel. The rows of a file are in no order: later ones come first.
func (e teamsExport) post(team, channel string, m obj) {
	m["ChannelIdentity"] = obj{"TeamId": team, "ChannelId": channel}
	file := "teams/" + team + "/messages_" + team + ".json"
	e[file] = append([]obj{m}, e[file]...)
}

func (e teamsExport) chat(id string, m obj, users ...string) {
	m["ChatId"] = id
	for _, u := range users {
		file := "users/" + u + "/messages_" + u + ".json"
		e[file] = append(e[file], m)
	}
}

const (
	teamsHosted = "https://graph.microsoft.com/v1.0/teams/t1/channels/c1/messages/1/hostedContents/abc/$value"
	teamsTwo    = "19:u1_u2@unq.gbl.spaces"
	teamsGroup  = "19:0502f9f8@thread.v2"
)

// teamsSample is an export that has each thing that the format knows.
func teamsSample() teamsExport {
	e := teamsExport{}
	e.user("u1", "Ann Lee", "ann@example.com")
	e.user("u2", "Bo", "bo@example.com")
	e.user("u3", "Cy", "cy_other.example#EXT#@example.com")
	e.user("u4", "Bo", "bo2@example.com")
	e.team("t1", "Crew", "public", "u1", "u2", "u3", "gone")
	e.team("t2", "Board", "private", "u1")
	e.team("t3", "crew", "", "u2") // nothing says who sees it
	e.team("t4", "Old", "public")
	e.team("t5", "A group", "")
	e.channel("t1", "c1", "General", "standard")
	e.channel("t1", "c2", "Design of everything that floats", "standard")
	e.channel("t1", "c3", "Secrets", "private")
	e.channel("t2", "c4", "General", "standard")
	e["teams/t1/teamInstalledApps_t1.json"] = []obj{{"Id": "x"}}
	e["users/u1/meetings_u1.json"] = []obj{{"Id": "x"}}
	n := 0
	say := func(team, channel, sender, content string, more obj) string {
		n++
		m := teamsMessage(n, sender, content, more)
		e.post(team, channel, m)
		return m["Id"].(string)
	}
	at := func(id int, key, text string) obj {
		return obj{"Id": id, "MentionText": text, "Mentioned": obj{"User": obj{"Id": key, "DisplayName": text}}}
	}
	say("t1", "c1", "u1", "<p>plain &amp; <strong>bold</strong>, <i>italic</i> and <s>gone </s>text</p>\n"+
		"<p>&nbsp;</p>\n<p>line<br>\nnext</p>", nil)
	root := say("t1", "c1", "u1", "<p>Who brings the <em>long</em> rope to the boat on Saturday morning, please?</p>",
		obj{"Reactions": []obj{{"ReactionType": "👍🏽", "User": teamsPerson("u2", "Bo")},
			{"ReactionType": "heart", "User": teamsPerson("left", "Left")},
			{"ReactionType": "no such", "User": teamsPerson("u2", "Bo")}}})
	say("t1", "c1", "u2", `<p><at id="0">Ann</at>&nbsp;<at id="1">Lee</at> and <at id="2">Bo</at> do</p>`, obj{
		"ReplyToId": root, "Mentions": []obj{at(0, "u1", "Ann"), at(1, "u1", "Lee"), at(2, "u4", "Bo")}})
	subject := say("t1", "c2", "u3", "<ul><li>one<ul><li>deep</li></ul></li><li>two</li></ul>"+
		"<ol><li>first</li><li>second</li></ol>", obj{"Subject": "Cat!"})
	say("t1", "c2", "left", `<pre class="language-python"><code>print(<span>"hi"</span>)</code></pre>`,
		obj{"ReplyToId": subject, "From": teamsPerson("left", "Left Person")})
	say("t1", "c2", "u1", `<p><at id="0">Everyone</at> see <a href="https://example.com/a(b)">the site</a> `+
		`<a href="javascript:alert(1)">not this</a></p>`, obj{"Mentions": []obj{{"Id": 0, "MentionText": "Everyone",
		"Mentioned": obj{"Conversation": obj{"Id": "t1", "DisplayName": "Crew"}}}},
		"LastEditedDateTime": "2020-09-13T13:00:00.5+00:00"})
	say("t1", "c1", "u1", `<p><img alt="a cat" src="`+teamsHosted+`"></p>`, nil)
	say("t1", "c1", "", "<p>x</p>", obj{"From": obj{"Application": obj{"Id": "a1", "DisplayName": "Polly"}},
		"Body": obj{"ContentType": "html", "Content": `<attachment id="k"></attachment>`}, "Attachments": []obj{
			{"Id": "k", "ContentType": "application/vnd.microsoft.card.adaptive",
				"Content": `{"type":"AdaptiveCard","body":[{"text":"Hi there"},{"text":"I am Polly"}]}`}}})
	say("t1", "c1", "u1", `<attachment id="q"></attachment><p>agreed</p><attachment id="f"></attachment>`, obj{
		"Attachments": []obj{{"Id": "q", "ContentType": "messageReference", "Content": `{"messageId":"1",` +
			`"messagePreview":"who <rows>?","messageSender":{"user":{"id":"u4","displayName":"Bo"}}}`},
			{"Id": "f", "ContentType": "reference", "ContentUrl": "https://example.sharepoint.com/plan 1.docx",
				"Name": "plan 1.docx"}}})
	say("t2", "c4", "u1", `<table><tbody><tr><td><p>a</p></td><td>b|c</td></tr>`+
		`<tr><td><b>d</b></td></tr></tbody></table>`+
		"<blockquote>\n<p>said</p>\n<p>twice</p></blockquote><h2>Head</h2><hr><p>end `tick`</p>", nil)
	say("t1", "c3", "u1", "<p>for few eyes</p>", obj{"Subject": "hidden"})
	say("t1", "c3", "u2", "<p>also</p>", nil)
	say("t1", "nowhere", "u1", "<p>of a channel that is not listed</p>", nil)
	say("t1", "c1", "u1", "", obj{"DeletedDateTime": "2020-09-14T00:00:00Z"})
	say("t1", "c1", "u1", "<p>card number</p>", obj{"PolicyViolation": obj{"DlpAction": "blockAccess"}})
	say("t1", "c1", "u1", "<systemEventMessage/>", obj{"From": nil, "MessageType": "unknownFutureValue"})
	for range 3 {
		n++
		e.chat(teamsTwo, teamsMessage(n, "u1", "<p>just you</p>", nil), "u1", "u2")
	}
	n++
	e.chat(teamsGroup, teamsMessage(n, "u2", `<p><emoji id="ghost" alt="👻" title="Ghost"></emoji></p>`, nil),
		"u1", "u2", "u3")
	n++
	e.chat(teamsGroup, teamsMessage(n, "left", "<p>bye</p>", nil), "u1", "u2", "u3")
	n++
	e.chat("19:u1_lost@unq.gbl.spaces", teamsMessage(n, "u1", "<p>are you there?</p>", nil), "u1")
	n++
	e.chat(teamsGroup, teamsMessage(n, "", "<systemEventMessage/>", obj{"From": nil,
		"MessageType": "unknownFutureValue"}), "u1", "u2", "u3")
	return e
}

// graph answers as Microsoft Graph, from the answers by the path.
func graph(t *testing.T, answers map[string]string) http.RoundTripper {
	return round(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host != "graph.microsoft.com" || r.Header.Get("Authorization") != "Bearer token" {
			t.Errorf("asked %s with %q", r.URL, r.Header.Get("Authorization"))
		}
		name := strings.TrimPrefix(r.URL.Path, "/v1.0")
		if r.URL.Query().Has("$skiptoken") {
			name += " 2"
		}
		a := &http.Response{StatusCode: 200, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(answers[name]))}
		if answers[name] == "" {
			a.StatusCode = 403
		}
		return a, nil
	})
}

// graphAnswers are the answers for the sample.
func graphAnswers() map[string]string {
	return map[string]string{
		"/directoryRoles": `{"value":[{"id":"r1","displayName":"Other"},` +
			`{"id":"r2","displayName":"Global Administrator"}]}`,
		"/directoryRoles/r2/members": `{"value":[{"id":"u1"}]}`,
		"/users": `{"value":[{"id":"u3"}],` +
			`"@odata.nextLink":"https://graph.microsoft.com/v1.0/users?$skiptoken=x"}`,
		"/users 2":                      `{"value":[{"id":"u4"}]}`,
		"/teams/t1/channels/c3/members": `{"value":[{"userId":"u2"},{"userId":"u2"}]}`,
		strings.TrimPrefix(teamsHosted, "https://graph.microsoft.com/v1.0"): "\x89PNG\r\n\x1a\nnot much of a picture",
	}
}

func importTeams(t *testing.T, e teamsExport, change func(*Options)) (*place, *Report) {
	t.Helper()
	dir := t.TempDir()
	e.write(t, dir)
	p := openPlace(t, t.TempDir())
	t.Cleanup(func() { p.store.Close() })
	o := p.options("teams", dir)
	o.Threads = true
	if change != nil {
		change(&o)
	}
	reports, err := Run(context.Background(), o, p.target)
	if err != nil {
		t.Fatal(err)
	}
	return p, reports[0]
}

// The sample without a token: no roles, no private channels and no pictures, and each of them is counted.
func TestTeams(t *testing.T) {
	p, r := importTeams(t, teamsSample(), nil)
	expectCounts(t, []count{
		{"users", r.Users, 8}, {"channels", r.Channels, 4}, {"subscriptions", r.Subscriptions, 6},
		{"messages", r.Messages, 16}, {"direct messages", r.DirectMessages, 6}, {"reactions", r.Reactions, 2},
		{"threads", len(r.PerThread), 2},
		{"messages left out", droppedAs(r, "messages", ""), 7},
		{"private channels", droppedAs(r, "messages", "members of private"), 2},
		{"unlisted channels", droppedAs(r, "messages", "does not have the channel"), 1},
		{"deleted", droppedAs(r, "messages", "deleted"), 1}, {"blocked", droppedAs(r, "messages", "blocked"), 1},
		{"system messages", droppedAs(r, "messages", "system messages"), 2},
		{"unknown reactions", droppedAs(r, "reactions", "unknown emoji"), 1},
		{"pictures", droppedAs(r, "attachments", "no pictures"), 1},
		{"files", droppedAs(r, "attachments", "SharePoint"), 1}, {"cards", droppedAs(r, "cards", ""), 1},
		{"roles", droppedAs(r, "roles", ""), 1}, {"groups", droppedAs(r, "teams", "without a team"), 1},
		{"other files", droppedAs(r, "files", "not imported"), 2},
	})
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	v := x.Realm.ViewAs(realm.Caller{System: true}, 0)
	for _, c := range []struct {
		name        string
		role        realm.Role
		active, bot bool
	}{{"Ann Lee", realm.Member, true, false}, {"Cy", realm.Guest, true, false},
		{"Left Person", realm.Member, false, false}, {"Polly", realm.Member, false, true}} {
		found := false
		v.EachUser(func(u *realm.User) {
			found = found || u.Name == c.name && u.Role == c.role && u.Active == c.active && u.IsBot() == c.bot
		})
		if !found {
			t.Errorf("no user %+v", c)
		}
	}
	want := map[string]bool{"Crew": false, "Board": true, "crew (2)": true, "Old": false}
	got := map[string]bool{}
	v.EachChannel(func(c *realm.Channel) {
		got[c.Name] = c.Private
		if c.History == c.Private || c.Archived != (c.Name == "Old") || !strings.HasPrefix(c.Description, "All of ") {
			t.Errorf("channel %+v", c)
		}
	})
	if !maps.Equal(got, want) {
		t.Errorf("channels %v, want %v", got, want)
	}
	checkTeamsTexts(t, p, []string{
		"plain & **bold**, *italic* and ~~gone~~ text\n\nline\nnext",
		"@**Ann Lee** and @**Bo|11** do", "* one\n  * deep\n* two\n\n1. first\n2. second",
		"```python\nprint(\"hi\")\n```", "@**all** see [the site](https://example.com/a%28b%29) not this", "a cat",
		"Hi there\n\nI am Polly",
		"@_**Bo|11**:\n\n> who <rows>?\n\nagreed\n\n[plan 1.docx](https://example.sharepoint.com/plan%201.docx)",
		"| a | b¦c |\n| --- | --- |\n| **d** |  |\n\n> said\n> \n> twice\n\n## Head\n\n---\n\nend `tick`", "👻",
	})
	checkTeamsTopics(t, p, []string{"Crew>Design of everythin…: Cat!", "Crew>Design of everything that floats",
		"Crew>General",
		"Crew>Who brings the long rope to the boat on Saturday morning,…", "Board>General"}, true)
}

// checkTeamsTexts compares the stored texts: each of want is there, and nothing of a private channel.
func checkTeamsTexts(t *testing.T, p *place, want []string) {
	t.Helper()
	all := p.texts(t)
	for _, text := range want {
		if !slices.Contains(all, text) {
			t.Errorf("no text %q in %q", text, all)
		}
	}
}

// checkTeamsTopics checks the topics of channels.
func checkTeamsTopics(t *testing.T, p *place, want []string, all bool) {
	t.Helper()
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	v := x.Realm.ViewAs(realm.Caller{System: true}, 0)
	got := map[string]bool{}
	v.EachChannel(func(c *realm.Channel) {
		for _, x := range v.Topics(c) {
			got[c.Name+">"+x.Name] = true
		}
	})
	for _, topic := range want {
		if !got[topic] {
			t.Errorf("no topic %q in %v", topic, slices.Sorted(maps.Keys(got)))
		}
	}
	if all && len(got) != len(want) {
		t.Errorf("topics %v, want %v", slices.Sorted(maps.Keys(got)), want)
	}
}

// With a token, roles, members of private channels and pictures come from Microsoft Graph. Without threads, each
// channel is one topic.
func TestTeamsOnline(t *testing.T) {
	p, r := importTeams(t, teamsSample(), func(o *Options) {
		o.Token, o.Threads, o.transport = "token", false, graph(t, graphAnswers())
	})
	expectCounts(t, []count{
		{"users", r.Users, 8}, {"channels", r.Channels, 5}, {"subscriptions", r.Subscriptions, 7},
		{"messages", r.Messages, 18}, {"attachments", r.Attachments, 1}, {"threads", len(r.PerThread), 0},
		{"roles", droppedAs(r, "roles", ""), 0}, {"pictures", droppedAs(r, "attachments", "no pictures"), 0},
	})
	x, err := snapshot.Recover(p.disk, 1)
	if err != nil {
		t.Fatal(err)
	}
	v := x.Realm.ViewAs(realm.Caller{System: true}, 0)
	for email, role := range map[string]realm.Role{"ann@example.com": realm.Owner, "bo@example.com": realm.Member,
		"bo2@example.com": realm.Guest} {
		if u := v.FindByEmail(email); u == nil || u.Role != role {
			t.Errorf("%s is %+v", email, u)
		}
	}
	v.EachChannel(func(c *realm.Channel) {
		if c.Name == "Crew - Secrets" && (!c.Private || c.History) {
			t.Errorf("the private channel: %+v", c)
		}
	})
	checkTeamsTexts(t, p, []string{"[a cat](/user_uploads/a-cat.png)", "for few eyes"})
	checkTeamsTopics(t, p, []string{"Crew>General", "Crew>Design of everything that floats", "Crew - Secrets>Secrets",
		"Board>General"}, true)
}

// A token that does not get the roles refuses the import and leaves nothing: without them all users would be members.
func TestTeamsTokenRefused(t *testing.T) {
	for missing := range graphAnswers() {
		if strings.Contains(missing, "hostedContents") {
			continue
		}
		dir := t.TempDir()
		teamsSample().write(t, dir)
		p := openPlace(t, t.TempDir())
		answers := graphAnswers()
		delete(answers, missing)
		o := p.options("teams", dir)
		o.Token, o.transport = "token", graph(t, answers)
		_, err := Run(context.Background(), o, p.target)
		if path, _, _ := strings.Cut(missing, " "); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("without %s: error %v", missing, err)
		}
		if left, _ := filepath.Glob(filepath.Join(p.dir, "imports", "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		p.store.Close()
	}
}

// What an export does not say opens nothing: no settings, an unknown kind of channel, a message with the id of another
// team's channel. Texts that are nested very deeply lose only their format.
func TestTeamsHostile(t *testing.T) {
	e := teamsSample()
	e.post("t1", "c4", teamsMessage(900, "u2", "<p>for the board</p>", nil)) // in the file of another team
	e.channel("t1", "c9", "Odd", "unknownFutureValue")
	e.post("t1", "c9", teamsMessage(901, "u2", "<p>odd</p>", nil))
	e.post("t1", "c1", teamsMessage(902, "u2", strings.Repeat("<div>", 5000)+"deep", nil))
	e.post("t1", "c1", teamsMessage(903, "u2", strings.Repeat("<b><blockquote>", 200)+"nested", nil))
	e.post("t1", "c1", teamsMessage(904, "u2", "<p>x</p>", obj{"ReplyToId": "1",
		"Subject": strings.Repeat("✔ s", 99)}))
	forward := obj{"Id": "f", "ContentType": "forwardedMessageReference",
		"Content": `{"originalMessageContent":"<p>again</p><attachment id=\"f\"></attachment>"}`}
	e.post("t1", "c1", teamsMessage(905, "u2", `<attachment id="f"></attachment>`, obj{"Attachments": []obj{forward}}))
	p, r := importTeams(t, e, nil)
	if r.Messages != 16+5 || droppedAs(r, "messages", "members of private") != 3 ||
		droppedAs(r, "values", "nested too deeply") == 0 {
		t.Errorf("%d messages, dropped %v", r.Messages, r.Dropped)
	}
	checkTeamsTexts(t, p, []string{"deep", "> again\n> \n> > again"})
}

// writeTeams writes an export. Every fifth message is a reply, and every fourth has a reaction.
func writeTeams(t testing.TB, dir string, messages int) {
	rng := rand.New(rand.NewPCG(1, 2))
	e := teamsExport{}
	var everyone []string
	for u := range generatedUsers {
		everyone = append(everyone, fmt.Sprintf("id%d", u))
		e.user(everyone[u], fmt.Sprintf("User %d", u), fmt.Sprintf("u%d@example.com", u))
	}
	for c := range generatedChannels {
		e.team(fmt.Sprintf("t%d", c), fmt.Sprintf("team %d", c), "public", everyone...)
		e.channel(fmt.Sprintf("t%d", c), fmt.Sprintf("c%d", c), "General", "standard")
	}
	e.write(t, dir)
	files := make([]*lines, generatedChannels)
	for c := range files {
		files[c] = newLines(t, dir, fmt.Sprintf("teams/t%d/messages_t%d.json", c, c))
		files[c].w.WriteString("[")
	}
	last := make([]string, generatedChannels)
	for n := range messages {
		c, u := rng.IntN(generatedChannels), rng.IntN(generatedUsers)
		m := teamsMessage(n, everyone[u], "<p>"+generatedText(rng, `<at id="0">User 3</at>`)+"</p>", obj{
			"Mentions":        []obj{{"Id": 0, "MentionText": "User 3", "Mentioned": teamsPerson("id3", "User 3")}},
			"ChannelIdentity": obj{"TeamId": fmt.Sprintf("t%d", c), "ChannelId": fmt.Sprintf("c%d", c)}})
		if n%4 == 0 {
			m["Reactions"] = []obj{{"ReactionType": "👍", "User": teamsPerson(everyone[n%generatedUsers], "x")}}
		}
		if n%5 == 0 && last[c] != "" {
			m["ReplyToId"] = last[c]
		} else {
			last[c] = m["Id"].(string)
		}
		if files[c].w.Buffered() > 1 {
			files[c].w.WriteString(",")
		}
		files[c].put(m)
	}
	for _, f := range files {
		f.w.WriteString("]")
		f.close()
	}
}

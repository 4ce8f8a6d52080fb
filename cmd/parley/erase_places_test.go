package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/sstable"

	"parley/snapshot/search"
)

// A plantedText is a text of an erased person, in one place.
type plantedText struct {
	text string // distinct, in lower case
	kept string // the data of the certificate that say why it remains; "": it is erased
}

// plantedTexts are in every place that can have a text or a name of a user.
var plantedTexts = []plantedText{
	{text: "zebramessage"}, {text: "zebradirect"}, {text: "zebraoldtext"}, {text: "zebranewtext"},
	{text: "zebrapoll"}, {text: "zebraanswer"}, {text: "zebradeleted"}, {text: "zebraremembered"},
	{text: "zebradraft"}, {text: "zebrascheduled"}, {text: "zebranote"}, {text: "zebrasnippet"}, {text: "zebratitle"},
	{text: "zebrastatus"}, {text: "zebramail"}, {text: "zebraprofile"}, {text: "zebraword"},
	{text: "zebraview"}, {text: "zebraplan"}, {text: "zebrafile"}, {text: "zebracontent"}, {text: "zebralabel"},
	{text: "zebrascope"},
	{text: "zebratoken"},
	{"zebraonlytopic", "topics"}, // no message is left in it
	{"zebratopic", "topics"}, {"zebramoved", "topics from which messages of others were moved"},
	{"zebravote", "votes in polls and to-do lists"},
	{"zebrainvited", "invitations of others"}, {"zebrawelcome", "invitations of others"},
	{"zebrarobot", "bots"}, {"zebrastored", "storage of bots"}, {"zebrahook", "bots"},
	{"zebragroup", "groups"}, {"zebraabout", "groups"},
	{"zebrachannel", "channels"}, {"zebrapurpose", "channels"},
	{"zebraname", "quotes"}, // in notices, such as about a new channel
}

// plantTexts makes a person with plantedTexts on a demo server, and returns the person's number.
func plantTexts(t *testing.T, at string) int64 {
	t.Helper()
	olive, bo := demoAccount(t, at, "olive@example.org"), demoAccount(t, at, "bo@example.org")
	made := olive.must(t, "POST", "users", url.Values{"email": {"zebramail@example.org"}, "password": {browserPassword},
		"full_name": {"Zebraname Zed"}})
	olive.must(t, "PATCH", "users/"+jsonID(made["user_id"]), url.Values{"role": {"200"}})
	z := demoAccount(t, at, "zebramail@example.org")
	do := func(who *account, method, path string, pairs ...string) map[string]any {
		t.Helper()
		form := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return who.must(t, method, path, form)
	}
	general := jsonID(do(z, "GET", "get_stream_id", "stream", "general")["stream_id"])
	post := func(who *account, topic, text string) string {
		sent := do(who, "POST", "messages", "type", "stream", "to", "general", "topic", topic, "content", text)
		return jsonID(sent["id"])
	}
	do(z, "POST", "users/me/subscriptions", "subscriptions", `[{"name":"general"}]`)
	file := z.uploadText(t, "zebrafile.txt", "zebracontent")
	post(z, "zebraonlytopic", "zebramessage [f]("+file+")")
	post(bo, "zebratopic", "a message of another user")
	edited := post(z, "t", "zebraoldtext")
	do(z, "PATCH", "messages/"+edited, "content", "zebranewtext")
	post(z, "t", "/poll zebrapoll\nzebraanswer")
	poll := post(bo, "t", "/poll of bo\none")
	do(z, "POST", "submessage", "message_id", poll, "msg_type", "widget", "content",
		`{"type":"new_option","idx":1,"option":"zebravote"}`)
	moved := post(bo, "zebramoved", "moved by olive")
	do(olive, "PATCH", "messages/"+moved, "topic", "elsewhere", "send_notification_to_new_thread", "false")
	do(olive, "DELETE", "messages/"+post(z, "t", "zebradeleted"))
	do(z, "POST", "messages", "type", "direct", "to", `["bo@example.org"]`, "content", "zebradirect")
	later := fmt.Sprint(4_000_000_000) // seconds; in 2096
	do(bo, "POST", "reminders", "message_id", post(z, "t", "zebraremembered"), "scheduled_delivery_timestamp", later)
	do(z, "POST", "reminders", "message_id", poll, "scheduled_delivery_timestamp", later, "note", "zebranote")
	do(z, "POST", "messages/"+poll+"/reactions", "emoji_name", "octopus")
	do(z, "POST", "drafts", "drafts", `[{"type":"","to":[],"topic":"","content":"zebradraft"}]`)
	do(z, "POST", "scheduled_messages", "type", "stream", "to", general, "topic", "t",
		"content", "zebrascheduled", "scheduled_delivery_timestamp", later,
		"repeat", `{"every":"weekly","timezone":"Europe/Berlin"}`)
	do(z, "POST", "saved_snippets", "title", "zebratitle", "content", "zebrasnippet")
	do(z, "POST", "users/me/status", "status_text", "zebrastatus")
	field := do(olive, "POST", "realm/profile_fields", "field_type", "1", "name", "motto")
	do(z, "PATCH", "users/me/profile_data", "data", `[{"id":`+jsonID(field["id"])+`,"value":"zebraprofile"}]`)
	do(z, "POST", "users/me/alert_words", "alert_words", `["zebraword"]`)
	do(z, "POST", "navigation_views", "fragment", "narrow/is/zebraview", "is_pinned", "true", "name", "zebraview")
	do(z, "POST", "user_topics", "stream_id", general, "topic", "zebraplan",
		"visibility_policy", "3")
	do(z, "POST", "users/me/api_keys", "label", "zebralabel", "password", browserPassword, "scope",
		`{"rights":["read"],"channels":[{"channel_id":`+general+`,"topic":"zebrascope"}],`+
			`"endpoints":["GET /messages"],"networks":["192.0.2.0/24"]}`)
	do(z, "POST", "users/me/android_gcm_reg_id", "token", "zebratoken")
	do(z, "POST", "invites", "invitee_emails", "zebrainvited@example.org", "stream_ids", "[]", "invite_as", "400",
		"welcome_message_custom_text", "zebrawelcome")
	bot := do(z, "POST", "bots", "full_name", "zebrarobot", "short_name", "zebrarobot", "bot_type", "3", "payload_url",
		`"https://example.org/zebrahook"`)
	robot := &account{url: at, key: bot["api_key"].(string)}
	robot.email = do(z, "GET", "users/"+jsonID(bot["user_id"]))["user"].(map[string]any)["email"].(string)
	do(robot, "PUT", "bot_storage", "storage", `{"key":"zebrastored"}`)
	do(z, "POST", "user_groups/create", "name", "zebragroup", "description", "zebraabout", "members", "[]")
	do(z, "POST", "channels/create", "name", "zebrachannel", "description", "zebrapurpose", "subscribers",
		"["+jsonID(made["user_id"])+"]")
	return int64(made["user_id"].(float64))
}

// placesOf are the files in which each text is.
type placesOf map[string][]string

// findTexts walks all files of a directory and returns where the planted texts are. Tables of the store and segments of
// the search index are decoded.
func findTexts(t *testing.T, dir string) placesOf {
	t.Helper()
	out := placesOf{}
	look := func(place string, data []byte) {
		data = bytes.ToLower(data)
		for _, p := range plantedTexts {
			if bytes.Contains(data, []byte(p.text)) && !slices.Contains(out[p.text], place) {
				out[p.text] = append(out[p.text], place)
			}
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		look(name+" (name)", []byte(name))
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		look(name, data)
		if strings.HasSuffix(name, ".sst") {
			return eachValue(data, func(key, value []byte) { look(name, key); look(name, value) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "search")); err == nil {
		x, err := search.Open(filepath.Join(dir, "search", "1"))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if err := x.EachStoredTerm(func(term []byte) { look("search", term) }); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// eachValue calls fn with the keys and values of a table of the store, which are compressed in its file.
func eachValue(table []byte, fn func(key, value []byte)) error {
	r, err := sstable.NewMemReader(table, sstable.ReaderOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	defer it.Close()
	for kv := it.First(); kv != nil; kv = it.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			return err
		}
		fn(kv.K.UserKey, value)
	}
	return it.Error()
}

// restored restores a backup of a data directory and returns where the copy is.
func restored(t *testing.T, data string) string {
	t.Helper()
	dir := t.TempDir()
	file, to := filepath.Join(dir, "backup"), filepath.Join(dir, "data")
	if out, code := runParley("backup", file, "--data", data); code != 0 {
		t.Fatal(out)
	}
	if out, code := runParley("restore", file, to); code != 0 {
		t.Fatal(out)
	}
	return to
}

// Every text and name of a person is erased from every file of the data directory, from later backups and from later
// exports, or the certificate lists it with the reason.
func TestErasedTextsAreGoneOrListed(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	p := demo(t, data, "--rate-limit", "0")
	user := plantTexts(t, p.serving())
	before := findTexts(t, restored(t, data))
	for _, x := range plantedTexts {
		if len(before[x.text]) == 0 {
			t.Errorf("%s is nowhere: this test would prove nothing", x.text)
		}
	}
	var c struct {
		Kept []struct{ Kind, Reason string }
	}
	erase := func() {
		file := filepath.Join(dir, "certificate.json")
		if out, code := runParley("user", "erase", "--data", data, "--id", fmt.Sprint(user), "--certificate",
			file); code != 0 {
			t.Fatal(out)
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	erase()
	reasons := map[string]string{}
	for _, k := range c.Kept {
		for kind := range strings.SplitSeq(k.Kind, ", ") {
			reasons[kind] = k.Reason
		}
	}
	export := filepath.Join(dir, "exported")
	if err := os.Mkdir(export, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, code := runParley("export", filepath.Join(export, "file"), "--data", data); code != 0 {
		t.Fatal(out)
	}
	backup := restored(t, data)
	p.stop()
	exported, err := os.ReadFile(filepath.Join(export, "file"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ToLower(string(exported))) {
		for _, x := range plantedTexts {
			if x.kept == "quotes" && strings.Contains(line, x.text) && !strings.HasPrefix(line, `{"text":`) {
				t.Errorf("%s is in the export, not in a message of others: %.300s", x.text, line)
			}
		}
	}
	for name, dir := range map[string]string{"data directory": data, "backup": backup, "export": export} {
		found := findTexts(t, dir)
		for _, x := range plantedTexts {
			places := found[x.text]
			if inOutbox := func(place string) bool { return strings.HasPrefix(place, "outbox") }; slices.ContainsFunc(
				places, inOutbox) {
				if reasons["emails that were sent"] == "" {
					t.Errorf("%s is in %v, and the certificate does not list emails", x.text, places)
				}
				places = slices.DeleteFunc(places, inOutbox)
			}
			switch {
			case len(places) == 0:
			case x.kept == "":
				t.Errorf("%s: %s is in %v", name, x.text, places)
			case reasons[x.kept] == "":
				t.Errorf("%s: %s is in %v, and the certificate does not list %s", name, x.text, places, x.kept)
			}
		}
	}
}

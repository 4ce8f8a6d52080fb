package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire/signon/signontest"
)

// personTexts are the places of the export of the person of plantTexts and plantMore, and a part of one value in each
// of them. Words in capitals are the numbers that plantMore returns.
var personTexts = map[string]string{
	"about.json organization":                      "Parley Demo",
	"avatar.png ":                                  "PNG",
	"drafts.json drafts[].content":                 "zebradraft",
	"drafts.json drafts[].topic":                   "zebradrafttopic",
	"drafts.json drafts[].type":                    "stream",
	"drafts.json reminders[].content":              "zebranote",
	"drafts.json saved_snippets[].content":         "zebrasnippet",
	"drafts.json saved_snippets[].title":           "zebratitle",
	"drafts.json scheduled_messages[].repeated":    "weekly",
	"drafts.json scheduled_messages[].timezone":    "Europe/Berlin",
	"drafts.json scheduled_messages[].topic":       "t",
	"drafts.json scheduled_messages[].to[]":        "USER",
	"edits.jsonl topic_after":                      "zebraafter",
	"edits.jsonl topic_before":                     "zebrabefore",
	"edits.jsonl user_id":                          "USER",
	"files.json [].content_type":                   "text/plain",
	"files.json [].file":                           "zebrafile.txt",
	"files.json [].name":                           "zebrafile.txt",
	"invitations.json [].email":                    "zebrainvited@example.org",
	"invitations.json [].welcome_message":          "zebrawelcome",
	"logins.json api_keys[].endpoints[]":           "GET /messages",
	"logins.json api_keys[].label":                 "zebralabel",
	"logins.json api_keys[].networks[]":            "192.0.2.0/24",
	"logins.json api_keys[].rights[]":              "read",
	"logins.json api_keys[].topics[]":              "zebrascope",
	"logins.json browser_sessions[].address":       "127.0.0.1",
	"logins.json browser_sessions[].browser":       "zebrabrowser",
	"logins.json devices[].kind":                   "fcm",
	"logins.json identities[].issuer":              "http://127.0.0.1:",
	"logins.json identities[].subject":             "zebrasubject",
	"logins.json push_registrations[].app":         "zebra.app",
	"logins.json scim.external_id":                 "zebraexternal",
	"logins.json scim.family_name":                 "Zebrafamily",
	"logins.json scim.formatted":                   "Zebraformatted",
	"logins.json scim.given_name":                  "Zebragiven",
	"logins.json scim.user_name":                   "zebralogin",
	"messages.jsonl channel":                       "general",
	"messages.jsonl client":                        "zebraclient",
	"messages.jsonl content":                       "zebramessage",
	"messages.jsonl earlier_contents[].content":    "zebraoldtext",
	"messages.jsonl files[]":                       "zebrafile.txt",
	"messages.jsonl participants[].id":             "USER",
	"messages.jsonl participants[].name":           "Zebraname Zed",
	"messages.jsonl sender":                        "Zebraname Zed",
	"messages.jsonl sender_id":                     "USER",
	"logins.json passkeys[].name":                  "zebrapasskey",
	"messages.jsonl topic":                         "zebraonlytopic",
	"preferences.json alert_words[]":               "zebraword",
	"preferences.json collapsed_messages[]":        "MOVED",
	"preferences.json muted_users[].user_id":       "BO",
	"preferences.json navigation_views[].fragment": "narrow/is/zebraview",
	"preferences.json navigation_views[].name":     "zebraview",
	"preferences.json starred_messages[]":          "MOVED",
	"preferences.json topics[].channel":            "general",
	"preferences.json topics[].topic":              "zebraplan",
	"profile.json avatar_source":                   "U",
	"profile.json bots[].email":                    "zebrarobot",
	"profile.json bots[].id":                       "BOT",
	"profile.json bots[].name":                     "zebrarobot",
	"profile.json bots[].services[].name":          "zebrarobot",
	"profile.json bots[].services[].url":           "https://example.org/zebrahook",
	"profile.json email":                           "zebramail@example.org",
	"profile.json full_name":                       "Zebraname Zed",
	"profile.json groups[]":                        "zebragroup",
	"profile.json profile_fields[]":                "zebraprofile",
	"profile.json profile_fields[key]":             "motto",
	"profile.json status.emoji_name":               "octopus",
	"profile.json status.text":                     "zebrastatus",
	"profile.json timezone":                        "Asia/Tokyo",
	"profile.json user_id":                         "USER",
	"reactions.jsonl emoji_code":                   "1f419",
	"reactions.jsonl emoji_name":                   "octopus",
	"reactions.jsonl reaction_type":                "unicode_emoji",
	"settings.json []":                             "twitter",
	"submessages.jsonl content":                    "zebravote",
	"submessages.jsonl type":                       "widget",
	"subscriptions.json [].channel":                "zebrachannel",
	"subscriptions.json [].color":                  "#abcdef",
	"drafts.json scheduled_messages[].content":     "zebrascheduled",
}

// plantMore gives the person of plantTexts the data that only their export has, not the search for erased texts. It
// returns the numbers by their words in personTexts.
func plantMore(t *testing.T, at string, user int64) map[string]string {
	t.Helper()
	z, bo := demoAccount(t, at, "zebramail@example.org"), demoAccount(t, at, "bo@example.org")
	do := func(who *account, method, path string, pairs ...string) map[string]any {
		t.Helper()
		form := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return who.must(t, method, path, form)
	}
	b := passkeyBrowser(t, at)
	b.agent = "Mozilla/5.0 zebrabrowser"
	b.logIn("zebramail@example.org", browserPassword)
	connect := b.submit("/accounts/identities/", "/accounts/identities/", url.Values{"connect": {"oidc/company"}})
	b.send("GET", b.fromProvider(connect.header.Get("Location")), nil)
	device := signontest.NewDevice(passkeyOrigin)
	b.addPasskey(device, "zebrapasskey")
	passkeyBrowser(t, at).usePasskey(passkeyLogin, device)
	if status, a, err := z.uploadTo("users/me/avatar", map[string]io.Reader{"a.png": pngOf(t, 60, 60)}); status != 200 {
		t.Fatal(a, err)
	}
	general := jsonID(do(z, "GET", "get_stream_id", "stream", "general")["stream_id"])
	do(z, "PATCH", "settings", "timezone", "Asia/Tokyo", "emojiset", "twitter")
	do(z, "POST", "users/me/status", "status_text", "zebrastatus", "emoji_name", "octopus")
	do(z, "POST", "users/me/apns_device_token", "token", "ab12", "appid", "zebra.app")
	app := jsonID(do(z, "POST", "register_client_device")["device_id"])
	do(z, "POST", "mobile_push/register", "device_id", app, "push_key_id", "7",
		"push_key", "MWtra2tra2tra2tra2tra2tra2tra2tra2tra2tra2tr", "token_kind", "fcm", "token_id", "AAECAwQFBgc=",
		"bouncer_public_key", "b", "encrypted_push_registration", "zebrasealed")
	boID := jsonID(do(bo, "GET", "users/me")["user_id"])
	do(z, "POST", "users/me/muted_users/"+boID)
	moved := jsonID(do(bo, "POST", "messages", "type", "stream", "to", "general", "topic", "zebrabefore", "content",
		"moved by the person")["id"])
	other := jsonID(do(z, "GET", "get_stream_id", "stream", "zebrachannel")["stream_id"])
	do(z, "PATCH", "messages/"+moved, "topic", "zebraafter", "stream_id", other)
	for _, flag := range []string{"starred", "collapsed"} {
		do(z, "POST", "messages/flags", "messages", "["+moved+"]", "op", "add", "flag", flag)
	}
	do(z, "POST", "users/me/subscriptions/properties", "subscription_data",
		`[{"stream_id":`+general+`,"property":"color","value":"#abcdef"}]`)
	do(z, "POST", "drafts", "drafts",
		`[{"type":"stream","to":[`+general+`],"topic":"zebradrafttopic","content":"zebradraft"}]`)
	do(z, "POST", "messages", "type", "stream", "to", "general", "topic", "t", "content", "x", "client", "zebraclient")
	do(z, "POST", "scheduled_messages", "type", "direct", "to", "["+boID+"]", "content", "zebrascheduled",
		"scheduled_delivery_timestamp", "4000000000")
	for _, g := range do(z, "GET", "user_groups")["user_groups"].([]any) {
		if g := g.(map[string]any); g["name"] == "zebragroup" {
			do(z, "POST", "user_groups/"+jsonID(g["id"])+"/members", "add", fmt.Sprintf("[%d]", user))
			do(z, "POST", "invites", "invitee_emails", "zebraguest@example.org", "stream_ids", "["+general+"]",
				"group_ids", "["+jsonID(g["id"])+"]", "invite_as", "400")
		}
	}
	bot := do(z, "GET", "bots")["bots"].([]any)[0].(map[string]any)
	return map[string]string{"USER": fmt.Sprint(user), "BO": boID, "MOVED": moved, "BOT": jsonID(bot["user_id"])}
}

// exportedPlaces returns the values in each place of an export, see UserData.Places.
func exportedPlaces(t *testing.T, entries map[string]string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	var walk func(entry, path string, v any)
	walk = func(entry, path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			free := entry == "settings.json" || entry+" "+path == "profile.json profile_fields"
			for k, x := range v {
				if free {
					if path != "" {
						out[entry+" "+path+"[key]"] = append(out[entry+" "+path+"[key]"], k)
					}
					walk(entry, path+"[]", x)
					continue
				}
				walk(entry, strings.TrimPrefix(path+"."+k, "."), x)
			}
		case []any:
			for _, x := range v {
				walk(entry, path+"[]", x)
			}
		default:
			out[entry+" "+path] = append(out[entry+" "+path], fmt.Sprint(v))
		}
	}
	for entry, text := range entries {
		switch {
		case strings.HasPrefix(entry, "files/"): // named by files.json
		case strings.HasSuffix(entry, ".json"), strings.HasSuffix(entry, ".jsonl"):
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			for {
				var v any
				err := d.Decode(&v)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", entry, err)
				}
				walk(entry, "", v)
			}
		default:
			out[entry+" "] = []string{text}
		}
	}
	return out
}

// Each field that UserDataFields says is exported is in its places of the export, and the export has no place that no
// row names. No text of a field that is not exported is in it.
func TestPersonExportHasEveryField(t *testing.T) {
	data := t.TempDir()
	provider := signontest.New(t)
	provider.LogIn(signontest.Person{Subject: "zebrasubject", Email: "zebramail@example.org", Verified: true})
	p := demo(t, data, "--url", passkeyOrigin, "--auth-config", authConfig(t, provider, ""), "--rate-limit", "0",
		"--push-bouncer", "http://127.0.0.1:1", "--push-bouncer-org", "o",
		"--push-bouncer-key", "k")
	at := p.serving()
	user := plantTexts(t, at)
	words := plantMore(t, at, user)
	scimToken(t, at, data).patch(fmt.Sprintf("/Users/%d", user), `{"op":"add","value":{"userName":"zebralogin",
		"externalId":"zebraexternal","name":{"formatted":"Zebraformatted","givenName":"Zebragiven",
		"familyName":"Zebrafamily"}}}`)
	file := filepath.Join(t.TempDir(), "person.zip")
	if out, code := runParley("export", "person", "zebramail@example.org", "--data", data, "--out", file); code != 0 {
		t.Fatal(out)
	}
	entries := entriesOf(t, file)
	found, named := exportedPlaces(t, entries), map[string]bool{}
	for _, x := range realm.UserDataFields {
		for _, places := range x.Places() {
			for _, place := range places {
				named[place] = true
				want, has := personTexts[place], strings.Contains
				if want == "" {
					t.Errorf("%s %s: this test has no value for %s", x.Row, x.Fields, place)
				}
				if id := words[want]; id != "" {
					want, has = id, func(v, want string) bool { return v == want }
				}
				if !slices.ContainsFunc(found[place], func(v string) bool { return has(v, want) }) {
					t.Errorf("%s %s: %s has %.200q, not %s", x.Row, x.Fields, place, found[place], want)
				}
			}
		}
	}
	for place := range personTexts {
		if !named[place] {
			t.Errorf("%s is in no row of UserDataFields", place)
		}
	}
	for _, x := range realm.ExportedNumbers {
		for _, places := range x.Places() {
			named[places[0]] = true
			if found[places[0]] == nil {
				t.Errorf("%s: %s is not in the export", x.Row, places[0])
			}
		}
	}
	for place, values := range found {
		if !named[place] {
			t.Errorf("no row of UserDataFields names %s with %.200q", place, values)
		}
	}
	all := ""
	for _, text := range entries {
		all += text
	}
	for _, not := range []string{"zebratoken", "zebrastored", "zebraabout", "zebrapurpose", "zebradeleted",
		"zebrasealed", "zebrasecret", "argon2", demoAccount(t, at, "zebramail@example.org").key} {
		if strings.Contains(all, not) {
			t.Errorf("the export contains %s, which UserDataFields says is not exported", not)
		}
	}
}

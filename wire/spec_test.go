package wire

import (
	"bufio"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
)

// specificationPath is the protocol contract, if it is stored next to the repository.
const specificationPath = "../../shared/specification.md"

// proof names the tests that cover a part of the contract: every name in names, under one heading.
type proof struct {
	heading string // the beginning of the heading
	names   string // parameters, fields or resources, separated by spaces, or by semicolons if names contain spaces
	by      string // names of tests
}

// proofs covers the contract row by row. A heading of an endpoint without names covers its path and answer.
var proofs = []proof{
	{"Role codes", "100 200 300 400 600", "TestOwnerRoleChanges TestSpecifiedFields"},
	{"User object",
		"user_id email full_name is_active is_owner is_admin is_guest is_bot bot_type bot_owner_id role timezone " +
			"avatar_version is_imported_stub", "TestSpecifiedFields TestLiveReads"},
	{"User object", "delivery_email avatar_url",
		"TestSpecifiedFields TestEmailVisibilityEvents TestHideEmailEvents"},
	{"User object", "date_joined", "TestSpecifiedFields TestJoinDateIsFirstLogin"},
	{"User object", "is_deleted profile_data", "TestSpecifiedFields TestProfileValuesFollowFieldRules"},
	{"Own user object",
		"avatar_url avatar_version email full_name is_admin is_owner role is_guest is_bot is_active timezone " +
			"date_joined max_message_id user_id delivery_email is_imported_stub profile_data",
		"TestSpecifiedFields TestLiveReads"},
	{"Message object",
		"id type avatar_url client content content_type display_recipient edit_history is_me_message " +
			"last_edit_timestamp last_moved_timestamp reactions recipient_id sender_email sender_full_name sender_id " +
			"sender_realm_str stream_id subject submessages timestamp topic_links flags",
		"TestLiveReads TestLiveChanges"},
	{"Draft object", "type to topic content timestamp", "TestDrafts"},
	{"Subscription entry",
		"stream_id name description rendered_description date_created creator_id invite_only " +
			"desktop_notifications email_notifications wildcard_mentions_notify push_notifications " +
			"audible_notifications pin_to_top is_muted in_home_view is_announcement_only is_web_public color " +
			"stream_post_policy message_retention_days history_public_to_subscribers first_message_id " +
			"folder_id topics_policy is_recently_active stream_weekly_traffic can_add_subscribers_group " +
			"can_remove_subscribers_group can_administer_channel_group can_delete_any_message_group " +
			"can_delete_own_message_group can_move_messages_out_of_channel_group " +
			"can_move_messages_within_channel_group can_send_message_group can_subscribe_group " +
			"can_resolve_topics_group can_create_topic_group subscriber_count",
		"TestSpecifiedFields TestLiveReads"},
	{"Subscription entry", "subscribers partial_subscribers", "TestPartialSubscribers"},
	{"Other resources",
		"Topic preference;Code playground;Allowed domain;Message reminder;Bot storage;Reusable " +
			"invitation;Invitation record;Custom profile field definition",
		"TestTopicPolicies TestPlaygrounds TestDomainRestrictions TestReminders " +
			"TestBotStorageLimit TestAcceptInviteLink TestResendAndRevokeInvite " +
			"TestProfileValuesFollowFieldRules"},

	{"Topic visibility policy",
		"any (including none set) / POST /user_topics with visibility_policy = v;1 (muted) / POST /user_topics with " +
			"visibility_policy = 0", "TestTopicPolicies"},
	{"Event queue", "none / POST /register;discarded / fetching events with its queue_id", "TestSpecifiedRegistration"},
	{"Event queue", "registered / inactivity for idle_queue_timeout_secs", "TestQueueLifetime"},

	{"POST /user_topics", "stream_id topic visibility_policy", "TestTopicPolicies TestLiveChanges"},
	{"POST /users/me/presence", "status last_update_id history_limit_days ping_only new_user_input slim_presence",
		"TestSpecifiedPresence TestLiveChanges"},
	{"GET /users", "client_extavatar include_custom_profile_fields user_ids",
		"TestSpecifiedFields TestSpecifiedVisitors TestLiveReads"},
	{"GET /users/{email}", "", "TestSpecifiedFields TestLiveReads"},
	{"GET /users/me", "", "TestSpecifiedFields TestLiveReads"},
	{"PATCH /users/{user_id}", "full_name role profile_data new_email",
		"TestOwnerRoleChanges TestProfileValuesFollowFieldRules TestEmailVisibilityEvents TestSpecifiedErrors"},
	{"GET /messages/{message_id}", "apply_markdown allow_empty_topic_name", "TestLiveReads"},
	{"POST /messages/render", "", "TestLiveChanges TestSpecifiedLimits"},
	{"POST /messages/flags/narrow", "anchor include_anchor num_before num_after narrow op flag",
		"TestFlagNarrow TestLiveChanges"},
	{"POST /messages/{message_id}/typing", "", "TestTyping TestLiveChanges"},
	{"PATCH /drafts/{draft_id}", "", "TestDrafts"},
	{"POST /reminders", "message_id scheduled_delivery_timestamp note", "TestReminders"},
	{"POST /invites",
		"invitee_emails invite_expires_in_minutes invite_as stream_ids group_ids " +
			"include_realm_default_subscriptions notify_referrer_on_join welcome_message_custom_text",
		"TestInviteCheckOrder TestAcceptEmailInvite TestSpecifiedErrors"},
	{"POST /invites/multiuse", "", "TestAcceptInviteLink"},
	{"POST /realm/playgrounds", "", "TestPlaygrounds TestLiveChanges"},
	{"POST /realm/domains", "", "TestDomainRestrictions TestLiveChanges"},
	{"GET /streams/{stream_id}/email_address", "", "TestChannelEmailAddress"},
	{"PUT /bot_storage", "", "TestBotStorageLimit TestSpecifiedErrors"},
	{"GET /realm/presence", "", "TestSpecifiedPresence"},
	{"POST /mobile_push/test_notification", "", "TestSpecifiedErrors"},
	{"GET /users/me/subscriptions", "", "TestPartialSubscribers TestLiveReads"},
	{"POST /register",
		"apply_markdown client_extavatar include_subscribers slim_presence presence_history_limit_days event_types " +
			"all_public_streams client_capabilities fetch_event_types narrow idle_queue_timeout",
		"TestSpecifiedRegistration TestSpecifiedVisitors TestPartialSubscribers TestRegisterFieldsAreKnownBothWays " +
			"TestLiveChanges"},

	{"Errors",
		"BAD_REQUEST / message does not exist or is not visible;BAD_REQUEST / caller lacks permission to " +
			"invite;BAD_REQUEST / no email in invitee_emails;BAD_REQUEST / a stream_ids channel does not exist or is " +
			"inaccessible;" +
			"BAD_REQUEST / stream_ids non-empty while the caller may not subscribe others;BAD_REQUEST / role change " +
			"makes a guest an administrator;BAD_REQUEST / editing a draft that does not exist;" +
			"BAD_REQUEST / channel for the email address missing or inaccessible;PERMISSION_DENIED / PUT " +
			"/bot_storage by a non-bot;INVALID_PUSH_DEVICE_TOKEN / token not recognized by the server;" +
			"BAD_EVENT_QUEUE_ID / fetching events from a discarded queue;INVITATION_FAILED / some invitee addresses " +
			"already have accounts, other invitations were still sent", "TestSpecifiedErrors"},
	{"Errors", "BAD_REQUEST / bot storage update would exceed the limit", "TestBotStorageLimit"},
	{"Errors", "INVALID_REMOTE_PUSH_DEVICE_TOKEN / token not recognized by the push notification bouncer",
		"TestClassicCallsThroughBouncer"},

	{"Limits", "Bot storage size", "TestBotStorageLimit"},
	{"Limits", "welcome_message_custom_text length", "TestSpecifiedErrors"},
	{"Limits", "Presence history default", "TestSpecifiedPresence"},
	{"Limits",
		"Default invitation validity;Topic length;Message length;Flag update range;Recent direct-message conversations",
		"TestSpecifiedLimits"},
	{"Limits", "Full subscriber list guarantee", "TestPartialSubscribers"},
	{"Limits", "Idle event queue lifetime", "TestQueueLifetime"},
	{"Limits", "Heartbeat interval", "TestLiveChanges"},
}

// contractRow is one row of the contract.
type contractRow struct{ heading, name string }

var endpointHeading = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) /`)

// readSpecification returns the rows and endpoints of the contract.
func readSpecification(t *testing.T) (parts []contractRow) {
	t.Helper()
	f, err := os.Open(specificationPath)
	if err != nil {
		t.Skipf("no specification next to the repository: %v", err)
	}
	defer f.Close()
	var chapter, section string
	var header []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		l := lines.Text()
		switch {
		case strings.HasPrefix(l, "## "):
			chapter, section, header = l[3:], "", nil
		case strings.HasPrefix(l, "### "):
			section, header = l[4:], nil
			if endpointHeading.MatchString(section) {
				parts = append(parts, contractRow{section, ""})
			}
		case !strings.HasPrefix(l, "|"):
			header = nil
		default:
			cells := strings.Split(strings.Trim(l, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			switch {
			case header == nil:
				header = cells
			case strings.Trim(l, "|- ") != "":
				p := contractRow{section, cells[0]}
				if section == "" {
					p.heading = chapter
				}
				if header[0] == "code" || header[0] == "State" {
					p.name += " / " + strings.ReplaceAll(cells[1], ";", ",")
				}
				parts = append(parts, p)
			}
		}
	}
	if len(parts) < 200 {
		t.Fatalf("only %d rows: the format of the specification has changed", len(parts))
	}
	return parts
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	find := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range find.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func (p proof) list() []string {
	if p.names == "" {
		return []string{""}
	}
	if strings.Contains(p.names, ";") || strings.Contains(p.names, " / ") || p.heading == "Limits" {
		return strings.Split(p.names, ";")
	}
	return strings.Fields(p.names)
}

// TestProofsNameExistingTests fails if a proof names a test that does not exist, for example after a test was renamed.
func TestProofsNameExistingTests(t *testing.T) {
	tests := testNames(t)
	for _, p := range proofs {
		for _, name := range strings.Fields(p.by) {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", p.heading, name)
			}
		}
	}
}

// TestEveryContractRowHasATest fails if a row of the contract has no test, or if a proof names an unknown row.
func TestEveryContractRowHasATest(t *testing.T) {
	parts := readSpecification(t)
	covered := map[contractRow]bool{}
	for _, p := range proofs {
		for _, name := range p.list() {
			known := false
			for _, x := range parts {
				// Headings of endpoints must match exactly, because one path can be the beginning of another.
				same := x.heading == p.heading || !endpointHeading.MatchString(p.heading) &&
					strings.HasPrefix(x.heading, p.heading)
				if same && (x.name == name || x.name == "") {
					covered[x], known = true, known || x.name == name
				}
			}
			if !known {
				t.Errorf("%s: the contract has no %q", p.heading, name)
			}
		}
	}
	for _, x := range parts {
		if !covered[x] {
			t.Errorf("%s: no test covers %q", x.heading, x.name)
		}
	}
	t.Logf("%d rows of the contract", len(parts))
}

// TestSpecifiedEndpointsTakeTheirParameters checks the endpoints against the headings and tables of the contract.
func TestSpecifiedEndpointsTakeTheirParameters(t *testing.T) {
	inProse := map[string]string{ // the contract has these in prose, not in tables
		"GET /users/{email}":    "email client_extavatar include_custom_profile_fields",
		"POST /messages/render": "content", "POST /messages/{message_id}/typing": "message_id op",
		"PATCH /drafts/{draft_id}":               "draft_id draft",
		"POST /realm/playgrounds":                "name highlighter_language url_template",
		"POST /realm/domains":                    "domain allow_subdomains",
		"GET /streams/{stream_id}/email_address": "stream_id sender_id", "PUT /bot_storage": "storage",
		"POST /mobile_push/test_notification": "token",
		"GET /users/me/subscriptions":         "include_subscribers", "PATCH /users/{user_id}": "user_id",
		"GET /messages/{message_id}": "message_id",
		"POST /invites/multiuse": "invite_expires_in_minutes invite_as stream_ids group_ids " +
			"include_realm_default_subscriptions welcome_message_custom_text",
	}
	takes := map[string]map[string]bool{}
	for _, e := range Endpoints() {
		names := map[string]bool{}
		for _, p := range e.Params() {
			names[p.Name] = true
			for _, a := range p.Aliases {
				names[a] = true
			}
		}
		takes[e.Method+" "+e.Path] = names
	}
	for _, x := range readSpecification(t) {
		if !endpointHeading.MatchString(x.heading) {
			continue
		}
		names, ok := takes[x.heading]
		if !ok {
			t.Errorf("no endpoint %s", x.heading)
			continue
		}
		wanted := []string{x.name}
		if x.name == "" {
			wanted = strings.Fields(inProse[x.heading])
		}
		for _, name := range wanted {
			if !names[name] {
				t.Errorf("%s does not take %s", x.heading, name)
			}
		}
	}
}

// TestSpecifiedFields checks the objects in answers against the tables of fields in the contract.
func TestSpecifiedFields(t *testing.T) {
	h, ids := newTestRealm(t, 10, 1)
	v := h.r.ViewAs(realm.Caller{User: ids[0]}, 1_700_000_000)
	c := &Call{Site: testSite, Caller: v.Caller}
	var members []any
	appendUsersAfter(c, v, getUsersForm{Gravatar: true, Profile: true}, 0, math.MaxInt, &members)
	me, err := getMe(c, v, noParameters{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := getUserByEmail(c, v, getUserByEmailForm{Email: "user" + ids[4].String() + "@test.example"})
	if err != nil {
		t.Fatal(err)
	}
	s := h.newInitialState(ids[0], allCapabilities)
	s.build()
	entry := throughJSON(t, s.finish().Subscriptions).([]any)[0].(map[string]any)
	for _, x := range readSpecification(t) {
		check := func(where string, o map[string]any, but ...string) {
			if _, ok := o[x.name]; !ok && !slices.Contains(but, x.name) {
				t.Errorf("%s has no %s: %v", where, x.name, slices.Sorted(maps.Keys(o)))
			}
		}
		switch {
		case strings.HasPrefix(x.heading, "User object"):
			check("a member of GET /users", throughJSON(t, members[0]).(map[string]any), "is_deleted")
			check("the user of GET /users/{email}", throughJSON(t, one.User).(map[string]any), "is_deleted",
				"profile_data")
		case strings.HasPrefix(x.heading, "Own user object"):
			check("GET /users/me", throughJSON(t, me).(map[string]any))
		case strings.HasPrefix(x.heading, "Subscription entry"):
			check("a subscription", entry, "partial_subscribers")
		}
	}
	deleted := *h.r.Find(ids[4])
	deleted.Deleted = true
	if o := newUserJSON(v, &deleted, testSite, true, false); !o.Deleted || o.Profile != nil {
		t.Errorf("a deleted user has the fields %+v", o)
	}
	if o := newUserJSON(v, h.r.Find(ids[4]), testSite, false, false); o.Avatar == nil || o.Role == 0 {
		t.Errorf("for clients that do not compute avatar URLs: %+v", o)
	}
}

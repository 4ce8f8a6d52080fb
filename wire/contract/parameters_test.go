package contract

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/wire"
)

// laterParameters are the parameters that the protocol has and the description (feature level 372) lacks. Level 0 marks
// those that the reference server always had: hidden parameters, old names, and endpoints that are not described.
var laterParameters = []struct {
	level    int
	endpoint string
	names    string
}{
	{0, "POST /messages", "subject widget_content forged sender"},
	{0, "PATCH /messages/{}", "subject"},
	{0, "GET /messages/summary", "narrow"},
	{0, "POST /submessage", "message_id msg_type content"},
	{0, "POST /zcommand", "command"},
	{0, "GET /messages", "client_extavatar"},
	{0, "GET /users", "client_extavatar"},
	{0, "GET /users/{}", "client_extavatar"},
	{0, "POST /register", "client_extavatar queue_lifespan_secs"},
	{0, "POST /jwt/fetch_api_key", "json_web_token include_profile"},
	{0, "POST /bots", "full_name short_name bot_type payload_url interface_type service_name config_data " +
		"default_sending_stream default_events_register_stream default_all_public_streams"},
	{0, "PATCH /bots/{}", "full_name bot_owner_id role service_payload_url service_interface config_data " +
		"default_sending_stream default_events_register_stream default_all_public_streams"},
	{0, "GET /bot_storage", "keys"},
	{0, "PUT /bot_storage", "storage"},
	{0, "DELETE /bot_storage", "keys"},
	{0, "PATCH /users/me/subscriptions/{}", "property value"},
	{0, "POST /default_stream_groups/create", "group_name description stream_names"},
	{0, "PATCH /default_stream_groups/{}", "new_group_name new_description"},
	{0, "PATCH /default_stream_groups/{}/streams", "op stream_names"},
	{0, "POST /realm/domains", "domain allow_subdomains"},
	{0, "PATCH /realm/domains/{}", "allow_subdomains"},
	{0, "PATCH /realm/profile_fields/{}",
		"name hint field_data display_in_profile_summary required editable_by_user"},
	{0, "PATCH /users/me/profile_data", "data"},
	{0, "DELETE /users/me/profile_data", "data"},
	{0, "GET /realm/logo", "night"},
	{0, "POST /realm/logo", "night"},
	{0, "DELETE /realm/logo", "night"},
	{0, "POST /realm/playgrounds", "highlighter_language"},
	{0, "POST /users/me/onboarding_steps", "onboarding_step"},
	{0, "POST /calls/zoom/create", "is_video_call"},
	{0, "POST /tus", "Tus-Resumable Upload-Length Upload-Metadata Upload-Concat"},

	{379, "PATCH /messages/{}", "prev_content_sha256"},
	{381, "POST /reminders", "message_id scheduled_delivery_timestamp"},
	{382, "POST /messages/{}/report", "report_type description"},
	{384, "GET /users", "user_ids"},
	{386, "PATCH /user_groups/{}", "deactivated"},
	{388, "PATCH /streams/{}", "is_archived"},
	{389, "PATCH /streams/{}", "folder_id"},
	{389, "POST /users/me/subscriptions", "folder_id"},
	{389, "POST /channel_folders/create", "name description"},
	{389, "GET /channel_folders", "include_archived"},
	{389, "PATCH /channel_folders/{}", "name description is_archived"},
	{390, "POST /navigation_views", "fragment is_pinned name"},
	{390, "PATCH /navigation_views/{}", "is_pinned name"},
	{397, "POST /users/me/subscriptions", "send_new_subscription_messages"},
	{407, "POST /users/{}/status", "status_text emoji_name emoji_code reaction_type"},
	{414, "PATCH /channel_folders", "order"},
	{415, "POST /reminders", "note"},
	{416, "POST /realm/test_welcome_bot_custom_message", "welcome_message_custom_text"},
	{416, "POST /invites", "welcome_message_custom_text"},
	{416, "POST /invites/multiuse", "welcome_message_custom_text"},
	{417, "POST /channels/create", "name subscribers description announce invite_only is_web_public " +
		"is_default_stream folder_id send_new_subscription_messages topics_policy history_public_to_subscribers " +
		"message_retention_days can_add_subscribers_group can_administer_channel_group " +
		"can_remove_subscribers_group can_send_message_group can_subscribe_group " + laterChannelPermissions},
	{441, "POST /users/me/subscriptions", "topics_policy " + laterChannelPermissions},
	{441, "PATCH /streams/{}", "topics_policy " + laterChannelPermissions},
	{444, "PATCH /settings", "target_users"},
	{445, "GET /messages", "anchor_date"},
	{447, "PATCH /bots/{}", "short_name"},
	{455, "POST /realm/profile_fields", "use_for_user_matching"},
	{455, "PATCH /realm/profile_fields/{}", "use_for_user_matching"},
	{459, "DELETE /users/{}", "actions"},
	{465, "POST /calls/nextcloud_talk/create", "room_name"},
	{468, "POST /mobile_push/register", "device_id push_key_id push_key token_kind token_id bouncer_public_key " +
		"encrypted_push_registration"},
	{468, "POST /remotes/push/e2ee/register",
		"realm_uuid token_id encrypted_push_registration bouncer_public_key"},
	{468, "POST /mobile_push/e2ee/test_notification", "device_id"},
	{470, "POST /remove_client_device", "device_id"},
	{478, "POST /realm/filters", "example_input reverse_template alternative_url_templates"},
	{478, "PATCH /realm/filters/{}", "example_input reverse_template alternative_url_templates"},
	{481, "POST /register", "idle_queue_timeout"},
}

// laterChannelPermissions are the permissions of a channel that levels 392 to 441 added.
const laterChannelPermissions = "can_move_messages_within_channel_group can_move_messages_out_of_channel_group " +
	"can_resolve_topics_group can_delete_any_message_group can_delete_own_message_group can_create_topic_group"

// laterUserSettings are the settings of users that levels 385 to 431 added.
const laterUserSettings = "resolved_topic_notice_auto_read_policy web_left_sidebar_unreads_count_summary " +
	"web_left_sidebar_show_channel_folders web_inbox_show_channel_folders"

// settingsAliases are endpoints with the parameters of another one.
var settingsAliases = map[string]string{
	"PATCH /settings/display":       "PATCH /settings",
	"PATCH /settings/notifications": "PATCH /settings",
}

// TestOwnParametersAreMarked compares each parameter with the protocol: exactly those that the protocol does not have
// are marked as an extension. wire.TestOwnParameters does without the description.
func TestOwnParametersAreMarked(t *testing.T) {
	c := load(t)
	protocol, described := protocolParameters(t, c)
	used := map[string]bool{}
	for _, e := range wire.Endpoints() {
		if e.Extension != "" {
			continue
		}
		at := endpointPattern(e.Method, e.Path)
		if alias, ok := settingsAliases[at]; ok {
			at = alias
		}
		params := e.Form.Describe()
		if e.Settings != nil {
			params = append(params, e.Settings.Describe()...)
		}
		for _, p := range params {
			if p.Where == "path" {
				continue
			}
			for _, name := range append([]string{p.Name}, p.Aliases...) {
				inProtocol := protocol[at][name] || described[at][name]
				used[at+" "+name] = true
				switch {
				case inProtocol && p.Extension != "":
					t.Errorf("%s: %s is marked as an extension, but it is in the protocol", at, name)
				case !inProtocol && p.Extension == "":
					t.Errorf("%s: %s is neither in the protocol nor marked as an extension", at, name)
				}
			}
		}
	}
	for _, x := range laterParameters {
		for _, name := range strings.Fields(x.names) {
			if described[x.endpoint][name] || !used[x.endpoint+" "+name] {
				t.Errorf("%s: %s is described, or not served: remove it from laterParameters", x.endpoint, name)
			}
		}
	}
}

// protocolParameters returns the parameters by endpoint: those of the later levels, and those of the description.
func protocolParameters(t *testing.T, c *Contract) (later, described map[string]map[string]bool) {
	t.Helper()
	dir, err := Shared()
	if err != nil {
		t.Fatal(err)
	}
	d, err := readDescription(filepath.Join(dir, "api", "openapi.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	later, described = map[string]map[string]bool{}, map[string]map[string]bool{}
	for path, operations := range d.paths {
		methods, _ := operations.(map[string]any)
		for method, operation := range methods {
			endpoint := endpointPattern(strings.ToUpper(method), path)
			if described[endpoint] == nil {
				described[endpoint] = map[string]bool{}
			}
			maps.Copy(described[endpoint], d.requestParameters(operation)) // by id and by email are one endpoint
		}
	}
	add := func(endpoint, name string) {
		if later[endpoint] == nil {
			later[endpoint] = map[string]bool{}
		}
		later[endpoint][name] = true
	}
	for _, x := range laterParameters {
		for _, name := range strings.Fields(x.names) {
			add(x.endpoint, name)
		}
	}
	for _, name := range strings.Fields(laterUserSettings) {
		add("PATCH /settings", name)
		add("PATCH /realm/user_settings_defaults", name)
	}
	for _, f := range c.fields { // the endpoint is not described, but the answer of a registration is
		if name, ok := strings.CutPrefix(f.name, "realm_"); ok {
			add("PATCH /realm", name)
		}
	}
	return later, described
}

// requestParameters returns the parameters of an operation in the query, the headers and the body.
func (d *description) requestParameters(operation any) map[string]bool {
	out := map[string]bool{}
	m, _ := operation.(map[string]any)
	for _, p := range list(m["parameters"]) {
		p, _ := p.(map[string]any)
		if ref, ok := p["$ref"].(string); ok {
			p, _ = d.parameters[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
		}
		if name, ok := p["name"].(string); ok {
			out[name] = true
		}
	}
	body, _ := m["requestBody"].(map[string]any)
	if ref, ok := body["$ref"].(string); ok {
		body, _ = d.bodies[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	kinds, _ := body["content"].(map[string]any)
	for _, kind := range kinds {
		kind, _ := kind.(map[string]any)
		for name := range d.shape(kind["schema"]).Fields {
			out[name] = true
		}
	}
	return out
}

// TestLaterParametersHaveASource: the pages about the protocol contain each name of a later level. Those of level 0
// belong to an endpoint that the description lacks, or are in a page.
func TestLaterParametersHaveASource(t *testing.T) {
	_, described := protocolParameters(t, load(t))
	dir, err := Shared()
	if err != nil {
		t.Fatal(err)
	}
	changes := words(t, filepath.Join(dir, "api", "changes-373-494.md"))
	pages := maps.Clone(changes)
	maps.Copy(pages, words(t, filepath.Join(dir, "specification.md")))
	semantics, err := filepath.Glob(filepath.Join(dir, "semantics", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range semantics {
		maps.Copy(pages, words(t, page))
	}
	// sameInChannels are parameters of POST /channels/create that the changes mention as "every channel permission".
	sameInChannels := described["PATCH /streams/{}"]
	// hiddenInReference are parameters that no page mentions, because no client sends them. The server refuses them.
	hiddenInReference := []string{"forged"}
	for _, x := range laterParameters {
		for _, name := range strings.Fields(x.names) {
			_, hasEndpoint := described[x.endpoint]
			switch {
			case changes[name], x.level == 0 && (!hasEndpoint || pages[name]):
			case x.level == 417 && sameInChannels[name], slices.Contains(hiddenInReference, name):
			default:
				t.Errorf("%s: no page about the protocol has the parameter %s", x.endpoint, name)
			}
		}
	}
	for _, name := range strings.Fields(laterUserSettings) {
		if !changes[name] {
			t.Errorf("%s is not in the changes", name)
		}
	}
}

var identifier = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// words returns the identifiers in a page.
func words(t *testing.T, path string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, w := range identifier.FindAllString(string(raw), -1) {
		out[w] = true
	}
	return out
}

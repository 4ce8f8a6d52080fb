package contract

import (
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/shape"
)

// TestOwnDescriptionAgrees compares the answers that the endpoints declare with the protocol: no additional
// fields, no missing required fields, and only allowed types.
func TestOwnDescriptionAgrees(t *testing.T) {
	c := load(t)
	compared := 0
	for _, e := range wire.Endpoints() {
		path := strings.ReplaceAll(e.Path, ":*", "")
		r, own := c.route(e.Method, path), e.SuccessShape()
		if r == nil || own == nil {
			continue
		}
		compared++
		checkWithin(t, e.Method+" "+path, "", own, r.answer)
	}
	if compared < 150 {
		t.Errorf("only %d endpoints compared", compared)
	}
}

// ownFields are fields that this server adds to answers of the protocol, each with its reason.
var ownFields = map[string]string{
	"GET /messages/{message_id}/history .next_offset":      "long histories have pages",
	"GET /scheduled_messages .scheduled_messages[].repeat": repeated,
	"POST /register .scheduled_messages[].repeat":          repeated,
	"POST /register .server_assistant":                     assisted,
	"POST /register .realm_assistant_enabled":              assisted,
	"POST /register .realm_allow_browser_push":             places,
	"POST /register .realm_allow_external_pictures":        places,
	"POST /register .realm_allow_livekit_calls":            places,
	"POST /register .realm_allow_message_emails":           places,
	"POST /register .realm_allow_mobile_push":              places,
	"POST /register .realm_allow_outgoing_webhooks":        places,
	"POST /register .realm_meaning_search_enabled":         assisted,
	"POST /register .server_calls":                         calls,
	"POST /register .realm_can_start_calls_group":          calls,
	"POST /register .realm_users_incomplete":               shortList,
	"POST /register .realm_active_user_count":              shortList,
	"POST /register .realm_user_groups[].member_count":     shortList,
	"POST /register .twenty_four_hour_time":                terminal,
	"POST /register .pm_content_in_desktop_notifications":  terminal,
	"PATCH /settings .api_key":                             newKey,
	"PATCH /settings/display .api_key":                     newKey,
	"PATCH /settings/notifications .api_key":               newKey,
}

const repeated = "scheduled messages can be sent repeatedly"

const shortList = "clients with a short list of users know that it is short"

const assisted = "owners agree to summaries, translations and search by meaning, and clients offer them"

const places = "owners close places outside the server, and clients show which"

const calls = "people with this right start calls where the operator has configured a server"

const terminal = "the newest release of the terminal client ends at its start without these former fields"

const newKey = "a new password revokes the caller's key, and the client continues with this one"

// visitorFields may be absent although the protocol requires them, because logged-out visitors do not get them.
var visitorFields = []string{"POST /register .realm_users[].timezone",
	"POST /register .realm_non_active_users[].timezone",
	"GET /users .members[].timezone"}

// checkWithin reports where own allows more than protocol.
func checkWithin(t *testing.T, where, path string, own, protocol *shape.Shape) {
	t.Helper()
	switch {
	case protocol.Kind == "" && protocol.Fields == nil && len(protocol.AnyOf) == 0:
		return // protocol allows anything
	case own.Nullable && !protocol.Nullable:
		t.Errorf("%s: %s may be null, unlike %s", where, path, protocol)
	}
	alternatives := protocol.AnyOf
	if len(alternatives) == 0 {
		alternatives = []*shape.Shape{protocol}
	}
	mine := own.AnyOf
	if len(mine) == 0 {
		mine = []*shape.Shape{own}
	}
	for _, o := range mine {
		for i, p := range alternatives {
			if p.Kind == o.Kind || p.Kind == "" || p.Kind == "number" && o.Kind == "integer" {
				if len(alternatives) == 1 || len(mine) == 1 || p.Fields == nil {
					checkFields(t, where, path, o, p)
				}
				break
			}
			if i == len(alternatives)-1 {
				t.Errorf("%s: %s is %s, want %s", where, path, o, protocol)
			}
		}
	}
}

func checkFields(t *testing.T, where, path string, own, protocol *shape.Shape) {
	t.Helper()
	if own.Items != nil && protocol.Items != nil {
		checkWithin(t, where, path+"[]", own.Items, protocol.Items)
	}
	if own.OtherValues != nil && protocol.OtherValues != nil {
		checkWithin(t, where, path+"*", own.OtherValues, protocol.OtherValues)
	}
	for name, f := range own.Fields {
		p, ok := protocol.Fields[name]
		switch {
		case !ok && protocol.OtherValues != nil:
			checkWithin(t, where, path+"."+name, f.Shape, protocol.OtherValues)
		case !ok && protocol.Closed && ownFields[where+" "+path+"."+name] == "":
			t.Errorf("%s: %s.%s is not in the protocol", where, path, name)
		case !ok && protocol.Closed && f.Required(): // clients that check answers would refuse all of them
			t.Errorf("%s: %s.%s is not in the protocol, so it must be left out where it says nothing",
				where, path, name)
		case ok:
			checkWithin(t, where, path+"."+name, f.Shape, p.Shape)
			// an exception: a host without organization has no values for some fields
			if p.Required() && !f.Required() && where != "GET /server_settings" &&
				!slices.Contains(visitorFields, where+" "+path+"."+name) {
				t.Errorf("%s: %s.%s may be absent, but the protocol requires it", where, path, name)
			}
		}
	}
	for name, p := range protocol.Fields {
		if _, ok := own.Fields[name]; !ok && p.Required() && own.OtherValues == nil && own.Fields != nil {
			t.Errorf("%s: %s.%s is missing", where, path, name)
		}
	}
}

// TestExtensionsAreMarked demands that a setting of the organization that the protocol does not have says so: exports
// for other servers, forms and registrations depend on it.
func TestExtensionsAreMarked(t *testing.T) {
	fields := load(t).route("POST", "/register").answer.Fields
	check := func(name string, extension bool) {
		if _, documented := fields["realm_"+name]; documented == extension {
			t.Errorf("%s: Extension is %v, and the protocol has it: %v", name, extension, documented)
		}
	}
	for _, x := range realm.OrgSettings {
		check(x.Name, x.Extension)
	}
	for _, x := range realm.OrgGroupSettings {
		check(x.Name, x.Extension)
	}
}

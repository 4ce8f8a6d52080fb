package wire

import (
	"fmt"
	"testing"

	"parley/actors/realm"
)

// formLengths are the limits of texts that forms check, in code points (headers: bytes), by parameter name. All other
// limits are checked by commands. The reason is "protocol" where the protocol has the limit, "memory" where only this
// server bounds a text that no rule bounds.
var formLengths = []struct {
	name   string
	limit  int
	reason string
}{
	{"description", realm.MaxDescription, "protocol"}, // of a channel
	{"topic", realm.MaxTopic, "protocol"},
	{"welcome_message_custom_text", realm.MaxWelcomeMessage, "protocol"},
	{"content", realm.MaxMessage, "protocol"}, // a text to render, a submessage, a snippet
	{"status_text", 60, "protocol"},
	{"query", 50, "protocol"}, // of a provider of GIFs
	{"query", 500, "memory"},  // of a search by meaning, which costs tokens
	{"page", 500, "memory"},   // a name of the provider
	{"title", 60, "protocol"}, // of a snippet
	{"alert_words", 100, "protocol"},
	{"description", 1000, "protocol"}, // of a reported message
	{"deactivation_notification_comment", 2000, "protocol"},
	{"fragment", 300, "memory"},
	{"endpoints", 100, "memory"}, // of the scope of an API key
	{"networks", 50, "memory"},
	{"local_id", 100, "memory"},
	{"msg_type", 100, "memory"},
	{"onboarding_step", 100, "memory"},
	{"json_web_token", 8192, "memory"},
	{"Upload-Metadata", 4096, "memory"},
	{"appid", 200, "memory"},
	{"realm_uuid", 100, "memory"},
	{"token_id", 100, "memory"},
	{"push_key", 1000, "memory"},
	{"bouncer_public_key", 1000, "memory"},
	{"encrypted_push_registration", 20000, "memory"},
}

// TestFormsCheckOnlyListedLengths fails for a limit in a form that formLengths does not list, or the other way round.
// The remedy is to check the length in the command, or to list it with its reason.
func TestFormsCheckOnlyListedLengths(t *testing.T) {
	found := map[string]bool{}
	var walk func(name string, schema any)
	walk = func(name string, schema any) {
		switch s := schema.(type) {
		case map[string]any:
			if n, ok := s["maxLength"]; ok {
				found[fmt.Sprint(name, " ", n)] = true
			}
			for key, v := range s {
				if key == "properties" {
					for field, x := range v.(map[string]any) {
						walk(field, x)
					}
				} else {
					walk(name, v)
				}
			}
		case []map[string]any:
			for _, x := range s {
				walk(name, x)
			}
		case []any:
			for _, x := range s {
				walk(name, x)
			}
		}
	}
	for _, e := range Endpoints() {
		for _, p := range e.Form.Describe() {
			walk(p.Name, p.Schema)
		}
	}
	for _, x := range formLengths {
		key := fmt.Sprint(x.name, " ", x.limit)
		if !found[key] {
			t.Errorf("no form checks %s (%s)", key, x.reason)
		}
		delete(found, key)
	}
	for key := range found {
		t.Errorf("a form checks the length of %s: let the command check it, or add it to formLengths", key)
	}
}

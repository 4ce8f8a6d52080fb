package wire

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// descriptionsText has a description of each operation, and of the names of parameters and fields.
//
//go:embed descriptions.txt
var descriptionsText string

// descriptions is the content of descriptionsText.
type descriptions struct {
	names      map[string]nameDescription // that mean the same everywhere
	operations map[string]operationDescription
}

// nameDescription describes a parameter or a field.
type nameDescription struct {
	text    string
	example string // as a client sends it; "" if there is none
	field   bool   // also the fields of answers and events with the name mean this
}

// operationDescription describes an operation, and the names that mean something else in it.
type operationDescription struct {
	text  string
	names map[string]nameDescription
}

var (
	operationLine = regexp.MustCompile(`^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/\S+)$`)
	nameLine      = regexp.MustCompile("^([-*]) ([\\w-]+)(?: = (.*?))?: ([A-Z`].*)$")
)

// parsedDescriptions panics on a wrong line, which is a programming error.
var parsedDescriptions = sync.OnceValue(func() descriptions {
	d, err := parseDescriptions(descriptionsText)
	if err != nil {
		panic("BUG: descriptions.txt: " + err.Error())
	}
	return d
})

// parseDescriptions reads the format of descriptions.txt: first lines "- name = example: Text", with a star for names
// that fields have, too; then operations, each with a line of text and such lines.
func parseDescriptions(text string) (descriptions, error) {
	d := descriptions{map[string]nameDescription{}, map[string]operationDescription{}}
	names, key := d.names, ""
	for number, line := range strings.Split(text, "\n") {
		fail := func(what string) error { return fmt.Errorf("line %d: %s", number+1, what) }
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if m := operationLine.FindStringSubmatch(line); m != nil {
			if key = line; d.operations[key].names != nil {
				return d, fail("the operation is described twice")
			}
			names = map[string]nameDescription{}
			d.operations[key] = operationDescription{names: names}
			continue
		}
		m := nameLine.FindStringSubmatch(line)
		switch {
		case m != nil:
			if _, twice := names[m[2]]; twice {
				return d, fail("the name is described twice")
			}
			names[m[2]] = nameDescription{text: m[4], example: m[3], field: m[1] == "*"}
		case key == "" || d.operations[key].text != "":
			return d, fail("neither an operation nor a name")
		default:
			d.operations[key] = operationDescription{line, names}
		}
	}
	return d, nil
}

// name returns the description of a parameter of an operation.
func (d *descriptions) name(operation, name string) nameDescription {
	if n, ok := d.operations[operation].names[name]; ok {
		return n
	}
	return d.names[name]
}

// addDescriptions adds to an OpenAPI document what descriptions.txt says, and the names of groups of operations.
func addDescriptions(doc map[string]any) {
	d := parsedDescriptions()
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			d.describe(strings.ToUpper(method)+" "+strings.TrimPrefix(path, apiPrefix), op.(map[string]any))
		}
	}
	for _, s := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		d.describeFields(s)
	}
}

// describe describes an operation and its parameters.
func (d *descriptions) describe(key string, op map[string]any) {
	if text := d.operations[key].text; text != "" {
		summary, _, _ := strings.Cut(text, ". ")
		op["summary"], op["description"] = strings.TrimSuffix(summary, "."), text
	}
	op["tags"] = []string{operationGroup(key)}
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		p := p.(map[string]any)
		n := d.name(key, p["name"].(string))
		if n.text != "" {
			p["description"] = n.text
		}
		if n.example == "" {
			continue
		}
		if content, ok := p["content"].(map[string]any); ok {
			content["application/json"].(map[string]any)["example"] = exampleValue(n.example, nil)
		} else {
			p["example"] = exampleValue(n.example, p["schema"])
		}
	}
	body, _ := op["requestBody"].(map[string]any)
	content, _ := body["content"].(map[string]any)
	for _, c := range content {
		c := c.(map[string]any)
		schema := c["schema"].(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]string)
		example := map[string]any{}
		for name, property := range properties {
			n, property := d.name(key, name), property.(map[string]any)
			if n.text != "" {
				property["description"] = n.text
			}
			if n.example != "" && slices.Contains(required, name) {
				example[name] = exampleValue(n.example, property)
			}
		}
		if len(example) == len(required) && len(example) > 0 {
			c["example"] = example
		}
	}
}

// exampleValue returns an example as JSON, unless the schema is that of a text.
func exampleValue(example string, schema any) any {
	s, _ := schema.(map[string]any)
	var v any
	if s["type"] == "string" || json.Unmarshal([]byte(example), &v) != nil {
		return example
	}
	return v
}

// describeFields describes the fields of the objects in a schema. A list without elements gets elements of any type,
// which generators of clients demand.
func (d *descriptions) describeFields(schema any) {
	switch s := schema.(type) {
	case map[string]any:
		if s["type"] == "array" && s["items"] == nil {
			s["items"] = map[string]any{}
		}
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			if n := d.names[name]; n.field {
				if p, ok := p.(map[string]any); ok {
					p["description"] = n.text
				}
			}
		}
		for _, x := range s {
			d.describeFields(x)
		}
	case []any:
		for _, x := range s {
			d.describeFields(x)
		}
	}
}

// operationGroups has the names of groups of operations, by the first part of their path; see operationGroup.
var operationGroups = map[string]string{
	"attachments": "Files", "tus": "Files", "user_uploads": "Files", "thumbnail": "Files", "user_avatars": "Files",
	"avatar": "Files", "static": "Files", "external_content": "Files", "user_data": "Users",
	"bots": "Bots", "bot_commands": "Bots", "bot_storage": "Bots", "external": "Bots", "submessage": "Bots",
	"calls": "Calls", "zcommand": "Messages", "messages": "Messages", "assisted_texts": "Messages", "gifs": "Messages",
	"mark_all_as_read":    "Messages",
	"mark_stream_as_read": "Messages", "mark_topic_as_read": "Messages", "typing": "Messages", "drafts": "Messages",
	"people":         "Users",
	"saved_snippets": "Messages", "scheduled_messages": "Messages", "reminders": "Messages",
	"channel_folders": "Channels", "channels": "Channels", "streams": "Channels", "default_streams": "Channels",
	"default_stream_groups": "Channels", "get_stream_id": "Channels", "user_topics": "Channels",
	"events": "Events", "register": "Events",
	"fetch_api_key": "Login", "jwt": "Login", "server_settings": "Login", "compatibility": "Login",
	"export": "Organization", "realm": "Organization", "invites": "Organization", "audit_log": "Organization",
	"analytics": "Organization", "usage": "Organization", "compliance_exports": "Organization",
	"places":      "Organization",
	"mobile_push": "Notifications", "register_client_device": "Notifications",
	"remove_client_device": "Notifications", "remotes": "Notifications", "zulip-services": "Notifications",
	"navigation_views": "Settings", "settings": "Settings",
	"user_groups": "Groups", "users": "Users",
}

// operationGroup returns the group of an operation, "POST /messages" for example.
func operationGroup(key string) string {
	_, path, _ := strings.Cut(key, " /")
	switch {
	case strings.HasPrefix(path, "users/me/subscriptions"), strings.HasSuffix(path, "/topics"):
		return "Channels"
	case strings.Contains(path, "api_key"):
		return "Login"
	case strings.HasSuffix(path, "_push"), strings.HasSuffix(path, "_token"), strings.HasSuffix(path, "_reg_id"):
		return "Notifications"
	}
	first, _, _ := strings.Cut(path, "/")
	return operationGroups[first]
}

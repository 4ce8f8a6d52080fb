// Package integrations turns the requests of other services (code hosts, monitors, trackers) into messages. A service
// is data: one TOML file that says how its events are recognized, which text and topic they get, and which are skipped.
//
// # A file
//
//	display = "Example"                           # the name that people see
//	categories = ["monitoring"]
//	event = '{{.type}}'                           # a template that names the event of a payload
//	event_types = ["alert", "recovery"]           # the names for only_events and exclude_events
//
//	[[options]]                                   # a parameter of the address, for the page that makes addresses
//	key = "branches"
//	label = "Filter by branches"
//
//	[[events]]
//	name = "alert"                                # a name, or a list, or "*" for all others
//	skip = '{{eq .state "muted"}}'                # no message if the result is "true"
//	topic = '{{.host}}'
//	text = '{{link .title .url}} is {{.state}}.'
//
// The file's name without .toml is the name of the service in its address. Every .toml file can use the templates that
// the .tmpl files beside it define.
//
// # Templates
//
// The templates are those of text/template; the functions are listed in [Functions]. The dot is the payload. Payloads
// are hostile until shown otherwise, therefore:
//
//   - Every field is optional. The part of a text whose field is missing, null or of another type is left out. If no
//     text is left, the message shows the payload. Only a payload without any field that the templates read gets the
//     error ANOMALOUS_WEBHOOK_PAYLOAD. get reads a field for which the template has another text if it is missing.
//   - A printed value is one line without links of its own. Texts of several lines pass through body, quote or fence.
//   - Nothing in a payload can mention users. Only the function mention can.
//   - A template runs at most [MaxSteps] steps and writes at most [MaxTextBytes] bytes.
//   - A template sees the payload, the headers and the parameters of its request, and nothing else.
package integrations

package wire

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"parley/actors/realm"
)

// WidgetIn returns the widget that the first word of a text requests, and the data of its first submessage; "" for
// none.
func WidgetIn(text string) (kind, data string) {
	word := text
	if i := strings.IndexAny(text, " \t\r\n"); i >= 0 {
		word = text[:i]
	}
	lines := strings.Split(strings.ReplaceAll(text[len(word):], "\r\n", "\n"), "\n")
	title, rest := strings.TrimSpace(lines[0]), lines[1:]
	switch word {
	case "/poll":
		options := []string{}
		for _, l := range rest {
			if o := withoutBullet(l); o != "" {
				options = append(options, o)
			}
		}
		return "poll", widgetData("poll", poll{title, options})
	case "/todo":
		tasks := []task{}
		for _, l := range rest {
			if t := withoutBullet(l); t != "" {
				name, about, _ := strings.Cut(t, ": ")
				tasks = append(tasks, task{strings.TrimSpace(name), strings.TrimSpace(about)})
			}
		}
		return "todo", widgetData("todo", taskList{title, tasks})
	}
	return "", ""
}

var bullet = regexp.MustCompile(`^\s*[-*]?\s*`)

func withoutBullet(line string) string {
	line = strings.TrimSpace(line)
	return line[len(bullet.FindString(line)):]
}

type poll struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

type taskList struct {
	Title string `json:"task_list_title"`
	Tasks []task `json:"tasks"`
}

type task struct {
	Name  string `json:"task"`
	About string `json:"desc"`
}

// widget is the first submessage of a message with a widget.
type widget[T any] struct {
	Kind string `json:"widget_type"`
	Data T      `json:"extra_data"`
}

func widgetData[T any](kind string, data T) string { return string(encode(widget[T]{kind, data})) }

// checkWidget reads the parameter widget_content. Only a form of choices is allowed there.
func checkWidget(raw string) (kind, data string, err error) {
	var x any
	if json.Unmarshal([]byte(raw), &x) != nil {
		return "", "", realm.BadRequest("Widgets: API programmer sent invalid JSON content")
	}
	if why := widgetFault(x); why != "" {
		return "", "", realm.BadRequest("Widgets: %s", why)
	}
	return "zform", string(encode(x)), nil
}

// widgetFault returns the first error of the content, "" for none.
func widgetFault(x any) string {
	w, ok := x.(map[string]any)
	if !ok {
		return "widget_content is not a dict"
	}
	kind, ok := w["widget_type"]
	if !ok {
		return "widget_type is not in widget_content"
	}
	if _, ok := w["extra_data"]; !ok {
		return "extra_data is not in widget_content"
	}
	extra, ok := w["extra_data"].(map[string]any)
	if !ok {
		return "extra_data is not a dict"
	}
	name, _ := kind.(string)
	if name != "zform" {
		return "unknown widget type: " + name
	}
	of, ok := extra["type"]
	if !ok {
		return "zform is missing type field"
	}
	if of != "choices" {
		s, _ := of.(string)
		return "unknown zform type: " + s
	}
	if why := textFault(extra, "extra_data", "heading"); why != "" {
		return why
	}
	choices, ok := extra["choices"].([]any)
	if _, sent := extra["choices"]; !sent {
		return "choices key is missing from extra_data"
	}
	if !ok {
		return `extra_data["choices"] is not a list`
	}
	for i, c := range choices {
		at := `extra_data["choices"][` + strconv.Itoa(i) + `]`
		choice, ok := c.(map[string]any)
		if !ok {
			return at + " is not a dict"
		}
		for _, k := range []string{"type", "short_name", "long_name", "reply"} {
			if why := textFault(choice, at, k); why != "" {
				return why
			}
		}
	}
	return ""
}

func textFault(o map[string]any, at, key string) string {
	v, sent := o[key]
	if !sent {
		return key + " key is missing from " + at
	}
	if _, ok := v.(string); !ok {
		return at + `["` + key + `"] is not a string`
	}
	return ""
}

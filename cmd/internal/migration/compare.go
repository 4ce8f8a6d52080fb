package migration

import "strings"

// contextBytes is how many bytes before a difference are searched for its element.
const contextBytes = 400

// difference returns the kind of the first difference of two HTML texts: the element of the exported one, with its
// class; "" if they are equal.
func difference(exported, rendered string) string {
	if exported == rendered {
		return ""
	}
	n := 0
	for n < len(exported) && n < len(rendered) && exported[n] == rendered[n] {
		n++
	}
	start := strings.LastIndexByte(exported[max(0, n-contextBytes):n], '<')
	if start < 0 {
		return "text"
	}
	tag := exported[max(0, n-contextBytes)+start:]
	if end := strings.IndexByte(tag, '>'); end >= 0 {
		tag = tag[:end]
	}
	name, rest, _ := strings.Cut(strings.TrimPrefix(tag, "<"), " ")
	if len(name) > 20 {
		return "text"
	}
	if _, class, ok := strings.Cut(rest, `class="`); ok {
		class, _, _ = strings.Cut(class, `"`)
		class, _, _ = strings.Cut(class, " ")
		if len(class) <= 40 {
			name += "." + class
		}
	}
	return name
}

// wereActive reports whether exported HTML mentions users and groups, or shows emoji, that are deactivated now. They
// were active when the message was sent.
func wereActive(exported, rendered string) bool {
	const silent, picture = ` silent"`, `<img alt=":`
	return strings.Count(exported, silent) < strings.Count(rendered, silent) ||
		strings.Count(exported, picture) > strings.Count(rendered, picture)
}

package wire

import (
	"errors"
	"fmt"
	"testing"

	"parley/actors/realm"
)

// Errors of linkifiers name the template and the whole row as the reference server does, in the words of RE2.
func TestLinkifierErrors(t *testing.T) {
	for _, x := range []struct{ pattern, template, msg, errors string }{
		{"(", "https://t.example/{id}", "Bad regular expression: missing ): (",
			"map[__all__:[Bad regular expression: missing ): (]]"},
		{"[a", "https://t.example/", "Bad regular expression: missing ]: [a",
			"map[__all__:[Bad regular expression: missing ]: [a]]"},
		{"a\\", "https://t.example/", "Bad regular expression: trailing \\",
			"map[__all__:[Bad regular expression: trailing \\]]"},
		{"*", "https://t.example/", "Bad regular expression: no argument for repetition operator: *",
			"map[__all__:[Bad regular expression: no argument for repetition operator: *]]"},
		{"a", "https://t.example/{", "Invalid URL template.",
			"map[__all__:[Invalid URL template.] url_template:[Invalid URL template.]]"},
		{"(", "https://t.example/{", "Invalid URL template.",
			"map[__all__:[Bad regular expression: missing ): (] url_template:[Invalid URL template.]]"},
		{"Q(?P<id>x)", "zork", "Group 'id' in linkifier pattern is not present in URL template.",
			"map[__all__:[Group 'id' in linkifier pattern is not present in URL template.]]"},
	} {
		var r *realm.Refusal
		if err := linkifierFault(realm.Linkifier{Pattern: x.pattern, Template: x.template}); !errors.As(err, &r) {
			t.Errorf("%q: %v", x.pattern, err)
		} else if got := fmt.Sprint(r.Data["errors"]); r.Msg != x.msg || got != x.errors {
			t.Errorf("%q %q: %q %s", x.pattern, x.template, r.Msg, got)
		}
	}
}

// A template of a linkifier leads to a web page: every other scheme is refused, at each place that has a template.
func TestLinkifierSchemes(t *testing.T) {
	const good = "https://t.example/"
	for _, bad := range []string{"javascript:x", "data:text/html,x", "ftp://t.example/", "file:///etc", "//t.example/",
		"/local", "t.example/", "java\tscript://x", "mailto:a@b.org"} {
		for _, l := range []realm.Linkifier{{Pattern: "a", Template: bad},
			{Pattern: "a", Template: good, Alternatives: []string{good, bad}}} {
			var r *realm.Refusal
			if err := linkifierFault(l); !errors.As(err, &r) || r.Msg != "Invalid URL template." {
				t.Errorf("%q: %v", bad, err)
			}
		}
	}
	for _, template := range []string{good, "http://t.example/", "HTTPS://t.example/"} {
		if err := linkifierFault(realm.Linkifier{Pattern: "a", Template: template}); err != nil {
			t.Errorf("%q: %v", template, err)
		}
	}
}

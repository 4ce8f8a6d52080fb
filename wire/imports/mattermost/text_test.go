package mattermost

import (
	"testing"

	"parley/wire/imports"
)

func TestMentions(t *testing.T) {
	users := imports.NewMentions([]imports.User{{Key: "ann", Name: "Ann Lee"}, {Key: "bo.x_", Name: "Bo"}})
	for in, want := range map[string]string{
		"@ann, @Ann. @ann_":            "@**Ann Lee**, @**Ann Lee**. @**Ann Lee**_",
		"@bo.x_ @bo.x_. @bo.x @anna":   "@**Bo** @**Bo**. @bo.x @anna",
		"@channel @all @here.":         "@**all** @**all** @**all**.",
		"a@ann x.@ann (@ann)":          "a@ann x.@ann (@**Ann Lee**)",
		"`@ann` ```\n@ann\n``` ` @ann": "`@ann` ```\n@ann\n``` ` @**Ann Lee**",
		"":                             "",
	} {
		if got := mentionsIn(in, users); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

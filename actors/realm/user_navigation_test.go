package realm_test

import (
	"strings"
	"testing"

	. "parley/actors/realm"
)

// The views of scheduled messages and reminders are built in, so they have no name. Names of other views can have 255
// code points.
func TestNavigationViewNames(t *testing.T) {
	s := newTestScene(t)
	for _, fragment := range []string{"scheduled", "reminders"} {
		v := NavigationView{Fragment: fragment, Name: "Mine"}
		refused(s, s.ann, AddNavigationView{View: v, Named: true}, "Built-in views cannot have a custom name.")
		do(s, s.ann, AddNavigationView{View: NavigationView{Fragment: fragment, Pinned: true}})
	}
	long := NavigationView{Fragment: "narrow/is/dm", Name: strings.Repeat("ü", 256)}
	refused(s, s.ann, AddNavigationView{View: long, Named: true}, "name is too long (limit: 255 characters)")
	long.Name = strings.Repeat("ü", 255)
	do(s, s.ann, AddNavigationView{View: long, Named: true})
	p := AddPlayground{Name: strings.Repeat("p", 256), Language: "Go", Template: "https://e.org/{code}"}
	refused(s, s.admin, p, "name is too long (limit: 255 characters)")
	p.Name = p.Name[1:]
	do(s, s.admin, p)
}

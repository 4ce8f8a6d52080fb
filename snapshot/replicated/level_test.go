package replicated

import (
	"errors"
	"strings"
	"testing"
)

// knownUpTo returns a change of options: the nodes know levels up to those of the map.
func knownUpTo(levels map[string]uint16) func(*Options) {
	return func(o *Options) { o.Level = levels[o.ID] }
}

// A node whose program does not know the level of the log stops with the reason, applies nothing more, and goes on with
// a newer program. Before the level is raised, older programs go on.
func TestRaiseLevel(t *testing.T) {
	levels := map[string]uint16{"a": 1, "b": 1, "c": 1}
	c := newCluster(t, knownUpTo(levels), "a", "b", "c")
	levels["a"], levels["b"] = 2, 2
	for _, name := range []string{"a", "b"} {
		c.must(c.nodes[name].Close())
		c.start(name)
	}
	c.leader()
	if err := c.nodes["a"].RaiseLevel(3); err == nil {
		t.Error("the level was raised above that of the program")
	}
	// Before the level is raised, the program of before goes on.
	levels["b"] = 1
	c.must(c.nodes["b"].Close())
	c.start("b")
	levels["b"] = 2
	c.must(c.nodes["b"].Close())
	c.start("b")
	c.wait("a or b leads", func() bool { return c.leader() != c.nodes["c"] || c.leader().MoveLeader("a") != nil })
	c.must(c.leader().RaiseLevel(2))
	old := c.nodes["c"]
	c.wait("the old node stops", func() bool { return old.Err() != nil })
	var level levelError
	if !errors.As(old.Err(), &level) || !strings.Contains(old.Err().Error(), "install the release") {
		t.Fatalf("the old node stopped with: %v", old.Err())
	}
	old.Close()
	delete(c.nodes, "c")
	levels["c"] = 2
	n := c.start("c")
	c.wait("the new program has the level", func() bool { return n.Level() == 2 })
	c.caughtUp("c")
	c.must(n.Close())
	levels["c"] = 1
	o := c.options("c")
	if _, err := Open("data", o); !errors.As(err, &level) {
		t.Errorf("an old program opens the directory: %v", err)
	}
	levels["c"] = 2
	c.start("c")
}

package operator

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"parley/cmd/internal/cluster"
)

// wantCommands are all commands of an operator with the nodes that may send them to the leader, independent of
// commands.
var wantCommands = map[string]string{
	"cluster-status":  "core edge starting",
	"cluster-promote": "core starting",
	"server-info":     "", // each server answers for itself
	"upgrade":         "",

	"channel-list": "core", "channel-archive": "core", "channel-owners": "core", "invite-list": "core",
	"invite-revoke": "core", "mail-test": "core", "user-role": "core", "user-rename": "core",
	"user-deactivate": "core", "user-reactivate": "core", "audit-keep": "core", "audit-list": "core",
	"audit-export": "core", "compliance-ask": "core",
	"cluster-level": "core", "cluster-move-leader": "core", "cluster-remove": "core", "cluster-token": "core",
	"cluster-verify": "core", "push-register": "core", "push-status": "core", "push-test": "core",
	"realm-create": "core", "realm-list": "core", "realm-close": "core", "realm-reopen": "core",
	"realm-digest": "core", "realm-slowest": "core", "retention-list": "core", "retention-restore": "core",
	"retention-hold-add": "core", "retention-hold-list": "core", "retention-hold-remove": "core",
	"user-create": "core", "user-list": "core", "user-api-key": "core", "user-keys": "core", "user-password": "core",
	"user-erase": "core", "user-grant": "core", "user-sessions": "core", "user-factor": "core",
	"user-help":         "core",
	"scim-token-create": "core", "scim-token-list": "core", "scim-token-revoke": "core",
}

// Every command is sent to the leader as every kind of node. Commands that are not for the node are refused before they
// run.
func TestEveryCommandAsEverySender(t *testing.T) {
	if got, want := slices.Sorted(maps.Keys(commands)), slices.Sorted(maps.Keys(wantCommands)); !slices.Equal(
		got, want) {
		t.Errorf("the commands are %v, this test knows %v", got, want)
	}
	saved := commands
	defer func() { commands = saved }()
	ran := ""
	commands = map[string]command{}
	for name, x := range saved { // none has an effect here
		x.run = func(*Operator, map[string]string) (any, error) { ran = name; return nil, nil }
		commands[name] = x
	}
	o := &Operator{Log: slog.New(slog.DiscardHandler)}
	senders := map[string]cluster.Sender{"core": cluster.FromCore, "edge": cluster.FromEdge,
		"starting": cluster.FromStarting, "removed": cluster.FromRemoved}
	for name, from := range wantCommands {
		for kind, sender := range senders {
			ran = ""
			_, err := o.RunSent(cluster.SentCommand{Node: "n", From: sender, Name: name,
				Args: map[string]string{"node": "n"}})
			allowed := slices.Contains(strings.Fields(from), kind)
			var refused *cluster.RefusedError
			if (ran == name) != allowed || errors.As(err, &refused) == allowed {
				t.Errorf("%s of a node that is %s: executed is %v, %v", name, kind, ran == name, err)
			}
		}
	}
	ran = ""
	if _, err := o.RunSent(cluster.SentCommand{Node: "n", From: cluster.FromCore, Name: "cluster-promote",
		Args: map[string]string{"node": "other"}}); err == nil || ran != "" {
		t.Errorf("a core asks for the vote of another one: %v", err)
	}
	if _, err := o.RunSent(cluster.SentCommand{Node: "n", From: cluster.FromCore, Name: "x"}); err == nil {
		t.Error("a command that does not exist is executed")
	}
}

package wire

import (
	"testing"

	"parley/actors/realm"
)

// Reaction events have the key user only for queues of the terminal client, which cannot read them without it.
func TestReactionEventsForTheTerminalClient(t *testing.T) {
	for name, want := range map[string]bool{"ZulipTerminal": true, "ZulipFlutter": false, "website": false, "": false} {
		to := &Recipient{Client: ClientOf(&realm.Queue{Client: name})}
		for _, op := range []string{"add", "remove"} {
			for full, shown := range map[string]string{"Bo Park": "Bo Park", "": unknownName} {
				o := reactionEvent(op, 3, realm.Reaction{User: 7, Name: "tada"}, full, to)
				user, has := o["user"].(obj)
				if has != want || o["user_id"] != realm.UserID(7) ||
					has && (user["user_id"] != realm.UserID(7) || user["full_name"] != shown) {
					t.Errorf("%q: %v", name, o)
				}
			}
		}
	}
}

package wire

import (
	"testing"

	"parley/actors/realm"
)

// Reaction events have the key user only for queues of the terminal client, which cannot read them without it.
func TestReactionEventsForTheTerminalClient(t *testing.T) {
	for name, want := range map[string]bool{"ZulipTerminal": true, "ZulipFlutter": false, "website": false, "": false} {
		to := &Recipient{Client: ClientOf(&realm.Queue{Client: name})}
		for full, shown := range map[string]string{"Bo Park": "Bo Park", "": unknownName} {
			e := newReactionEvent(3, realm.Reaction{User: 7, Name: "tada"}, full, to)
			if has := e.Who != nil; has != want || e.User != 7 || has && (e.Who.User != 7 || e.Who.Name != shown) {
				t.Errorf("%q: %+v", name, e)
			}
		}
	}
}

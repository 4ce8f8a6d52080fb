package snapshot

import (
	"fmt"
	"slices"

	"parley/actors/presence"
	"parley/actors/realm"
)

// Recovered is an organization loaded from rows and journal, as at a start.
type Recovered struct {
	Realm    *realm.Realm
	Presence *presence.Table
	Unacked  []realm.Publication // events that some queue may not have acknowledged, oldest first
}

// Recover loads an organization as a start does, without claiming it.
func Recover(d Disk, id realm.ID) (x Recovered, err error) {
	rows, _, err := d.Bounds(id)
	if err != nil {
		return x, err
	}
	x.Realm, x.Presence = realm.New(id), presence.New()
	if x.Unacked, err = d.Load(id, x.Realm, x.Presence); err != nil {
		return x, fmt.Errorf("load realm %d: %w", id, err)
	}
	x.Unacked = slices.DeleteFunc(x.Unacked, func(t realm.Publication) bool { return len(t.Notices) == 0 })
	x.Realm.SetSeq(rows, realm.RunSequentially)
	err = d.Tail(id, rows, func(r realm.Record) error {
		if t := clientEvents(x.Realm.ReplayAt(r.Fact, r.Now, r.Level)); len(t.Notices) > 0 {
			x.Unacked = append(x.Unacked, t)
		}
		return nil
	})
	if err != nil {
		return x, fmt.Errorf("replay realm %d: %w", id, err)
	}
	return x, nil
}

// clientEvents returns the notices of a fact that clients receive.
func clientEvents(t realm.Publication) realm.Publication {
	out := realm.Publication{Seq: t.Seq}
	for _, n := range t.Notices {
		if n.Event.EventType() != "" {
			out.Notices = append(out.Notices, n)
		}
	}
	return out
}

package linkmarks

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/actors/realm"
)

// organizations are asleep, and have messages to be marked.
type organizations struct {
	realm.Turns
	owned bool
	views atomic.Int64 // each loads one
}

func (o *organizations) Realms() map[string]realm.ID {
	return map[string]realm.ID{"": 1, "a": 2, "b": 3}
}
func (o *organizations) Owns(realm.ID) bool              { return o.owned }
func (o *organizations) IsAsleep(realm.ID) bool          { return o.owned }
func (o *organizations) HasUncheckedLinks(realm.ID) bool { return true }
func (o *organizations) View(realm.ID, realm.Caller, func(realm.View) (any, error)) (any, error) {
	o.views.Add(1)
	return realm.MessageID(realm.MaxMessageID), nil
}

// A core that does not own the organizations loads none of them, for as long as it follows. The owner loads one each
// second.
func TestMarkerLoadsOwnOrganizations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organizations{}
		m := Start(o, nil, slog.New(slog.DiscardHandler), Delay)
		time.Sleep(time.Hour) // of the bubble's clock
		synctest.Wait()
		if n := o.views.Load(); n > 0 {
			t.Errorf("a core that follows has loaded organizations %d times", n)
		}
		m.Close()

		o.owned = true
		m = Start(o, nil, slog.New(slog.DiscardHandler), Delay)
		time.Sleep(Delay + 2*sleepingPause + sleepingPause/2)
		synctest.Wait()
		if n := o.views.Load(); n != 2 {
			t.Errorf("the owner has loaded %d organizations after two pauses", n)
		}
		<-m.Done()
		if n := o.views.Load(); n != 3 {
			t.Errorf("the owner has loaded %d of 3 organizations", n)
		}
		m.Close()
	})
}

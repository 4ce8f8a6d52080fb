package actors

import (
	"testing"
	"time"

	"parley/actors/realm"
)

// What holds a realm is counted under the name of what was asked, and the slowest is named first.
func TestSlowest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := openHouse(t, &slowDisk{platter: newPlatter()})
		ann := found(t, h, "ann")[0]
		must(t, h, ann, "POST /messages", params{"type": "stream", "to": "one", "topic": "t", "content": "hi"})
		for _, ms := range []int{7, 30, 2} {
			h.View(1, realm.Caller{User: ann, Doing: "GET /long"}, func(realm.View) (any, error) {
				time.Sleep(time.Duration(ms) * time.Millisecond)
				return nil, nil
			})
		}
		h.View(1, realm.Caller{System: true}, func(realm.View) (any, error) {
			time.Sleep(4 * time.Millisecond)
			return nil, nil
		})
		list := h.Slowest(1, 10)
		if x := list[0]; x.Kind != "GET /long" || x.Max != 30*time.Millisecond || x.Times != 3 || x.Over != 2 || x.Total != 39*time.Millisecond || x.User != ann || x.Buckets[4] != 1 || x.Buckets[6] != 1 || x.Buckets[8] != 1 {
			t.Errorf("slowest: %+v", x)
		}
		if x := list[1]; x.Kind != "actors.TestSlowest.func1.2" || x.Max != 4*time.Millisecond || x.Over != 0 {
			t.Errorf("second: %+v", x)
		}
		named := map[string]Hold{}
		for _, x := range h.Holds() {
			named[x.Kind] = x
		}
		if named["POST /messages"].Times != 1 || named["answers and notices"].Times == 0 {
			t.Errorf("all: %+v", named)
		}
		endHouse(t, h)
	})
}

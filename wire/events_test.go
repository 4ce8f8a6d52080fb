package wire

import (
	"reflect"
	"testing"

	"parley/actors/realm"
)

// Every event a realm may tell must read as something to clients: what was forgotten is named here.
func TestEveryEventIsRendered(t *testing.T) {
	for n, typ := range realm.Numbers() {
		x := reflect.New(typ).Interface()
		e, ok := x.(realm.Event)
		if !ok || e.EventType() == "" || typ == reflect.TypeFor[realm.MessageArrived]() {
			continue
		}
		if !Rendered(reflect.TypeOf(x)) {
			t.Errorf("nothing renders %v (number %d): add it to its noun's events in wire", typ, n)
		}
	}
}

package realm

import (
	"reflect"
	"strings"
	"testing"
)

// Every field of the indexes is compared after recovery, or has a reason why it may differ. Without this test a
// forgotten index would be wrong only after a restart.
func TestDerivedListsEveryIndex(t *testing.T) {
	for _, x := range []interface{ derived() map[string]any }{
		&indexes{}, &smallTables{}, &channelIndex{}, &topicIndex{}, &conversationIndex{},
	} {
		of := reflect.TypeOf(x).Elem()
		listed := x.derived()
		for i := range of.NumField() {
			f := of.Field(i)
			_, excluded := notDerived[of.Name()+"."+f.Name]
			_, compared := listed[f.Name]
			delete(listed, f.Name)
			switch row := strings.HasPrefix(f.Type.Name(), "table["); {
			case row && !compared:
			case compared && excluded:
				t.Errorf("%s.%s is both compared and excluded", of.Name(), f.Name)
			case !compared && !excluded:
				t.Errorf("%s.%s is not compared after recovery: "+
					"list it in derived() of realm_derived.go, or give a reason in notDerived", of.Name(), f.Name)
			}
		}
		for name := range listed {
			t.Errorf("%s has no field %s", of.Name(), name)
		}
	}
}

package imports

// Limits of Faults.
const (
	// maxFaults limits the faults with a place: a report has no more places.
	maxFaults = 10_000
	// maxFaultReasons limits the reasons that are counted beyond that: parts of them come from the archive.
	maxFaultReasons = 10_000
)

// Faults collects the values that a format leaves out while it has no Sink.
type Faults struct {
	list []fault
	more map[fault]int // without places
}

type fault struct{ kind, reason, place string }

// Add adds a value, row or file that is left out.
func (f *Faults) Add(kind, reason, place string) {
	if len(f.list) < maxFaults {
		f.list = append(f.list, fault{kind, reason, place})
		return
	}
	if f.more == nil {
		f.more = map[fault]int{}
	}
	key := fault{kind: kind, reason: reason}
	if f.more[key] == 0 && len(f.more) >= maxFaultReasons {
		key.reason = "other reasons"
	}
	f.more[key]++
}

// Report passes all faults to a sink.
func (f *Faults) Report(to Sink) {
	for _, x := range f.list {
		to.DropAt(x.kind, x.reason, x.place)
	}
	for x, n := range f.more {
		to.Drop(x.kind, x.reason, n)
	}
}

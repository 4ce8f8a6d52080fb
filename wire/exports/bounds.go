package exports

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of the exports.
func (e *Exporter) Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "data_exports",
			Of:       "data exports that wait",
			Overflow: "the export fails",
			Reason:   "exports are written one after the other, and each organization may start five a week",
			Limit:    registry.Constant(MaxWaiting),
			Used:     e.Waiting,
			Shares:   func() registry.Shares { return e.shares },
		},
	}
}

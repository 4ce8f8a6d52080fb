package form

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of a request's parameters.
func Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "parameters",
			Of:       "parameters of a request",
			Overflow: "400",
			Reason:   "no endpoint has nearly as many",
			Limit:    registry.Constant(MaxParams),
		},
		{
			Name:     "json_depth",
			Of:       "nested lists and objects in a parameter",
			Overflow: "400",
			Reason:   "each level takes stack while it is decoded",
			Limit:    registry.Constant(MaxJSONDepth),
		},
		{
			Name:     "json_values",
			Of:       "JSON values in a parameter",
			Overflow: "400",
			Reason:   "so many values take about 60 MB while they are decoded",
			Limit:    registry.Constant(MaxJSONValues),
		},
	}
}

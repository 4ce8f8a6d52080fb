package thumbnails

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of the images that wait for their thumbnails.
func (w *Worker) Bounds() []registry.Bound {
	return []registry.Bound{
		{
			Name:     "waiting_thumbnails",
			Of:       "uploaded images whose thumbnails wait to be made",
			Overflow: "made on request, or after the next start",
			Reason:   "they are made one after the other",
			Limit:    registry.Constant(MaxWaiting),
			Used:     w.Waiting,
			Whole:    registry.Cached,
		},
	}
}

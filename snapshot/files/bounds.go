package files

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of a store of files. shares are those of MaxDecodeRequests.
func (s *Store) Bounds(shares func() registry.Shares) []registry.Bound {
	return []registry.Bound{
		{
			Name: "unfinished_uploads",
			Of: "resumable uploads that are unfinished or were finished lately; at most 40 unfinished ones " +
				"per user",
			Overflow: "the upload finished longest ago is forgotten; if there is none, 429",
			Reason:   "each takes about 500 bytes of memory",
			Limit:    registry.Constant(MaxPartialUploads),
			Used:     s.PartialUploads,
			Halved:   "snapshot/files TestPartialUploadsOfOneSpace",
		},
		{
			Name:     "image_decodings",
			Of:       "requests that decode an image or wait for it",
			Overflow: "503",
			Reason:   "a decoded image takes up to 200 MB, so they are decoded one after the other",
			Limit:    registry.Constant(MaxDecodeRequests),
			Used:     s.DecodeRequests,
			Shares:   shares,
		},
		{
			Name:     "thumbnail_bytes",
			Of:       "bytes of thumbnails on the disk",
			Overflow: "the least recently used ones are removed",
			Reason:   "thumbnails can be made again",
			Limit:    registry.Constant(MaxThumbnailBytes),
			Used:     s.ThumbnailBytes,
			Whole:    registry.Cached,
		},
	}
}

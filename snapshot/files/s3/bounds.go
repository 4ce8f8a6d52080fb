package s3

import (
	"parley/actors/registry"
)

// Bounds returns the bounds of a bucket. shares are those of MaxDownloads.
func (s Stats) Bounds(shares func() registry.Shares) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "bucket_uploads",
			Of:       "files that are being sent to the bucket of the files, if there is one",
			Overflow: "a request waits for 5 seconds, then 503",
			Reason:   "a slow bucket must not use up all requests; each has buffers of about 40 kB",
			Limit:    registry.Constant(MaxUploads),
			Used:     func() int64 { return s.Uploads },
			Hits:     func() int64 { return s.RefusedUploads },
			Halved:   "snapshot/files/s3 TestUploadsOfOneSpace",
		},
		{
			Name:     "bucket_downloads",
			Of:       "files that are being received from the bucket of the files, if there is one",
			Overflow: "a request waits for 5 seconds, then 503",
			Reason:   "a download lasts as long as its client takes; each has a connection and buffers of about 40 kB",
			Limit:    registry.Constant(MaxDownloads),
			Used:     func() int64 { return s.Downloads },
			Hits:     func() int64 { return s.RefusedDownloads },
			Shares:   shares,
		},
	}
}

package orgfiles

import (
	"parley/actors/registry"
	"parley/cmd/internal/cluster"
)

// Bounds returns the bounds of the files that come from other cores. shares are those of cluster.MaxFileFetches.
func (f *Fetcher) Bounds(shares func() registry.Shares) []registry.Bound {
	return []registry.Bound{
		{
			Name:     "file_fetches",
			Of:       "files that a core without a bucket is receiving from other cores",
			Overflow: "a request waits for 5 seconds, then 503",
			Reason:   "a slow core must not use up all requests; each has a connection and buffers of about 100 kB",
			Limit:    registry.Constant(cluster.MaxFileFetches),
			Used:     f.Fetching,
			Shares:   shares,
		},
	}
}

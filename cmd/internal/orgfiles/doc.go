// Package orgfiles knows where the files of the organizations are: in the data directory, in a bucket, or on other
// cores. It records their place, moves them to another one, decides which data directory may remove files from a
// bucket, checks that all files exist, and fetches those that only another core has.
package orgfiles

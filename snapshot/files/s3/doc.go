// Package s3 stores files in a bucket that speaks the S3 protocol: the implementation of files.Blobs on another
// machine.
//
// The contract:
//
//   - Every request ends: connecting, each read and each write on the network have a time limit, and so has a whole
//     upload. Uploads and downloads in progress are bounded; further ones wait a little and are refused then.
//   - Nothing is held in memory: files are sent from the disk and passed on as they arrive.
//   - Content that is sent carries its SHA-256, which the server checks before it stores anything.
//   - While the server cannot be reached, calls fail at once with files.ErrUnavailable. A probe detects when it
//     can be reached again.
package s3

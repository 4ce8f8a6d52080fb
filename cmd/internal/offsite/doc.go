// Package offsite keeps backups of a data directory in a folder of a bucket.
//
// A backup is a list of files, the same as in a backup that package backup writes to one file. Each file is an object
// under the HMAC of its content, so a file that an earlier backup has is not sent again: Pebble's tables and uploads
// never change. The list is an object, too, and is sent last. Everything is encrypted with age. After it is sent, each
// object is read and compared.
//
//	objects/ab/abcd...                 the content of a file
//	backups/20260131T120000Z-0123abcd  the list of the files of a backup, by the time when it was begun
//
// The bucket is not trusted: an object that was cut, replaced, or made without the key is refused.
package offsite

// Package diskspace watches the free space of the file system that has the data directory, and protects the journal
// from running out of it. There are three states:
//
//	normal      everything is stored
//	almost full no files are stored: uploads, pictures, thumbnails, exports, new search indexes, copies for backups.
//	            Messages are. It begins below disk-min-free or disk-min-free-percent.
//	read-only   nothing is stored: every change is refused with status 507, or 503 by a core of several, because
//	            another one can take over. Polls and reads continue. It begins below disk-read-only, or when a write
//	            of the store has found no space; the store's ballast lets the writes in progress finish.
//
// Each state ends by itself when there is space again.
package diskspace

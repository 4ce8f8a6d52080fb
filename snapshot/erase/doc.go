// Package erase removes the bytes of purged messages, and of old texts that edit histories lost, from the disk. A
// deleted key stays in the store's files until they are compacted, and a backup would contain it. The owner of an
// organization records when it is done; then the other cores of a cluster remove the bytes from their disks.
package erase

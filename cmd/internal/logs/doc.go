// Package logs makes the log of the process. An error that happens for every message does not fill the disk.
package logs

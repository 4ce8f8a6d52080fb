// Package doctor examines the machine, the network and the settings of a server, and names a remedy for each fault. It
// changes nothing, except that it writes and removes one file in the data
// directory and one object in the bucket.
package doctor

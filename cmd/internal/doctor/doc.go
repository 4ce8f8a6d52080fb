// Package doctor examines what a server needs from its machine, from the network and from its settings, and names for
// each fault what an operator can do. It changes nothing, except that it writes and removes one file in the data
// directory and one object in the bucket.
package doctor

// Package datadir names the files of a data directory that belong to no other package, and reads and writes the two
// that every command needs: the server's secret and the version of the newest program that has served the directory.
package datadir

// Package operator executes the commands of an operator: on a running server, whose control socket gets them, or on the
// data directory of a stopped one. The table commands has all of them, with the nodes of a cluster that may send each
// to the leader.
package operator

// Package cluster makes one cluster of several nodes: cores that own the organizations, and edges that serve clients
// from replicas in memory. It has the membership in the data directory, the messages between nodes, and both ends of a
// link. Package server builds a node of it.
package cluster

// Package cluster connects the nodes of a cluster: cores, which store the organizations, and edges, which serve clients
// from replicas in memory. It implements the membership in the data directory, the messages between nodes, and both
// ends of a link. Package server builds a node from it.
package cluster

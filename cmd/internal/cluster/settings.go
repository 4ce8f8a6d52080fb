package cluster

import (
	"strconv"

	"parley/actors/registry"
)

// Settings are the settings of a node of a cluster.
type Settings struct {
	Node        string
	PeerListen  string
	MaxReplicas int
	Join        string
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "node", Group: registry.Cluster, Value: &s.Node,
			Meaning: "id of this node in its cluster: lower-case letters, digits and dashes",
		},
		{
			Name: "peer-listen", Group: registry.Cluster, Value: &s.PeerListen,
			Meaning: "address at which the other nodes of the cluster reach this one (default: the one of the last " +
				"start)",
		},
		{
			Name: "max-replicas", Default: strconv.Itoa(DefaultMaxReplicas),
			Group: registry.Cluster, Value: &s.MaxReplicas,
			Meaning: "organizations that an edge has in memory at most; beyond it those without clients are " +
				"unloaded, " +
				"and if all have clients, requests for others are answered 503",
		},
		{
			Name: "join", Group: registry.Cluster, Value: &s.Join,
			Meaning: "token of parley cluster token, with which a new node joins a cluster; ignored once it has joined",
		},
	}
}

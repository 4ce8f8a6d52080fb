package server

import (
	"parley/actors"
	"parley/actors/registry"
	"parley/cmd/internal/metrics"
	"parley/cmd/internal/offsite"
)

// parts returns the parts of the server that have metrics and bounds.
func (s *Server) parts() *metrics.Parts {
	p := &metrics.Parts{Program: s.config.Program, Log: s.log, Orgs: s.orgs, Limits: s.realmLimits(), HTTP: s.http,
		Passwords: s.passwords, Encodings: s.encodings, TurnLatency: s.turnLatency, Space: s.space, Store: s.store,
		Search: s.search, Meaning: s.meaning,
		Files: s.files, Served: s.served, Fetcher: s.fetcher, Bucket: s.bucket, Thumbnails: s.thumbnails,
		Exports: s.exports, Directories: s.directories, Assistant: s.assistant, GIFs: s.gifs, Calls: s.calls,
		Dispatcher: s.dispatcher,
		CoreNode:   s.coreNode, Leader: s.core,
		Follower:    s.link,
		Backups:     offsite.ReadStatus(s.Data),
		MaxReplicas: s.MaxReplicas, ReplicaBytes: int64(s.memory().Replicas(s.ReplicaMemory))}
	if s.edge != nil {
		p.Follower = s.edge.Follower
	}
	if s.push != nil {
		p.Pusher = s.push.Pusher
	}
	return p
}

// emptyReading returns the bounds and metrics of a server with default settings that does not run.
func emptyReading() *metrics.Reading {
	s := &Server{Settings: DefaultSettings(), orgs: &actors.Server{}}
	return metrics.Empty(s.parts(), s.parkConfig())
}

// AllBounds returns every bound of a server with default settings, for the reference page.
func AllBounds() []registry.Bound { return emptyReading().Bounds() }

// AllMetrics describes every metric of a server except those of Go and of the process.
func AllMetrics() []metrics.Description { return emptyReading().Describe() }

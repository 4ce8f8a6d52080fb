package httpd

import (
	"sync/atomic"
	"time"

	"parley/actors/registry"
	"parley/wire"
)

// slowRequest is the time above which a request counts as slow: users notice it.
const slowRequest = 250 * time.Millisecond

// endpointCounts are the requests of one endpoint since the start. Its methods may be called concurrently.
type endpointCounts struct {
	requests, refused, failed, slow atomic.Int64
	nanoseconds                     atomic.Int64
}

// add counts an answered request. Statuses of 400 and more are refusals, of 500 and more failures.
func (x *endpointCounts) add(status int, took time.Duration) {
	x.requests.Add(1)
	switch {
	case status >= 500:
		x.failed.Add(1)
	case status >= 400:
		x.refused.Add(1)
	}
	if took >= slowRequest {
		x.slow.Add(1)
	}
	x.nanoseconds.Add(int64(took))
}

// newEndpointCounts returns a counter for each endpoint by its name, such as "GET /messages". Nothing is added later,
// so requests with other paths need no place.
func newEndpointCounts() map[string]*endpointCounts {
	m := map[string]*endpointCounts{}
	for _, e := range wire.Endpoints() {
		m[e.Name()] = &endpointCounts{}
	}
	return m
}

// countEndpoint counts an answered request of an endpoint.
func (s *Server) countEndpoint(name string, status int, began time.Time) {
	if x := s.endpoints[name]; x != nil {
		x.add(status, time.Since(began))
	}
}

// EndpointMetrics returns the metrics of requests by endpoint. Polls, and plain messages and reports of presence that
// the event loop answers itself, are in the metrics of connections.
func (s *Server) EndpointMetrics() []registry.Labeled {
	each := func(read func(*endpointCounts) float64) func(func(string, float64)) {
		return func(send func(string, float64)) {
			if s == nil {
				return
			}
			for name, x := range s.endpoints {
				if x.requests.Load() > 0 {
					send(name, read(x))
				}
			}
		}
	}
	of := func(field func(*endpointCounts) *atomic.Int64) func(func(string, float64)) {
		return each(func(x *endpointCounts) float64 { return float64(field(x).Load()) })
	}
	return []registry.Labeled{
		{
			Name: "parley_http_endpoint_requests_total", Counter: true, Label: "endpoint",
			Meaning: "Answered requests of an endpoint, without those that the event loop answers (polls, " +
				"plain sends).",
			Each: of(func(x *endpointCounts) *atomic.Int64 { return &x.requests }),
		},
		{
			Name: "parley_http_endpoint_refused_total", Counter: true, Label: "endpoint",
			Meaning: "Of these, requests answered with a status from 400 to 499.",
			Each:    of(func(x *endpointCounts) *atomic.Int64 { return &x.refused }),
		},
		{
			Name: "parley_http_endpoint_failed_total", Counter: true, Label: "endpoint",
			Meaning: "Of these, requests answered with a status of 500 or more.",
			Each:    of(func(x *endpointCounts) *atomic.Int64 { return &x.failed }),
		},
		{
			Name: "parley_http_endpoint_slow_total", Counter: true, Label: "endpoint",
			Meaning: "Of these, requests that took 250 ms or more.",
			Each:    of(func(x *endpointCounts) *atomic.Int64 { return &x.slow }),
		},
		{
			Name: "parley_http_endpoint_seconds_total", Counter: true, Label: "endpoint",
			Meaning: "Total time of these requests, in seconds; divided by their number it is the mean latency.",
			Each:    each(func(x *endpointCounts) float64 { return time.Duration(x.nanoseconds.Load()).Seconds() }),
		},
	}
}

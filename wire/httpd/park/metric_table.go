package park

import (
	"parley/actors/registry"
)

// Metrics returns the metrics of the connections.
func (s Stats) Metrics() []registry.Metric {
	return []registry.Metric{
		{
			Name:    "parley_http_connections",
			Meaning: "Open connections.",
			Read:    func() int64 { return int64(s.Open) },
		},
		{
			Name:    "parley_http2_connections",
			Meaning: "Open connections with HTTP/2.",
			Read:    func() int64 { return int64(s.HTTP2) },
		},
		{
			Name:    "parley_http_parked_requests",
			Meaning: "Parked requests: they wait for their answer without a goroutine.",
			Read:    func() int64 { return int64(s.Parked) },
		},
		{
			Name:    "parley_http_active_requests",
			Meaning: "Requests in handlers, or being received or answered.",
			Read:    func() int64 { return int64(s.Active) },
		},
		{
			Name:    "parley_http_slow_requests",
			Meaning: "Requests that wait for their client to send or receive.",
			Read:    func() int64 { return int64(s.Slow) },
		},
		{
			Name:    "parley_http_body_bytes",
			Meaning: "Bytes of request bodies that are in memory or announced.",
			Read:    func() int64 { return int64(s.Bodies) },
		},
		{
			Name:    "parley_http_streamed_requests",
			Meaning: "Requests whose handlers read the body as it arrives.",
			Read:    func() int64 { return int64(s.Streams) },
		},
		{
			Name:    "parley_http_unsent_bytes",
			Meaning: "Bytes of answers to parked requests that sockets did not accept at once.",
			Read:    func() int64 { return int64(s.Pending) },
		},
		{
			Name:    "parley_http_answer_bytes",
			Meaning: "Bytes of answers that are being built or that clients have not received.",
			Read:    func() int64 { return int64(s.AnswerBytes) },
		},
		{
			Name: "parley_http_answers_refused_total", Counter: true,
			Meaning: "Large answers refused because answers took too much memory.",
			Read:    func() int64 { return s.AnswersRefused },
		},
		{
			Name: "parley_http_connections_accepted_total", Counter: true,
			Meaning: "Connections accepted.",
			Read:    func() int64 { return s.Accepted },
		},
		{
			Name: "parley_http_requests_total", Counter: true,
			Meaning: "Requests.",
			Read:    func() int64 { return s.Requests },
		},
		{
			Name: "parley_http_fast_path_requests_total", Counter: true,
			Meaning: "Requests answered on the event loop, without a goroutine.",
			Read:    func() int64 { return s.FastPath },
		},
		{
			Name: "parley_http_parked_requests_total", Counter: true,
			Meaning: "Requests that were parked.",
			Read:    func() int64 { return s.Parks },
		},
		{
			Name: "parley_http_parked_answers_total", Counter: true,
			Meaning: "Answers to parked requests.",
			Read:    func() int64 { return s.Answers },
		},
		{
			Name: "parley_http_parked_disconnects_total", Counter: true,
			Meaning: "Parked requests whose client disconnected.",
			Read:    func() int64 { return s.Gone },
		},
		{
			Name: "parley_http_connections_handed_over_total", Counter: true,
			Meaning: "Connections handed over to a successor.",
			Read:    func() int64 { return s.HandedOff },
		},
		{
			Name: "parley_http_write_timeouts_total", Counter: true,
			Meaning: "Connections closed because the client did not receive an answer in time.",
			Read:    func() int64 { return s.WriteTimeouts },
		},
		{
			Name: "parley_http_panics_total", Counter: true,
			Meaning: "Handlers that panicked.",
			Read:    func() int64 { return s.Panics },
		},
		{
			Name: "parley_http_received_bytes_total", Counter: true,
			Meaning: "Bytes received, without the overhead of TLS.",
			Read:    func() int64 { return s.BytesIn },
		},
		{
			Name: "parley_http_sent_bytes_total", Counter: true,
			Meaning: "Bytes sent, without the overhead of TLS.",
			Read:    func() int64 { return s.BytesOut },
		},
	}
}

// Labeled returns the metrics of the connections that have a label.
func (s Stats) Labeled() []registry.Labeled {
	return []registry.Labeled{{
		Name: "parley_http_refusals_total", Counter: true, Label: "reason",
		Meaning: "Requests and connections refused before any handler ran, by reason.",
		Each:    registry.EachOf(s.Refused),
	}}
}

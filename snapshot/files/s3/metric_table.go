package s3

import (
	"parley/actors/registry"
)

// Metrics returns the metrics of a bucket.
func (s Stats) Metrics() []registry.Metric {
	return []registry.Metric{
		{
			Name:    "parley_files_unreachable",
			Meaning: "1 while uploads and downloads are refused because the bucket of the files cannot be reached.",
			Read:    func() int64 { return registry.OneIf(s.Down) },
		},
	}
}

// Labeled returns the metrics of a bucket that have a label.
func (s Stats) Labeled() []registry.Labeled {
	return []registry.Labeled{
		{
			Name: "parley_files_requests_total", Counter: true, Label: "op",
			Meaning: "Requests to the bucket of the files, by kind.",
			Each: func(send func(string, float64)) {
				for _, op := range Ops() {
					send(op.String(), float64(s.Requests[op]))
				}
			},
		},
		{
			Name: "parley_files_failures_total", Counter: true, Label: "op",
			Meaning: "Requests to the bucket of the files that failed, by kind.",
			Each: func(send func(string, float64)) {
				for _, op := range Ops() {
					send(op.String(), float64(s.Failures[op]))
				}
			},
		},
	}
}

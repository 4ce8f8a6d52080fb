// Package registry describes the bounds and metrics of a server. Each package has tables of its own, beside the code
// that enforces or counts; the wiring collects them for the metrics endpoint, the page about the server and the
// reference pages. A table can be made without the parts of a server: its functions are called only when the numbers
// are read.
package registry

import (
	"fmt"
	"maps"
	"slices"
)

// Bound is the limit of something that could grow: a mailbox, a queue, a cache, a part of a request.
type Bound struct {
	Name     string // also the value of the label "of" in the metrics
	Of       string // the objects counted, with their unit
	Overflow string // the effect of reaching the limit
	Reason   string // the reason for the value, or for having a limit

	Limit func() int64
	Used  func() int64 // nil if a single request is bounded
	Hits  func() int64 // how often the limit was reached; nil if that is not counted

	// A bound whose use is counted says by one of these how the organizations of a server share it.
	Shares func() Shares // gives each of several organizations at most half
	Halved string        // the package and the test that show the same of other code
	Whole  string        // the reason why one organization may use all of it
}

// Shares are the parts of a budget that organizations use.
type Shares interface {
	Take(organization string, n int64) bool
	Give(organization string, n int64)
	Used(organization string) int64
}

// Reasons why one organization may use all of a bound.
const (
	OfOne     = "it is the limit of one request, account, organization or client network"
	Cached    = "what is dropped is made again"
	Forgotten = "the oldest are forgotten, which refuses nothing"
	NoNames   = "the organization is not known yet"
	OfCluster = "it is for messages between nodes, which carry those of all organizations together"
)

// IsHalved reports whether each of several organizations has at most half of a bound.
func (b *Bound) IsHalved() bool { return b.Shares != nil || b.Halved != "" }

// Metric is a number without labels.
type Metric struct {
	Name    string
	Counter bool // otherwise it is a gauge
	Meaning string
	Read    func() int64
	Scale   float64 // the result of Read is multiplied by it; 0: by 1
}

// Value returns the number.
func (m *Metric) Value() float64 {
	if m.Scale != 0 {
		return float64(m.Read()) * m.Scale
	}
	return float64(m.Read())
}

// Labeled is a metric with a number for each value of a label.
type Labeled struct {
	Name    string
	Counter bool // otherwise it is a gauge
	Label   string
	Meaning string
	Each    func(send func(label string, value float64))
}

// Constant returns a function that returns n.
func Constant(n int64) func() int64 { return func() int64 { return n } }

// Largest returns the largest value of a map, or 0 if it is empty.
func Largest[K comparable](m map[K]int64) int64 {
	return slices.Max(append(slices.Collect(maps.Values(m)), 0))
}

// OneIf returns 1 for true and 0 for false.
func OneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// EachOf returns a function that sends each value of a map; the key is the label.
func EachOf[K comparable](m map[K]int64) func(func(label string, value float64)) {
	return func(send func(string, float64)) {
		for k, v := range m {
			send(fmt.Sprint(k), float64(v))
		}
	}
}

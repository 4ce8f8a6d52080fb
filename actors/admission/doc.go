// Package admission is the admission control of an organization, as plain data. Commands wait for their turn while
// events are delivered or fetched too slowly. Lag estimates how long new events will wait for their delivery to the
// event queues. FetchLimiter limits the rate of new events to the rate at which clients fetch them. WaitQueue holds the
// waiting commands and serves accounts in turn.
package admission

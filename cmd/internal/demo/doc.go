// Package demo fills an empty data directory: with the demo organization, or with a crowd for load tests.
package demo

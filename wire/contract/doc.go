// Package contract compares a server's JSON with the protocol's description: answers, errors, events and the
// registration.
//
//	openapi.yaml (feature level 372) + amendments ---Load---> Contract
//	                                                             |
//	recorded answers and events ---------Check, Answer, Event, Register---------> Findings - deviations
//
// The description is an OpenAPI file of feature level 372 beside the repository. The amendments, a table in this
// package, extend it to this server's level. Unknown fields, missing fields and values of another type are findings.
// The table of deviations lists the accepted findings with their reasons. CheckOwn does the same with the description
// that the server publishes itself.
//
// No part of the server imports this package. It is for tests and for `make conform`, which runs the scripts in clients
// against a server and checks their recordings.
package contract

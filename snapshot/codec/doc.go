// Package codec encodes facts, events, rows and message texts as bytes, and decodes them.
//
//	realm.Fact, realm.Event ◀─▶ number (2 bytes, big-endian) + msgpack   journal records, unacknowledged events
//	keys and values of rows ◀─▶ msgpack                                  snapshots
//	realm.Body              ◀─▶ msgpack                                  message texts
//	any of them             ◀─▶ JSON with field names                    exported organizations
//
// The contract:
//
//   - A struct is a msgpack array of its fields in order. The bytes stay readable for ever: fields are only added at
//     the end of a struct, and the numbers in actors/realm/facts.go never change. testdata/pinned.txt holds old bytes
//     that the tests decode.
//   - A stored field of a row, an event or a text is never renamed: exported organizations contain its name.
//   - Equal values have equal bytes: the keys of maps are sorted. Digests and replay tests depend on that.
//   - Decoding data that is damaged or unknown returns an error. Encoding a value of an unknown type is a BUG panic.
//
// All functions may be called from any goroutine.
package codec

// Package search finds the messages whose texts contain given words or phrases. It has one full-text index for each
// organization, in a directory of its own, made with bleve's scorch.
//
//	commit ─▶ Feed ─▶ queue of references ─▶ writer (one goroutine) ─▶ Index.Write ─▶ searchable, later on disk
//	                                             ▲ reads the texts
//	start ─▶ Attach ─▶ replay the journal, or compare with all texts
//	search ─▶ Find ─▶ wait until the index covers the number ─▶ words: exact matches; phrases: candidates
//
// The contract:
//
//   - An index is written after the journal. It stores the sequence number up to which it is complete, in the same
//     batch as the texts. After a crash it lacks the newest texts, but the number is right; the service then adds them.
//   - Feed never blocks, and the queue is bounded: if it overflows, the index is compared with the texts on disk.
//   - Results are candidates. The realm decides which messages the reader may see, and whether a text really contains a
//     quoted phrase.
//   - Nothing is lost with an index: an index that cannot be read is deleted and made again.
package search

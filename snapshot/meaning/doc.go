// Package meaning finds the messages whose texts are nearest in meaning to a text. A service of the operator's choice
// makes a vector of each text; near texts have vectors with a large dot product. Each organization has one file of
// vectors.
//
//	commit ─▶ Feed ─▶ the organization may have changed
//	                     │ every ten seconds
//	                     ▼
//	worker (one goroutine) ─▶ compare the newest messages with the file ─▶ erase vectors of others
//	                       └▶ batches of texts ─▶ service ─▶ file
//	search ─▶ Nearest ─▶ read the whole file in pieces ─▶ messages by descending score
//
// The contract:
//
//   - The file has vectors of the newest messages of an organization whose owners have agreed, and of no others. An
//     edited, moved to the archive, or erased text loses its vector: zeros are written over it. Without consent, the
//     file is deleted.
//   - Nothing else is stored: no text, no channel, no reader. So a moved message keeps its vector. The caller decides
//     which messages a reader may see at the moment of the search, and compares their versions.
//   - Vectors stay on disk. Memory has only the place of each, and only of organizations that are in memory.
//   - Nothing is lost with a file: it is made again, at the cost of asking the service again. A file of another model
//     is deleted.
//   - A new owner first copies what another node has made, with the same texts, model and consent; see loan.go.
package meaning

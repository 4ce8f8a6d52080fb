// Package assist has services of the operator's choice make summaries and translations: one with the interface of
// OpenAI's chat completions, and one with that of LibreTranslate. Without addresses it does nothing.
//
//	wire.summarize ──► Assistant.Summarize ──► cache ──► tokens of the day ──► slot ──► POST URL/chat/completions
//
// A text that is shown while it is written has a part in the server, which its reader asks for again and again:
//
//	wire.beginAssistedText ──► BeginSummary ──► goroutine: POST, server-sent events ──► part
//	wire.readAssistedText ──► ReadPart ── waits for more ──► text so far
//
// The contract:
//
//   - The caller gives only texts that its user can read now, of an organization whose owners agreed. The cache is by
//     these texts, so a text of the cache is never shown to a user who cannot read its messages.
//   - The texts are data in the request, apart from the instruction. An answer is plain text for the caller, who must
//     escape it.
//   - Everything is bounded: requests in progress, the time and the size of an answer, the tokens of a user and of an
//     organization in a day, and the cache. An answer that is of no use is a refusal that does not quote it.
//   - A request to a model ends when its text has no reader any more. A text that breaks off is not cached, and its
//     cost is the estimate.
//   - Tokens are counted by facts of the organization, before a request and again after it. So a restart, a crash or a
//     new owner of the organization loses no count; a request that a crash ends costs as much as was estimated.
package assist

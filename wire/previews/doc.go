// Package previews adds previews of linked pages to messages.
//
// A message is sent at once, without previews, together with an outbox job. The dispatcher gives the job to Fetcher:
//
//	outbox job ─▶ wire.PreviewLinks ─▶ fetch pages ─▶ wire.RenderPreviews ─▶ job finished
//	              (render the text)    (at most 5)    (a turn: new HTML)
//
// Rendering the message again and finishing the job are one turn. If the process ends before that turn, the next
// process fetches the pages again; a page that could not be fetched is left out and not tried again.
//
// Package wire renders messages and decides which links are previewed. This package limits and times the fetching.
package previews

// Package markdown converts the text of messages, topics and descriptions to the HTML that clients show.
//
// A rendering goes through these stages:
//
//	source ─▶ normalize ─▶ fences ─▶ blocks ─▶ inline passes ─▶ previews ─▶ HTML
//
// The stages in detail:
//
//   - normalize unifies line ends and removes the bytes that the renderer uses for placeholders.
//   - Fenced blocks become placeholders, quotes become quoted lines.
//   - The block parser builds a tree of paragraphs, lists, quotes, tables and code.
//   - The inline passes run over each piece of source text in a fixed order: code, mentions, links, emphasis, emoji
//     and others. An element of one pass is invisible to the later passes.
//   - Previews of linked images, videos and pages are inserted after their paragraphs.
//   - The tree is written as HTML.
//
// Security: the tree can only contain the elements and attributes of the table in tree.go, and addresses are
// checked against a list of schemes. The HTML of math is checked against a list of its own (package katex).
//
// Bounds: work and memory grow linearly with the text. Depth, table cells, open fences, previews and the time of a
// rendering are limited; a text that exceeds a limit of rendering yields ErrUnrenderable, which callers report as
// "Unable to render message".
//
// Render has no side effects: the same text, Lookup and Options give the same HTML, in any number of goroutines. It
// runs before the turn of the realm: Scan returns the references of a text, the realm resolves them, and Render
// reads the result through a Lookup.
package markdown

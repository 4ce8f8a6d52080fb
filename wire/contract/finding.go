package contract

import "parley/wire/shape"

// Finding and Findings are what a check of an answer, an event or a registration finds.
type (
	Finding  = shape.Finding
	Findings = shape.Findings
)

func newFinding(where, path, what, text string) Finding {
	return Finding{Where: where, Path: path, What: what, Text: text}
}

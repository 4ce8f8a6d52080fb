package contract

import "parley/wire/shape"

// Finding and Findings are the results of checking an answer, an event or a registration.
type (
	Finding  = shape.Finding
	Findings = shape.Findings
)

func newFinding(where, path, what, text string) Finding {
	return Finding{Where: where, Path: path, What: what, Text: text}
}

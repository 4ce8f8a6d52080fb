package realm

import "slices"

// Limits of one message's edit history. Every old text is stored, and every listing shows the history: without limits
// one member could fill the disk and the answers of all readers by editing or moving one message. At the limit the
// history loses its second oldest edit or move, so it always shows the first text and the first topic.
const (
	MaxTextEditsInHistory = 100 // edits of the text
	MaxMovesInHistory     = 100 // moves to another topic or channel
)

// maxTextVersion is the highest version of a message's text. Versions are 16-bit numbers in rows and facts.
const maxTextVersion = 1<<16 - 1

// versionsToErase returns the versions that a history loses when an edit is added to it. It includes versions between
// them that were only rendered again.
func versionsToErase(history []Revision) (out []uint16) {
	var edits []uint16
	for _, r := range history {
		if r.Content {
			edits = append(edits, r.Version)
		}
	}
	surplus := len(edits) + 1 - MaxTextEditsInHistory
	if surplus <= 0 {
		return nil
	}
	for v := int(edits[0]) + 1; v <= int(edits[surplus]); v++ {
		out = append(out, uint16(v))
	}
	return out
}

// withoutTexts returns a history without the edits to versions that are forgotten. Snapshots share the given list, so
// it does not change.
func withoutTexts(history []Revision, forgotten []uint16) []Revision {
	if len(forgotten) == 0 {
		return history
	}
	out := make([]Revision, 0, len(history)+1)
	for _, r := range history {
		if r.Content && slices.Contains(forgotten, r.Version) {
			if !r.isMove() {
				continue
			}
			r.Content, r.Version = false, 0
		}
		out = append(out, r)
	}
	return out
}

// isMove reports whether the entry changed the topic or the channel.
func (r Revision) isMove() bool { return r.TopicBefore != nil || r.ChannelBefore != 0 }

// withSpaceForMove returns a history to which a move can be added so that it has at most keep moves; 0 means no limit.
// Moves that came with an edit of the text belong to the limit of edits. Snapshots share the given list, so it does not
// change.
func withSpaceForMove(history []Revision, keep int) []Revision {
	moves := 0
	for _, r := range history {
		if !r.Content {
			moves++
		}
	}
	surplus := moves + 1 - keep
	if keep == 0 || surplus <= 0 {
		return history
	}
	out := make([]Revision, 0, len(history)+1)
	number := 0 // of the move
	for _, r := range history {
		if !r.Content {
			if number++; number > 1 && number <= 1+surplus {
				continue
			}
		}
		out = append(out, r)
	}
	return out
}

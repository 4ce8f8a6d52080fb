package form

import (
	"strconv"
	"strings"
	"time"
)

// Anchor is the position in the message history at which a fetch starts.
type Anchor struct {
	Kind AnchorKind
	ID   int64 // for AnchorID only, between 0 and MaxAnchor
}

// AnchorKind distinguishes a message ID from the keywords.
type AnchorKind uint8

const (
	AnchorAbsent AnchorKind = iota
	AnchorID
	AnchorNewest
	AnchorOldest
	AnchorFirstUnread
	AnchorDate // the time in the parameter anchor_date
)

// MaxAnchor is the ID that clients send for "newest". Larger IDs are reduced to it.
const MaxAnchor = 10_000_000_000_000_000

// DecodeParam reads a keyword or a number as plain text, never JSON.
func (a *Anchor) DecodeParam(raw, _ string) *Error {
	switch raw {
	case "newest":
		a.Kind = AnchorNewest
	case "oldest":
		a.Kind = AnchorOldest
	case "first_unread":
		a.Kind = AnchorFirstUnread
	case "date":
		a.Kind = AnchorDate
	default:
		text := strings.TrimSpace(raw)
		if !isDigits(strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")) || strings.HasPrefix(text, "-+") {
			return Bad("Invalid anchor")
		}
		id, _ := strconv.ParseInt(text, 10, 64) // saturates on overflow
		a.Kind, a.ID = AnchorID, max(0, min(id, MaxAnchor))
	}
	return nil
}

// MissingAnchor returns the error of a fetch that needs an anchor and has none.
func MissingAnchor() *Error { return Bad("Missing 'anchor' argument.") }

// ParamSchema returns the JSON schema for the API description.
func (a *Anchor) ParamSchema() map[string]any {
	return oneOf(
		map[string]any{"type": "string", "enum": []string{"newest", "oldest", "first_unread", "date"}},
		map[string]any{"type": "integer"},
	)
}

// Instant is a point in time in ISO 8601, as plain text: a date, which means its first second, or a date and
// time. Without an offset it is in UTC.
type Instant struct {
	Unix int64
	Set  bool
}

var instantLayouts = []string{
	time.RFC3339, time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05Z07:00", time.DateTime,
}

// DecodeParam accepts the formats of ISO 8601 that clients send.
func (t *Instant) DecodeParam(raw, _ string) *Error {
	for _, layout := range instantLayouts {
		if at, err := time.Parse(layout, strings.TrimSpace(raw)); err == nil {
			t.Unix, t.Set = at.Unix(), true
			return nil
		}
	}
	return isNot("a date")
}

// ParamSchema returns the JSON schema for the API description.
func (t *Instant) ParamSchema() map[string]any { return map[string]any{"type": "string"} }

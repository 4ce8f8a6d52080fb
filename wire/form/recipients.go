package form

import "strings"

// Recipients is the parameter `to` of a message. Clients send an ID, a name, email addresses or a list, as JSON
// or as plain text. The meaning depends on the type of the message, so decoding keeps only the shape.
type Recipients struct {
	shape recipientShape
	text  string
	list  []Value // one element for a JSON value that is not a list
}

type recipientShape uint8

const (
	recipientsAbsent recipientShape = iota
	recipientsText                  // plain text, or a JSON string
	recipientsOne                   // another JSON value
	recipientsList
)

// DecodeParam accepts anything: text that is not JSON is a name or addresses.
func (r *Recipients) DecodeParam(raw, _ string) *Error {
	v, ok := JSON(raw)
	switch {
	case !ok:
		*r = Recipients{shape: recipientsText, text: raw}
	case v.kind == KindString:
		*r = Recipients{shape: recipientsText, text: v.text}
	case v.kind == KindList:
		*r = Recipients{shape: recipientsList, list: v.list}
	default:
		*r = Recipients{shape: recipientsOne, list: []Value{v}}
	}
	return nil
}

// IsSet reports whether the parameter was sent.
func (r Recipients) IsSet() bool { return r.shape != recipientsAbsent }

// ChannelTarget is one channel, by ID if ByID is set, otherwise by name.
type ChannelTarget struct {
	ID         int64
	Name       string
	ByID       bool
	OutOfRange string // the ID as sent, if it is out of range: there is no such channel
}

// Channel returns the recipient of a channel message.
func (r Recipients) Channel() (ChannelTarget, *Error) {
	if r.shape == recipientsText {
		return ChannelTarget{Name: r.text}, nil
	}
	if len(r.list) != 1 {
		return ChannelTarget{}, Bad("Expected exactly one channel")
	}
	switch v := r.list[0]; v.kind {
	case KindString:
		return ChannelTarget{Name: v.text}, nil
	case KindInt:
		id, _ := v.ID()
		return ChannelTarget{ID: id, ByID: true, OutOfRange: v.outOfRange()}, nil
	}
	return ChannelTarget{}, Bad("Invalid data type for channel")
}

// UserRefs are users by ID or by email address, never both. Without any, a message has no recipients.
type UserRefs struct {
	IDs        []int64
	Emails     []string
	OutOfRange map[int]string // IDs as sent, by index, where they are out of range: there are no such users
}

// Direct returns the recipients of a direct message. White space around addresses and empty addresses are
// removed.
func (r Recipients) Direct() (UserRefs, *Error) {
	switch r.shape {
	case recipientsAbsent:
		return UserRefs{}, nil
	case recipientsText:
		return UserRefs{Emails: addresses(strings.Split(r.text, ","))}, nil
	case recipientsOne:
		return UserRefs{}, Bad("Invalid data type for recipients")
	}
	if len(r.list) == 0 {
		return UserRefs{}, nil
	}
	first := r.list[0].kind
	if first != KindInt && first != KindString {
		return UserRefs{}, Bad("Invalid data type for recipients")
	}
	var p UserRefs
	for _, v := range r.list {
		if v.kind != first {
			return UserRefs{}, Bad("Recipient lists may contain emails or user IDs, but not both.")
		}
		if first == KindString {
			p.Emails = append(p.Emails, v.text)
		} else {
			id, _ := v.ID()
			if text := v.outOfRange(); text != "" {
				if p.OutOfRange == nil {
					p.OutOfRange = map[int]string{}
				}
				p.OutOfRange[len(p.IDs)] = text
			}
			p.IDs = append(p.IDs, id)
		}
	}
	p.Emails = addresses(p.Emails)
	return p, nil
}

// ChannelID returns the recipient of a scheduled channel message: an ID, or a list of one ID.
func (r Recipients) ChannelID() (ChannelTarget, *Error) {
	if len(r.list) != 1 || r.list[0].kind != KindInt {
		return ChannelTarget{}, Bad("Invalid data type for channel ID")
	}
	return r.Channel()
}

// UserIDs returns the recipients of a scheduled direct message: a list of IDs.
func (r Recipients) UserIDs() (UserRefs, *Error) {
	p, err := r.Direct()
	if err != nil || r.shape != recipientsList || p.Emails != nil {
		return UserRefs{}, Bad("Invalid data type for recipients")
	}
	return p, nil
}

func addresses(list []string) []string {
	kept := list[:0]
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return kept
}

// ParamSchema returns the JSON schema for the API description.
func (r *Recipients) ParamSchema() map[string]any {
	return oneOf(
		map[string]any{"type": "string"},
		map[string]any{"type": "integer"},
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		map[string]any{"type": "array", "items": map[string]any{"type": "integer"}},
	)
}

func oneOf(schemas ...any) map[string]any { return map[string]any{"oneOf": schemas} }

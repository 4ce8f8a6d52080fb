package swarm

import (
	"bytes"
	"errors"
)

// An Event holds the members of one event that a load client needs. All slices point into the scanned bytes; strings
// are raw: without quotes, with escapes.
type Event struct {
	ID      int64
	Type    []byte
	Op      []byte
	LocalID []byte
	Raw     []byte // the whole object
	// Members of a message event:
	Message  int64
	Sender   int64
	Stream   int64
	Content  []byte
	MsgFlags []byte // the value of "flags" next to the message
	// About is the message of another event, such as a reaction, an edit or a deletion: its "message_id".
	About int64
}

var errJSON = errors.New("not the JSON of an events answer")

// ScanEvents scans an answer of GET /events and calls visit for each event in order; visit returns false to stop. The
// Event is reused. It checks only the structure, not the whole JSON grammar: sampled clients decode everything.
func ScanEvents(body []byte, e *Event, visit func(*Event) bool) error {
	s := scanner{b: body}
	found := false
	err := s.object(func(key []byte) error {
		if string(key) != "events" {
			return s.skip()
		}
		found = true
		return s.array(func() error {
			*e = Event{}
			start := s.i
			if err := s.object(func(key []byte) error { return s.event(key, e) }); err != nil {
				return err
			}
			e.Raw = s.b[start:s.i]
			if !visit(e) {
				return errStop
			}
			return nil
		})
	})
	if err == errStop {
		return nil
	}
	if err == nil && !found {
		return errJSON
	}
	return err
}

// maxDigits is the largest number of digits that always fits into an int64.
const maxDigits = 18

var errNumber = errors.New("a number of the events answer is too large for an id")

var errStop = errors.New("stop")

func (s *scanner) event(key []byte, e *Event) (err error) {
	switch string(key) {
	case "id":
		e.ID, err = s.number()
	case "type":
		e.Type, err = s.text()
	case "op":
		e.Op, err = s.text()
	case "local_message_id":
		e.LocalID, err = s.text()
	case "message_id":
		if s.peek() == 'n' {
			return s.skip()
		}
		e.About, err = s.number()
	case "flags":
		start := s.i
		err = s.skip()
		e.MsgFlags = s.b[start:s.i]
	case "message":
		if s.peek() != '{' {
			return s.skip()
		}
		return s.object(func(key []byte) (err error) {
			switch string(key) {
			case "id":
				e.Message, err = s.number()
			case "sender_id":
				e.Sender, err = s.number()
			case "stream_id":
				if s.peek() == 'n' {
					return s.skip()
				}
				e.Stream, err = s.number()
			case "content":
				e.Content, err = s.text()
			default:
				err = s.skip()
			}
			return err
		})
	default:
		err = s.skip()
	}
	return err
}

// Fields scans one JSON object and calls visit with the key and raw value of each member.
func Fields(body []byte, visit func(key, value []byte)) error {
	s := scanner{b: body}
	return s.object(func(key []byte) error {
		s.space()
		start := s.i
		if err := s.skip(); err != nil {
			return err
		}
		visit(key, s.b[start:s.i])
		return nil
	})
}

// Int parses a raw JSON integer.
func Int(raw []byte) (int64, bool) {
	s := scanner{b: raw}
	n, err := s.number()
	return n, err == nil
}

// Text returns the content of a raw JSON string without escapes.
func Text(raw []byte) string {
	if len(raw) >= 2 && raw[0] == '"' {
		return string(raw[1 : len(raw)-1])
	}
	return ""
}

type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) && s.b[s.i] <= ' ' {
		s.i++
	}
}

func (s *scanner) peek() byte {
	s.space()
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) eat(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.i++
	return true
}

func (s *scanner) object(member func(key []byte) error) error {
	if !s.eat('{') {
		return errJSON
	}
	if s.eat('}') {
		return nil
	}
	for {
		s.space()
		key, err := s.text()
		if err != nil {
			return err
		}
		if !s.eat(':') {
			return errJSON
		}
		if err := member(key); err != nil {
			return err
		}
		if s.eat(',') {
			continue
		}
		if s.eat('}') {
			return nil
		}
		return errJSON
	}
}

func (s *scanner) array(item func() error) error {
	if !s.eat('[') {
		return errJSON
	}
	if s.eat(']') {
		return nil
	}
	for {
		s.space()
		if err := item(); err != nil {
			return err
		}
		if s.eat(',') {
			continue
		}
		if s.eat(']') {
			return nil
		}
		return errJSON
	}
}

func (s *scanner) text() ([]byte, error) {
	if !s.eat('"') {
		return nil, errJSON
	}
	start := s.i
	for {
		j := bytes.IndexByte(s.b[s.i:], '"')
		if j < 0 {
			return nil, errJSON
		}
		end := s.i + j
		s.i = end + 1
		back := end
		for back > start && s.b[back-1] == '\\' {
			back--
		}
		if (end-back)%2 == 0 {
			return s.b[start:end], nil
		}
	}
}

func (s *scanner) number() (int64, error) {
	neg := s.eat('-')
	start := s.i
	var n int64
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		if s.i-start >= maxDigits {
			return 0, errNumber
		}
		n = n*10 + int64(s.b[s.i]-'0')
		s.i++
	}
	if s.i == start {
		return 0, errJSON
	}
	if neg {
		n = -n
	}
	return n, nil
}

// skip skips one value of any kind. Inside objects and arrays it looks only at quotes and brackets.
func (s *scanner) skip() error {
	switch s.peek() {
	case 0:
		return errJSON
	case '"':
		_, err := s.text()
		return err
	case '{', '[':
		depth := 0
		for s.i < len(s.b) {
			switch s.b[s.i] {
			case '"':
				if _, err := s.text(); err != nil {
					return err
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			s.i++
			if depth == 0 {
				return nil
			}
		}
		return errJSON
	}
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ',', '}', ']':
			return nil
		}
		s.i++
	}
	return nil
}

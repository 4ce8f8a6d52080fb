package wire

import "slices"

// ElementList is a list in an answer whose elements are encoded one after the other, when they are sent. So its JSON is
// never in memory as a whole. It is encoded once. An answer has at most one.
type ElementList struct {
	len    int
	size   int // approximate bytes that the elements take before they are encoded
	encode func(b []byte, i int) []byte
	drop   func(i int) int // forgets element i after it was encoded, and returns its part of size
	page   *messagePage    // whose messages these are; nil: other elements
}

// appendTo appends the whole list.
func (l *ElementList) appendTo(b []byte) []byte {
	b = append(b, '[')
	for i := range l.len {
		if i > 0 {
			b = append(b, ',')
		}
		b = l.encode(b, i)
	}
	return append(b, ']')
}

// encodedList is a list of an answer whose elements are encoded as they are collected, because the objects take several
// times as much memory as their JSON.
type encodedList struct {
	list   []rawJSON
	memory answerMemory
}

func newEncodedList(c *Call) *encodedList { return &encodedList{memory: answerMemory{call: c}} }

// add appends elements. It refuses if answers take too much memory.
func (l *encodedList) add(elements ...any) error {
	for _, e := range elements {
		b := encode(e)
		l.list = append(l.list, b)
		if err := l.memory.add(cap(b) + rawJSONOverhead); err != nil {
			return err
		}
	}
	return nil
}

// rawJSONOverhead is the memory of an encoded element beside its bytes: the element of the list, and the rest of its
// allocation.
const rawJSONOverhead = 48

func (l *encodedList) elements() *ElementList {
	return &ElementList{
		len:    len(l.list),
		size:   l.memory.used,
		encode: func(b []byte, i int) []byte { return append(b, l.list[i]...) },
		drop: func(i int) int {
			n := cap(l.list[i]) + rawJSONOverhead
			l.list[i] = nil
			return n
		},
	}
}

// AnswerStream is the body of a success whose elements are encoded while it is sent.
type AnswerStream struct {
	list *ElementList
	head []byte // everything before the first element
	next int    // of the elements
	done bool
}

// streamedBytes is the size from which an answer is encoded while it is sent. A smaller one is encoded at once, with
// its length in the header.
const streamedBytes = 256 << 10

// SuccessStream is Success for an answer with a large listOf; otherwise it returns nil.
func SuccessStream(answer any, ignored []string) *AnswerStream {
	v := structOf(answer)
	for _, f := range planOf(v.Type()).fields {
		if f.kind != listField {
			continue
		}
		l := fieldAt(v, f.Index).Interface().(streamed).elements()
		if l.size < streamedBytes {
			continue
		}
		body := successWithout(answer, ignored, listField)
		head := append(slices.Clip(body[:len(body)-2]), ',') // without the closing brace and newline
		return &AnswerStream{list: l, head: append(append(head, f.key...), '[')}
	}
	return nil
}

// Append appends the next part of the body, which is one element. sent is how many bytes of memory the answer does not
// need any more. more is false after the last part.
func (s *AnswerStream) Append(b []byte) (out []byte, sent int, more bool) {
	switch {
	case s.head != nil:
		b, s.head = append(b, s.head...), nil
	case s.next < s.list.len:
		if s.next > 0 {
			b = append(b, ',')
		}
		b = s.list.encode(b, s.next)
		sent = s.list.drop(s.next)
		s.next++
	case !s.done:
		b, s.done = append(b, "]}\n"...), true
	}
	return b, sent, !s.done
}

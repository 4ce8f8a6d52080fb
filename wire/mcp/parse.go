package mcp

import (
	"fmt"

	"github.com/valyala/fastjson"

	"parley/wire"
)

// maxPooledAnswer is the size of an answer in bytes whose parser is kept for the next one: it has the memory of the
// largest answer that it has parsed.
const maxPooledAnswer = 256 << 10

var parsers fastjson.ParserPool

// parse calls use with the value of an answer of this server, which is not valid afterwards.
func parse(body []byte, use func(*fastjson.Value)) error {
	p := parsers.Get()
	v, err := p.ParseBytes(body)
	if err != nil {
		return fmt.Errorf("parse an answer: %w", err)
	}
	use(v)
	if len(body) <= maxPooledAnswer {
		parsers.Put(p)
	}
	return nil
}

// askMessages runs an endpoint of the API as the caller, as ask does, and parses its answer. Answers with messages are
// large, and parsing them with encoding/json would take longer than making them.
func (s *Server) askMessages(c *wire.Call, name string, p params, use func(*fastjson.Value)) error {
	a, err := s.run(c, name, p, nil)
	if err != nil {
		return err
	}
	return parse(wire.Success(a, nil), use)
}

// textOf returns a field that is a text, "" if it is not.
func textOf(v *fastjson.Value, name string) string { return string(v.GetStringBytes(name)) }

// textPointer returns a field that is a text, or nil.
func textPointer(v *fastjson.Value, name string) *string {
	b := v.GetStringBytes(name)
	if b == nil {
		return nil
	}
	text := string(b)
	return &text
}

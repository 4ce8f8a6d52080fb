package mcp

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/wire"
	"parley/wire/form"
)

// params are the parameters of a request to an endpoint. Values that are no text are sent as JSON.
type params map[string]any

// ask runs an endpoint of the API as the caller and decodes its answer into a struct; nil: the answer is not needed.
func (s *Server) ask(c *wire.Call, name string, answer any, p params) error {
	return s.askWithFiles(c, name, answer, p, nil)
}

// askWithFiles is ask for an endpoint that takes files.
func (s *Server) askWithFiles(c *wire.Call, name string, answer any, p params, files []wire.File) error {
	a, err := s.run(c, name, p, files)
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(wire.Success(a, nil), answer)
}

// run runs an endpoint of the API as the caller and returns its answer.
func (s *Server) run(c *wire.Call, name string, p params, files []wire.File) (any, error) {
	e := s.endpoints[name]
	if e == nil {
		panic("BUG: no endpoint " + name)
	}
	call := *c
	call.Params = &form.Values{}
	call.Header = func(string) string { return "" }
	call.Body = func() []byte { return nil }
	call.Files = func() ([]wire.File, error) { return files, nil }
	inPath := s.inPath[name]
	for key, value := range p {
		text, ok := value.(string)
		if !ok {
			b, err := json.Marshal(value)
			if err != nil {
				panic(fmt.Sprintf("BUG: parameter %s: %v", key, err))
			}
			text = string(b)
		}
		source := form.Body
		if slices.Contains(inPath, key) {
			source = form.Path
		} else if e.Method == "GET" {
			source = form.Query
		}
		call.Params.Add(source, key, text)
	}
	return s.options.Run(&call, e)
}

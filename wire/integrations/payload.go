package integrations

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"mime/multipart"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Request is the request of a service, as far as templates can see it.
type Request struct {
	Body        []byte
	ContentType string
	Header      func(name string) string    // "" if absent
	Params      url.Values                  // the parameters of the address
	Person      func(address string) string // the name of the user with this address, or ""; nil if no users are known
}

// maxDepth bounds the nesting of a payload. The deepest payload of a known service has 12 levels.
const maxDepth = 64

// byteOrderMark begins the texts of some programs on Windows.
var byteOrderMark = []byte("\uFEFF")

// errMalformed says that a body is not in the format of its service.
var errMalformed = errors.New("malformed body")

// decode returns the payload of a body in the format of the service: maps, lists, strings, numbers as they are
// spelled, booleans and nil. It returns errMalformed, or a *Missing if there is no parameter with the JSON.
func (s *Service) decode(r Request) (any, error) {
	r.Body = bytes.TrimPrefix(r.Body, byteOrderMark)
	switch s.Body {
	case bodyText:
		return strings.ToValidUTF8(string(r.Body), "\uFFFD"), nil
	case bodyXML:
		if body := bytes.TrimSpace(r.Body); len(body) > 0 && body[0] == '{' {
			return decodeJSON(body)
		}
		return decodeXML(r.Body)
	case bodyForm:
		form, err := decodeForm(r)
		if err != nil {
			return nil, err
		}
		if s.Parameter == "" {
			return form, nil
		}
		text, ok := form[s.Parameter].(string)
		if !ok {
			return nil, &Missing{Parameter: s.Parameter}
		}
		return decodeJSON([]byte(text))
	}
	return decodeJSON(r.Body)
}

// decodeJSON decodes one JSON value. Numbers keep their spelling.
func decodeJSON(body []byte) (any, error) {
	body = bytes.TrimPrefix(body, byteOrderMark)
	if !utf8.Valid(body) || tooDeep(body) {
		return nil, errMalformed
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, errMalformed
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errMalformed
	}
	return v, nil
}

// tooDeep reports whether a JSON text nests deeper than maxDepth. It looks only at brackets outside of strings.
func tooDeep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// decodeForm returns the fields of a form, which may be a JSON object, or the parameters of the address if there is no
// body. The first value of a field counts.
func decodeForm(r Request) (map[string]any, error) {
	out := map[string]any{}
	for name, values := range r.Params {
		out[name] = values[0]
	}
	kind, boundary, _ := strings.Cut(r.ContentType, "boundary=")
	if strings.HasPrefix(kind, "multipart/form-data") {
		form, err := multipart.NewReader(
			bytes.NewReader(r.Body),
			strings.Trim(boundary, `"`),
		).ReadForm(
			int64(len(r.Body)),
		)
		if err != nil {
			return nil, errMalformed
		}
		defer form.RemoveAll()
		for name, values := range form.Value {
			out[name] = strings.ToValidUTF8(values[0], "\uFFFD")
		}
		return out, nil
	}
	if body := bytes.TrimSpace(r.Body); len(body) > 0 && body[0] == '{' {
		v, err := decodeJSON(body)
		object, ok := v.(map[string]any)
		if err != nil || !ok {
			return nil, errMalformed
		}
		for name, value := range object {
			out[name] = value
		}
		return out, nil
	}
	values, err := url.ParseQuery(strings.TrimSpace(string(r.Body)))
	if err != nil {
		return nil, errMalformed
	}
	for name, list := range values {
		out[name] = strings.ToValidUTF8(list[0], "\uFFFD")
	}
	return out, nil
}

// decodeXML turns a document into maps. An element without children is its text; an element that occurs several times
// is a list. An element with attributes and no children is a map with the text as "text".
func decodeXML(body []byte) (any, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	for {
		t, err := d.Token()
		if err != nil {
			return nil, errMalformed
		}
		if start, ok := t.(xml.StartElement); ok {
			v, err := decodeElement(d, start, 1)
			if err != nil {
				return nil, err
			}
			return map[string]any{start.Name.Local: v}, nil
		}
	}
}

func decodeElement(d *xml.Decoder, start xml.StartElement, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errMalformed
	}
	children := map[string]any{}
	var text strings.Builder
	for {
		t, err := d.Token()
		if err != nil {
			return nil, errMalformed
		}
		switch t := t.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			v, err := decodeElement(d, t, depth+1)
			if err != nil {
				return nil, err
			}
			switch before := children[t.Name.Local].(type) {
			case nil:
				children[t.Name.Local] = v
			case repeated:
				children[t.Name.Local] = append(before, v)
			default:
				children[t.Name.Local] = repeated{before, v}
			}
		case xml.EndElement:
			if len(children) > 0 {
				for name, v := range children {
					if list, ok := v.(repeated); ok {
						children[name] = []any(list)
					}
				}
				return children, nil
			}
			return text.String(), nil
		}
	}
}

// repeated are the values of an element that occurs several times.
type repeated []any

package swarm

import (
	"encoding/json"
	"net/url"
)

// Form is form or query values; values that are not strings are encoded as JSON, as the protocol requires.
type Form map[string]any

// Encode returns the values URL-encoded, in the order of their names.
func (f Form) Encode() string {
	v := url.Values{}
	for name, x := range f {
		if s, ok := x.(string); ok {
			v.Set(name, s)
			continue
		}
		b, _ := json.Marshal(x)
		v.Set(name, string(b))
	}
	return v.Encode()
}

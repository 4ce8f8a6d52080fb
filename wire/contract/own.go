package contract

import (
	"net/http"
	"strings"
	"sync"

	"parley/wire"
)

// ownRoutes returns the endpoints of this server with the success answers that they declare.
var ownRoutes = sync.OnceValue(func() (out []route) {
	for _, e := range wire.Endpoints() {
		path := strings.ReplaceAll(e.Path, ":*", "")
		out = append(out, route{e.Method, strings.Split(strings.Trim(path, "/"), "/"), e.Method + " " + path,
			e.SuccessShape(), &e})
	}
	return out
})

// CheckOwn checks an answer against the server's own description. Fields that are not described, or have another
// type, are findings.
func CheckOwn(method, path string, status int, body []byte) error {
	path = endpointPath(path)
	r := pick(ownRoutes(), method, path)
	switch {
	case r == nil && status == http.StatusOK:
		return Findings{newFinding(method+" "+path, "", "unknown", "the endpoint is not in the description")}
	case r == nil:
		return nil
	}
	where := "own description: " + r.name
	if s, ok := r.endpoint.TusSuccessShape(status); ok {
		switch {
		case s == nil && len(body) > 0:
			return Findings{newFinding(where, "", "unknown", "a body that is not described")}
		case s == nil:
			return nil
		}
		v, err := decode(body)
		if err != nil {
			return Findings{newFinding(where, "", "type", "not JSON: "+err.Error())}
		}
		return s.Check(where, "", v).Err()
	}
	v, err := decode(body)
	if err != nil {
		return Findings{newFinding(where, "", "type", "not JSON: "+err.Error())}
	}
	if status != http.StatusOK {
		object, _ := v.(map[string]any)
		code, _ := object["code"].(string)
		s := r.endpoint.ErrorShape(status, code)
		if s == nil {
			return Findings{newFinding(where, "", "unknown", http.StatusText(status)+" "+code+" is not described")}
		}
		return s.Check(where+": "+http.StatusText(status)+" "+code, "", v).Err()
	}
	if r.answer == nil {
		return Findings{newFinding(where, "", "unknown", "a success answer that is not described")}
	}
	return r.answer.Check(where, "", v).Err()
}

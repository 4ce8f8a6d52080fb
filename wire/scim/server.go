package scim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/elimity-com/scim"
	scimerrors "github.com/elimity-com/scim/errors"
	"github.com/elimity-com/scim/optional"
	"github.com/elimity-com/scim/schema"

	"parley/actors/realm"
	"parley/wire"
)

const (
	// Path is the beginning of the addresses of SCIM.
	Path = "/scim/v2"
	// ContentType is the type of requests and answers.
	ContentType = "application/scim+json"
	// MaxBody limits a request in bytes: a group with realm.MaxScimMembers members fits.
	MaxBody = 1 << 20
	// maxPage limits the resources of one answer.
	maxPage = 200
	// maxFilter and maxNesting limit a filter in bytes, and its brackets: the parser of the library calls itself for
	// each of them.
	maxFilter  = 2000
	maxNesting = 8
	// maxOperations limits the operations of one PATCH request.
	maxOperations = 1000
)

// Client is the beginning of the client's name in the audit log; the number of the token follows.
const Client = realm.ScimClient

// Methods are the methods of requests.
var Methods = []string{"DELETE", "GET", "PATCH", "POST", "PUT"}

// allowText lets the library take "True" for true, as Microsoft Entra sends it. The setting is one of the program.
var allowText = sync.OnceFunc(func() { schema.SetAllowStringValues(true) })

// Serve answers one request. The caller of the call is the server, in the name of a token.
func Serve(c *wire.Call, token realm.ScimToken, r *http.Request, w http.ResponseWriter) {
	allowText()
	q := &request{call: c, token: token, query: r.URL.Query(), base: c.Site.URL + Path}
	r.URL.Path = strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, Path), "/")
	for _, f := range q.query["filter"] {
		if !isShort(f) {
			WriteError(w, http.StatusBadRequest, "invalidFilter", "The filter is too long.")
			return
		}
	}
	if discovery(r.URL.Path) && r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		WriteError(w, http.StatusMethodNotAllowed, "", "These data are only read.")
		return
	}
	if r.URL.Path == "/ServiceProviderConfig" {
		writeJSON(w, http.StatusOK, providerConfig(q.base))
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodDelete {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			WriteError(w, http.StatusBadRequest, "invalidSyntax", "The request cannot be read.")
			return
		}
		var raw any
		if json.Unmarshal(body, &raw) == nil && !hasShortPaths(raw) {
			WriteError(w, http.StatusBadRequest, "invalidPath", "A filter or path is too long.")
			return
		}
		if r.Method != http.MethodPatch && strings.HasPrefix(r.URL.Path, "/Users") {
			body = completed(body)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	lib, err := scim.NewServer(&scim.ServerArgs{
		ServiceProviderConfig: &scim.ServiceProviderConfig{MaxResults: maxPage, SupportFiltering: true,
			SupportPatch: true, AuthenticationSchemes: []scim.AuthenticationScheme{{
				Type: scim.AuthenticationTypeOauthBearerToken,
				Name: "Bearer token", Description: "A token of the server's operator", Primary: true,
				SpecURI: optional.NewString("https://www.rfc-editor.org/rfc/rfc6750")}}},
		ResourceTypes: []scim.ResourceType{
			{ID: optional.NewString("User"), Name: "User", Endpoint: "/Users", Schema: userSchema, Handler: users{q},
				Description: optional.NewString("Account")},
			{ID: optional.NewString("Group"), Name: "Group", Endpoint: "/Groups", Schema: groupSchema,
				Handler: groups{q}, Description: optional.NewString("User group")},
		}}, scim.WithBaseURL(q.base))
	if err != nil {
		panic("BUG: SCIM server: " + err.Error())
	}
	answer := &answer{header: http.Header{}}
	lib.ServeHTTP(answer, r)
	if q.failed != nil { // the library knows fewer statuses
		status, _ := wire.Failure(q.failed)
		WriteError(w, status, "", q.failed.Error())
		return
	}
	for name, values := range answer.header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.status)
	w.Write(answer.body)
}

// WriteError writes an error in the form of SCIM. kind is its scimType, or "".
func WriteError(w http.ResponseWriter, status int, kind, detail string) {
	body := map[string]any{"schemas": []string{"urn:ietf:params:scim:api:messages:2.0:Error"},
		"status": strconv.Itoa(status), "detail": detail}
	if kind != "" {
		body["scimType"] = kind
	}
	writeJSON(w, status, body)
}

// isShort reports whether a filter or a path may be parsed.
func isShort(filter string) bool {
	return len(filter) <= maxFilter && strings.Count(filter, "(")+strings.Count(filter, "[") <= maxNesting
}

// hasShortPaths reports whether the filters and paths in a body may be parsed. The names of attributes are paths, too.
func hasShortPaths(x any) bool {
	switch x := x.(type) {
	case []any:
		for _, y := range x {
			if !hasShortPaths(y) {
				return false
			}
		}
	case map[string]any:
		for name, y := range x {
			text, _ := y.(string)
			isPath := strings.EqualFold(name, "path") || strings.EqualFold(name, "filter")
			if !isShort(name) || isPath && !isShort(text) || !hasShortPaths(y) {
				return false
			}
		}
	}
	return true
}

// discovery reports whether a path is about the server itself.
func discovery(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first == "ServiceProviderConfig" || first == "ResourceTypes" || first == "Schemas"
}

// providerConfig lists the features of the server. That of the library has empty addresses, which clients refuse.
func providerConfig(base string) any {
	supported := func(is bool) map[string]any { return map[string]any{"supported": is} }
	return map[string]any{"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"patch": supported(true), "changePassword": supported(false), "sort": supported(false),
		"etag":   supported(false),
		"bulk":   map[string]any{"supported": false, "maxOperations": 0, "maxPayloadSize": MaxBody},
		"filter": map[string]any{"supported": true, "maxResults": maxPage},
		"authenticationSchemes": []any{map[string]any{"type": "oauthbearertoken", "name": "Bearer token",
			"primary": true, "description": "A token of the server's operator",
			"specUri": "https://www.rfc-editor.org/rfc/rfc6750"}},
		"meta": map[string]any{"resourceType": "ServiceProviderConfig", "location": base + "/ServiceProviderConfig"}}
}

// writeJSON writes an answer.
func writeJSON(w http.ResponseWriter, status int, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		panic("BUG: encode an answer of SCIM: " + err.Error())
	}
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(status)
	w.Write(b)
}

// answer collects the answer of the library.
type answer struct {
	header http.Header
	status int
	body   []byte
}

func (a *answer) Header() http.Header    { return a.header }
func (a *answer) WriteHeader(status int) { a.status = status }
func (a *answer) Write(b []byte) (int, error) {
	a.body = append(a.body, b...)
	return len(b), nil
}

// request is one request.
type request struct {
	call   *wire.Call
	token  realm.ScimToken
	query  url.Values
	base   string // of addresses of resources
	failed error  // with a status that the library does not know
}

// mayChange refuses tokens without a right.
func (q *request) mayChange(right string) error {
	if slices.Contains(q.token.Rights, right) {
		return nil
	}
	return scimerrors.ScimError{Status: http.StatusForbidden, Detail: "This token has not the right " + right + "."}
}

// refused returns the error of the library for an error of the realm. id is that of the resource.
func (q *request) refused(err error, id string) error {
	var r *realm.Refusal
	switch {
	case err == nil:
		return nil
	case errors.Is(err, realm.ErrScimGone):
		return scimerrors.ScimErrorResourceNotFound(id)
	case errors.Is(err, realm.ErrScimTaken):
		return scimerrors.ScimError{Status: http.StatusConflict, ScimType: scimerrors.ScimTypeUniqueness,
			Detail: err.Error()}
	case errors.Is(err, realm.ErrScimOwner):
		return scimerrors.ScimError{Status: http.StatusForbidden, Detail: err.Error()}
	case errors.As(err, &r) && r.Kind == realm.Invalid:
		return invalid(r.Msg)
	}
	q.failed = err
	return err
}

func invalid(detail string) error {
	return scimerrors.ScimError{Status: http.StatusBadRequest, ScimType: scimerrors.ScimTypeInvalidValue,
		Detail: detail}
}

// wants reports whether the client asks for an attribute of the resources.
func (q *request) wants(name string) bool {
	listed := func(parameter string) (found, given bool) {
		for _, list := range q.query[parameter] {
			for one := range strings.SplitSeq(list, ",") {
				one, _, _ = strings.Cut(strings.TrimSpace(one), ".")
				one = one[strings.LastIndexByte(one, ':')+1:]
				found, given = found || strings.EqualFold(one, name), given || one != ""
			}
		}
		return found, given
	}
	if found, given := listed("attributes"); given {
		return found
	}
	found, _ := listed("excludedAttributes")
	return !found
}

// only removes the attributes that the client does not ask for, except name, which clients always get.
func (q *request) only(r scim.Resource, name string) scim.Resource {
	for attribute := range r.Attributes {
		if attribute != name && !q.wants(attribute) {
			delete(r.Attributes, attribute)
		}
	}
	return r
}

// pages collects the resources of one page; the other ones are only counted, so that a long list takes no memory.
type pages struct {
	params scim.ListRequestParams
	page   scim.Page
}

func pageOf(p scim.ListRequestParams) *pages {
	return &pages{p, scim.Page{Resources: []scim.Resource{}}}
}

// add takes the next resource of the whole list. It ignores one that does not pass the filter.
func (p *pages) add(r scim.Resource) {
	if p.params.FilterValidator != nil && !passes(p.params, r) {
		return
	}
	p.page.TotalResults++
	if p.page.TotalResults >= p.params.StartIndex && len(p.page.Resources) < min(p.params.Count, maxPage) {
		p.page.Resources = append(p.page.Resources, r)
	}
}

// passes reports whether a resource passes the filter of a request.
func passes(p scim.ListRequestParams, r scim.Resource) bool {
	all := map[string]any{"id": r.ID}
	if r.ExternalID.Present() {
		all["externalId"] = r.ExternalID.Value()
	}
	for name, value := range r.Attributes {
		all[name] = value
	}
	return p.FilterValidator.PassesFilter(all) == nil
}

func external(id string) optional.String {
	if id == "" {
		return optional.String{}
	}
	return optional.NewString(id)
}

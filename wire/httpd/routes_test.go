package httpd

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"parley/wire"
	"parley/wire/web"
)

var pathParameter = regexp.MustCompile(`\{[^}]*\}`)

// everyPath returns a path of each route of s. Path parameters are the number 1.
func everyPath(t *testing.T, s *Server) (paths []string) {
	for method, list := range s.router.List() {
		if method != router.MethodWild {
			t.Errorf("%v are found with %s only: other methods would get 404 instead of 405", list, method)
		}
		for _, path := range list {
			paths = append(paths, pathParameter.ReplaceAllString(path, "1"))
		}
	}
	return paths
}

// handle returns the answer to a request without a login.
func handle(s *Server, method, target string, headers ...string) *fasthttp.RequestCtx {
	ctx := &fasthttp.RequestCtx{}
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(target)
	ctx.Request.Header.SetHost("chat.example.com")
	for i := 0; i < len(headers); i += 2 {
		ctx.Request.Header.Add(headers[i], headers[i+1])
	}
	s.Handle(ctx)
	return ctx
}

// TestEveryRouteRejectsOtherMethods asks every route with OPTIONS, and with each method that its Allow header does not
// list, also with methods of other protocols: 405 with the same list and a code. GET implies HEAD.
func TestEveryRouteRejectsOtherMethods(t *testing.T) {
	s := New(Options{Tools: &wire.Tools{}})
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "QUERY", "get"}
	paths := everyPath(t, s)
	if len(paths) < 300 {
		t.Fatalf("only %d routes", len(paths))
	}
	for _, path := range paths {
		// resumable uploads have endpoints for OPTIONS and HEAD, and integrations one for HEAD
		own := strings.Contains(path, "/tus")
		first := handle(s, map[bool]string{true: "PROPFIND", false: "OPTIONS"}[own], path)
		allow := string(first.Response.Header.Peek("Allow"))
		allowed := strings.Split(allow, ", ")
		if !own && path != healthPath && first.Response.StatusCode() != 204 || !slices.IsSorted(allowed) || !own &&
			!strings.Contains(path, "/external/") &&
			slices.Contains(allowed, "GET") != slices.Contains(allowed, "HEAD") {
			t.Errorf("OPTIONS %s: %d, Allow %q", path, first.Response.StatusCode(), allow)
		}
		for _, method := range methods {
			if slices.Contains(allowed, method) {
				continue
			}
			ctx := handle(s, method, path)
			var body struct {
				Result, Code string
				Methods      []string `json:"allowed_methods"`
			}
			err := json.Unmarshal(ctx.Response.Body(), &body)
			if got := string(ctx.Response.Header.Peek("Allow")); ctx.Response.StatusCode() != 405 || got != allow ||
				err != nil || body.Result != "error" || body.Code != "BAD_REQUEST" ||
				!slices.Equal(body.Methods, allowed) {
				t.Errorf("%s %s: %d, Allow %q instead of %q, %s", method, path, ctx.Response.StatusCode(), got, allow,
					ctx.Response.Body())
			}
		}
	}
}

// TestAllowHasOnlyMethodsOfThePath asks for paths whose parameters fit only some of the endpoints of a route.
func TestAllowHasOnlyMethodsOfThePath(t *testing.T) {
	s := New(Options{Tools: &wire.Tools{}})
	for path, want := range map[string]string{
		"/api/v1/messages/1":        "DELETE, GET, HEAD, PATCH",
		"/api/v1/messages/one":      "",
		"/api/v1/users/1":           "DELETE, GET, HEAD, PATCH",
		"/api/v1/users/a@b.example": "GET, HEAD, PATCH",
		"/api/v1/nothing":           "",
	} {
		for _, method := range []string{"OPTIONS", "PUT", "PROPFIND"} {
			status := map[bool]int{true: 404, false: 405}[want == ""]
			if method == "OPTIONS" && want != "" {
				status = 204
			}
			ctx := handle(s, method, path)
			if got := string(ctx.Response.Header.Peek("Allow")); got != want || ctx.Response.StatusCode() != status {
				t.Errorf("%s %s: %d, Allow %q, want %d, %q", method, path, ctx.Response.StatusCode(), got, status, want)
			}
		}
	}
}

// TestRequestPaths has targets as clients write them, and the path in which the route is looked up. A request is
// streamed, and has the limit of its body, by the same path.
func TestRequestPaths(t *testing.T) {
	for target, want := range map[string]string{
		"/api/v1/user_uploads":                           "/api/v1/user_uploads",
		"/api/v1/user_uploads/?x=/a//b/":                 "/api/v1/user_uploads",
		"//api/v1///user_uploads//":                      "/api/v1/user_uploads",
		"/api/v1/user%5Fuploads":                         "/api/v1/user_uploads",
		"/api/v1/us%65r_upload%73":                       "/api/v1/user_uploads",
		"http://chat.example.com/api/v1/user_uploads":    "/api/v1/user_uploads",
		"HTTPS://chat.example.com//api/v1/user_uploads/": "/api/v1/user_uploads",
		"http://chat.example.com":                        "/",
		"http://chat.example.com?a=/b":                   "/",
		"/":                                              "/",
		"//":                                             "/",
		"/users/a%2Fb%2f/c%25%341/%zz%4":                 "/users/a%2Fb%2f/c%2541/%zz%4",
		"/users/J%C3%BCrgen%40example.org":               "/users/J%C3%BCrgen%40example.org",
	} {
		if got := requestPath(target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
		if upload := strings.HasSuffix(want, "user_uploads"); streamsBody([]byte("POST"), []byte(target)) != upload {
			t.Errorf("POST %s: streamed is %v", target, !upload)
		}
	}
}

// TestAcceptedEncodings has Accept-Encoding headers and whether they accept gzip. The answer names the header in Vary
// in both cases.
func TestAcceptedEncodings(t *testing.T) {
	s := New(Options{Tools: &wire.Tools{}})
	for _, c := range []struct {
		lines []string
		gzip  bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"gzip, deflate, br"}, true},
		{[]string{"deflate,gzip"}, true},
		{[]string{"br;q=1.0, gzip;q=0.8, *;q=0.1"}, true},
		{[]string{"GZip"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"*"}, true},
		{[]string{"br", "gzip"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip ; Q = 0.000, deflate"}, false},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"*;q=0, gzip"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"identity"}, false},
		{[]string{"gzipped, br"}, false},
	} {
		var headers []string
		for _, line := range c.lines {
			headers = append(headers, "Accept-Encoding", line)
		}
		for _, path := range []string{"/api/openapi.json", wire.EmojiTablePath} {
			h := &handle(s, "GET", path, headers...).Response.Header
			if got := string(h.Peek("Content-Encoding")) == "gzip"; got != c.gzip ||
				!strings.Contains(string(h.Peek("Vary")), "Accept-Encoding") {
				t.Errorf("%s with %q: gzip %v, Vary %q", path, c.lines, got, h.Peek("Vary"))
			}
		}
	}
}

// TestConstantAnswersAreRevalidated asks for each document again with its entity tag. The compressed form has a tag of
// its own.
func TestConstantAnswersAreRevalidated(t *testing.T) {
	s := New(Options{Tools: &wire.Tools{}})
	for _, path := range []string{"/api/openapi.json", wire.EmojiTablePath, web.StylePath, web.WorkerPath} {
		seen := map[string]bool{}
		for _, encoding := range []string{"identity", "gzip"} {
			first := handle(s, "GET", path, "Accept-Encoding", encoding)
			tag := string(first.Response.Header.Peek("ETag"))
			if tag == "" || seen[tag] {
				t.Errorf("%s as %s: entity tag %q", path, encoding, tag)
			}
			seen[tag] = true
			for _, given := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
				again := handle(s, "GET", path, "Accept-Encoding", encoding, "If-None-Match", given)
				h := &again.Response.Header
				if again.Response.StatusCode() != 304 || len(again.Response.Body()) > 0 ||
					string(h.Peek("ETag")) != tag || len(h.Peek("Content-Encoding")) > 0 ||
					!strings.Contains(string(h.Peek("Vary")), "Accept-Encoding") ||
					string(h.Peek("Cache-Control")) != string(first.Response.Header.Peek("Cache-Control")) {
					t.Errorf("%s with %s: %d %s", path, given, again.Response.StatusCode(), h)
				}
			}
			if again := handle(s, "GET", path, "Accept-Encoding", encoding, "If-None-Match", `"x"`); again.Response.
				StatusCode() != 200 {
				t.Errorf("%s with another tag: %d", path, again.Response.StatusCode())
			}
		}
	}
}

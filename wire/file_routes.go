package wire

// FileRoute is a path outside the prefix of the API from which clients load files and pictures.
type FileRoute struct {
	Path        string
	Description string
	Types       string // content types of the answer
	Private     bool   // needs credentials, or an api_key in the query
	Redirects   bool   // answers with a redirect
}

// FileRoutes lists all such paths. The descriptions are part of the OpenAPI document.
var FileRoutes = []FileRoute{
	{Path: "/user_uploads/temporary/{token}/{name}", Description: "An upload, to whoever holds an address that is good for a minute.", Types: "*/*"},
	{Path: "/user_uploads/thumbnail/{realm}/{path:*}", Description: "A smaller picture of an uploaded image.", Types: "image/*", Private: true},
	{Path: "/user_uploads/download/{realm}/{path:*}", Description: "An upload, to be saved.", Types: "*/*", Private: true},
	{Path: "/user_uploads/{realm}/{path:*}", Description: "An upload, for whoever may see a message it is in; some kinds to be shown in place.", Types: "*/*", Private: true},
	{Path: "/user_avatars/{realm}/{path:*}", Description: "A picture of an account or an organization, a custom emoji, or a finished export.", Types: "*/*"},
	{Path: "/avatar/{who}", Description: "Where somebody's picture is, by id or address.", Private: true, Redirects: true},
	{Path: "/avatar/{who}/medium", Description: "Where somebody's larger picture is, by id or address.", Private: true, Redirects: true},
	{Path: "/static/images/{path:*}", Description: "The few pictures that are the server's own.", Types: "image/*"},
}

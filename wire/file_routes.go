package wire

// A FileRoute is a path outside the protocol's prefix from which clients fetch files and pictures.
type FileRoute struct {
	Path        string
	Description string
	Types       string // content types it answers with
	Private     bool   // it wants credentials, or an api_key in the query
	Redirects   bool   // it answers with another address
}

// FileRoutes is every such path.
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

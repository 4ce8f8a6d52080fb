package wire

// A Fetch is a path outside the protocol's prefix from which clients fetch files and pictures.
type Fetch struct {
	Path    string
	What    string
	Types   string // content types it answers with
	Private bool   // it wants credentials, or an api_key in the query
	Leads   bool   // it answers with another address
}

// Fetches is every such path.
var Fetches = []Fetch{
	{Path: "/user_uploads/temporary/{token}/{name}", What: "An upload, to whoever holds an address that is good for a minute.", Types: "*/*"},
	{Path: "/user_uploads/thumbnail/{realm}/{path:*}", What: "A smaller picture of an uploaded image.", Types: "image/*", Private: true},
	{Path: "/user_uploads/download/{realm}/{path:*}", What: "An upload, to be saved.", Types: "*/*", Private: true},
	{Path: "/user_uploads/{realm}/{path:*}", What: "An upload, for whoever may see a message it is in; some kinds to be shown in place.", Types: "*/*", Private: true},
	{Path: "/user_avatars/{realm}/{path:*}", What: "A picture of an account or an organization, a custom emoji, or a finished export.", Types: "*/*"},
	{Path: "/avatar/{who}", What: "Where somebody's picture is, by id or address.", Private: true, Leads: true},
	{Path: "/avatar/{who}/medium", What: "Where somebody's larger picture is, by id or address.", Private: true, Leads: true},
	{Path: "/static/images/{path:*}", What: "The few pictures that are the server's own.", Types: "image/*"},
}

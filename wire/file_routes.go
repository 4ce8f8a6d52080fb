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
	{
		Path:        "/user_uploads/temporary/{token}/{name}",
		Description: "An upload, with a URL that is valid for one minute.",
		Types:       "*/*",
	},
	{
		Path:        "/user_uploads/thumbnail/{realm}/{path:*}",
		Description: "A thumbnail of an uploaded image.",
		Types:       "image/*",
		Private:     true,
	},
	{
		Path:        "/user_uploads/download/{realm}/{path:*}",
		Description: "An upload, as a download.",
		Types:       "*/*",
		Private:     true,
	},
	{
		Path:        "/user_uploads/{realm}/{path:*}",
		Description: "An upload, for users that can read a message with it. Some content types are shown inline.",
		Types:       "*/*",
		Private:     true,
	},
	{
		Path:        "/user_avatars/{realm}/{path:*}",
		Description: "A picture of an account or an organization, a custom emoji, or a finished export.",
		Types:       "*/*",
	},
	{
		Path:        "/avatar/{who}",
		Description: "The avatar of a user, by id or email address.",
		Private:     true,
		Redirects:   true,
	},
	{
		Path:        "/avatar/{who}/medium",
		Description: "The avatar of a user in medium size, by id or email address.",
		Private:     true,
		Redirects:   true,
	},
	{
		Path:        OwnExportPath + "{export_id}",
		Description: "A zip file with the data of the caller, see `POST /users/me/data_exports`.",
		Types:       "application/zip",
		Private:     true,
	},
	{
		Path:        "/external_content/{digest}/{received_url}",
		Description: "A picture of another site that a message shows, if the server has `image-proxy`.",
		Types:       "image/*",
		Redirects:   true,
	},
	{
		Path:        "/static/images/{path:*}",
		Description: "The built-in pictures of the server.",
		Types:       "image/*",
	},
}

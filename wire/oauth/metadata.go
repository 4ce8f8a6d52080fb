package oauth

// Paths of the addresses.
const (
	ServerMetadataPath   = "/.well-known/oauth-authorization-server"
	ResourceMetadataPath = "/.well-known/oauth-protected-resource"
	AuthorizePath        = "/oauth/authorize"
	TokenPath            = "/oauth/token"
	RegisterPath         = "/oauth/register"
	RevokePath           = "/oauth/revoke"
)

// ServerMetadata is the document of RFC 8414.
type ServerMetadata struct {
	Issuer       string   `json:"issuer"`
	Authorize    string   `json:"authorization_endpoint"`
	Token        string   `json:"token_endpoint"`
	Register     string   `json:"registration_endpoint,omitempty"`
	Revoke       string   `json:"revocation_endpoint"`
	Scopes       []string `json:"scopes_supported"`
	Responses    []string `json:"response_types_supported"`
	Modes        []string `json:"response_modes_supported"`
	Grants       []string `json:"grant_types_supported"`
	Methods      []string `json:"token_endpoint_auth_methods_supported"`
	RevokeBy     []string `json:"revocation_endpoint_auth_methods_supported"`
	Challenges   []string `json:"code_challenge_methods_supported"`
	SendsIssuer  bool     `json:"authorization_response_iss_parameter_supported"`
	Instructions string   `json:"service_documentation"`
}

// NewServerMetadata returns the document of an organization at an address, such as https://chat.example.org.
func NewServerMetadata(site string, registration bool) ServerMetadata {
	m := ServerMetadata{Issuer: site, Authorize: site + AuthorizePath, Token: site + TokenPath,
		Revoke: site + RevokePath, Scopes: Rights, Responses: []string{"code"}, Modes: []string{"query"},
		Grants: []string{"authorization_code"}, Methods: []string{"none"}, RevokeBy: []string{"none"},
		Challenges: []string{"S256"}, SendsIssuer: true, Instructions: site + "/api/docs"}
	if registration {
		m.Register = site + RegisterPath
	}
	return m
}

// ResourceMetadata is the document of RFC 9728.
type ResourceMetadata struct {
	Resource string   `json:"resource"`
	Name     string   `json:"resource_name"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Bearer   []string `json:"bearer_methods_supported"`
}

// NewResourceMetadata returns the document of the resource at a path of an organization.
func NewResourceMetadata(site, path, name string) ResourceMetadata {
	return ResourceMetadata{site + path, name, []string{site}, Rights, []string{"header"}}
}

// Registered is the answer to a registration.
type Registered struct {
	ClientID  string   `json:"client_id"`
	Made      int64    `json:"client_id_issued_at"`
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	Method    string   `json:"token_endpoint_auth_method"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
}

// NewRegistered returns the answer for a client and its id.
func NewRegistered(id string, c Client) Registered {
	return Registered{id, c.Made, c.Name, c.Redirects, "none", []string{"authorization_code"}, []string{"code"}}
}

// Token is the answer to a code. The key has no refresh token: the user grants a new one.
type Token struct {
	Key      string `json:"access_token"`
	Type     string `json:"token_type"`
	Lifetime int64  `json:"expires_in"` // seconds
	Scope    string `json:"scope"`
}

package wire

import (
	"parley/actors/registry"
)

// Settings are the settings of the endpoints.
type Settings struct {
	UploadQuota       int
	UserUploadQuota   int
	ImageProxy        bool
	DailyInvites      int
	OpenOrganizations bool
	JWTKeys           string
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "upload-quota", Default: "0", Group: registry.Limits, Value: &s.UploadQuota,
			Meaning: "MiB of uploaded files per organization; 0: no limit",
		},
		{
			Name: "user-upload-quota", Default: "0", Group: registry.Limits, Value: &s.UserUploadQuota,
			Meaning: "MiB of uploaded files per user; 0: no limit",
		},
		{
			Name: "image-proxy", Default: "false", Group: registry.Access, Value: &s.ImageProxy,
			Meaning: "true: clients load pictures of other sites in new messages from this server, which fetches them",
		},
		{
			Name: "daily-invites", Default: "100", Group: registry.Limits, Value: &s.DailyInvites,
			Meaning: "email invitations per organization and day; 0: no limit",
		},
		{
			Name: "open-organizations", Default: "false", Group: registry.Access, Value: &s.OpenOrganizations,
			Meaning: "every visitor can create an organization with a subdomain of their choice",
		},
		{
			Name: "jwt-keys", Group: registry.Access, Value: &s.JWTKeys,
			Meaning: "keys that sign login tokens (JWT, HS256): subdomain=key, comma-separated; for the root " +
				"organization the subdomain before the = is empty",
		},
	}
}

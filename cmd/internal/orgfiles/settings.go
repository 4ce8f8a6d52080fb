package orgfiles

import (
	"parley/actors/registry"
)

// Settings are the settings of the place of files.
type Settings struct {
	Files            string
	FilesCredentials string
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "files", Group: registry.General, Value: &s.Files,
			Meaning: "where uploaded files, pictures and exports are: s3://BUCKET/FOLDER?endpoint=https://HOST&" +
				"region=NAME&path-style=true (default: the recorded place, at first the data directory)",
		},
		{
			Name: "files-credentials", Group: registry.General, Value: &s.FilesCredentials,
			Meaning: "file with the keys for the bucket, in the format of ~/.aws/credentials (default: " +
				"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the environment)",
		},
	}
}

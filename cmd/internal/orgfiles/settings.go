package orgfiles

import (
	"fmt"
	"log/slog"
	"net"
	"strings"

	"parley/actors/registry"
	"parley/snapshot/files"
	"parley/snapshot/files/clamd"
)

// Settings are the settings of the place of files.
type Settings struct {
	Files            string
	FilesCredentials string
	Antivirus        string
	AntivirusDown    string
}

// The values of antivirus-down: the fate of files that cannot be examined.
const (
	refuseUnscanned = "refuse"
	acceptUnscanned = "accept"
)

// UseScanner lets the virus scanner of the settings examine the uploads of a store.
func (s *Settings) UseScanner(store *files.Store, log *slog.Logger) error {
	if s.Antivirus == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(s.Antivirus); err != nil && !strings.HasPrefix(s.Antivirus, "/") {
		return fmt.Errorf("antivirus must be host:port or the path of a socket, not %q", s.Antivirus)
	}
	if s.AntivirusDown != refuseUnscanned && s.AntivirusDown != acceptUnscanned {
		return fmt.Errorf("antivirus-down must be %s or %s, not %q", refuseUnscanned, acceptUnscanned, s.AntivirusDown)
	}
	accept := s.AntivirusDown == acceptUnscanned
	store.UseScanner(clamd.New(clamd.Config{Address: s.Antivirus, Accept: accept, Log: log}))
	log.Info("uploads are examined for viruses", "scanner", s.Antivirus, "down", s.AntivirusDown)
	return nil
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
		{
			Name: "antivirus", Group: registry.General, Value: &s.Antivirus,
			Meaning: "virus scanner that examines each upload: HOST:PORT or the path of the socket of ClamAV's " +
				"daemon clamd; if empty, uploads are not examined",
		},
		{
			Name: "antivirus-down", Default: refuseUnscanned, Group: registry.General, Value: &s.AntivirusDown,
			Meaning: "what happens to uploads that the scanner cannot examine, because it is down or they are larger " +
				"than its StreamMaxLength: refuse or accept",
		},
	}
}

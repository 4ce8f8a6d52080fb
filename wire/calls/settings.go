package calls

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"parley/actors/registry"
	"parley/wire"
)

// Settings are the settings of calls.
type Settings struct {
	LiveKitURL, LiveKitKeyFile string
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "livekit-url", Group: registry.Access, Value: &s.LiveKitURL,
			Meaning: "address of a LiveKit server for calls, such as wss://livekit.example.com; browsers and this " +
				"server connect to it",
		},
		{
			Name: "livekit-key-file", Group: registry.Access, Value: &s.LiveKitKeyFile,
			Meaning: "file with the API key and the secret of the LiveKit server in one line: KEY: SECRET",
		},
	}
}

// minSecret is the shortest secret in bytes, as LiveKit demands it.
const minSecret = 32

// check returns an error for settings that cannot work.
func (s *Settings) check() error {
	u, err := url.Parse(s.LiveKitURL)
	if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		strings.ContainsAny(s.LiveKitURL, " ;,'\"") {
		return errors.New("livekit-url must be an address such as wss://host, without a password and a query")
	}
	if s.LiveKitKeyFile == "" {
		return errors.New("livekit-url needs livekit-key-file")
	}
	return nil
}

// readKey reads the key and the secret from a file.
func readKey(path string) (key, secret string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("livekit-key-file: %w", err)
	}
	key, secret, ok := strings.Cut(strings.TrimSpace(string(text)), ":")
	key, secret = strings.TrimSpace(key), strings.TrimSpace(secret)
	if !ok || key == "" || len(secret) < minSecret || strings.ContainsAny(secret, " \r\n") {
		return "", "", fmt.Errorf("livekit-key-file: %s must contain one line KEY: SECRET, and the secret must have "+
			"at least %d bytes", path, minSecret)
	}
	return key, secret, nil
}

// AtOwner returns the calls of an edge, which gets the address from its core; nil without an address. Requests that
// need the key are sent to the owner of the organization.
func AtOwner(address string) wire.Calls {
	if address == "" {
		return nil
	}
	return atOwner{address: address}
}

type atOwner struct {
	wire.Calls // nil
	address    string
}

func (a atOwner) Address() string { return a.address }

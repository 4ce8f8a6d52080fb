package wire

import (
	"strings"
	"testing"

	"parley/actors/realm"
)

// A client computes the URL of a Gravatar only; a generated or uploaded picture always has one.
func TestOnlyGravatarsAreComputedByClients(t *testing.T) {
	for source, want := range map[string]string{"G": "", "J": "/generated/7.png", "U": "/file.png",
		"": "/generated/7.png"} {
		p := realm.UserInfo{ID: 7, Avatar: source, AvatarFile: "file", EmailPublic: true}
		url := ""
		if u := avatarURL(p, Site{}, true); u != nil {
			url = *u
		}
		if url == "" != (want == "") || !strings.Contains(url, want) {
			t.Errorf("source %q: %q", source, url)
		}
	}
}

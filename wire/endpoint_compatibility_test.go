package wire

import "testing"

func TestCompatibility(t *testing.T) {
	for agent, want := range map[string]string{
		"":                                          "User-Agent header missing from request",
		"ZulipInvalid/1.0":                          "Client is too old",
		"ZulipMobile/20.0 (Android 12)":             "Client is too old",
		"ZulipMobile/22.1 (Android 12)":             "",
		"ZulipMobile/20.0 (iOS 15.1)":               "",
		"ZulipElectron/5.12.0 Chrome/120":           "",
		"Mozilla/5.0 (X11; Linux x86_64) Firefox/1": "",
		"curl/8.0":                                  "",
	} {
		a, err := checkCompatibility(&Call{Agent: agent}, noParameters{})
		switch {
		case want == "" && (err != nil || a != noFields{}):
			t.Errorf("%q: %v %v", agent, a, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%q: %v, want %q", agent, err, want)
		}
	}
}

package wire

import (
	"regexp"
	"strconv"
	"strings"

	"parley/actors/realm"
)

var compatibilityEndpoints = []Endpoint{
	Custom("GET", "/compatibility", checkCompatibility).withoutLogin().
		extension("the web app asks it before it reloads, and the former mobile app after it starts"),
}

// userAgentPattern is the shape of a client's User-Agent: a name, perhaps a slash and a version, and anything behind.
var userAgentPattern = regexp.MustCompile(`^([^/ ]*[^0-9/(]*)(?:/([^/ ]*))?(?:[ /].*)?$`)

// oldestAndroidApp is the first version of the retired Android app that can use this server (protocol).
const oldestAndroidApp = "22.1"

// checkCompatibility answers whether the server supports the calling program, by its User-Agent.
func checkCompatibility(c *Call, _ noParameters) (a noFields, _ error) {
	if c.Agent == "" {
		return a, realm.BadRequest("User-Agent header missing from request")
	}
	m := userAgentPattern.FindStringSubmatch(c.Agent)
	if m == nil || m[1] == "ZulipInvalid" ||
		m[1] == "ZulipMobile" && strings.Contains(c.Agent, "Android") && isOlderVersion(m[2], oldestAndroidApp) {
		return a, realm.BadRequest("Client is too old") // old clients look for this text
	}
	return a, nil
}

// isOlderVersion compares the dotted numbers of two versions. A part that is no number ends the comparison, so a
// version that cannot be read is not older.
func isOlderVersion(v, than string) bool {
	a, b := strings.Split(v, "."), strings.Split(than, ".")
	for i := range b {
		if i >= len(a) {
			return true
		}
		x, err := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(b[i])
		if err != nil || x != y {
			return err == nil && x < y
		}
	}
	return false
}

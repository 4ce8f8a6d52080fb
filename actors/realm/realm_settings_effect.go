package realm

import (
	"maps"
	"slices"
	"strings"
)

// settingsWithoutEffect are settings and permissions of the protocol that this server only stores, with the reason.
// Other clients may show them. The server's own client does not, because its page gets their names.
var settingsWithoutEffect = map[string]string{
	"want_advertise_in_communities_directory": "no directory lists organizations of this server",
	"can_manage_billing_group":                "nothing is billed",
	"workplace_users_group":                   "nothing is billed by users",
}

// SettingsWithoutEffect returns the names of these settings, separated by spaces.
func SettingsWithoutEffect() string {
	return strings.Join(slices.Sorted(maps.Keys(settingsWithoutEffect)), " ")
}

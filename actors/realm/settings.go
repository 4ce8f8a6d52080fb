package realm

import (
	"strconv"

	"parley/actors/registry"
)

// Settings are the settings of the limits of an organization.
type Settings struct {
	ArchiveDays          int
	MaxChannels          int
	DailyChannels        int
	RequestChannels      int
	RequestSubscriptions int
	MaxGroups            int
	DailyGroups          int
	MaxBots              int
	MaxUsers             int
	ShortUserList        int
	RegistrationSize     int
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "archive-days", Default: "30", Group: registry.Limits, Value: &s.ArchiveDays,
			Meaning: "days for which deleted messages can be restored; 0: they are deleted permanently at once",
		},
		{
			Name: "max-channels", Default: strconv.Itoa(DefaultLimits.Channels),
			Group: registry.Limits, Value: &s.MaxChannels,
			Meaning: "channels of one organization, archived ones included; 0: no limit",
		},
		{
			Name: "daily-channels", Default: strconv.Itoa(DefaultLimits.ChannelsPerDay),
			Group: registry.Limits, Value: &s.DailyChannels,
			Meaning: "channels that one user, with the user's bots, creates in 24 hours; administrators have no " +
				"limit; " +
				"0: no limit",
		},
		{
			Name: "request-channels", Default: strconv.Itoa(DefaultLimits.ChannelsPerCall),
			Group: registry.Limits, Value: &s.RequestChannels,
			Meaning: "channels that one request creates; 0: no limit",
		},
		{
			Name: "request-subscriptions", Default: strconv.Itoa(DefaultLimits.JoinsPerCall),
			Group: registry.Limits, Value: &s.RequestSubscriptions,
			Meaning: "subscriptions that one request adds or removes: users times channels; 0: no limit",
		},
		{
			Name: "max-groups", Default: strconv.Itoa(DefaultLimits.Groups),
			Group: registry.Limits, Value: &s.MaxGroups,
			Meaning: "user groups of one organization, deactivated ones included; 0: no limit",
		},
		{
			Name: "daily-groups", Default: strconv.Itoa(DefaultLimits.GroupsPerDay),
			Group: registry.Limits, Value: &s.DailyGroups,
			Meaning: "user groups that one user creates in 24 hours; administrators have no limit; 0: no limit",
		},
		{
			Name: "max-bots", Default: strconv.Itoa(DefaultLimits.BotsPerUser),
			Group: registry.Limits, Value: &s.MaxBots,
			Meaning: "bots of one user, deactivated ones included; 0: no limit",
		},
		{
			Name: "registration-size", Default: strconv.Itoa(DefaultLimits.RegistrationSize >> 20),
			Group: registry.Limits, Value: &s.RegistrationSize,
			Meaning: "MiB of the channels, groups and smaller lists in a registration; requests that would make " +
				"them larger are refused. The same for the users: registrations of clients that need the list of " +
				"all users are refused beyond it; 0: no limit",
		},
		{
			Name: "max-users", Default: strconv.Itoa(DefaultLimits.Users),
			Group: registry.Limits, Value: &s.MaxUsers,
			Meaning: "accounts of one organization, bots and deactivated ones included: about 3 kB of memory each; " +
				"0: no limit",
		},
		{
			Name: "short-user-list", Default: strconv.Itoa(DefaultLimits.ShortListFrom),
			Group: registry.Limits, Value: &s.ShortUserList,
			Meaning: "accounts of one organization above which the web app, and other clients that can do so, get a " +
				"short list of users and fetch others when they show them; 0: never",
		},
	}
}

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
			Meaning: "MiB of a registration that all users of an organization share: channels, accounts, groups and " +
				"smaller lists; requests that would exceed it are refused; 0: no limit",
		},
	}
}

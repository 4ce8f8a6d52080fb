package push

import (
	"parley/actors/registry"
)

// Settings are the settings of push notifications.
type Settings struct {
	APNsKey        string
	APNsKeyID      string
	APNsTeam       string
	FCMAccount     string
	Bouncer        string
	BouncerOrg     string
	BouncerKey     string
	WebPushContact string
}

// Table describes the settings.
func (s *Settings) Table() []registry.Setting {
	return []registry.Setting{
		{
			Name: "push-apns-key", Group: registry.Push, Value: &s.APNsKey,
			Meaning: "key file (.p8) for Apple's push service",
		},
		{
			Name: "push-apns-key-id", Group: registry.Push, Value: &s.APNsKeyID,
			Meaning: "ID of that key",
		},
		{
			Name: "push-apns-team", Group: registry.Push, Value: &s.APNsTeam,
			Meaning: "Apple team that the key belongs to",
		},
		{
			Name: "push-fcm-account", Group: registry.Push, Value: &s.FCMAccount,
			Meaning: "credentials file (JSON) of the service account for Google's push service",
		},
		{
			Name: "push-bouncer", Group: registry.Push, Value: &s.Bouncer,
			Meaning: "URL of a push bouncer: a server that forwards push notifications for this server",
		},
		{
			Name: "push-bouncer-org", Group: registry.Push, Value: &s.BouncerOrg,
			Meaning: "ID of this server at the push bouncer",
		},
		{
			Name: "push-bouncer-key", Group: registry.Push, Value: &s.BouncerKey,
			Meaning: "key of this server at the push bouncer",
		},
		{
			Name: "web-push-contact", Group: registry.Push, Value: &s.WebPushContact,
			Meaning: "address of the operator (email or https) for push services of browsers; empty: the server's",
		},
	}
}

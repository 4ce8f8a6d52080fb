package wire

import "parley/actors/realm"

// callEndpoints are the call providers that need server configuration. This server supports Jitsi only, and clients
// build Jitsi addresses themselves. Each endpoint therefore answers as an unconfigured provider does.
var callEndpoints = []Endpoint{
	Custom("GET", "/calls/bigbluebutton/create", func(*Call, meetingForm) (a noFields, _ error) {
		return a, realm.BadRequest("BigBlueButton is not configured.")
	}).AlwaysFails(),
	Custom("POST", "/calls/constructorgroups/create", func(*Call, noParameters) (a noFields, _ error) {
		return a, realm.BadRequest("Constructor Groups is not configured.")
	}).AlwaysFails(),
	Custom("POST", "/calls/nextcloud_talk/create", func(*Call, roomForm) (a noFields, _ error) {
		return a, realm.BadRequest("Nextcloud Talk is not configured.")
	}).AlwaysFails(),
	Custom("POST", "/calls/webex/create", func(c *Call, _ noParameters) (noFields, error) {
		return personalCallNotConfigured(c, "Webex")
	}).AlwaysFails(),
	Custom("POST", "/calls/zoom/create", func(c *Call, _ zoomForm) (noFields, error) {
		return personalCallNotConfigured(c, "Zoom")
	}).AlwaysFails(),
}

type meetingForm struct {
	Name      string `form:"meeting_name,required"`
	VoiceOnly bool   `form:"voice_only"`
}

type roomForm struct {
	Name string `form:"room_name,required"`
}

type zoomForm struct {
	Video bool `form:"is_video_call,default=true"`
}

// personalCallNotConfigured refuses a provider that each user logs in to. Bots get the refusal for bots instead,
// because they cannot log in there.
func personalCallNotConfigured(c *Call, service string) (a noFields, _ error) {
	err := checkPermission(c, func(v realm.View) error {
		_, err := v.RequireHuman()
		return err
	})
	if err != nil {
		return a, err
	}
	return a, realm.BadRequest("%s credentials have not been configured", service)
}

package wire

import "parley/actors/realm"

// Calls on services that have to be set up for the server. This server knows Jitsi only, whose addresses clients make
// themselves, so that each of these answers what an unconfigured service does.
var callEndpoints = []Endpoint{
	Custom("GET", "/calls/bigbluebutton/create", func(*Call, meetingForm) (Answer, error) { return nil, realm.Bad("BigBlueButton is not configured.") }).Never(),
	Custom("POST", "/calls/constructorgroups/create", func(*Call, none) (Answer, error) { return nil, realm.Bad("Constructor Groups is not configured.") }).Never(),
	Custom("POST", "/calls/nextcloud_talk/create", func(*Call, roomForm) (Answer, error) { return nil, realm.Bad("Nextcloud Talk is not configured.") }).Never(),
	Custom("POST", "/calls/webex/create", func(c *Call, _ none) (Answer, error) { return personalCall(c, "Webex") }).Never(),
	Custom("POST", "/calls/zoom/create", func(c *Call, _ zoomForm) (Answer, error) { return personalCall(c, "Zoom") }).Never(),
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

// personalCall is for services people log in to themselves: bots cannot.
func personalCall(c *Call, service string) (Answer, error) {
	_, err := Look(c, func(v realm.View) (any, error) { _, err := v.Human(); return nil, err })
	if err != nil {
		return nil, err
	}
	return nil, realm.Bad("%s credentials have not been configured", service)
}

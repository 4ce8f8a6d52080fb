package realm

import "slices"

// Places are outside the server: other services to which data of an organization can go. Owners can close most of them
// for their organization. Everything that connects to a place asks PlaceOpen before each attempt.

// placesLevel is the rule level from which on owners can close the places that have a setting of their own: older
// programs do not know these settings, and would let every administrator change them.
const placesLevel uint16 = 5

// Place is the name of a place.
type Place string

const (
	PlaceMobilePush          Place = "mobile_push"
	PlaceBrowserPush         Place = "browser_push"
	PlaceLinkPreviews        Place = "link_previews"
	PlaceExternalPictures    Place = "external_pictures"
	PlaceProfilePictures     Place = "gravatar"
	PlaceGIFs                Place = "gif_provider"
	PlaceModels              Place = "model"
	PlaceVectors             Place = "vectors"
	PlaceTranslations        Place = "translation"
	PlaceAccountEmails       Place = "account_emails"
	PlaceMessageEmails       Place = "message_emails"
	PlaceMessageEmailContent Place = "message_email_content"
	PlaceIncomingEmail       Place = "incoming_email"
	PlaceOutgoingWebhooks    Place = "outgoing_webhooks"
	PlaceCallRooms           Place = "livekit"
	PlaceJitsi               Place = "jitsi"
	PlaceLoginProviders      Place = "login_providers"
	PlaceUserDirectories     Place = "scim"
	PlaceFileBucket          Place = "file_bucket"
	PlaceBackupBucket        Place = "backup_bucket"
	PlaceVirusScanner        Place = "virus_scanner"
	PlaceOtherNodes          Place = "cluster"
	PlaceCertificates        Place = "certificates"
)

// PlaceRule says with which setting of the organization a place is closed.
type PlaceRule struct {
	Place   Place
	Setting string // "": only the operator of the server can close it
	Closed  any    // value of the setting that closes the place
}

// Places has all places, in the order in which clients show them.
var Places = []PlaceRule{
	{PlaceMobilePush, "allow_mobile_push", false},
	{PlaceBrowserPush, "allow_browser_push", false},
	{PlaceLinkPreviews, "inline_url_embed_preview", false},
	{PlaceExternalPictures, "allow_external_pictures", false},
	{PlaceProfilePictures, "default_avatar_source", "J"},
	{PlaceGIFs, "gif_rating_policy", int64(0)},
	{PlaceModels, AssistantSetting, false},
	{PlaceTranslations, AssistantSetting, false},
	{PlaceVectors, MeaningSetting, false},
	{PlaceMessageEmails, "allow_message_emails", false},
	{PlaceMessageEmailContent, "message_content_allowed_in_email_notifications", false},
	{PlaceAccountEmails, "", nil},
	{PlaceIncomingEmail, "", nil},
	{PlaceOutgoingWebhooks, "allow_outgoing_webhooks", false},
	{PlaceCallRooms, "allow_livekit_calls", false},
	{PlaceJitsi, "video_chat_provider", int64(0)},
	{PlaceLoginProviders, "", nil},
	{PlaceUserDirectories, "", nil},
	{PlaceFileBucket, "", nil},
	{PlaceBackupBucket, "", nil},
	{PlaceVirusScanner, "", nil},
	{PlaceOtherNodes, "", nil},
	{PlaceCertificates, "", nil},
}

var placeRules = func() map[Place]PlaceRule {
	m := map[Place]PlaceRule{}
	for _, p := range Places {
		m[p.Place] = p
	}
	return m
}()

// closesPlace reports whether a setting exists only to close a place. Such settings are an extension of the protocol.
func closesPlace(name string) bool {
	s := orgSettingsByName[name]
	return s.Extension && slices.ContainsFunc(Places, func(p PlaceRule) bool { return p.Setting == name })
}

// PlaceOpen reports whether data of the organization is allowed to go to a place. A place that only the operator can
// close is open.
func (r *Realm) PlaceOpen(p Place) bool {
	rule, ok := placeRules[p]
	if !ok {
		panic("BUG: no place " + string(p))
	}
	return rule.Setting == "" || r.OrgSetting(rule.Setting) != rule.Closed
}

// HasGravatars reports whether browsers load the picture of an account from Gravatar. The setting default_avatar_source
// is only for pictures of new accounts.
func (v View) HasGravatars() bool {
	for _, u := range v.users.all() {
		if u.Avatar == "G" {
			return true
		}
	}
	return false
}

// MayReadPlaces refuses users that are not allowed to see the places. The hosts are about the server, so bots do not
// get them.
func (v View) MayReadPlaces() error {
	if _, err := v.RequireHuman(); err != nil {
		return err
	}
	_, err := v.RequireAdmin()
	return err
}

// ErrPlaceClosed is the refusal of requests that need a place that the owners have closed.
func ErrPlaceClosed() *Refusal {
	return BadRequest("Your organization does not send data to this service.")
}

// CheckPlace refuses callers whose organization has closed a place.
func (v View) CheckPlace(p Place) error {
	if !v.PlaceOpen(p) {
		return ErrPlaceClosed()
	}
	return nil
}

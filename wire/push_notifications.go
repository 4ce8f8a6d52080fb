package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire/markdown"
)

// PushNotification is one notification for the devices of one user: what each service is to be told of it.
type PushNotification struct {
	PushOrigin
	Key    string // names the notification, the same at every attempt
	Remove bool   // takes notifications back
	Tokens []realm.PushToken
	APNs   map[string]any // what goes beside aps
	Alert  PushAlert
	FCM    map[string]any
	// Devices get Secret encrypted with their keys.
	Devices []realm.Device
	Secret  []byte
}

// PushAlert is what Apple's devices show by themselves; an empty one shows nothing.
type PushAlert struct{ Title, Subtitle, Body string }

// maxNotificationText is how much of a message a notification shows, in code points (protocol).
const maxNotificationText = 200

// hiddenContent is shown instead of messages where services must not read them.
const hiddenContent = "New message"

// PushNotificationFor is the notification of an errand: of a message, or of messages that need be shown no longer. ok is false if there
// is nothing to notify of any more, or no device.
func PushNotificationFor(v realm.View, e *realm.OutboxJob, s Site, text func(realm.BodyRef) (realm.Body, bool)) (n PushNotification, ok bool) {
	n = PushNotification{PushOrigin: pushOriginOf(v, e.User, s), Key: v.Org().UUID + "-" + strconv.FormatInt(e.ID, 10), Remove: e.Kind == realm.OutboxPushRemoval, Tokens: v.PushTokensOf(e.User)}
	for _, d := range v.DevicesOf(e.User) {
		if d.TokenID != nil && d.KeyID != nil {
			n.Devices = append(n.Devices, d)
		}
	}
	if len(n.Tokens)+len(n.Devices) == 0 {
		return n, false
	}
	if n.Remove {
		n.fillRemoval(e.Gone)
		return n, true
	}
	m, ok := v.PushMessage(e)
	if !ok {
		return n, false
	}
	body, ok := text(m.Ref)
	if !ok {
		return n, false
	}
	n.fillMessage(v, e, m, body, s)
	return n, true
}

func pushOriginOf(v realm.View, u realm.UserID, s Site) PushOrigin {
	return PushOrigin{RealmUUID: v.Org().UUID, RealmName: v.Org().Name, RealmURL: s.URL, RealmID: v.ID(), Host: s.Host, User: u}
}

// legacyFields is what every notification for older apps says; APNs leaves out what only Android's need.
func (n *PushOrigin) legacyFields(android bool) obj {
	o := obj{"realm_uri": n.RealmURL, "realm_url": n.RealmURL, "realm_name": n.RealmName, "user_id": n.User}
	if android {
		o["server"], o["realm_id"] = n.Host, n.RealmID
	}
	return o
}

// SecretFields is what every encrypted notification says.
func (n *PushOrigin) SecretFields(kind string) map[string]any {
	return obj{"realm_url": n.RealmURL, "realm_name": n.RealmName, "user_id": n.User, "type": kind}
}

func (n *PushNotification) fillRemoval(ids []realm.MessageID) {
	var list []string
	for _, id := range ids {
		list = append(list, id.String())
	}
	n.APNs, n.FCM = n.legacyFields(false), n.legacyFields(true)
	for _, o := range []obj{n.APNs, n.FCM} {
		o["event"], o["zulip_message_ids"] = "remove", strings.Join(list, ",")
	}
	secret := n.SecretFields("remove")
	secret["message_ids"] = ids
	n.setSecret(secret)
}

func (n *PushNotification) setSecret(o obj) {
	data, err := json.Marshal(o)
	if err != nil {
		panic("BUG: a notification does not encode: " + err.Error())
	}
	n.Secret = data
}

func (n *PushNotification) fillMessage(v realm.View, e *realm.OutboxJob, m realm.MessageInfo, body realm.Body, s Site) {
	content := truncate(strings.TrimSpace(markdown.PlainText(body.HTML)), maxNotificationText)
	name, address, avatar := m.Sender.Name, apiEmail(m.Sender, s), avatarURL(m.Sender, s, false).(string)
	if m.Channel != 0 && !v.ViewAs(realm.Caller{User: e.User}, v.Now).MaySeeUser(v.Find(m.Sender.ID)) {
		name, address, avatar = unknownName, dummyEmail(m.Sender.ID, s), unknownAvatar
	}
	if strings.HasPrefix(avatar, "/") {
		avatar = s.URL + avatar
	}
	group := ""
	if g := v.FindGroup(e.Group); g != nil {
		group = g.Name
	}
	n.APNs, n.FCM = n.legacyFields(false), n.legacyFields(true)
	secret := n.SecretFields("message")
	for _, o := range []obj{n.APNs, n.FCM} {
		o["event"], o["sender_id"], o["sender_email"] = "message", m.Sender.ID, address
		addMessageLocation(o, m, true)
	}
	n.APNs["message_ids"] = []realm.MessageID{m.ID}
	n.FCM["zulip_message_id"] = m.ID
	secret["message_id"], secret["sender_id"] = m.ID, m.Sender.ID
	addMessageLocation(secret, m, false)
	for _, o := range []obj{n.FCM, secret} {
		o["time"], o["content"], o["sender_full_name"], o["sender_avatar_url"] = m.Time, content, name, avatar
	}
	if group != "" {
		for _, o := range []obj{n.APNs, n.FCM, secret} {
			o["mentioned_user_group_id"], o["mentioned_user_group_name"] = e.Group, group
		}
	}
	n.setSecret(secret)
	n.Alert = PushAlert{alertTitle(m), alertSubtitle(e.Why, m, name, group), content}
	if v.OrgBool("require_e2ee_push_notifications") {
		n.Alert.Body, n.FCM["content"] = hiddenContent, hiddenContent
	}
}

// addMessageLocation is where a message is, as older apps are told, or as the encrypted notification says it.
func addMessageLocation(o obj, m realm.MessageInfo, legacy bool) {
	topic := m.Topic
	if topic == "" {
		topic = realm.EmptyTopicName
	}
	var ids []string
	for _, p := range m.People {
		ids = append(ids, p.ID.String())
	}
	switch {
	case legacy && m.Channel != 0:
		o["recipient_type"], o["stream"], o["stream_id"], o["topic"] = "stream", m.ChannelName, m.Channel, topic
	case m.Channel != 0:
		o["recipient_type"], o["channel_name"], o["channel_id"], o["topic"] = "channel", m.ChannelName, m.Channel, topic
	case legacy:
		o["recipient_type"] = "private"
		if len(ids) > 2 {
			o["pm_users"] = strings.Join(ids, ",")
		}
	default:
		people := []realm.UserID{}
		for _, p := range m.People {
			people = append(people, p.ID)
		}
		o["recipient_type"], o["recipient_user_ids"] = "direct", people
	}
}

// alertTitle is the first line of Apple's alert.
func alertTitle(m realm.MessageInfo) string {
	if m.Channel != 0 {
		topic := m.Topic
		if topic == "" {
			topic = realm.EmptyTopicName
		}
		return "#" + m.ChannelName + " > " + topic
	}
	if len(m.People) <= 2 {
		return m.Sender.Name
	}
	var names []string
	for _, p := range m.People {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// alertSubtitle is the second line: who wrote, and to whom.
func alertSubtitle(why string, m realm.MessageInfo, name, group string) string {
	switch {
	case why == "mentioned" && group != "":
		return name + " mentioned @" + group + ":"
	case why == "mentioned":
		return name + " mentioned you:"
	case strings.Contains(why, "wildcard"):
		return name + " mentioned everyone:"
	case m.Channel == 0 && len(m.People) <= 2:
		return ""
	}
	return name + ":"
}

func truncate(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

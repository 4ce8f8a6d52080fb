package push

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/actors/realm"
	"parley/wire"
)

// notification is one notification for the devices of one user, as each service takes it.
type notification struct {
	wire.PushOrigin
	key     string // identifies the notification; the same at every attempt
	removal bool   // removes notifications from devices

	// Devices that are notified unencrypted, and their payloads.
	tokens []realm.PushToken
	apns   map[string]any // the custom data beside aps
	alert  alert
	fcm    map[string]any
	web    webMessage // for browsers

	// Devices that are notified encrypted, and the payload that is encrypted with the key of each.
	devices []realm.Device
	secret  []byte
}

// alert is the text that Apple's devices show by themselves; nothing is shown for an empty one.
type alert struct{ title, subtitle, body string }

// maxExcerpt is how much of a message a notification shows, in code points (protocol).
const maxExcerpt = 200

// hiddenContent replaces the message where the organization requires end-to-end encryption, so that services cannot
// read it.
const hiddenContent = "New message"

// newNotification returns the notification of an outbox job, which is about one message, or removes notifications about
// several. ok is false if the message was read, erased or hidden meanwhile, or the user has no device.
func newNotification(
	v realm.View, job *realm.OutboxJob, s wire.Site, text func(realm.BodyRef) (realm.Body, bool),
) (n notification, ok bool) {
	n = notification{
		PushOrigin: wire.PushOriginOf(v, job.User, s),
		key:        v.Org().UUID + "-" + strconv.FormatInt(job.ID, 10),
		removal:    job.Kind == realm.OutboxPushRemoval,
		tokens:     v.NotifiedPushTokens(job.User),
	}
	if n.removal {
		// A browser must show something for each notification that it gets, so none can remove another one. Its pages
		// close notifications of messages that were read.
		n.tokens = slices.DeleteFunc(n.tokens, isBrowser)
	}
	for _, d := range v.DevicesOf(job.User) {
		if d.TokenID != nil && d.KeyID != nil {
			n.devices = append(n.devices, d)
		}
	}
	if len(n.tokens)+len(n.devices) == 0 {
		return n, false
	}
	if n.removal {
		n.fillRemoval(job.Gone)
		return n, true
	}
	m, ok := v.PushMessage(job)
	if !ok {
		return n, false
	}
	body, ok := text(m.Ref)
	if !ok {
		return n, false
	}
	n.fillMessage(v, job, m, body, s)
	return n, true
}

func isBrowser(d realm.PushToken) bool { return d.Kind == realm.PushWeb }

// newTestNotification returns an encrypted notification that says only that notifications work.
func newTestNotification(origin wire.PushOrigin, devices []realm.Device, now int64) notification {
	n := notification{PushOrigin: origin, devices: devices}
	secret := secretFields(&origin, "test")
	secret["time"] = now
	n.setSecret(secret)
	return n
}

// legacyFields returns what every unencrypted notification has. Only Android apps need the host and the realm's number.
func legacyFields(o *wire.PushOrigin, android bool) map[string]any {
	fields := map[string]any{
		"realm_uri": o.RealmURL, "realm_url": o.RealmURL, "realm_name": o.RealmName, "user_id": o.User,
	}
	if android {
		fields["server"], fields["realm_id"] = o.Host, o.RealmID
	}
	return fields
}

// secretFields returns what every encrypted notification has.
func secretFields(o *wire.PushOrigin, kind string) map[string]any {
	return map[string]any{"realm_url": o.RealmURL, "realm_name": o.RealmName, "user_id": o.User, "type": kind}
}

func (n *notification) setSecret(fields map[string]any) {
	data, err := json.Marshal(fields)
	if err != nil {
		panic("BUG: a notification does not encode: " + err.Error())
	}
	n.secret = data
}

func (n *notification) fillRemoval(messages []realm.MessageID) {
	var list []string
	for _, id := range messages {
		list = append(list, id.String())
	}
	n.apns, n.fcm = legacyFields(&n.PushOrigin, false), legacyFields(&n.PushOrigin, true)
	for _, fields := range []map[string]any{n.apns, n.fcm} {
		fields["event"], fields["zulip_message_ids"] = "remove", strings.Join(list, ",")
	}
	secret := secretFields(&n.PushOrigin, "remove")
	secret["message_ids"] = messages
	n.setSecret(secret)
}

func (n *notification) fillMessage(
	v realm.View, job *realm.OutboxJob, m realm.MessageInfo, body realm.Body, s wire.Site,
) {
	content := wire.MessageExcerpt(body, maxExcerpt)
	sender := wire.VisibleSenderOf(v, job.User, m, s)
	group := ""
	if g := v.FindGroup(job.Group); g != nil {
		group = g.Name
	}
	n.apns, n.fcm = legacyFields(&n.PushOrigin, false), legacyFields(&n.PushOrigin, true)
	secret := secretFields(&n.PushOrigin, "message")
	n.fcm["event"] = "message" // Apple's notifications of messages have no event (protocol)
	for _, fields := range []map[string]any{n.apns, n.fcm} {
		fields["sender_id"], fields["sender_email"] = m.Sender.ID, sender.Email
		addLegacyRecipient(fields, m)
	}
	n.apns["message_ids"] = []realm.MessageID{m.ID}
	n.fcm["zulip_message_id"] = m.ID
	secret["message_id"], secret["sender_id"] = m.ID, m.Sender.ID
	addRecipient(secret, m)
	for _, fields := range []map[string]any{n.fcm, secret} {
		fields["time"], fields["content"] = m.Time, content
		fields["sender_full_name"], fields["sender_avatar_url"] = sender.Name, sender.Avatar
	}
	if group != "" {
		for _, fields := range []map[string]any{n.apns, n.fcm, secret} {
			fields["mentioned_user_group_id"], fields["mentioned_user_group_name"] = job.Group, group
		}
	}
	n.setSecret(secret)
	n.alert = alert{alertTitle(m), alertSubtitle(job.Why, m, sender.Name, group), content}
	n.fillWeb(v, m, n.alert.subtitle, content, sender.Avatar)
	if v.OrgBool("require_e2ee_push_notifications") {
		n.alert.body, n.fcm["content"] = hiddenContent, hiddenContent
	}
}

// addLegacyRecipient adds the channel and topic of a message, or the people of a group conversation, as unencrypted
// notifications have them.
func addLegacyRecipient(fields map[string]any, m realm.MessageInfo) {
	if m.Channel != 0 {
		fields["recipient_type"], fields["stream"], fields["stream_id"] = "stream", m.ChannelName, m.Channel
		fields["topic"] = shownTopic(m)
		return
	}
	fields["recipient_type"] = "private"
	if len(m.People) > 2 {
		var ids []string
		for _, p := range m.People {
			ids = append(ids, p.ID.String())
		}
		fields["pm_users"] = strings.Join(ids, ",")
	}
}

// addRecipient adds the channel and topic of a message, or the people of a direct conversation, as encrypted
// notifications have them.
func addRecipient(fields map[string]any, m realm.MessageInfo) {
	if m.Channel != 0 {
		fields["recipient_type"], fields["channel_name"], fields["channel_id"] = "channel", m.ChannelName, m.Channel
		fields["topic"] = shownTopic(m)
		return
	}
	people := []realm.UserID{}
	for _, p := range m.People {
		people = append(people, p.ID)
	}
	fields["recipient_type"], fields["recipient_user_ids"] = "direct", people
}

func shownTopic(m realm.MessageInfo) string {
	if m.Topic == "" {
		return realm.EmptyTopicName
	}
	return m.Topic
}

// alertTitle returns the first line of Apple's alert.
func alertTitle(m realm.MessageInfo) string {
	if m.Channel != 0 {
		return "#" + m.ChannelName + " > " + shownTopic(m)
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

// alertSubtitle returns the second line: the sender, and how the user was mentioned. A conversation of two has none.
func alertSubtitle(trigger string, m realm.MessageInfo, sender, group string) string {
	switch {
	case trigger == "mentioned" && group != "":
		return sender + " mentioned @" + group + ":"
	case trigger == "mentioned":
		return sender + " mentioned you:"
	case strings.Contains(trigger, "wildcard"):
		return sender + " mentioned everyone:"
	case m.Channel == 0 && len(m.People) <= 2:
		return ""
	}
	return sender + ":"
}

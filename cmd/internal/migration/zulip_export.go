package migration

import (
	"crypto/sha1" //nolint:gosec // the format's key of a group of users
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/snapshot/files"
)

// messagesPerFile is how many messages a file of a Zulip export has.
const messagesPerFile = 1000

// object is a row of a table.
type object = map[string]any

// zulipExport writes one organization as a Zulip export: first its files into a folder, then all of them into a tar.
type zulipExport struct {
	disk   snapshot.Disk
	files  *files.Store
	realm  *realm.Realm
	dir    string
	tables map[string][]object
	groups int64 // last id of a group, anonymous ones included
	next   map[string]int64
	// Messages and scheduled messages by the paths of their files.
	usedBy        map[string][]realm.MessageID
	scheduledUses map[string][]int64
	users         map[realm.UserID]*realm.User
	userRows      map[realm.UserID]object // of zerver_userprofile
	client        map[string]int64
	upload        []*realm.Upload
	missing       []string // files that this server does not have
}

// ExportZulip writes an organization of a stopped server, or of a copy, as a Zulip export. Deleted messages that the
// retention archive still has are left out, whether a legal hold keeps them or not: they stay on this server. The
// memory this takes is that of the loaded organization. missing are the files that are not in it, because this server
// does not have them.
func ExportZulip(d snapshot.Disk, store *files.Store, id realm.ID, migrations []byte, temp string, to io.Writer) (
	digest snapshot.Digest, missing []string, err error,
) {
	x, err := snapshot.Recover(d, id)
	if err != nil {
		return digest, nil, err
	}
	if !x.Realm.Founded() {
		return digest, nil, fmt.Errorf("realm %d has not been founded", id)
	}
	dir, err := os.MkdirTemp(temp, "parley-export-")
	if err != nil {
		return digest, nil, err
	}
	defer os.RemoveAll(dir)
	e := &zulipExport{disk: d, files: store, realm: x.Realm, dir: dir, tables: map[string][]object{},
		next: map[string]int64{}, usedBy: map[string][]realm.MessageID{},
		scheduledUses: map[string][]int64{}, users: map[realm.UserID]*realm.User{},
		userRows: map[realm.UserID]object{}, client: map[string]int64{}}
	if len(migrations) == 0 {
		migrations = []byte(`{"migrations_by_app":{},"zulip_version":"10.2"}`)
	}
	for _, step := range []func() error{e.addRows, e.writeMessages, e.writeUploads, e.writePictures, e.writeTables,
		func() error { return os.WriteFile(filepath.Join(dir, "migration_status.json"), migrations, 0o600) },
		func() error { return writeTar(dir, "zulip-export", to) },
	} {
		if err := step(); err != nil {
			return digest, nil, fmt.Errorf("export: %w", err)
		}
	}
	return snapshot.StateDigest(x.Realm), e.missing, nil
}

// The ids of recipients. The remainder by 3 is different for each kind, so no two recipients have the same id.
func userRecipient(u realm.UserID) int64                       { return int64(u) * 3 }
func channelRecipient(c realm.ChannelID) int64                 { return int64(c)*3 + 1 }
func conversationRecipient(t realm.DirectConversationID) int64 { return int64(t)*3 + 2 }

// add adds a row to a table. A row without an id gets the next one.
func (e *zulipExport) add(table string, row object) {
	if row["id"] == nil {
		e.next[table]++
		row["id"] = e.next[table]
	}
	e.tables[table] = append(e.tables[table], row)
}

func optionalID[T ~int64](id T) any {
	if id == 0 {
		return nil
	}
	return int64(id)
}

// crossRealm are the addresses of the system bots on the reference server.
var crossRealm = []struct {
	id    realm.UserID
	email string
}{
	{realm.NotificationBot, "notification-bot@zulip.com"}, {realm.WelcomeBot, "welcome-bot@zulip.com"},
	{realm.EmailGateway, "emailgateway@zulip.com"},
}

// addRows adds the rows of all tables but messages.
func (e *zulipExport) addRows() error {
	e.groups = int64(e.realm.Org().NextGroup) + firstAnonymous
	e.realm.EachUser(func(u *realm.User) { e.users[u.ID] = u })
	for _, b := range crossRealm {
		e.add("zerver_userprofile_crossrealm",
			object{"id": b.id, "email": b.email, "recipient_id": userRecipient(b.id)})
		e.add("zerver_recipient", object{"id": userRecipient(b.id), "type": 1, "type_id": b.id})
	}
	for _, name := range []string{"zerver_userprofile_mirrordummy", "zerver_useractivity",
		"zerver_useractivityinterval",
		"zerver_userpresence", "zerver_realmauditlog"} {
		e.tables[name] = []object{}
	}
	for i, name := range []string{"Dev", "Email", "LDAP", "SAML"} {
		e.add("zerver_realmauthenticationmethod", object{"id": i + 1, "realm": 1, "name": name})
	}
	e.realm.EachRow(func(_ uint16, key, row any) { e.addRow(key, row) })
	return nil
}

// firstAnonymous separates the ids of anonymous groups from those of named ones.
const firstAnonymous = 1000

// addRow adds one row of a realm to the table that it belongs to.
func (e *zulipExport) addRow(key, row any) {
	switch v := row.(type) {
	case *realm.Organization:
		e.addOrganization(v)
	case *realm.User:
		if !v.System {
			e.addUser(v)
		}
	case *realm.Group:
		e.addGroup(v)
	case *realm.Channel:
		e.addChannel(v)
	case *realm.Subscriptions:
		for i := range v.List {
			e.addSubscription(key.(realm.UserID), &v.List[i])
		}
	case *realm.DirectConversation:
		e.addConversation(key.(realm.DirectConversationID), v.Members)
	case *realm.ClientName:
		id := int64(key.(realm.ClientID))
		e.client[v.Name] = id
		e.add("zerver_client", object{"id": id, "name": v.Name})
	case *realm.Upload:
		e.upload = append(e.upload, v)
	case *realm.BotDetails:
		e.addBot(key.(realm.UserID), v)
	default:
		e.addPersonal(key, row)
	}
}

func (e *zulipExport) addPersonal(key, row any) {
	user, _ := key.(realm.UserID)
	switch v := row.(type) {
	case *realm.CustomEmoji:
		e.add("zerver_realmemoji", object{"id": v.ID, "author": v.Author, "realm": 1, "name": v.Name,
			"file_name":   v.File(),
			"is_animated": v.Animated, "deactivated": v.Deactivated})
	case *realm.Linkifier:
		e.add("zerver_realmfilter", object{"id": v.ID, "realm": 1, "pattern": v.Pattern, "url_template": v.Template,
			"order": v.Order})
	case *realm.Playground:
		e.add("zerver_realmplayground", object{"id": v.ID, "realm": 1, "name": v.Name, "pygments_language": v.Language,
			"url_template": v.Template})
	case *realm.Domain:
		e.add("zerver_realmdomain", object{"id": v.ID, "realm": 1, "domain": v.Name, "allow_subdomains": v.Subdomains})
	case *realm.ProfileField:
		e.add("zerver_customprofilefield", object{"id": v.ID, "realm": 1, "name": v.Name, "hint": v.Hint,
			"order": v.Order, "display_in_profile_summary": v.Summary, "required": v.Required,
			"editable_by_user": v.Editable, "field_type": int(v.Type), "field_data": v.Data})
	case *realm.TopicPolicies:
		for _, p := range v.List {
			e.add("zerver_usertopic", object{"user_profile": user, "stream": p.Channel, "topic_name": p.Topic,
				"recipient": channelRecipient(p.Channel), "last_updated": float64(p.Since),
				"visibility_policy": p.Policy})
		}
	case *realm.MutedUsers:
		for _, m := range v.List {
			e.add("zerver_muteduser", object{"user_profile": user, "muted_user": m.User,
				"date_muted": float64(m.Since)})
		}
	case *realm.AlertWords:
		for _, w := range v.List {
			e.add("zerver_alertword", object{"realm": 1, "user_profile": user, "word": w})
		}
	case *realm.Onboarding:
		for _, s := range v.Seen {
			e.add("zerver_onboardingstep", object{"user": user, "onboarding_step": s, "timestamp": 0.0})
		}
	case *realm.UserStatus:
		e.add("zerver_userstatus", object{"user_profile": user, "timestamp": 0.0, "client": 1, "status_text": v.Text,
			"emoji_name": v.EmojiName, "emoji_code": v.EmojiCode, "reaction_type": v.EmojiType})
	case *realm.Snippet:
		e.add("zerver_savedsnippet", object{"id": v.ID, "realm": 1, "user_profile": v.User, "title": v.Title,
			"content": v.Content, "date_created": float64(v.Created)})
	case *realm.ScheduledMessage:
		e.addScheduled(v)
	}
}

// historyPolicies are the numbers of the policies on the reference server.
var historyPolicies = map[any]int{"all": 1, "moves": 2, "none": 3}

// newSettings are settings that feature level 372 does not have: its importer refuses unknown columns.
var newSettings = []string{"resolved_topic_notice_auto_read_policy", "web_inbox_show_channel_folders",
	"web_left_sidebar_show_channel_folders", "web_left_sidebar_unreads_count_summary", "default_avatar_source",
	"media_preview_size", "owner_full_content_access", "presence_disabled", "require_e2ee_push_notifications",
	"send_channel_events_messages", "topics_policy", "welcome_message_custom_text"}

// settings adds the columns of settings to a row: the values, or the defaults.
func settings(row object, rules []realm.Setting, values map[string]any) {
	for _, r := range rules {
		v, set := values[r.Name]
		if !set {
			v = r.Default
		}
		name := r.Name
		switch {
		case r.Extension, slices.Contains(newSettings, name):
			continue
		case slices.Contains(channelSettings, name):
			name = strings.TrimSuffix(strings.Replace(name, "_channel_id", "_channel", 1), "_id")
			if v == int64(-1) {
				v = nil
			}
		case name == "message_edit_history_visibility_policy":
			v = historyPolicies[v]
		case name == "gif_rating_policy":
			name = "giphy_rating"
		}
		row[name] = v
	}
}

// group returns the id of the group that is the value of a permission setting. An anonymous one is added.
func (e *zulipExport) group(v realm.GroupValue) int64 {
	if v.Group != 0 {
		return int64(v.Group)
	}
	e.groups++
	id := e.groups
	e.add("zerver_usergroup", object{"id": id, "realm": 1})
	e.members(id, v.Members, v.Subgroups)
	return id
}

func (e *zulipExport) members(group int64, users []realm.UserID, subgroups []realm.GroupID) {
	for _, u := range users {
		e.add("zerver_usergroupmembership", object{"user_group": group, "user_profile": u})
	}
	for _, s := range subgroups {
		e.add("zerver_groupgroupmembership", object{"supergroup": group, "subgroup": s})
	}
}

// newGroupSettings are permission settings that feature level 372 does not have.
var newGroupSettings = []string{"can_set_topics_policy_group", "can_set_delete_message_policy_group",
	"can_delete_any_message_group.channel", "can_delete_own_message_group.channel",
	"can_move_messages_out_of_channel_group", "can_move_messages_within_channel_group",
	"can_resolve_topics_group.channel", "workplace_users_group"}

// groupSettings adds the columns of permission settings to a row.
func (e *zulipExport) groupSettings(row object, rules []realm.GroupSettingRule, values realm.GroupValues, place string,
	creator realm.UserID,
) {
	for _, r := range rules {
		if r.Extension || slices.Contains(newGroupSettings, r.Name) || slices.Contains(newGroupSettings, r.Name+place) {
			continue
		}
		v, set := values[r.Name]
		switch {
		case set:
		case strings.HasSuffix(r.Default, "_creator") && creator != 0:
			v = realm.GroupValue{Members: []realm.UserID{creator}}
		case strings.HasSuffix(r.Default, "_creator"):
			v = realm.GroupValue{Group: e.realm.SystemGroup("role:nobody")}
		default:
			v = realm.GroupValue{Group: e.realm.SystemGroup(r.Default)}
		}
		name := r.Name
		if name == "can_create_topic_group" {
			name = "can_create_topics_group"
		}
		row[name] = e.group(v)
	}
}

func (e *zulipExport) addOrganization(o *realm.Organization) {
	row := object{"id": 1, "name": o.Name, "description": o.Description, "string_id": o.StringID, "uuid": o.UUID,
		"date_created": float64(o.Created), "deactivated": false, "icon_source": o.IconSource,
		"icon_version": o.IconVersion, "logo_source": o.LogoSource, "logo_version": o.LogoVersion,
		"night_logo_source": o.NightLogoSource, "night_logo_version": o.NightLogoVersion, "plan_type": 1,
		"mandatory_topics": o.Settings["topics_policy"] == "disable_empty_topic"}
	settings(row, realm.OrgSettings, o.Settings)
	e.groupSettings(row, realm.OrgGroupSettings, o.GroupSettings, "", 0)
	e.add("zerver_realm", row)
	defaults := object{"id": 1, "realm": 1}
	settings(defaults, realm.UserSettings, o.UserDefaults)
	e.add("zerver_realmuserdefault", defaults)
	for _, c := range o.DefaultChannels {
		e.add("zerver_defaultstream", object{"realm": 1, "stream": c})
	}
}

func (e *zulipExport) addUser(u *realm.User) {
	dummy := u.ImportedStub || u.Deleted
	table := "zerver_userprofile"
	if dummy {
		table = "zerver_userprofile_mirrordummy"
	}
	row := object{"id": u.ID, "delivery_email": u.Email, "email": u.Email, "realm": 1, "recipient": userRecipient(u.ID),
		"full_name": u.Name, "date_joined": float64(u.Joined), "is_active": u.Active && !dummy,
		"is_mirror_dummy": dummy,
		"is_bot":          u.IsBot(), "bot_type": nil, "bot_owner": optionalID(u.BotOwner), "role": int(u.Role),
		"timezone": u.Timezone, "avatar_source": avatarSource(u), "avatar_version": u.AvatarVersion, "avatar_hash": nil,
		"tos_version": "-1", "is_superuser": false, "is_staff": false, "last_login": nil, "long_term_idle": false,
		"last_active_message_id": nil, "last_reminder": nil, "rate_limits": "", "default_all_public_streams": false,
		"default_sending_stream": nil, "default_events_register_stream": nil, "zoom_token": nil, "groups": []any{},
		"user_permissions": []any{}, "can_forge_sender": false, "can_create_users": false,
		"can_change_user_emails": false}
	if u.IsBot() {
		row["bot_type"] = int(u.Bot)
	}
	settings(row, realm.UserSettings, u.Settings)
	e.add(table, row)
	e.userRows[u.ID] = row
	e.add("zerver_recipient", object{"id": userRecipient(u.ID), "type": 1, "type_id": u.ID})
	e.add("zerver_subscription", subscription(u, userRecipient(u.ID)))
	for _, g := range roleGroups[u.Role] {
		e.add("zerver_usergroupmembership", object{"user_group": e.realm.SystemGroup(g), "user_profile": u.ID})
	}
	for _, field := range slices.Sorted(maps.Keys(u.Profile)) {
		e.add("zerver_customprofilefieldvalue", object{"user_profile": u.ID, "field": field, "value": u.Profile[field],
			"rendered_value": nil})
	}
}

// roleGroups are the system groups that users of a role are direct members of.
var roleGroups = map[realm.Role][]string{
	realm.Owner: {"role:owners"}, realm.Administrator: {"role:administrators"}, realm.Moderator: {"role:moderators"},
	realm.Member: {"role:members", "role:fullmembers"}, realm.Guest: {"role:everyone"},
}

func avatarSource(u *realm.User) string {
	if u.Avatar == "U" {
		return "U"
	}
	if u.Avatar == "G" {
		return "G"
	}
	return "J"
}

// subscription returns a row that makes a user a recipient of personal or group messages.
func subscription(u *realm.User, recipient int64) object {
	return object{"user_profile": u.ID, "recipient": recipient, "active": true, "is_user_active": u.Active,
		"is_muted": false, "color": "#c2c2c2", "pin_to_top": false, "desktop_notifications": nil,
		"audible_notifications": nil, "push_notifications": nil, "email_notifications": nil,
		"wildcard_mentions_notify": nil}
}

func (e *zulipExport) addBot(u realm.UserID, d *realm.BotDetails) {
	for _, s := range d.Services {
		e.add("zerver_service", object{"name": s.Name, "user_profile": u, "base_url": s.URL, "token": "",
			"interface": s.Interface})
	}
	if row := e.userRows[u]; row != nil {
		row["default_sending_stream"] = optionalID(d.Sending)
		row["default_events_register_stream"] = optionalID(d.Register)
		row["default_all_public_streams"] = d.AllPublic
	}
}

func (e *zulipExport) addGroup(g *realm.Group) {
	id := int64(g.ID)
	row := object{"id": id, "usergroup_ptr": id, "name": g.Name, "description": g.Description,
		"date_created": float64(g.Created), "creator": optionalID(g.Creator), "is_system_group": g.System,
		"realm_for_sharding": 1, "deactivated": g.Deactivated}
	e.groupSettings(row, realm.GroupRules, g.Settings, ".group", g.Creator)
	e.add("zerver_usergroup", object{"id": id, "realm": 1})
	e.add("zerver_namedusergroup", row)
	e.members(id, g.Members, g.Subgroups)
}

func (e *zulipExport) addChannel(c *realm.Channel) {
	row := object{"id": c.ID, "name": c.Name, "realm": 1, "date_created": float64(c.Created),
		"creator": optionalID(c.Creator), "deactivated": c.Archived, "description": c.Description,
		"rendered_description": c.DescriptionHTML, "recipient": channelRecipient(c.ID), "invite_only": c.Private,
		"history_public_to_subscribers": c.History, "is_web_public": c.WebPublic, "is_in_zephyr_realm": false,
		"message_retention_days": c.Retention, "first_message_id": nil, "is_recently_active": !c.Quiet}
	e.groupSettings(row, realm.ChannelRules, c.Settings, ".channel", c.Creator)
	e.add("zerver_stream", row)
	e.add("zerver_recipient", object{"id": channelRecipient(c.ID), "type": 2, "type_id": c.ID})
}

func (e *zulipExport) addSubscription(u realm.UserID, s *realm.Subscription) {
	e.add("zerver_subscription", object{"user_profile": u, "recipient": channelRecipient(s.Channel), "active": s.Active,
		"is_user_active": e.users[u].Active, "is_muted": s.Muted, "color": s.Color, "pin_to_top": s.Pinned,
		"desktop_notifications": s.Desktop, "audible_notifications": s.Audible, "push_notifications": s.Push,
		"email_notifications": s.Email, "wildcard_mentions_notify": s.Wildcard})
}

// addConversation adds a group of direct messages. One or two users are no group: their messages go to a person.
func (e *zulipExport) addConversation(id realm.DirectConversationID, members []realm.UserID) {
	if len(members) <= 2 {
		return
	}
	keys := make([]string, len(members))
	for i, u := range members {
		keys[i] = u.String()
		e.add("zerver_subscription", subscription(e.users[u], conversationRecipient(id)))
	}
	hash := sha1.Sum([]byte(strings.Join(keys, ","))) //nolint:gosec // the format's key, not a secret
	e.add("zerver_huddle", object{"id": id, "huddle_hash": hex.EncodeToString(hash[:]), "group_size": len(members),
		"recipient": conversationRecipient(id)})
	e.add("zerver_recipient", object{"id": conversationRecipient(id), "type": 3, "type_id": id})
}

// recipient returns the recipient of a direct message.
func (e *zulipExport) recipient(sender realm.UserID, people []realm.UserID, id realm.DirectConversationID) int64 {
	if len(people) > 2 {
		return conversationRecipient(id)
	}
	for _, u := range people {
		if u != sender {
			return userRecipient(u)
		}
	}
	return userRecipient(sender)
}

func (e *zulipExport) addScheduled(s *realm.ScheduledMessage) {
	row := object{"id": s.ID, "sender": s.User, "subject": s.Topic, "content": s.Body.Text,
		"rendered_content": s.Body.HTML, "sending_client": e.clientID(s.Client), "stream": optionalID(s.Channel),
		"realm":               1,
		"scheduled_timestamp": float64(s.At), "read_by_sender": s.ReadBySender, "delivered": false,
		"delivered_message": nil, "has_attachment": s.Content.Attachment, "failed": s.Failed, "failure_message": nil,
		"delivery_type": 1}
	if s.Channel != 0 {
		row["recipient"] = channelRecipient(s.Channel)
	} else {
		talk := e.realm.FindDirectConversation(s.People)
		if talk == 0 && len(s.People) > 2 {
			return // there is no such group yet
		}
		row["recipient"] = e.recipient(s.User, s.People, talk)
	}
	for _, a := range s.Content.Attachments {
		e.scheduledUses[a] = append(e.scheduledUses[a], s.ID)
	}
	e.add("zerver_scheduledmessage", row)
}

// clientID returns the id of a client program, which is added if it has sent no message yet.
func (e *zulipExport) clientID(name string) int64 {
	id, known := e.client[name]
	if !known {
		id = int64(e.realm.Org().NextClient) + int64(len(e.client))
		e.client[name] = id
		e.add("zerver_client", object{"id": id, "name": name})
	}
	return id
}

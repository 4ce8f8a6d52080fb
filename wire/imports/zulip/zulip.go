package zulip

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"parley/wire/imports"
)

// Open returns the organization of an export: a directory with realm.json, at the top or below it.
func Open(archive fs.FS, o imports.Options) ([]imports.Source, error) {
	folder, ok := imports.FindFolder(archive, "realm.json")
	if !ok {
		return nil, errors.New("this is not a Zulip export: it has no realm.json")
	}
	sub, err := fs.Sub(archive, folder)
	return []imports.Source{&source{archive: sub, o: o}}, err
}

// source is the organization of an export.
type source struct {
	archive fs.FS
	o       imports.Options
}

func (s *source) Suffix() string { return "" }

// Open opens a file by its path in the export.
func (s *source) Open(name string) (io.ReadCloser, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return s.archive.Open(name)
}

// reader is the state of one Read.
type reader struct {
	*source
	sink        imports.Sink
	read, total int64
	byDate      bool // messages are ordered by their dates

	realm         row
	defaults      row
	users         []userRow
	botsElsewhere []crossRealmRow
	streams       []streamRow
	recipients    map[int64]recipientRow
	members       map[int64][]string // of groups of direct messages, by recipient
	subscriptions []subscriptionRow
	defaultIn     map[int64]bool // default channels
	groups        []namedGroupRow
	named         map[int64]string // groups by id: the name of a system group, or the key
	groupMembers  map[int64][]string
	subgroups     map[int64][]int64
	clients       map[int64]string
	rows          map[string][]row // small tables by name
	attachments   map[string]*imports.File
	filesOf       map[int64][]*imports.File // by message
	scheduledIn   map[int64][]*imports.File // by scheduled message
	scheduled     []scheduledRow
	reactions     imports.Sorter
	files         []string // of messages
}

func key(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// Read passes all records to the sink.
func (s *source) Read(sink imports.Sink) (err error) {
	r := &reader{source: s, sink: sink, recipients: map[int64]recipientRow{}, members: map[int64][]string{},
		defaultIn: map[int64]bool{}, named: map[int64]string{}, groupMembers: map[int64][]string{},
		subgroups: map[int64][]int64{}, clients: map[int64]string{}, rows: map[string][]row{},
		attachments: map[string]*imports.File{}, filesOf: map[int64][]*imports.File{},
		scheduledIn: map[int64][]*imports.File{}, reactions: s.o.Sorter()}
	defer func() { err = errors.Join(err, r.reactions.Close()) }()
	if r.files, err = r.messageFiles(); err != nil {
		return err
	}
	r.total = r.size()
	if err := tables(s.archive, "realm.json", r.count, r.table, r.skipped); err != nil {
		return err
	}
	if r.realm == nil && len(r.users) == 0 {
		return errors.New("realm.json has no organization")
	}
	if r.realm == nil {
		sink.DropAt("organizations", "its row cannot be read: it has the default settings", "realm.json, zerver_realm")
	}
	for _, step := range []func() error{r.readAttachments, r.putOrganization, r.putEmoji, r.putUsers, r.putGroups,
		r.putChannels, r.putSubscriptions, r.putPersonal, r.putMessages} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// size returns the number of bytes that Read reads.
func (r *reader) size() (total int64) {
	for _, name := range append(slices.Clone(r.files), "realm.json", "attachment.json") {
		if info, err := fs.Stat(r.archive, name); err == nil {
			total += info.Size()
		}
	}
	return total
}

func (r *reader) count(n int) {
	r.read += int64(n)
	r.sink.Size(r.read, r.total)
}

// decode returns a function that appends a row to a list.
func decode[T any](r *reader, to *[]T) rowFunc {
	return with(r, func(v *T, _ string) error {
		*to = append(*to, *v)
		return nil
	})
}

// with returns a function that passes each row to fn, with its place. Values and rows that cannot be read are left out
// and counted.
func with[T any](r *reader, fn func(v *T, place string) error) rowFunc {
	return func(row json.RawMessage, place string) error {
		var v T
		if !imports.DecodeRow(row, &v, func(field, reason string) {
			r.sink.DropAt("values", reason, place+", "+field)
		}) {
			r.sink.DropAt("rows", "not an object: the row is left out", place)
			return nil
		}
		return fn(&v, place)
	}
}

// identified returns a function that appends the rows that have an id. Others could not be told from missing ones.
func identified[T any](r *reader, id func(*T) int64, to *[]T) rowFunc {
	return with(r, func(v *T, place string) error {
		if id(v) <= 0 {
			r.sink.DropAt("rows", "the id is missing: the row is left out", place)
			return nil
		}
		*to = append(*to, *v)
		return nil
	})
}

// smallTables are read as they are.
var smallTables = []string{"zerver_realmemoji", "zerver_realmfilter", "zerver_realmplayground", "zerver_realmdomain",
	"zerver_customprofilefield", "zerver_customprofilefieldvalue", "zerver_usertopic", "zerver_muteduser",
	"zerver_alertword", "zerver_savedsnippet", "zerver_onboardingstep", "zerver_userstatus", "zerver_service"}

// table returns the function for the rows of a table of realm.json.
func (r *reader) table(name string) rowFunc {
	switch name {
	case "zerver_realm":
		return with(r, func(v *row, place string) error {
			if r.realm != nil {
				r.sink.DropAt("organizations", "a second one", place)
				return nil
			}
			r.realm = *v
			return nil
		})
	case "zerver_realmuserdefault":
		return with(r, func(v *row, _ string) error { r.defaults = *v; return nil })
	case "zerver_userprofile", "zerver_userprofile_mirrordummy":
		return identified(r, func(u *userRow) int64 { return u.ID }, &r.users)
	case "zerver_userprofile_crossrealm":
		return identified(r, func(u *crossRealmRow) int64 { return u.ID }, &r.botsElsewhere)
	case "zerver_stream":
		return identified(r, func(s *streamRow) int64 { return s.ID }, &r.streams)
	case "zerver_recipient":
		return with(r, func(v *recipientRow, place string) error {
			if v.ID <= 0 || v.TypeID <= 0 || r.recipients[v.ID].ID != 0 {
				r.sink.DropAt("rows", "the id is missing or used twice: the row is left out", place)
				return nil
			}
			r.recipients[v.ID] = *v
			return nil
		})
	case "zerver_subscription":
		return decode(r, &r.subscriptions)
	case "zerver_defaultstream":
		return with(r, func(v *struct {
			Stream int64 `json:"stream"`
		}, _ string) error {
			r.defaultIn[v.Stream] = true
			return nil
		})
	case "zerver_namedusergroup":
		return identified(r, (*namedGroupRow).id, &r.groups)
	case "zerver_usergroupmembership":
		return with(r, func(v *struct {
			Group int64 `json:"user_group"`
			User  int64 `json:"user_profile"`
		}, _ string) error {
			r.groupMembers[v.Group] = append(r.groupMembers[v.Group], key(v.User))
			return nil
		})
	case "zerver_groupgroupmembership":
		return with(r, func(v *struct {
			Group    int64 `json:"supergroup"`
			Subgroup int64 `json:"subgroup"`
		}, _ string) error {
			r.subgroups[v.Group] = append(r.subgroups[v.Group], v.Subgroup)
			return nil
		})
	case "zerver_client":
		return with(r, func(v *struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		}, _ string) error {
			r.clients[v.ID] = v.Name
			return nil
		})
	case "zerver_scheduledmessage":
		return decode(r, &r.scheduled)
	case "zerver_reaction":
		return with(r, r.addReaction)
	}
	if slices.Contains(smallTables, name) {
		return with(r, func(v *row, place string) error {
			if name == "zerver_realmemoji" && number((*v)["id"]) <= 0 {
				r.sink.DropAt("emoji", "the id is missing", place)
				return nil
			}
			r.rows[name] = append(r.rows[name], *v)
			return nil
		})
	}
	return nil
}

// withoutUse are tables that have nothing to import: they are derived, or describe the exporting server.
var withoutUse = []string{"zerver_usergroup", "zerver_huddle", "zerver_useractivity", "zerver_useractivityinterval",
	"zerver_presencesequence", "zerver_realmexport", "zerver_realmauthenticationmethod"}

// reasons say why a table is left out.
var reasons = map[string]string{
	"zerver_userpresence":          "presence is not imported",
	"zerver_realmauditlog":         "Parley has no audit log of other servers",
	"zerver_onboardingusermessage": "onboarding messages are ordinary messages after an import",
	"zerver_botstoragedata":        "the storage of bots is not imported",
	"zerver_botconfigdata":         "the configuration of bots is not imported",
}

func (r *reader) skipped(name string, rows int) {
	if name == "sort_by_date" && rows == isTrue {
		r.byDate = true
		return
	}
	if rows <= 0 || slices.Contains(withoutUse, name) {
		return
	}
	reason := reasons[name]
	if reason == "" {
		reason = "unknown table"
	}
	r.sink.Drop(name, reason, rows)
}

func text(v any) string  { s, _ := v.(string); return s }
func number(v any) int64 { n, _ := v.(float64); return int64(n) }
func boolean(v any) bool { b, _ := v.(bool); return b }

// groupValue returns the value of a permission setting: the id of a group that has a name or is anonymous.
func (r *reader) groupValue(v any) (g imports.GroupValue, ok bool) {
	id, ok := v.(float64)
	if !ok {
		return g, false
	}
	if name := r.named[int64(id)]; name != "" {
		return imports.GroupValue{Group: name}, true
	}
	g.Members = r.groupMembers[int64(id)]
	for _, s := range r.subgroups[int64(id)] {
		g.Groups = append(g.Groups, r.groupKey(s))
	}
	return g, true
}

func (r *reader) groupKey(id int64) string {
	if name := r.named[id]; name != "" {
		return name
	}
	return "group " + key(id)
}

// groupSettings returns the permission settings of a row.
func (r *reader) groupSettings(v row, rename map[string]string, drop ...string) map[string]imports.GroupValue {
	out := map[string]imports.GroupValue{}
	for name, value := range v {
		if !strings.HasPrefix(name, "can_") && !strings.HasSuffix(name, "_group") || slices.Contains(drop, name) {
			continue
		}
		if g, ok := r.groupValue(value); ok {
			if to := rename[name]; to != "" {
				name = to
			}
			out[name] = g
		}
	}
	return out
}

// notSettings are columns of an organization that are no settings, or have another place.
var notSettings = []string{"id", "name", "description", "string_id", "uuid", "uuid_owner_secret",
	"push_notifications_enabled", "push_notifications_enabled_end_timestamp", "date_created", "scheduled_deletion_date",
	"demo_organization_scheduled_deletion_date", "deactivated", "deactivated_redirect", "_max_invites",
	"message_visibility_limit", "first_visible_message_id", "plan_type", "custom_upload_quota_gb", "icon_source",
	"icon_version", "logo_source", "logo_version", "night_logo_source", "night_logo_version", "mandatory_topics",
	"zulip_update_announcements_level", "owner_full_content_access"}

// streamSettings are columns with the id of a channel.
var streamSettings = []string{"moderation_request_channel", "new_stream_announcements_stream",
	"signup_announcements_stream", "zulip_update_announcements_stream"}

// historyVisibility are the values of message_edit_history_visibility_policy.
var historyVisibility = map[int64]string{1: "all", 2: "moves", 3: "none"}

func (r *reader) putOrganization() error {
	for _, g := range r.groups {
		id := g.id()
		if g.IsSystem {
			r.named[id] = g.Name
		} else {
			r.named[id] = "group " + key(id)
		}
	}
	o := &imports.Organization{Name: text(r.realm["name"]), Description: text(r.realm["description"]),
		Created: number(r.realm["date_created"]), Product: "ZulipImport", OwnMarks: true, Settings: map[string]any{},
		GroupSettings: r.groupSettings(r.realm, nil), UserDefaults: r.settings(r.defaults)}
	for name, v := range r.realm {
		switch {
		case slices.Contains(notSettings, name), strings.HasSuffix(name, "_group"), strings.HasPrefix(name, "can_"):
		case slices.Contains(streamSettings, name):
			name += "_id"
			if strings.HasPrefix(name, "moderation") {
				name = "moderation_request_channel_id"
			}
			o.Settings[name] = key(number(v))
		case name == "message_edit_history_visibility_policy":
			o.Settings[name] = historyVisibility[number(v)]
		case name == "giphy_rating":
			o.Settings["gif_rating_policy"] = v
		case name == "topics_policy" && text(v) == "":
		default:
			o.Settings[name] = v
		}
	}
	if boolean(r.realm["mandatory_topics"]) {
		o.Settings["topics_policy"] = "disable_empty_topic"
	}
	for _, d := range r.rows["zerver_realmdomain"] {
		o.Domains = append(
			o.Domains,
			imports.Domain{ID: number(d["id"]), Name: text(d["domain"]), Subdomains: boolean(d["allow_subdomains"])},
		)
	}
	linkifiers := r.rows["zerver_realmfilter"]
	slices.SortStableFunc(linkifiers, func(a, b row) int { return int(number(a["order"]) - number(b["order"])) })
	for _, l := range linkifiers {
		o.Linkifiers = append(
			o.Linkifiers,
			imports.Linkifier{ID: number(l["id"]), Pattern: text(l["pattern"]), Template: text(l["url_template"])},
		)
	}
	for _, p := range r.rows["zerver_realmplayground"] {
		o.Playgrounds = append(o.Playgrounds, imports.Playground{ID: number(p["id"]), Name: text(p["name"]),
			Language: text(p["pygments_language"]), Template: text(p["url_template"])})
	}
	fields := r.rows["zerver_customprofilefield"]
	slices.SortStableFunc(fields, func(a, b row) int { return int(number(a["order"]) - number(b["order"])) })
	for _, f := range fields {
		editable, known := f["editable_by_user"]
		o.ProfileFields = append(
			o.ProfileFields,
			imports.ProfileField{ID: number(f["id"]), Key: key(number(f["id"])), Name: text(f["name"]),
				Hint: text(f["hint"]), Type: int(number(f["field_type"])), Data: text(f["field_data"]),
				Summary: boolean(f["display_in_profile_summary"]), Required: boolean(f["required"]),
				Editable: !known || boolean(editable), Matching: boolean(f["use_for_user_matching"])},
		)
	}
	r.pictures(o)
	return r.sink.Put(o)
}

// pictures finds the icon and the logos.
func (r *reader) pictures(o *imports.Organization) {
	for _, f := range r.records("realm_icons") {
		file := &imports.File{Path: path.Join("realm_icons", f.Path)}
		base, _, _ := strings.Cut(path.Base(f.Path), ".")
		original := strings.HasSuffix(f.Path, ".original")
		for _, p := range []struct {
			name, source string
			to           **imports.File
		}{{"icon", "icon_source", &o.Icon}, {"logo", "logo_source", &o.Logo},
			{"night_logo", "night_logo_source", &o.NightLogo}} {
			if base == p.name && text(r.realm[p.source]) == "U" && (original || *p.to == nil) {
				*p.to = file
			}
		}
	}
}

// records returns the rows of a folder's records.json; none if it is missing or invalid.
func (r *reader) records(folder string) (list []fileRow) {
	f, err := r.archive.Open(path.Join(folder, "records.json"))
	if err != nil {
		return nil
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, maxRecords))
	if expect(d, json.Delim('[')) != nil {
		return nil
	}
	for n := 0; d.More(); n++ {
		var v fileRow
		var row json.RawMessage
		place := path.Join(folder, "records.json") + ", index " + strconv.Itoa(n)
		if d.Decode(&row) != nil {
			r.sink.DropAt("files", "damaged: the rest of the file is left out", place)
			return list
		}
		if !imports.DecodeRow(row, &v, func(field, reason string) {
			r.sink.DropAt("values", reason, place+", "+field)
		}) {
			r.sink.DropAt("rows", "not an object: the row is left out", place)
			continue
		}
		if i := strings.Index(v.Path, "/"+folder+"/"); i >= 0 && path.IsAbs(v.Path) {
			v.Path = v.Path[i+len(folder)+2:] // some converters wrote absolute paths
		}
		list = append(list, v)
	}
	return list
}

// maxRecords limits a file records.json in bytes.
const maxRecords = 4 << 30

// settings returns the values of a row that may be settings.
func (r *reader) settings(v row) map[string]any {
	out := map[string]any{}
	for name, x := range v {
		if !slices.Contains(notUserSettings, name) {
			out[name] = x
		}
	}
	return out
}

// notUserSettings are columns of users that are no settings, or have another place.
var notUserSettings = []string{"id", "last_login", "is_superuser", "delivery_email", "email", "realm", "recipient",
	"full_name", "date_joined", "tos_version", "bot_type", "bot_owner", "role", "last_active_message_id",
	"last_reminder", "rate_limits", "default_sending_stream", "default_events_register_stream",
	"default_all_public_streams", "timezone", "avatar_source", "avatar_version", "avatar_hash", "zoom_token", "groups",
	"user_permissions", "is_active", "is_bot", "is_mirror_dummy", "is_staff", "is_billing_admin", "long_term_idle",
	"can_forge_sender", "can_create_users", "can_change_user_emails", "short_name", "uuid", "password", "api_key",
	"third_party_api_state", "is_imported_stub", "is_deleted", "left_side_userlist_width"}

func (r *reader) putEmoji() error {
	images := map[string]string{}
	for _, f := range r.records("emoji") {
		if f.Name != "" && (images[f.Name] == "" || strings.HasSuffix(f.Path, ".original")) {
			images[f.Name] = path.Join("emoji", f.Path)
		}
	}
	for _, e := range r.rows["zerver_realmemoji"] {
		err := r.sink.Put(
			&imports.Emoji{
				ID:          number(e["id"]),
				Key:         key(number(e["id"])),
				Name:        text(e["name"]),
				Author:      key(number(e["author"])),
				Deactivated: boolean(e["deactivated"]),
				Animated:    boolean(e["is_animated"]),
				Image:       imports.File{Path: images[text(e["file_name"])]},
			},
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// systemNames are the system bots by the beginning of their address.
var systemNames = map[string]string{"notification-bot": "notification", "welcome-bot": "welcome",
	"emailgateway": "gateway"}

func (r *reader) putUsers() error {
	avatars := map[string]string{}
	for _, f := range r.records("avatars") {
		id := strings.Trim(string(f.User), `"`)
		if avatars[id] == "" || strings.HasSuffix(f.Path, ".original") {
			avatars[id] = path.Join("avatars", f.Path)
		}
	}
	profile := map[int64]map[string]string{}
	people := map[int64]bool{}
	for _, f := range r.rows["zerver_customprofilefield"] {
		people[number(f["id"])] = number(f["field_type"]) == 6
	}
	for _, v := range r.rows["zerver_customprofilefieldvalue"] {
		u, field, value := number(v["user_profile"]), number(v["field"]), text(v["value"])
		if people[field] { // a JSON list of ids
			value = strings.Trim(strings.ReplaceAll(value, " ", ""), "[]")
		}
		if profile[u] == nil {
			profile[u] = map[string]string{}
		}
		profile[u][key(field)] = value
	}
	services := map[int64][]imports.Service{}
	for _, v := range r.rows["zerver_service"] {
		u := number(v["user_profile"])
		services[u] = append(services[u], imports.Service{Name: text(v["name"]), URL: text(v["base_url"]),
			Interface: int(number(v["interface"]))})
	}
	known := map[int64]bool{}
	for _, b := range r.botsElsewhere {
		name, _, _ := strings.Cut(b.Email, "@")
		system := systemNames[name]
		if system == "" {
			system = "notification"
		}
		known[b.ID] = true
		if err := r.sink.Put(&imports.User{Key: key(b.ID), System: system}); err != nil {
			return err
		}
	}
	slices.SortStableFunc(r.users, func(a, b userRow) int { return int(a.ID - b.ID) })
	for i := range r.users {
		u := &r.users[i]
		if known[u.ID] {
			r.sink.DropAt("users", "a second one with the same id", "user "+key(u.ID))
			continue
		}
		known[u.ID] = true
		v := &imports.User{Key: key(u.ID), ID: u.ID, Email: cmp.Or(u.DeliveryEmail, u.Email), Name: u.FullName,
			Role: u.Role, Active: u.IsActive && !u.IsMirrorDummy, Stub: u.IsImportedStub,
			Deleted:  u.IsDeleted || u.IsMirrorDummy && strings.HasPrefix(u.FullName+" ", "Deleted user "),
			BotOwner: key(u.BotOwner), Joined: int64(u.DateJoined), Timezone: u.Timezone,
			Settings: r.settings(u.settings),
			Gravatar: u.AvatarSource == "G", AvatarVersion: u.AvatarVersion, Profile: profile[u.ID],
			Services: services[u.ID], SendTo: key(u.DefaultSendingStream), Register: key(u.DefaultEventsRegisterStream),
			AllPublic: u.DefaultAllPublicStreams}
		if v.Stub = v.Stub || u.IsMirrorDummy && !v.Deleted; u.IsBot {
			v.Bot = max(u.BotType, 1)
		}
		if file := avatars[key(u.ID)]; file != "" && u.AvatarSource == "U" {
			v.Avatar = &imports.File{Path: file}
		}
		if err := r.sink.Put(v); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) putGroups() error {
	for i := range r.groups {
		g := &r.groups[i]
		if g.IsSystem {
			continue
		}
		id := g.id()
		v := &imports.Group{Key: "group " + key(id), ID: id, Name: g.Name, Description: g.Description,
			Created: int64(g.DateCreated), Creator: key(g.Creator), Deactivated: g.Deactivated,
			Members: r.groupMembers[id], Settings: r.groupSettings(g.settings, nil)}
		for _, s := range r.subgroups[id] {
			v.Subgroups = append(v.Subgroups, r.groupKey(s))
		}
		if err := r.sink.Put(v); err != nil {
			return err
		}
	}
	return nil
}

// channelSettings are columns with another name than the setting has.
var channelSettings = map[string]string{"can_create_topics_group": "can_create_topic_group"}

func (r *reader) putChannels() error {
	for i := range r.streams {
		s := &r.streams[i]
		c := &imports.Channel{Key: key(s.ID), ID: s.ID, Name: s.Name, Description: s.Description,
			Created: int64(s.DateCreated), Creator: key(s.Creator), Private: s.InviteOnly, WebPublic: s.IsWebPublic,
			History: s.History == nil || *s.History, Archived: s.Deactivated, Default: r.defaultIn[s.ID],
			Retention: s.RetentionDays, TopicsPolicy: text(s.TopicsPolicy),
			Settings: r.groupSettings(s.groupSettings, channelSettings)}
		if s.StreamPostPolicy == 4 && len(r.groups) == 0 {
			c.Settings["can_send_message_group"] = imports.GroupValue{Group: "role:moderators"}
		}
		if err := r.sink.Put(c); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) putSubscriptions() error {
	for i := range r.subscriptions {
		s := &r.subscriptions[i]
		to, ok := r.recipients[s.Recipient]
		switch {
		case !ok:
			r.sink.Drop("subscriptions", "the recipient is missing", 1)
		case to.Type == toGroup:
			r.members[s.Recipient] = append(r.members[s.Recipient], key(s.User))
		case to.Type == toChannel:
			err := r.sink.Put(&imports.Subscription{User: key(s.User), Channel: key(to.TypeID), Active: s.Active,
				Color: s.Color, Muted: s.IsMuted, Pinned: s.Pinned, Desktop: s.Desktop, Audible: s.Audible,
				Push:  s.Push,
				Email: s.Email, Wildcard: s.Wildcard})
			if err != nil {
				return err
			}
		}
	}
	r.subscriptions = nil
	return nil
}

func (r *reader) putPersonal() error {
	var list []imports.Record
	for _, v := range r.rows["zerver_usertopic"] {
		list = append(list, &imports.TopicPolicy{User: key(number(v["user_profile"])),
			Channel: key(number(v["stream"])), Topic: text(v["topic_name"]),
			Policy: int(number(v["visibility_policy"])), Since: number(v["last_updated"])})
	}
	for _, v := range r.rows["zerver_muteduser"] {
		list = append(list, &imports.MutedUser{User: key(number(v["user_profile"])),
			Muted: key(number(v["muted_user"])), Since: number(v["date_muted"])})
	}
	for _, v := range r.rows["zerver_alertword"] {
		list = append(list, &imports.AlertWord{User: key(number(v["user_profile"])), Word: text(v["word"])})
	}
	for _, v := range r.rows["zerver_savedsnippet"] {
		list = append(list, &imports.Snippet{User: key(number(v["user_profile"])), Title: text(v["title"]),
			Content: text(v["content"]), Created: number(v["date_created"])})
	}
	for _, v := range r.rows["zerver_onboardingstep"] {
		list = append(list, &imports.Onboarding{User: key(number(v["user"])), Step: text(v["onboarding_step"])})
	}
	for _, v := range r.rows["zerver_userstatus"] {
		list = append(list, &imports.Status{User: key(number(v["user_profile"])), Text: text(v["status_text"]),
			EmojiName: text(v["emoji_name"]), EmojiCode: text(v["emoji_code"]), EmojiType: text(v["reaction_type"])})
	}
	for i := range r.scheduled {
		s := &r.scheduled[i]
		if s.Delivered || s.Failed || s.Type != 1 {
			r.sink.Drop("scheduled messages", "delivered, failed or a reminder", 1)
			continue
		}
		v := &imports.Scheduled{Sender: key(s.Sender), Text: s.Content, At: int64(s.At), Client: r.clients[s.Client]}
		if !r.address(s.Recipient, s.Sender, &v.Channel, &v.People) {
			r.sink.Drop("scheduled messages", "the recipient is missing", 1)
			continue
		}
		if v.Channel != "" {
			v.Topic = s.Subject
		}
		for _, f := range r.scheduledIn[s.ID] {
			v.Files = append(v.Files, *f)
		}
		list = append(list, v)
	}
	for _, v := range list {
		if err := r.sink.Put(v); err != nil {
			return err
		}
	}
	r.rows, r.scheduled = nil, nil
	return nil
}

// address finds the channel or the participants of a message.
func (r *reader) address(recipient, sender int64, channel *string, people *[]string) bool {
	to, ok := r.recipients[recipient]
	if !ok {
		return false
	}
	switch to.Type {
	case toChannel:
		*channel = key(to.TypeID)
	case toUser:
		*people = []string{key(to.TypeID), key(sender)}
	case toGroup:
		*people = r.members[recipient]
	}
	return *channel != "" || len(*people) > 0
}

package migration

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/imports"
)

// Limits of texts in records, in code points. They are the protocol's.
const (
	maxName        = 100
	maxChannelName = realm.MaxChannelName
	maxDescription = 1024
	maxWord        = 100
	maxPicture     = 64 << 20 // bytes of an avatar or an emoji
	maxUpload      = 1 << 40  // bytes of a file
	// maxKeptID is the largest id of a user, channel or group that is kept: rows up to it are found by number.
	maxKeptID = 1 << 20
	// firstUserID is the first id that users have; lower ones belong to system bots.
	firstUserID = imports.FirstUserID
)

// systemBots are the system bots by the names that formats use.
var systemBots = map[string]realm.UserID{
	"notification": realm.NotificationBot, "welcome": realm.WelcomeBot, "gateway": realm.EmailGateway,
}

// begin builds the rows of everything but messages.
func (x *importer) begin() error {
	if x.org == nil {
		return errors.New("the archive has no organization")
	}
	x.rowsOut = bufio.NewWriterSize(x.rows, 1<<20)
	x.addresses = map[string]string{}
	name := clean(x.org.Name, maxName)
	if name == "" || realm.CheckOrganizationName(name) != nil {
		name = x.subdomain
	}
	created := x.org.Created
	if created <= 0 {
		created = x.began.Unix()
	}
	x.build = realm.NewImport(x.id,
		realm.Founded{StringID: x.subdomain, Name: name, UUID: x.uuid(), At: created}, x.emitRow)
	for _, step := range []func() error{x.chooseIDs, x.checkAddresses, x.addUsers, x.addGroups, x.addChannels,
		x.addOrganization, x.addEmoji, x.addSubscriptions, x.addPersonal} {
		if err := step(); err != nil {
			return err
		}
	}
	x.build.Index()
	x.renderer, x.newest = &wire.Renderer{}, map[topicKey]realm.MessageID{}
	x.nextID = 1
	return x.describe()
}

func (x *importer) uuid() string {
	h := x.random("uuid", 32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// clean returns a text without unprintable characters and invalid bytes, cut to a number of code points.
func clean(s string, limit int) string {
	s = strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' {
			return ' '
		}
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return -1
		}
		return c
	}, s)
	return strings.TrimSpace(imports.FirstRunes(s, limit))
}

// chooseID returns the wanted id if it is free, otherwise the next one.
func chooseID[T ~int64](used map[T]bool, wanted int64, first T) T {
	id := T(wanted)
	if id < first || id >= maxKeptID || used[id] {
		id = first
		for used[id] {
			id++
		}
	}
	used[id] = true
	return id
}

// chooseIDs gives every user, group, channel and emoji its id. Wanted ids come first, so that others do not take them.
func (x *importer) chooseIDs() error {
	x.userIDs, x.groupIDs = map[string]realm.UserID{}, map[string]realm.GroupID{}
	x.channelID, x.emojiIDs, x.emojiKeys = map[string]realm.ChannelID{}, map[string]int64{}, map[string]string{}
	for i, g := range realm.SystemGroups {
		x.groupIDs[g.Name] = realm.GroupID(i + 1)
	}
	const twice = "a second one with the same id"
	x.users = slices.DeleteFunc(x.users, func(u imports.User) bool {
		if _, known := x.userIDs[u.Key]; known {
			x.DropAt("users", twice, "user "+u.Key)
			return true
		}
		x.userIDs[u.Key] = systemBots[u.System]
		return u.System != ""
	})
	x.groups = slices.DeleteFunc(x.groups, func(g imports.Group) bool {
		_, known := x.groupIDs[g.Key]
		if known {
			x.DropAt("groups", twice, g.Key)
		} else {
			x.groupIDs[g.Key] = 0
		}
		return known
	})
	x.channels = slices.DeleteFunc(x.channels, func(c imports.Channel) bool {
		_, known := x.channelID[c.Key]
		if x.channelID[c.Key] = 0; known {
			x.DropAt("channels", twice, "channel "+c.Key)
		}
		return known
	})
	usedUsers := map[realm.UserID]bool{}
	eachWanted(x.users, func(u *imports.User) int64 { return u.ID }, func(u *imports.User) {
		x.userIDs[u.Key] = chooseID(usedUsers, u.ID, firstUserID)
	})
	usedGroups, firstGroup := map[realm.GroupID]bool{}, realm.GroupID(len(realm.SystemGroups)+1)
	eachWanted(x.groups, func(g *imports.Group) int64 { return g.ID }, func(g *imports.Group) {
		x.groupIDs[g.Key] = chooseID(usedGroups, g.ID, firstGroup)
	})
	usedChannels := map[realm.ChannelID]bool{}
	eachWanted(x.channels, func(c *imports.Channel) int64 { return c.ID }, func(c *imports.Channel) {
		x.channelID[c.Key] = chooseID(usedChannels, c.ID, 1)
	})
	return nil
}

// eachWanted calls fn with the rows that want an id, then with the others.
func eachWanted[T any](rows []T, wanted func(*T) int64, fn func(*T)) {
	for _, first := range []bool{true, false} {
		for i := range rows {
			if (wanted(&rows[i]) > 0) == first {
				fn(&rows[i])
			}
		}
	}
}

// checkAddresses gives placeholders to the accounts whose addresses are missing, invalid or those of other accounts. An
// account is taken over by an email to its address, so a placeholder has a domain that does not exist.
func (x *importer) checkAddresses() error {
	seen := map[string]bool{}
	for i := range x.users {
		u := &x.users[i]
		u.Email = strings.TrimSpace(u.Email)
		bad := ""
		switch {
		case u.Email == "":
			x.changed("users", "no address in the export: the account has a placeholder address")
		case !realm.ValidEmail(u.Email):
			bad = "not an email address: the account has a placeholder address"
		case seen[realm.FoldEmail(u.Email)]:
			bad = "another account has the same address: the account has a placeholder address"
		default:
			seen[realm.FoldEmail(u.Email)] = true
			continue
		}
		if bad != "" {
			x.DropAt("values", bad, fmt.Sprintf("user %s, email %q", u.Key, u.Email))
		}
		u.Email = fmt.Sprintf("user%d@%s.invalid", x.userIDs[u.Key], strings.Trim("import."+x.subdomain, "."))
	}
	return nil
}

func (x *importer) addUsers() error {
	for i := range x.users {
		in := &x.users[i]
		u := &realm.User{
			ID:            x.userIDs[in.Key],
			Email:         in.Email,
			Name:          clean(in.Name, maxName),
			Role:          realm.Role(in.Role),
			Bot:           realm.BotType(in.Bot),
			BotOwner:      x.userIDs[in.BotOwner],
			Active:        in.Active,
			Deleted:       in.Deleted,
			ImportedStub:  in.Stub,
			Joined:        in.Joined,
			LoggedIn:      !in.Stub,
			Timezone:      clean(in.Timezone, 40),
			Avatar:        "J",
			AvatarVersion: max(in.AvatarVersion, 1),
			Profile:       realm.Profile{},
			ProfileHTML:   realm.Profile{},
			Settings:      x.settings(realm.UserSettings, in.Settings, "user settings"),
		}
		if u.Name == "" {
			u.Name = "User " + u.ID.String()
		}
		if !slices.Contains([]realm.Role{realm.Owner, realm.Administrator, realm.Moderator, realm.Member, realm.Guest},
			u.Role) {
			u.Role = realm.Member
			x.changed("users", "unknown role: the account is a member")
		}
		if u.Bot < realm.Human || u.Bot > realm.EmbeddedBot {
			x.changedAt("users", "unknown type of bot: the account is a generic bot", "user "+in.Key)
			u.Bot = realm.GenericBot
		}
		if u.Joined <= 0 {
			u.Joined = x.began.Unix()
		}
		if in.Gravatar {
			u.Avatar = "G"
		}
		if in.Avatar != nil {
			if err := x.addPicture(in.Avatar, "avatars", Files.SaveAvatar, func(name string) {
				u.Avatar, u.AvatarFile = "U", name
			}); err != nil {
				return err
			}
		}
		x.build.Put(u)
		if u.IsBot() {
			x.addBot(u, in)
		}
	}
	return nil
}

func (x *importer) addBot(u *realm.User, in *imports.User) {
	d := &realm.BotDetails{Sending: x.channelID[in.SendTo], Register: x.channelID[in.Register], AllPublic: in.AllPublic}
	for i, s := range in.Services {
		d.Services = append(d.Services, realm.Service{Name: clean(s.Name, maxName), URL: s.URL,
			Interface: max(s.Interface, 1), Token: x.random("service "+in.Key+strconv.Itoa(i), 32)})
	}
	x.build.PutOf(u.ID, d)
}

// settings returns the valid values that differ from the defaults.
func (x *importer) settings(rules []realm.Setting, values map[string]any, kind string) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(rules, func(r realm.Setting) bool { return r.Name == name })
		if i < 0 {
			x.Drop(kind, "no such setting: "+name, 1)
			continue
		}
		v, ok := settingValue(rules[i], values[name])
		switch {
		case !ok:
			x.Drop(kind, "invalid value of "+name, 1)
		case v != rules[i].Default:
			out[name] = v
		}
	}
	return out
}

// settingValue returns a value in its stored type.
func settingValue(r realm.Setting, v any) (any, bool) {
	switch n := v.(type) {
	case float64:
		v = int64(n)
	case int:
		v = int64(n)
	case string:
		if r.MaxLength > 0 && utf8.RuneCountInString(n) > r.MaxLength || !utf8.ValidString(n) {
			return nil, false
		}
	case nil:
		return nil, r.Null
	}
	if r.Allowed != nil && !slices.Contains(r.Allowed, v) {
		return nil, false
	}
	if r.Default == nil {
		return v, true
	}
	same := fmt.Sprintf("%T", v) == fmt.Sprintf("%T", r.Default)
	return v, same
}

// groupValue returns the value of a permission setting with ids; false if it names something that does not exist.
func (x *importer) groupValue(v imports.GroupValue) (g realm.GroupValue, ok bool) {
	if v.Group != "" {
		id, ok := x.groupIDs[v.Group]
		return realm.GroupValue{Group: id}, ok
	}
	for _, u := range v.Members {
		id, ok := x.userIDs[u]
		if !ok {
			return g, false
		}
		g.Members = append(g.Members, id)
	}
	for _, s := range v.Groups {
		id, ok := x.groupIDs[s]
		if !ok {
			return g, false
		}
		g.Subgroups = append(g.Subgroups, id)
	}
	slices.Sort(g.Members)
	slices.Sort(g.Subgroups)
	g.Members, g.Subgroups = slices.Compact(g.Members), slices.Compact(g.Subgroups)
	return g, true
}

// organizationSettings is the kind of the organization's settings in the report.
const organizationSettings = "organization settings"

func (x *importer) groupValues(
	rules []realm.GroupSettingRule, values map[string]imports.GroupValue, kind string,
) realm.GroupValues {
	out := realm.GroupValues{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(rules, func(r realm.GroupSettingRule) bool { return r.Name == name })
		if i < 0 {
			x.Drop(kind, "no such setting: "+name, 1)
			continue
		}
		v, ok := x.groupValue(values[name])
		switch {
		case !ok:
			x.Drop(kind, "its value names a missing user or group: "+name, 1)
		case v.Group == 0 || v.Group != x.groupIDs[rules[i].Default] || kind != organizationSettings:
			out[name] = v // an organization has only the values that differ from the defaults
		}
	}
	return out
}

func (x *importer) addGroups() error {
	names := map[string]bool{}
	for _, g := range realm.SystemGroups {
		names[g.Name] = true
	}
	x.dropMissingMembers()
	x.dropCycles()
	for i := range x.groups {
		in := &x.groups[i]
		v, ok := x.groupValue(imports.GroupValue{Members: in.Members, Groups: in.Subgroups})
		if !ok {
			return fmt.Errorf("BUG: user group %q names a missing user or group", in.Name)
		}
		g := &realm.Group{ID: x.groupIDs[in.Key], Name: x.unique(names, clean(in.Name, maxName), "groups", maxName),
			Description: clean(in.Description, maxDescription), Created: in.Created, Creator: x.userIDs[in.Creator],
			Deactivated: in.Deactivated, Members: v.Members, Subgroups: v.Subgroups,
			Settings: x.groupValues(realm.GroupRules, in.Settings, "group settings")}
		x.build.Put(g)
	}
	return nil
}

// dropMissingMembers removes the members and subgroups that are not imported.
func (x *importer) dropMissingMembers() {
	for i := range x.groups {
		g := &x.groups[i]
		g.Members = slices.DeleteFunc(slices.Clone(g.Members), func(key string) bool {
			_, known := x.userIDs[key]
			if !known {
				x.DropAt("group members", "the user is missing", g.Key)
			}
			return !known
		})
		g.Subgroups = slices.DeleteFunc(slices.Clone(g.Subgroups), func(key string) bool {
			_, known := x.groupIDs[key]
			if !known {
				x.DropAt("group members", "the group is missing", g.Key)
			}
			return !known
		})
	}
}

// dropCycles removes the memberships by which groups contain themselves.
func (x *importer) dropCycles() {
	groups := map[string]*imports.Group{}
	for i := range x.groups {
		groups[x.groups[i].Key] = &x.groups[i]
	}
	state := map[string]int{} // 1: being visited, 2: done
	type frame struct {
		key  string
		next int
	}
	for _, start := range slices.Sorted(maps.Keys(groups)) {
		stack := []frame{{key: start}}
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			g := groups[f.key] // nil: a system group
			if state[f.key] == 0 {
				state[f.key] = 1
			}
			if g == nil || state[f.key] == 2 || f.next == len(g.Subgroups) {
				state[f.key] = 2
				stack = stack[:len(stack)-1]
				continue
			}
			switch child := g.Subgroups[f.next]; state[child] {
			case 1:
				x.DropAt("group members", "the group contains itself", g.Key)
				g.Subgroups = slices.Delete(g.Subgroups, f.next, f.next+1)
			case 0:
				f.next++
				stack = append(stack, frame{key: child})
			default:
				f.next++
			}
		}
	}
}

// unique returns a name that no other row of its kind has.
func (x *importer) unique(names map[string]bool, name, kind string, limit int) string {
	if name == "" {
		name = "unnamed"
	}
	base := name
	for n := 2; names[strings.ToLower(name)]; n++ {
		ending := " (" + strconv.Itoa(n) + ")"
		name = imports.FirstRunes(base, limit-len(ending)) + ending
	}
	if name != base {
		x.changed(kind, "two had the same name: one was renamed")
	}
	names[strings.ToLower(name)] = true
	return name
}

func (x *importer) addChannels() error {
	names := map[string]bool{}
	for i := range x.channels {
		in := &x.channels[i]
		name := clean(in.Name, maxChannelName)
		if name != in.Name {
			x.changed("channels", "the name was too long or had invalid characters")
		}
		c := &realm.Channel{ID: x.channelID[in.Key], Name: x.unique(names, name, "channels", maxChannelName),
			Description: clean(in.Description, maxDescription), Created: in.Created, Creator: x.userIDs[in.Creator],
			Private: in.Private, WebPublic: in.WebPublic && !in.Private, History: in.History || !in.Private,
			Archived: in.Archived, Retention: in.Retention, TopicsPolicy: in.TopicsPolicy, LastActive: in.Created,
			Default:  in.Default && !in.Private && !in.Archived,
			Settings: x.groupValues(realm.ChannelRules, in.Settings, "channel settings")}
		if !slices.Contains([]string{"allow_empty_topic", "disable_empty_topic", "empty_topic_only"}, c.TopicsPolicy) {
			c.TopicsPolicy = "inherit"
		}
		if c.Created <= 0 {
			c.Created, c.LastActive = x.began.Unix(), x.began.Unix()
		}
		if c.Default {
			x.build.Org().DefaultChannels = append(x.build.Org().DefaultChannels, c.ID)
		}
		x.build.Put(c)
	}
	slices.Sort(x.build.Org().DefaultChannels)
	return nil
}

// channelSettings are the settings whose value is a channel. Formats give the key of the channel.
var channelSettings = []string{"moderation_request_channel_id", "new_stream_announcements_stream_id",
	"signup_announcements_stream_id", "zulip_update_announcements_stream_id"}

func (x *importer) addOrganization() error {
	o, in := x.build.Org(), x.org
	o.Description = clean(in.Description, maxDescription)
	for _, name := range channelSettings {
		if key, ok := in.Settings[name].(string); ok {
			delete(in.Settings, name)
			if id := x.channelID[key]; id != 0 {
				in.Settings[name] = int64(id)
			}
		}
	}
	o.Settings = x.settings(realm.OrgSettings, in.Settings, organizationSettings)
	o.GroupSettings = x.groupValues(realm.OrgGroupSettings, in.GroupSettings, organizationSettings)
	o.UserDefaults = x.settings(realm.UserSettings, in.UserDefaults, "default user settings")
	used := map[string]map[int64]bool{"domain": {}, "linkifier": {}, "playground": {}, "field": {}}
	for _, d := range in.Domains {
		x.build.Put(&realm.Domain{ID: chooseID(used["domain"], d.ID, 1), Name: d.Name, Subdomains: d.Subdomains})
	}
	for i, l := range in.Linkifiers {
		x.build.Put(
			&realm.Linkifier{
				ID:       chooseID(used["linkifier"], l.ID, 1),
				Pattern:  l.Pattern,
				Template: l.Template,
				Order:    int64(i),
			},
		)
	}
	for _, p := range in.Playgrounds {
		x.build.Put(
			&realm.Playground{
				ID:       chooseID(used["playground"], p.ID, 1),
				Name:     p.Name,
				Language: p.Language,
				Template: p.Template,
			},
		)
	}
	fields := map[string]realm.ProfileField{}
	for i, f := range in.ProfileFields {
		row := realm.ProfileField{
			ID:       chooseID(used["field"], f.ID, 1),
			Type:     realm.FieldType(f.Type),
			Name:     clean(f.Name, 40),
			Hint:     clean(f.Hint, 80),
			Data:     f.Data,
			Order:    i + 1,
			Summary:  f.Summary,
			Required: f.Required,
			Editable: f.Editable,
			Matching: f.Matching,
		}
		if row.Type < realm.ShortText || row.Type > realm.Pronouns {
			x.changedAt("profile fields", "unknown type: it is a short text", f.Name)
			row.Type, row.Data = realm.ShortText, ""
		}
		fields[f.Key] = row
		x.build.Put(&row)
	}
	view := x.build.View(x.began.Unix())
	for i := range x.users {
		u := view.Find(x.userIDs[x.users[i].Key])
		for key, value := range x.users[i].Profile {
			if f, ok := fields[key]; ok {
				u.Profile[f.ID] = x.profileValue(f, value)
			} else {
				x.Drop("profile values", "the field is missing", 1)
			}
		}
	}
	for _, p := range []struct {
		file         *imports.File
		kind         string
		source, name *string
		version      *int
		save         func(Files, io.Reader, int64) (string, error)
	}{
		{in.Icon, "icons", &o.IconSource, &o.IconFile, &o.IconVersion, Files.SaveAvatar},
		{in.Logo, "logos", &o.LogoSource, &o.LogoFile, &o.LogoVersion, Files.SaveLogo},
		{in.NightLogo, "logos", &o.NightLogoSource, &o.NightLogoFile, &o.NightLogoVersion, Files.SaveLogo},
	} {
		if p.file == nil {
			continue
		}
		if err := x.addPicture(p.file, p.kind, p.save, func(name string) {
			*p.source, *p.name = "U", name
			*p.version++
		}); err != nil {
			return err
		}
	}
	return nil
}

// profileValue returns a value of a custom profile field as it is stored. A value of a field of users is a list of keys
// of users, separated by commas.
func (x *importer) profileValue(f realm.ProfileField, value string) string {
	if f.Type != realm.UserField {
		return strings.ReplaceAll(strings.ToValidUTF8(value, ""), "\x00", "")
	}
	var list []string
	for _, key := range strings.Split(value, ",") {
		if id := x.userIDs[key]; id != 0 {
			list = append(list, id.String())
		}
	}
	return "[" + strings.Join(list, ",") + "]"
}

func (x *importer) addEmoji() error {
	owner := realm.UserID(0)
	for i := range x.users {
		if u := &x.users[i]; u.Role == imports.Owner && u.Active && u.Bot == 0 && owner == 0 {
			owner = x.userIDs[u.Key]
		}
	}
	used := map[int64]bool{}
	for i := range x.emoji {
		in := &x.emoji[i]
		if _, twice := x.emojiIDs[in.Key]; twice {
			x.DropAt("emoji", "a second one with the same id", in.Name)
			continue
		}
		name := realm.EmojiName(strings.ToLower(in.Name))
		valid := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" && name != "" && len(name) <= 100
		if _, twice := x.emojiKeys[name]; !valid || twice && !in.Deactivated {
			x.Drop("emoji", "the name is invalid or used twice", 1)
			continue
		}
		saved, err := x.saveFile(&in.Image, "emoji "+in.Key)
		if err != nil {
			return err
		}
		kind := saved.Type
		if !strings.HasPrefix(kind, "image/") && !saved.Missing {
			if kind = pictureTypes[strings.ToLower(path.Ext(in.Image.Path))]; kind != "" {
				x.changed("emoji", "the image is damaged: it is kept as it is")
			}
		}
		if kind == "" {
			x.Drop("emoji", "the image is missing or no image", 1)
			continue
		}
		e := &realm.CustomEmoji{ID: chooseID(used, in.ID, 1), Name: name, Author: x.userIDs[in.Author],
			Hash: saved.Hash, Kind: kind, Animated: in.Animated || saved.Animated, Deactivated: in.Deactivated}
		if e.Author == 0 {
			e.Author = owner
		}
		x.emojiIDs[in.Key] = e.ID
		if !in.Deactivated {
			x.emojiKeys[name] = in.Key
		}
		x.report.Emoji++
		x.build.Put(e)
	}
	return nil
}

// pictureTypes are the content types of emoji whose bytes are those of no picture. They are served with these types, so
// that a browser shows a damaged picture and never runs the content.
var pictureTypes = map[string]string{".png": "image/png", ".gif": "image/gif", ".jpg": "image/jpeg",
	".jpeg": "image/jpeg", ".webp": "image/webp"}

func (x *importer) addSubscriptions() error {
	type pair struct {
		user    realm.UserID
		channel realm.ChannelID
	}
	seen := map[pair]bool{}
	for i := range x.subscriptions {
		in := &x.subscriptions[i]
		p := pair{x.userIDs[in.User], x.channelID[in.Channel]}
		switch {
		case p.user < firstUserID || p.channel == 0:
			x.Drop("subscriptions", "the user or the channel is missing", 1)
			continue
		case seen[p]:
			x.Drop("subscriptions", "the same subscription again", 1)
			continue
		}
		seen[p] = true
		x.report.Subscriptions++
		if in.Active {
			x.report.Subscribed++
		}
		x.build.Subscribe(p.user, realm.Subscription{Channel: p.channel, Active: in.Active, Color: color(in.Color),
			Muted: in.Muted, Pinned: in.Pinned, Desktop: in.Desktop, Audible: in.Audible, Push: in.Push,
			Email:    in.Email,
			Wildcard: in.Wildcard}, in.Active && !x.org.OwnMarks)
	}
	x.subscriptions = nil
	return nil
}

// color returns a color, or "" if it is invalid.
func color(c string) string {
	if len(c) != 7 || c[0] != '#' || strings.Trim(strings.ToLower(c[1:]), "0123456789abcdef") != "" {
		return ""
	}
	return strings.ToLower(c)
}

package realm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	auditLogin       = "login.app"
	auditLoginFailed = "login.failed"
)

// AuditKinds are the kinds of entries of the audit log.
var AuditKinds = []string{
	"bot.change", "bot.owner", "channel.archive", "channel.create", "channel.permission", "channel.privacy",
	"channel.setting", "channel.subscribe", "channel.unarchive", "channel.unsubscribe", "export.approve",
	"export.change", "export.compliance", "export.policy", "export.refuse", "export.request",
	"factor.add", "factor.recovery", "factor.remove", "group.create", "group.join", "group.leave",
	"group.permission", "group.setting", "identity.link", "identity.suspend", "identity.unlink", "invitation.link",
	"invitation.revoke", "invitation.send", "key.add", "key.replace", "key.revoke", auditLogin, auditLoginFailed,
	"login.help", "login.session", "message.delete", "message.restore", "organization.close", "organization.list",
	"organization.permission", "organization.reopen", "organization.setting", "organization.user_default",
	"passkey.add", "passkey.remove",
	"retention.audit", "retention.hold", "scim.revoke", "scim.token", "session.end", "user.create", auditOwnExport,
	"user.deactivate", "user.email", "user.erase", "user.name", "user.password", "user.reactivate", "user.rights",
	"user.role",
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// audit adds the entries for a fact to the turn. It runs before the fact is applied, because entries have old values.
// Values that users wrote about themselves, such as names and addresses, are in no entry.
func (t *Turn) audit(f Fact) {
	switch f := f.(type) {
	case *UserJoined, *UserChanged, *UserDeactivated, *UserReactivated, *Granted, *ErasureBegan, *BotChanged,
		*BotOwnerChanged:
		t.auditUser(f)
	case *PasswordChanged, *KeyIssued, *KeyAdded, *ScopedKeyAdded, *KeysRevoked, *BrowserSessionOpened,
		*HelpSessionOpened, *BrowserSessionsEnded, *AllBrowserSessionsEnded:
		t.auditLogin(f)
	case *IdentityLinked, *IdentityUnlinked, *IdentityChanged, *FactorSet, *FactorUsed, *FactorRemoved, *PasskeyAdded,
		*PasskeyRemoved, *FactorAppRemoved:
		t.auditFactor(f)
	case *OrganizationChanged, *UserDefaultChanged, *DomainAdded, *DomainChanged, *DomainRemoved, *LinkifierSaved,
		*LinkifierRemoved, *EmojiAdded, *EmojiRemoved, *ProfileFieldChanged, *ProfileFieldRemoved, *PlaygroundAdded,
		*PlaygroundRemoved, *DefaultChannelsSet, *PictureChanged, *RealmClosed, *RealmReopened, *InvitesSent,
		*InviteLinkMade, *InvitesRevoked, *ExportChanged, *AuditDaysSet, *HoldAdded, *HoldRemoved:
		t.auditOrganization(f)
	case *ChannelCreated, *ChannelChanged, *ChannelPrivacySet, *ChannelArchived, *ChannelUnarchived, *Subscribed,
		*Unsubscribed, *JoinedChannels, *LeftChannels:
		t.auditChannel(f)
	case *GroupCreated, *GroupChanged, *MembersChanged:
		t.auditGroup(f)
	case *MessagesArchived:
		t.auditDeletion(f)
	case *ScimTokenAdded:
		t.note(AuditEntry{Kind: "scim.token", Name: "token " + number(f.ID), New: strings.Join(f.Token.Rights, " ")})
	case *ScimTokenRevoked:
		t.note(AuditEntry{Kind: "scim.revoke", Name: "token " + number(f.ID)})
	case *RestoreBegan:
		t.note(AuditEntry{Kind: "message.restore", Name: f.Archive})
	}
}

func (t *Turn) auditUser(f Fact) {
	switch f := f.(type) {
	case *UserJoined:
		t.note(AuditEntry{Kind: "user.create", User: f.User.ID, New: roleText(f.User.Role)})
	case *UserChanged:
		if f.Role != nil {
			t.note(AuditEntry{Kind: "user.role", User: f.ID, Old: roleText(t.users.must(f.ID).Role),
				New: roleText(*f.Role)})
		}
		if f.Name != nil {
			t.note(AuditEntry{Kind: "user.name", User: f.ID})
		}
		if f.Email != nil {
			t.note(AuditEntry{Kind: "user.email", User: f.ID})
		}
	case *UserDeactivated:
		t.note(AuditEntry{Kind: "user.deactivate", User: f.ID})
	case *UserReactivated:
		t.note(AuditEntry{Kind: "user.reactivate", User: f.ID})
	case *Granted:
		u := t.users.must(f.ID)
		t.note(AuditEntry{Kind: "user.rights", User: f.ID, Old: rightsText(u.MayCreateUsers, u.MayChangeEmails),
			New: rightsText(f.CreateUsers, f.ChangeEmails)})
	case *ErasureBegan:
		t.note(AuditEntry{Kind: "user.erase", User: f.User})
	case *BotChanged:
		if !f.New {
			t.note(AuditEntry{Kind: "bot.change", User: f.ID, Name: strings.Join(f.Only, " ")})
		}
	case *BotOwnerChanged:
		t.note(AuditEntry{Kind: "bot.owner", User: f.ID, Old: "user " + f.From.String(), New: "user " + f.To.String()})
	}
}

// rightsText names the special rights of an account.
func rightsText(create, change bool) string {
	return fmt.Sprintf("create-users=%t change-emails=%t", create, change)
}

func (t *Turn) auditLogin(f Fact) {
	switch f := f.(type) {
	case *PasswordChanged:
		t.note(AuditEntry{Kind: "user.password", User: f.ID})
	case *KeyIssued:
		t.note(AuditEntry{Kind: "key.replace", User: f.ID})
	case *KeyAdded:
		t.note(AuditEntry{Kind: "key.add", User: f.User, New: "key " + number(f.Key.ID)})
	case *ScopedKeyAdded:
		t.note(AuditEntry{Kind: "key.add", User: f.User, New: "key " + number(f.Key.ID) + ": " + f.Key.Scope.String()})
	case *KeysRevoked:
		for _, id := range f.Keys {
			t.note(AuditEntry{Kind: "key.revoke", User: f.User, Old: "key " + number(id)})
		}
	case *BrowserSessionOpened:
		t.note(AuditEntry{Kind: "login.session", By: f.User, User: f.User, Via: "session " + number(f.Session.ID),
			Address: f.Session.Address})
	case *HelpSessionOpened:
		minutes := number((f.Session.Until - f.Session.Opened) / 60)
		t.note(AuditEntry{Kind: "login.help", User: f.User, Name: f.Session.Reason,
			New: "session " + number(f.Session.ID) + " for " + minutes + " minutes"})
	case *BrowserSessionsEnded:
		for _, id := range f.IDs {
			t.note(AuditEntry{Kind: "session.end", User: f.User, Old: "session " + number(id)})
		}
	case *AllBrowserSessionsEnded:
		for _, u := range f.Users {
			t.note(AuditEntry{Kind: "session.end", User: u, Old: "all"})
		}
	}
}

// auditFactor adds the entries about identities at login providers and about second factors. A code of an app is part
// of a login, whose entry is enough; a recovery code says that a user has lost the app.
func (t *Turn) auditFactor(f Fact) {
	switch f := f.(type) {
	case *IdentityLinked:
		t.note(AuditEntry{Kind: "identity.link", User: f.User, New: f.Identity.Issuer})
	case *IdentityUnlinked:
		t.note(AuditEntry{Kind: "identity.unlink", User: f.User, Old: f.Identity.Issuer})
	case *IdentityChanged:
		for _, x := range t.IdentitiesOf(f.User) {
			if x.IdentityName == f.Identity.IdentityName && x.Suspended != f.Identity.Suspended {
				t.note(AuditEntry{Kind: "identity.suspend", User: f.User, Name: x.Issuer, Old: auditText(x.Suspended),
					New: auditText(f.Identity.Suspended)})
			}
		}
	case *FactorSet:
		t.note(AuditEntry{Kind: "factor.add", User: f.User})
	case *FactorUsed:
		if f.Recovery != ([32]byte{}) {
			t.note(AuditEntry{Kind: "factor.recovery", User: f.User})
		}
	case *FactorRemoved:
		t.note(AuditEntry{Kind: "factor.remove", User: f.User})
	case *FactorAppRemoved:
		t.note(AuditEntry{Kind: "factor.remove", User: f.User})
	case *PasskeyAdded:
		t.note(AuditEntry{Kind: "passkey.add", User: f.User})
	case *PasskeyRemoved:
		t.note(AuditEntry{Kind: "passkey.remove", User: f.User})
	}
}

func (t *Turn) auditOrganization(f Fact) {
	list := func(name string) { t.note(AuditEntry{Kind: "organization.list", Name: name}) }
	switch f := f.(type) {
	case *OrganizationChanged:
		t.auditSetting(f)
	case *UserDefaultChanged:
		t.note(AuditEntry{Kind: "organization.user_default", Name: f.Name, Old: auditText(t.Org().UserDefaults[f.Name]),
			New: auditText(f.Value)})
	case *DomainAdded, *DomainChanged, *DomainRemoved:
		list("domains")
	case *LinkifierSaved, *LinkifierRemoved:
		list("linkifiers")
	case *EmojiAdded, *EmojiRemoved:
		list("emoji")
	case *ProfileFieldChanged, *ProfileFieldRemoved:
		list("profile fields")
	case *PlaygroundAdded, *PlaygroundRemoved:
		list("playgrounds")
	case *DefaultChannelsSet:
		list("default channels")
	case *PictureChanged:
		list("pictures")
	case *RealmClosed:
		t.note(AuditEntry{Kind: "organization.close"})
	case *RealmReopened:
		t.note(AuditEntry{Kind: "organization.reopen"})
	case *InvitesSent:
		t.note(AuditEntry{Kind: "invitation.send", Count: len(f.Invites)})
	case *InviteLinkMade:
		t.note(AuditEntry{Kind: "invitation.link", New: roleText(f.Invite.Role)})
	case *InvitesRevoked:
		t.note(AuditEntry{Kind: "invitation.revoke", Count: len(f.IDs)})
	case *ExportChanged:
		t.note(AuditEntry{Kind: "export.change", By: f.Export.By, New: "export " + number(f.Export.ID)})
	case *AuditDaysSet:
		t.note(AuditEntry{Kind: "retention.audit", Old: number(t.AuditDays()), New: number(f.Days)})
	case *HoldAdded:
		t.note(AuditEntry{Kind: "retention.hold", User: f.Hold.User, Channel: f.Hold.Channel,
			New: "hold " + number(f.ID)})
	case *HoldRemoved:
		t.note(AuditEntry{Kind: "retention.hold", Old: "hold " + number(f.ID)})
	}
}

func (t *Turn) auditSetting(f *OrganizationChanged) {
	if f.Group != nil {
		t.note(AuditEntry{Kind: "organization.permission", Name: f.Setting,
			Old: groupText(t.Org().GroupSettings[f.Setting]), New: groupText(*f.Group)})
		return
	}
	e := AuditEntry{Kind: "organization.setting", Name: f.Setting, New: auditText(f.Value)}
	switch {
	case f.Setting == "name":
		e.Old = t.Org().Name
	case f.Setting == "description":
		e.Old = t.Org().Description
	case f.Setting == PasswordLoginSetting: // the protocol has it under another name
		e.Name, e.Old, e.New = "authentication_methods", "Email: "+auditText(t.PasswordLogin()), "Email: "+e.New
	case orgSettingsByName[f.Setting] != nil:
		e.Old = auditText(t.OrgSetting(f.Setting))
	default: // a setting without a default value
		e.Old = auditText(t.Org().Settings[f.Setting])
	}
	t.note(e)
}

func (t *Turn) auditChannel(f Fact) {
	switch f := f.(type) {
	case *ChannelCreated:
		t.note(AuditEntry{Kind: "channel.create", Channel: f.Channel.ID})
	case *ChannelChanged:
		if _, permission := t.channels.must(f.Channel).Settings[f.Property]; permission {
			t.note(AuditEntry{Kind: "channel.permission", Channel: f.Channel, Name: f.Property,
				Old: groupText(t.channels.must(f.Channel).Settings[f.Property]), New: groupText(f.Group)})
			return
		}
		t.note(AuditEntry{Kind: "channel.setting", Channel: f.Channel, Name: f.Property})
	case *ChannelPrivacySet:
		t.note(AuditEntry{Kind: "channel.privacy", Channel: f.Channel,
			New: fmt.Sprintf("private=%t web-public=%t history=%t", f.Private, f.WebPublic, f.History)})
	case *ChannelArchived:
		t.note(AuditEntry{Kind: "channel.archive", Channel: f.Channel})
	case *ChannelUnarchived:
		t.note(AuditEntry{Kind: "channel.unarchive", Channel: f.Channel})
	case *Subscribed:
		t.auditSubscribers("channel.subscribe", f.Channel, f.Users)
	case *Unsubscribed:
		t.auditSubscribers("channel.unsubscribe", f.Channel, f.Users)
	case *JoinedChannels:
		for _, x := range f.Each {
			t.auditSubscribers("channel.subscribe", x.Channel, x.Users)
		}
	case *LeftChannels:
		for _, x := range f.Each {
			t.auditSubscribers("channel.unsubscribe", x.Channel, x.Users)
		}
	}
}

// auditSubscribers notes that somebody changed the subscriptions of others. Users' own subscriptions, and those of new
// users, are no decisions about others.
func (t *Turn) auditSubscribers(kind string, c ChannelID, users []UserID) {
	switch {
	case t.System || len(users) == 0 || len(users) == 1 && users[0] == t.Caller.User:
	case len(users) == 1:
		t.note(AuditEntry{Kind: kind, Channel: c, User: users[0]})
	default:
		t.note(AuditEntry{Kind: kind, Channel: c, Count: len(users)})
	}
}

func (t *Turn) auditGroup(f Fact) {
	switch f := f.(type) {
	case *GroupCreated:
		t.note(AuditEntry{Kind: "group.create", Group: f.Group.ID})
	case *GroupChanged:
		for _, name := range slices.Sorted(maps.Keys(f.Settings)) {
			t.note(AuditEntry{Kind: "group.permission", Group: f.ID, Name: name,
				Old: groupText(t.groups.must(f.ID).Settings[name]), New: groupText(f.Settings[name])})
		}
		for _, x := range []struct {
			name    string
			changed bool
		}{{"name", f.Name != nil}, {"description", f.Description != nil}, {"deactivated", f.Deactivated != nil}} {
			if x.changed {
				t.note(AuditEntry{Kind: "group.setting", Group: f.ID, Name: x.name})
			}
		}
	case *MembersChanged:
		kind := "group.leave"
		if f.Joined {
			kind = "group.join"
		}
		for _, u := range f.Users {
			t.note(AuditEntry{Kind: kind, Group: f.Group, User: u})
		}
		for _, g := range f.Groups {
			t.note(AuditEntry{Kind: kind, Group: f.Group, New: "group " + number(int64(g))})
		}
	}
}

// auditDeletion notes deletions of messages of others. Users' own deletions and those by the retention policy are
// decisions about no one else.
func (t *Turn) auditDeletion(f *MessagesArchived) {
	if f.Reason != DeletedByUser {
		return
	}
	for _, g := range f.Groups {
		n := 0
		for _, id := range g.IDs {
			if m := t.message(id); m != nil && UserID(m.sender) != f.By {
				n++
			}
		}
		if n > 0 {
			t.note(AuditEntry{Kind: "message.delete", By: f.By, Channel: g.Channel, Count: n})
		}
	}
}

func roleText(r Role) string { return "role " + number(int64(r)) }

// auditText returns a value of a setting.
func auditText(v any) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprint(v)
}

// groupText returns the group of a permission: a named one, or the users and groups in it.
func groupText(g GroupValue) string {
	if g.Group != 0 {
		return "group " + number(int64(g.Group))
	}
	var parts []string
	for _, u := range g.Members {
		parts = append(parts, "user "+u.String())
	}
	for _, s := range g.Subgroups {
		parts = append(parts, "group "+number(int64(s)))
	}
	return strings.Join(parts, ", ")
}

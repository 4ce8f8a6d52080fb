package realm

import (
	"slices"
	"strings"
)

// UserData says what happens to some fields of a table's rows when the data of one person is erased or exported. Each
// entry has either ErasedBy or Remains, and either ExportedAs or NotExported.
type UserData struct {
	Row         string // type of the rows
	Fields      string // paths of fields with texts, user ids or sets of ids, and Key for rows found by a user id
	Kind        string // of the data, for certificates
	ErasedBy    string // the function that erases the fields
	Remains     string // the reason why an erasure leaves the fields
	ExportedAs  string // the places in the zip file, see Places
	NotExported string // one of ReasonsNotExported
}

// Places returns the places of each of the Fields in the export of a person, such as "drafts.json drafts[].content".
//
// ExportedAs has the places of the fields in their order, with a space between two fields, and + between two places of
// one field. The name of the entry and a colon are before its first place. "[]" are the items of a list, or the values
// of an object whose keys are data; its keys are "[key]". An entry that is not JSON has the place "".
func (x UserData) Places() (out [][]string) {
	entry := ""
	for field := range strings.FieldsSeq(x.ExportedAs) {
		var places []string
		for place := range strings.SplitSeq(field, "+") {
			if name, path, ok := strings.Cut(place, ":"); ok {
				entry, place = name, path
			}
			places = append(places, entry+" "+place)
		}
		out = append(out, places)
	}
	return out
}

// ExportedNumbers are the places of the numbers, times and states that the export of a person has besides the fields of
// UserDataFields. They have the form of UserData.ExportedAs.
var ExportedNumbers = []UserData{
	{Row: "User", ExportedAs: "profile.json:role is_active is_bot date_joined bots[].active"},
	{Row: "BrowserSession", ExportedAs: "logins.json:browser_sessions[].id browser_sessions[].opened " +
		"browser_sessions[].last_used"},
	{Row: "Identity", ExportedAs: "logins.json:identities[].linked identities[].deactivated"},
	{Row: "Factor", ExportedAs: "logins.json:second_factor_since"},
	{Row: "Passkey", ExportedAs: "logins.json:passkeys[].added passkeys[].last_used"},
	{Row: "KeyInfo", ExportedAs: "logins.json:api_keys[].id api_keys[].created api_keys[].expires " +
		"api_keys[].last_used"},
	{Row: "Device", ExportedAs: "logins.json:devices[].id devices[].updated"},
	{Row: "PushToken", ExportedAs: "logins.json:push_registrations[].kind push_registrations[].since"},
	{Row: "Subscription", ExportedAs: "subscriptions.json:[].channel_id [].active [].is_muted [].pin_to_top " +
		"[].desktop_notifications [].audible_notifications [].push_notifications [].email_notifications " +
		"[].wildcard_mentions_notify"},
	{Row: "MutedUser", ExportedAs: "preferences.json:muted_users[].since"},
	{Row: "TopicPolicy", ExportedAs: "preferences.json:topics[].channel_id topics[].visibility_policy topics[].since"},
	{Row: "NavigationView", ExportedAs: "preferences.json:navigation_views[].is_pinned"},
	{Row: "Draft", ExportedAs: "drafts.json:drafts[].id drafts[].to[] drafts[].timestamp"},
	{Row: "ScheduledMessage", ExportedAs: "drafts.json:scheduled_messages[].id scheduled_messages[].channel_id " +
		"scheduled_messages[].scheduled_delivery_timestamp scheduled_messages[].failed"},
	{Row: "Reminder", ExportedAs: "drafts.json:reminders[].id reminders[].message_id reminders[].at"},
	{Row: "Snippet", ExportedAs: "drafts.json:saved_snippets[].id saved_snippets[].created"},
	{Row: "Invite", ExportedAs: "invitations.json:[].id [].is_link [].sent [].expires [].role [].channel_ids[] " +
		"[].group_ids[] [].uses [].state"},
	{Row: "messageBlock", ExportedAs: "messages.jsonl:id timestamp channel_id edited earlier_contents[].until"},
	{Row: "Reaction", ExportedAs: "reactions.jsonl:message_id"},
	{Row: "Submessage", ExportedAs: "submessages.jsonl:id message_id"},
	{Row: "Revision", ExportedAs: "edits.jsonl:message_id at content_changed channel_id_before channel_id_after"},
	{Row: "Upload", ExportedAs: "files.json:[].size [].created [].missing"},
	{Row: "PersonCounts", ExportedAs: "about.json:format counts.user_id counts.messages counts.direct_messages " +
		"counts.reactions counts.submessages counts.edits counts.files counts.missing_files counts.drafts " +
		"counts.scheduled_messages counts.subscriptions counts.invitations counts.deleted_messages_left_out"},
}

// Reasons why data are not erased or not exported.
const (
	remainsNotPersonal = "not about a user"
	remainsNumber      = "only the number of the empty account remains"
	remainsInvited     = "they are revoked; their addresses and texts are for the invited people"
	remainsOfMessages  = "they belong to messages of others and go with these messages"
	remainsOrg         = "written for the organization, which keeps it"
	// Subscriptions say which messages in private channels the number received.
	remainsSubscriptions = "without a name: they say which messages in private channels the number received"

	notPersonal = "not about the person"
	notSecret   = "secrets of logins and devices are in no export"
	notInternal = "has no data but numbers of the person and the state of a task"
	notByPerson = "belongs to the organization or to other users"
	notComputed = "is computed from exported data"
	notDisplay  = "says only how clients show exported data"
	notNumber   = "is the number of the person, which profile.json has"
	notDeleted  = "about.json has the number of deleted messages"
)

// ReasonsNotExported are the possible values of UserData.NotExported.
var ReasonsNotExported = []string{notPersonal, notSecret, notInternal, notByPerson, notComputed, notDisplay, notNumber,
	notDeleted}

// UserDataFields has every field of every table that can have a text or the number of a user. A test fails for fields
// that are missing. Certificates of erasures contain the reasons for the remaining data.
var UserDataFields = []UserData{
	{"Organization",
		"StringID UUID Description DescriptionHTML Settings[] GroupSettings[].Members UserDefaults[] " +
			"NextUser Digest.Next " +
			"IconSource LogoSource NightLogoSource IconFile LogoFile NightLogoFile Push.Reason Push.Secret",
		"organization", "", remainsOrg, "", notByPerson},
	{"Organization", "Name", "organization", "", remainsOrg, "about.json:organization", ""},
	{"User", "Email", "account", "EraseUser.Decide", "", "profile.json:email+bots[].email", ""},
	{"User", "Name", "account", "clearProfile", "",
		"profile.json:full_name+bots[].name+messages.jsonl:sender+participants[].name", ""},
	{"User", "Profile[]", "account", "clearProfile", "", "profile.json:profile_fields[]", ""},
	{"User", "ProfileHTML[]", "account", "clearProfile", "", "", notComputed},
	{"User", "Avatar AvatarFile", "account", "clearProfile", "", "profile.json:avatar_source avatar.png:", ""},
	{"User", "Timezone", "account", "ErasureBegan.apply", "", "profile.json:timezone", ""},
	{"User", "Settings[]", "account", "ErasureBegan.apply", "", "settings.json:[]", ""},
	{"User", "KeyInfo.Label", "account", "ErasureBegan.apply", "", "logins.json:api_keys[].label", ""},
	{"User", "KeyInfo.Scope.Rights KeyInfo.Scope.Places.Topic KeyInfo.Scope.Endpoints KeyInfo.Scope.Networks",
		"account", "ErasureBegan.apply", "", "logins.json:api_keys[].rights[] api_keys[].topics[] " +
			"api_keys[].endpoints[] api_keys[].networks[]", ""},
	{"User", "Keys Password KeyInfo.Hash", "account", "ErasureBegan.apply", "", "", notSecret},
	{"User", "Key", "account", "", remainsNumber, "", notNumber},
	{"User", "ID", "account", "", remainsNumber,
		"profile.json:user_id+bots[].id+messages.jsonl:sender_id+participants[].id", ""},
	{"User", "BotOwner", "owner of bots", "", remainsNumber, "", notNumber},
	{"Group", "Name", "groups", "", remainsOrg, "profile.json:groups[]", ""},
	{"Group", "Description", "groups", "", remainsOrg, "", notByPerson},
	{"Group", "Members", "members of groups", "", remainsNumber, "", notNumber},
	{"Group", "Creator Settings[].Members", "members of groups", "", remainsNumber, "", notByPerson},
	{"Subscriptions", "Key", "subscriptions", "", remainsSubscriptions, "", notNumber},
	{"Subscriptions", "List.Color", "subscriptions", "", remainsSubscriptions, "subscriptions.json:[].color", ""},
	{"Channel", "Name", "channels", "", remainsOrg,
		"subscriptions.json:[].channel+messages.jsonl:channel+preferences.json:topics[].channel", ""},
	{"Channel", "Description DescriptionHTML TopicsPolicy", "channels", "", remainsOrg, "", notByPerson},
	{"Channel", "Creator Settings[].Members", "creators of channels", "", remainsNumber, "", notByPerson},
	{"messageBlock", "", "messages", "eraseMessages", "", "messages.jsonl:content+earlier_contents[].content", ""},
	{"MessageExtra", "Mentioned GroupMentioned TopicMentioned Alerted", "mentions",
		"", remainsNumber, "", notComputed},
	{"MessageExtra", "Reactions.User", "reactions", "eraseReactions", "", "", notNumber},
	{"MessageExtra", "Reactions.Name Reactions.Code Reactions.Type", "reactions", "eraseReactions", "",
		"reactions.jsonl:emoji_name emoji_code reaction_type", ""},
	{"MessageExtra", "Submessages.Sender", "votes in polls and to-do lists", "", remainsOfMessages, "", notNumber},
	{"MessageExtra", "Submessages.Type Submessages.Content", "votes in polls and to-do lists", "", remainsOfMessages,
		"submessages.jsonl:type content", ""},
	{"MessageExtra", "History.User", "edits of messages of others", "", remainsNumber, "edits.jsonl:user_id", ""},
	{"MessageExtra", "History.TopicBefore History.TopicAfter", "topics from which messages of others were moved",
		"", remainsOfMessages, "edits.jsonl:topic_before topic_after", ""},
	{"MessageExtra", "Attachments", "messages", "eraseMessages", "", "messages.jsonl:files[]", ""},
	{"MessageExtra", "Widget Notice", "messages", "eraseMessages", "", "", notDisplay},
	{"MessageMarks", "Starred Collapsed", "marks", "erasePersonalRows", "",
		"preferences.json:starred_messages[] collapsed_messages[]", ""},
	{"MessageMarks", "Key Read Rows Lost Given", "read messages",
		"", remainsNumber, "", notInternal},
	{"Topic", "Name", "topics",
		"", "they belong to their channel, also if no message is left in them", "messages.jsonl:topic", ""},
	{"DirectConversation", "Members", "direct conversations", "", remainsNumber,
		"messages.jsonl:participants[].id", ""},
	{"ClientName", "Name", "programs of clients", "", remainsNotPersonal, "messages.jsonl:client", ""},
	{"Queue", "Scope.Rights Scope.Places.Topic Scope.Endpoints Scope.Networks", "event queues", "deactivate", "", "",
		notInternal},
	{"Queue", "ID User EventTypes Narrow Subscribers Client", "event queues", "deactivate", "", "", notInternal},
	{"TopicPolicies", "Key", "topic policies", "erasePersonalRows", "", "", notNumber},
	{"TopicPolicies", "List.Topic", "topic policies", "erasePersonalRows", "",
		"preferences.json:topics[].topic", ""},
	{"AlertWords", "Key", "alert words", "erasePersonalRows", "", "", notNumber},
	{"AlertWords", "List", "alert words", "erasePersonalRows", "", "preferences.json:alert_words[]", ""},
	{"MutedUsers", "Key", "muted users", "erasePersonalRows", "", "", notNumber},
	{"MutedUsers", "List.User", "muted by others", "", remainsNumber,
		"preferences.json:muted_users[].user_id", ""},
	{"UserStatus", "Text EmojiName", "status", "EraseUser.Decide", "",
		"profile.json:status.text status.emoji_name", ""},
	{"UserStatus", "EmojiCode EmojiType", "status", "EraseUser.Decide", "", "", notDisplay},
	{"UserStatus", "Key", "status", "", remainsNumber, "", notNumber},
	{"BotDetails", "Key", "bots", "", remainsOrg, "profile.json:bots[].id", ""},
	{"BotDetails", "Services.Name Services.URL", "bots", "", remainsOrg,
		"profile.json:bots[].services[].name bots[].services[].url", ""},
	{"BotDetails", "Services.Token Services.Config[]", "bots", "", remainsOrg, "", notSecret},
	{"BotCommands", "Key List.Name List.Usage List.Description", "bots", "", remainsOrg, "", notByPerson},
	{"BotDeliveries", "Key List.Why List.Answer", "bots", "", remainsOrg, "", notByPerson},
	{"BotStorage", "Key Values[]", "storage of bots", "", remainsOrg, "", notByPerson},
	{"ProfileField", "Name", "profile fields", "", remainsNotPersonal, "profile.json:profile_fields[key]", ""},
	{"ProfileField", "Hint Data", "profile fields", "", remainsNotPersonal, "", notPersonal},
	{"Purge", "User By", "deletions of messages", "", remainsNumber, "", notInternal},
	{"BrowserSessions", "Key", "browser sessions", "endAccess", "", "", notNumber},
	{"BrowserSessions", "List.Agent List.Address", "browser sessions", "endAccess", "",
		"logins.json:browser_sessions[].browser browser_sessions[].address", ""},
	{"BrowserSessions", "List.Reason", "browser sessions", "endAccess", "", "", notByPerson},
	{"BrowserSessions", "List.Hash", "browser sessions", "endAccess", "", "", notSecret},
	{"Identities", "Key", "connected logins", "erasePersonalRows", "", "", notNumber},
	{"Identities", "List.IdentityName.Issuer List.IdentityName.Subject", "connected logins", "eraseIdentities", "",
		"logins.json:identities[].issuer identities[].subject", ""},
	{"Factor", "Key", "second factor", "erasePersonalRows", "", "", notNumber},
	{"Factor", "Secret Recovery", "second factor", "erasePersonalRows", "", "", notSecret},
	{"ScimUser", "Key", "accounts of SCIM", "erasePersonalRows", "", "", notNumber},
	{"ScimUser", "UserName ExternalID Formatted Given Family", "accounts of SCIM", "erasePersonalRows", "",
		"logins.json:scim.user_name scim.external_id scim.formatted scim.given_name scim.family_name", ""},
	{"ScimToken", "Name Rights", "tokens of SCIM", "", remainsNotPersonal, "", notPersonal},
	{"ScimToken", "Hash", "tokens of SCIM", "", remainsNotPersonal, "", notPersonal},
	{"ScimGroup", "ExternalID", "groups of SCIM", "", remainsNotPersonal, "", notPersonal},
	{"Passkeys", "Key", "passkeys", "removeFactors", "", "", notNumber},
	{"Passkeys", "List.Name", "passkeys", "removeFactors", "", "logins.json:passkeys[].name", ""},
	{"Passkeys", "List.ID List.Key", "passkeys", "removeFactors", "", "", notSecret},
	{"Erasure", "Key Count.Kind", "erasures", "", "this erasure, for a later certificate", "", notInternal},
	{"DefaultGroup", "Name Description", "groups of channels", "", remainsOrg, "", notPersonal},
	{"Folder", "Name Description DescriptionHTML", "folders of channels", "", remainsOrg, "", notPersonal},
	{"Folder", "Creator", "folders of channels", "", remainsNumber, "", notByPerson},
	{"MailAddress", "User Sender", "addresses of channels", "", remainsNumber, "", notSecret},
	{"Leaving", "Users", "tasks", "", remainsNumber, "", notInternal},
	{"Job", "By Rest Colors Topic Invited Settings.User Settings.Property Settings.Color Key Session", "tasks",
		"", "a task that was begun needs them until it ends", "", notInternal},
	{"Backlog", "Messages", "tasks", "", remainsNotPersonal, "", notPersonal},
	{"Draft", "User", "drafts", "erasePersonalRows", "", "", notNumber},
	{"Draft", "Type Topic Content", "drafts", "erasePersonalRows", "",
		"drafts.json:drafts[].type drafts[].topic drafts[].content", ""},
	{"ScheduledMessage", "Repeat.Every Repeat.Zone", "scheduled messages", "erasePersonalRows", "",
		"drafts.json:scheduled_messages[].repeated scheduled_messages[].timezone", ""},
	{"ScheduledMessage", "User", "scheduled messages", "erasePersonalRows", "", "", notNumber},
	{"ScheduledMessage", "Topic People Body.Text", "scheduled messages", "erasePersonalRows", "",
		"drafts.json:scheduled_messages[].topic scheduled_messages[].to[] scheduled_messages[].content", ""},
	{"ScheduledMessage", "Body.HTML Content.Users Content.Attachments Content.AlertWords Content.Previews",
		"scheduled messages", "erasePersonalRows", "", "", notComputed},
	{"ScheduledMessage", "Widget WidgetData Client", "scheduled messages", "erasePersonalRows", "", "", notDisplay},
	{"Reminder", "User", "reminders", "erasePersonalRows", "", "", notNumber},
	{"Reminder", "Body.Text", "reminders", "removeQuotes", "", "drafts.json:reminders[].content", ""},
	{"Reminder", "Body.HTML", "reminders", "removeQuotes", "", "", notComputed},
	{"Snippet", "User", "snippets", "erasePersonalRows", "", "", notNumber},
	{"Snippet", "Title Content", "snippets", "erasePersonalRows", "",
		"drafts.json:saved_snippets[].title saved_snippets[].content", ""},
	{"NavigationViews", "Key", "views", "erasePersonalRows", "", "", notNumber},
	{"NavigationViews", "List.Fragment List.Name", "views", "erasePersonalRows", "",
		"preferences.json:navigation_views[].fragment navigation_views[].name", ""},
	{"SentScheduledMessages", "Key IDs", "scheduled messages", "erasePersonalRows", "", "", notInternal},
	{"Domain", "Name", "domains", "", remainsNotPersonal, "", notPersonal},
	{"Playground", "Name Language Template", "playgrounds", "", remainsNotPersonal, "", notPersonal},
	{"Linkifier", "Pattern Template Example Reverse Alternatives", "linkifiers",
		"", remainsNotPersonal, "", notPersonal},
	{"CustomEmoji", "Name Hash Kind", "custom emoji", "", remainsOrg, "", notByPerson},
	{"CustomEmoji", "Author", "custom emoji", "", remainsNumber, "", notByPerson},
	{"Invite", "Email", "invitations of the person", "replaceInvitedAddress", "",
		"invitations.json:[].email", ""},
	{"Invite", "Welcome", "invitations of others", "", remainsInvited, "invitations.json:[].welcome_message", ""},
	{"Invite", "By", "invitations of others", "", remainsInvited, "", notNumber},
	{"Invite", "Tokens", "invitations of others", "", remainsInvited, "", notSecret},
	{"PushTokens", "Key", "devices", "endAccess", "", "", notNumber},
	{"PushTokens", "List.App", "devices", "endAccess", "", "logins.json:push_registrations[].app", ""},
	{"PushTokens", "List.Token List.Keys.Public List.Keys.Secret", "devices", "endAccess", "", "", notSecret},
	{"Device", "User", "devices", "endAccess", "", "", notNumber},
	{"Device", "TokenKind", "devices", "endAccess", "", "logins.json:devices[].kind", ""},
	{"Device", "Key TokenID PendingToken Failure", "devices", "endAccess", "", "", notSecret},
	{"OutboxJob", "User Why Letter.To Letter.Subject Letter.Paragraphs Letter.Address.User Letter.Address.From " +
		"Letter.Address.To Letter.Confirm.Email Letter.Confirm.User Letter.Confirm.State Letter.Confirm.Subdomain " +
		"Letter.Confirm.Org Letter.Unsubscribe.User Letter.Unsubscribe.Topic Letter.Reply.User " +
		"Registration.Token.Token " +
		"Registration.Token.App Registration.Token.Keys.Public Registration.Token.Keys.Secret " +
		"Registration.TokenID Registration.Encrypted Registration.PublicKey", "waiting emails and notifications",
		"dropEmailsOf", "", "", notInternal},
	{"ShownNotifications", "Key Messages", "notifications", "erasePersonalRows", "", "", notInternal},
	{"Upload", "Owner", "files", "eraseFiles", "", "", notNumber},
	{"Upload", "Path Name Type", "files", "eraseFiles", "", "files.json:[].file [].name [].content_type", ""},
	{"Upload", "Hash", "files", "eraseFiles", "", "", notComputed},
	{"Archive", "By Rows", "archives of deleted messages", "", remainsNumber, "", notByPerson},
	{"ArchivedMessages", "Archive Messages Encoded Extras.Extra", "deleted messages", "eraseArchived", "",
		"", notDeleted},
	{"ArchivedMessages", "Marks.User Marks.Starred Marks.Collapsed Marks.Rows Marks.Lost Marks.Given",
		"marks of deleted messages of others", "", remainsNumber, "", notInternal},
	{"PurgedTexts", "", "deleted texts", "", remainsNotPersonal, "", notPersonal},
	{"AuditEntry", "Client Address", "audit log", "eraseAudit", "", "", notByPerson},
	{"AuditEntry", "By User", "audit log", "", remainsNumber, "", notByPerson},
	{"AuditEntry", "Kind Via Name Old New", "audit log", "", remainsOrg, "", notByPerson},
	{"CompliancePolicy", "", "requests for compliance exports", "", remainsOrg, "", notByPerson},
	{"AuditPolicy", "", "audit log", "", remainsOrg, "", notByPerson},
	{"UsageDay", "People", "usage", "", remainsNumber, "", notByPerson},
	{"AssistantTokens", "Key", "tokens of summaries", "erasePersonalRows", "", "", notInternal},
	{"ReadCounts", "Key Earlier", "usage", "erasePersonalRows", "", "", notInternal},
	{"LegalHold", "User Reason", "legal holds", "", "the law or a contract asks for them", "", notByPerson},
	{"Onboarding", "Key Seen", "notices that were seen", "erasePersonalRows", "", "", notInternal},
	{"OwnExports", "Key List.Name", "exports of own data", "erasePersonalRows", "", "", notInternal},
	{"ComplianceRequest", "Criteria.Persons Owners RefusedBy", "requests for compliance exports", "", remainsNumber, "",
		notByPerson},
	{"ComplianceRequest", "Criteria.Search Criteria.Format", "requests for compliance exports", "", remainsOrg, "",
		notByPerson},
	{"Call", "Starter Present Key", "calls until they end", "", remainsNumber, "", notInternal},
	{"Call", "", "calls until they end", "", remainsNumber, "", notInternal},
	{"Export", "By Kind Name", "exports", "", remainsNumber, "", notByPerson},
}

// RemainingReasons returns the data that an erasure leaves in the tables: its kinds for each reason, in the order of
// UserDataFields. Fields that are not about a user are left out.
func RemainingReasons() (out []struct{ Kinds, Reason string }) {
	var reasons []string
	kinds := map[string][]string{}
	for _, x := range UserDataFields {
		if x.Remains == "" || x.Remains == remainsNotPersonal || slices.Contains(kinds[x.Remains], x.Kind) {
			continue
		}
		if kinds[x.Remains] == nil {
			reasons = append(reasons, x.Remains)
		}
		kinds[x.Remains] = append(kinds[x.Remains], x.Kind)
	}
	for _, reason := range reasons {
		out = append(out, struct{ Kinds, Reason string }{strings.Join(kinds[reason], ", "), reason})
	}
	return out
}

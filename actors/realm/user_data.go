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
	ExportedAs  string // the entry of the zip file
	NotExported string // the reason why the export of a person lacks the fields
}

// Reasons why data are not erased or not exported.
const (
	remainsNotPersonal = "not about a user"
	remainsNumber      = "only the number of the empty account remains"
	remainsOrg         = "written for the organization, which keeps it"
	notPersonal        = "not about the person"
	notSecret          = "secrets of logins and devices are in no export"
	notInternal        = "has no data but numbers of the person and the state of a task"
	notByPerson        = "belongs to the organization or to other users"
	notComputed        = "is computed from exported data"
	notDisplay         = "says only how clients show exported data"
)

// UserDataFields has every field of every table that can have a text or the number of a user. A test fails for fields
// that are missing. Certificates of erasures contain the reasons for the remaining data.
var UserDataFields = []UserData{
	{"Organization",
		"StringID Name UUID Description DescriptionHTML Settings[] GroupSettings[].Members UserDefaults[] " +
			"NextUser IconSource LogoSource NightLogoSource IconFile LogoFile NightLogoFile Push.Reason Push.Secret",
		"organization", "", remainsOrg, "", notByPerson},
	{"User", "Email", "account", "EraseUser.Decide", "", "profile.json", ""},
	{"User", "Name", "account", "clearProfile", "", "profile.json", ""},
	{"User", "Profile[]", "account", "clearProfile", "", "profile.json", ""},
	{"User", "ProfileHTML[]", "account", "clearProfile", "", "", notComputed},
	{"User", "Avatar AvatarFile", "account", "clearProfile", "", "profile.json", ""},
	{"User", "Timezone", "account", "ErasureBegan.apply", "", "profile.json", ""},
	{"User", "Settings[]", "account", "ErasureBegan.apply", "", "settings.json", ""},
	{"User", "KeyInfo.Label", "account", "ErasureBegan.apply", "", "logins.json", ""},
	{"User", "Keys Password KeyInfo.Hash", "account", "ErasureBegan.apply", "", "", notSecret},
	{"User", "Key ID", "account", "", remainsNumber, "profile.json", ""},
	{"User", "BotOwner", "owner of bots", "", remainsNumber, "profile.json", ""},
	{"Group", "Name", "groups", "", remainsOrg, "profile.json", ""},
	{"Group", "Description", "groups", "", remainsOrg, "", notByPerson},
	{"Group", "Members", "members of groups", "", remainsNumber, "profile.json", ""},
	{"Group", "Creator Settings[].Members", "members of groups", "", remainsNumber, "", notByPerson},
	{"Subscriptions", "Key List.Color", "subscriptions",
		"", "without a name: they say which messages in private channels the number received",
		"subscriptions.json", ""},
	{"Channel", "Name Description DescriptionHTML TopicsPolicy", "channels", "", remainsOrg, "", notByPerson},
	{"Channel", "Creator Settings[].Members", "creators of channels", "", remainsNumber, "", notByPerson},
	{"messageBlock", "", "messages", "eraseMessages", "", "messages.jsonl", ""},
	{"MessageExtra", "Mentioned GroupMentioned TopicMentioned Alerted", "mentions",
		"", remainsNumber, "", notComputed},
	{"MessageExtra", "Reactions.User Reactions.Name Reactions.Code Reactions.Type", "reactions",
		"eraseReactions", "", "reactions.jsonl", ""},
	{"MessageExtra", "Submessages.Sender Submessages.Type Submessages.Content", "votes in polls and to-do lists",
		"", "they belong to messages of others and go with these messages", "", notByPerson},
	{"MessageExtra", "History.User", "edits of messages of others", "", remainsNumber, "", notByPerson},
	{"MessageExtra", "History.TopicBefore History.TopicAfter", "topics from which messages of others were moved",
		"", "they belong to messages of others and go with these messages", "", notByPerson},
	{"MessageExtra", "Attachments", "messages", "eraseMessages", "", "messages.jsonl", ""},
	{"MessageExtra", "Widget Notice", "messages", "eraseMessages", "", "", notDisplay},
	{"MessageMarks", "Starred", "marks", "erasePersonalRows", "", "preferences.json", ""},
	{"MessageMarks", "Collapsed", "marks", "erasePersonalRows", "", "", notInternal},
	{"MessageMarks", "Key Read Rows Lost Given", "read messages",
		"", remainsNumber, "", notInternal},
	{"Topic", "Name", "topics",
		"", "they belong to their channel, also if no message is left in them", "messages.jsonl", ""},
	{"DirectConversation", "Members", "direct conversations", "", remainsNumber, "messages.jsonl", ""},
	{"ClientName", "Name", "programs of clients", "", remainsNotPersonal, "messages.jsonl", ""},
	{"Queue", "ID User EventTypes Narrow Subscribers Client", "event queues", "deactivate", "", "", notInternal},
	{"TopicPolicies", "Key List.Topic", "topic policies", "erasePersonalRows", "", "preferences.json", ""},
	{"AlertWords", "Key List", "alert words", "erasePersonalRows", "", "preferences.json", ""},
	{"MutedUsers", "Key", "muted users", "erasePersonalRows", "", "preferences.json", ""},
	{"MutedUsers", "List.User", "muted by others", "", remainsNumber, "preferences.json", ""},
	{"UserStatus", "Text EmojiName", "status", "EraseUser.Decide", "", "profile.json", ""},
	{"UserStatus", "EmojiCode EmojiType", "status", "EraseUser.Decide", "", "", notDisplay},
	{"UserStatus", "Key", "status", "", remainsNumber, "profile.json", ""},
	{"BotDetails", "Key Services.Name Services.URL Services.Token Services.Config[]", "bots",
		"", remainsOrg, "", notSecret},
	{"BotStorage", "Key Values[]", "storage of bots", "", remainsOrg, "", notByPerson},
	{"ProfileField", "Name", "profile fields", "", remainsNotPersonal, "profile.json", ""},
	{"ProfileField", "Hint Data", "profile fields", "", remainsNotPersonal, "", notPersonal},
	{"Purge", "User By", "deletions of messages", "", remainsNumber, "", notInternal},
	{"BrowserSessions", "Key List.Agent List.Address", "browser sessions", "endAccess", "", "logins.json", ""},
	{"BrowserSessions", "List.Hash", "browser sessions", "endAccess", "", "", notSecret},
	{"Erasure", "Key Count.Kind", "erasures", "", "this erasure, for a later certificate", "", notInternal},
	{"DefaultGroup", "Name Description", "groups of channels", "", remainsOrg, "", notPersonal},
	{"Folder", "Name Description DescriptionHTML", "folders of channels", "", remainsOrg, "", notPersonal},
	{"Folder", "Creator", "folders of channels", "", remainsNumber, "", notByPerson},
	{"MailAddress", "User Sender", "addresses of channels", "", remainsNumber, "", notSecret},
	{"Leaving", "Users", "tasks", "", remainsNumber, "", notInternal},
	{"Job", "By Rest Colors Topic Invited Settings.User Settings.Property Settings.Color Key Session", "tasks",
		"", "a task that was begun needs them until it ends", "", notInternal},
	{"Backlog", "Messages", "tasks", "", remainsNotPersonal, "", notPersonal},
	{"Draft", "User Type Topic Content", "drafts", "erasePersonalRows", "", "drafts.json", ""},
	{"ScheduledMessage", "User Topic People Body.Text", "scheduled messages",
		"erasePersonalRows", "", "drafts.json", ""},
	{"ScheduledMessage", "Body.HTML Content.Users Content.Attachments Content.AlertWords Content.Previews",
		"scheduled messages", "erasePersonalRows", "", "", notComputed},
	{"ScheduledMessage", "Widget WidgetData Client", "scheduled messages", "erasePersonalRows", "", "", notDisplay},
	{"Reminder", "User", "reminders", "erasePersonalRows", "", "drafts.json", ""},
	{"Reminder", "Body.Text", "reminders", "removeQuotes", "", "drafts.json", ""},
	{"Reminder", "Body.HTML", "reminders", "removeQuotes", "", "", notComputed},
	{"Snippet", "User Title Content", "snippets", "erasePersonalRows", "", "drafts.json", ""},
	{"NavigationViews", "Key List.Fragment List.Name", "views", "erasePersonalRows", "", "preferences.json", ""},
	{"SentScheduledMessages", "Key IDs", "scheduled messages", "erasePersonalRows", "", "", notInternal},
	{"Domain", "Name", "domains", "", remainsNotPersonal, "", notPersonal},
	{"Playground", "Name Language Template", "playgrounds", "", remainsNotPersonal, "", notPersonal},
	{"Linkifier", "Pattern Template Example Reverse Alternatives", "linkifiers",
		"", remainsNotPersonal, "", notPersonal},
	{"CustomEmoji", "Name Hash Kind", "custom emoji", "", remainsOrg, "", notByPerson},
	{"CustomEmoji", "Author", "custom emoji", "", remainsNumber, "", notByPerson},
	{"Invite", "Email", "invitations of the person", "replaceInvitedAddress", "", "", notByPerson},
	{"Invite", "By Welcome Tokens", "invitations of others",
		"", "they are revoked; their addresses and texts are for the invited people", "", notByPerson},
	{"PushTokens", "Key List.App", "devices", "endAccess", "", "logins.json", ""},
	{"PushTokens", "List.Token List.Keys.Public List.Keys.Secret", "devices", "endAccess", "", "", notSecret},
	{"Device", "User TokenKind", "devices", "endAccess", "", "logins.json", ""},
	{"Device", "Key TokenID PendingToken Failure", "devices", "endAccess", "", "", notSecret},
	{"OutboxJob", "User Why Letter.To Letter.Subject Letter.Paragraphs Letter.Address.User Letter.Address.From " +
		"Letter.Address.To Letter.Confirm.Email Letter.Confirm.User Letter.Confirm.State Letter.Confirm.Subdomain " +
		"Letter.Confirm.Org Letter.Unsubscribe.User Letter.Unsubscribe.Topic Registration.Token.Token " +
		"Registration.Token.App Registration.Token.Keys.Public Registration.Token.Keys.Secret " +
		"Registration.TokenID Registration.Encrypted Registration.PublicKey", "waiting emails and notifications",
		"dropEmailsOf", "", "", notInternal},
	{"ShownNotifications", "Key Messages", "notifications", "erasePersonalRows", "", "", notInternal},
	{"Upload", "Path Name Owner Type", "files", "eraseFiles", "", "files.json", ""},
	{"Upload", "Hash", "files", "eraseFiles", "", "", notComputed},
	{"Archive", "By Rows", "archives of deleted messages", "", remainsNumber, "", notByPerson},
	{"ArchivedMessages", "Archive Messages Encoded Extras.Extra", "deleted messages", "eraseArchived", "",
		"", "about.json has the number of deleted messages"},
	{"ArchivedMessages", "Marks.User Marks.Starred Marks.Collapsed Marks.Rows Marks.Lost Marks.Given",
		"marks of deleted messages of others", "", remainsNumber, "", notInternal},
	{"PurgedTexts", "", "deleted texts", "", remainsNotPersonal, "", notPersonal},
	{"LegalHold", "User Reason", "legal holds", "", "the law or a contract asks for them", "", notByPerson},
	{"Onboarding", "Key Seen", "notices that were seen", "erasePersonalRows", "", "", notInternal},
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

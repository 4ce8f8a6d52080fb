package realm

import (
	"fmt"
	"reflect"
	"slices"
)

// typeByNumber has the number of every fact, and of every event that is not a fact. The journal and the stored
// unacknowledged events contain these numbers. A number is never used for another type. New fields are added only at
// the end of a type.
var typeByNumber = map[uint16]any{
	1:  (*Ticked)(nil),
	2:  (*Founded)(nil),
	3:  (*UserJoined)(nil),
	4:  (*UserChanged)(nil),
	5:  (*KeyIssued)(nil),
	6:  (*PasswordChanged)(nil),
	7:  (*ChannelCreated)(nil),
	8:  (*ChannelAppeared)(nil),
	9:  (*ChannelVanished)(nil),
	10: (*Subscribed)(nil),
	11: (*Unsubscribed)(nil),
	12: (*SubscriptionAdded)(nil),
	13: (*SubscriptionRemoved)(nil),
	14: (*PeersChanged)(nil),
	15: (*MessageSent)(nil),
	16: (*MessageArrived)(nil),
	17: (*QueueOpened)(nil),
	18: (*QueueClosed)(nil),
	19: (*TopicPolicySet)(nil),

	// 20-99 core: organization, queues, flags
	20: (*CameOnline)(nil),
	21: (*ServerRestarted)(nil),
	22: (*QueuesCaughtUp)(nil),
	30: (*PictureChanged)(nil),
	31: (*OnboardingStepDismissed)(nil),
	32: (*OnboardingStepsChanged)(nil),
	33: (*RealmClosed)(nil),
	34: (*RealmEnded)(nil),
	35: (*RealmReopened)(nil),
	36: (*ExportChanged)(nil),
	37: (*ExportListEvent)(nil),
	38: (*ExportConsentEvent)(nil),

	// 100-159 people: users, bots, settings, profiles, status, mutes, alert words
	100: (*UserDeactivated)(nil),
	101: (*UserReactivated)(nil),
	102: (*Granted)(nil),
	103: (*ProfileChanged)(nil),
	104: (*UserSettingChanged)(nil),
	105: (*DeliveryEmailSeen)(nil),
	106: (*ShownEmailChanged)(nil),
	107: (*UserDefaultChanged)(nil),
	108: (*AlertWordsChanged)(nil),
	109: (*UserMuted)(nil),
	110: (*MutedUsersChanged)(nil),
	111: (*StatusChanged)(nil),
	112: (*BotChanged)(nil),
	113: (*BotOwnerChanged)(nil),
	114: (*BotStored)(nil),
	115: (*ProfileFieldChanged)(nil),
	116: (*ProfileFieldRemoved)(nil),
	117: (*ProfileFieldsOrdered)(nil),
	118: (*ProfileFieldsUpdated)(nil),
	119: (*UserAppeared)(nil),
	120: (*UserVanished)(nil),
	121: (*PeopleSeen)(nil),
	122: (*UserLoggedIn)(nil),
	123: (*PurgeBegan)(nil),
	124: (*PurgeStepped)(nil),

	// 160-219 channels: channels, subscriptions, folders, defaults, topic policies
	160: (*TopicPoliciesSet)(nil),
	161: (*MutedTopicsEvent)(nil),
	162: (*ChannelChanged)(nil),
	163: (*ChannelPrivacySet)(nil),
	164: (*ChannelArchived)(nil),
	165: (*ChannelUnarchived)(nil),
	166: (*AnnouncementsStopped)(nil),
	167: (*LeftBehind)(nil),
	168: (*MessagesReadAfterLeaving)(nil),
	169: (*SubscriptionSet)(nil),
	170: (*FolderCreated)(nil),
	171: (*FolderChanged)(nil),
	172: (*FoldersOrdered)(nil),
	173: (*DefaultChannelsSet)(nil),
	174: (*DefaultGroupSet)(nil),
	175: (*DefaultGroupDropped)(nil),
	176: (*DefaultGroupsEvent)(nil),
	177: (*MailTokenMade)(nil),
	178: (*HistoryGiven)(nil),
	179: (*ChannelVisibilityChanged)(nil),
	180: (*ChannelsQuieted)(nil),
	181: (*ChannelQuieted)(nil),
	182: (*JoinedChannels)(nil),
	183: (*LeftChannels)(nil),
	184: (*SubscriptionsAdded)(nil),
	185: (*SubscriptionsRemoved)(nil),
	186: (*ValuesShown)(nil),
	187: (*JobStarted)(nil),
	188: (*JobAdvanced)(nil),
	189: (*ChannelsShown)(nil),

	// 220-279 conversation: editing, moving, deleting, reactions, submessages, typing
	220: (*ChannelActivityChanged)(nil),
	221: (*ReactionAdded)(nil),
	222: (*ReactionRemoved)(nil),
	223: (*SubmessageAdded)(nil),
	224: (*Typing)(nil),
	225: (*TypingEdit)(nil),
	226: (*MessageUpdated)(nil),
	227: (*MessageUpdate)(nil),
	228: (*MessagesHidden)(nil),
	229: (*MessagesVanished)(nil),
	230: (*HistoryBegins)(nil),
	231: (*MessagesDeleted)(nil),
	232: (*ServiceTriggered)(nil),
	275: (*LinksMarked)(nil),

	// 280-319 reading: flags
	280: (*FlagsChanged)(nil),
	281: (*FlagsEvent)(nil),
	282: (*AllRead)(nil),

	// 320-369 stored items: drafts, scheduled messages, reminders, snippets, navigation views
	320: (*DraftsAdded)(nil),
	321: (*DraftChanged)(nil),
	322: (*DraftRemoved)(nil),
	323: (*MessageScheduled)(nil),
	324: (*ScheduledChanged)(nil),
	325: (*ScheduledGone)(nil),
	326: (*ReminderAdded)(nil),
	327: (*ReminderGone)(nil),
	328: (*SnippetAdded)(nil),
	329: (*SnippetChanged)(nil),
	330: (*SnippetRemoved)(nil),
	331: (*NavigationViewAdded)(nil),
	332: (*NavigationViewChanged)(nil),
	333: (*NavigationViewRemoved)(nil),

	// 370-429 organization: settings, groups, domains, playgrounds, linkifiers, emoji, profile fields
	370: (*GroupMembersChanged)(nil),
	371: (*GroupCreated)(nil),
	372: (*GroupAppeared)(nil),
	373: (*GroupChanged)(nil),
	374: (*MembersChanged)(nil),
	375: (*FullMembersGrew)(nil),
	376: (*SubscriptionsSet)(nil),
	400: (*OrganizationChanged)(nil),
	410: (*DomainAdded)(nil),
	411: (*DomainChanged)(nil),
	412: (*DomainRemoved)(nil),
	413: (*PlaygroundAdded)(nil),
	414: (*PlaygroundRemoved)(nil),
	415: (*PlaygroundsChanged)(nil),
	416: (*LinkifierSaved)(nil),
	417: (*LinkifierRemoved)(nil),
	418: (*LinkifiersOrdered)(nil),
	419: (*LinkifiersChanged)(nil),
	420: (*EmojiAdded)(nil),
	421: (*EmojiRemoved)(nil),
	422: (*EmojiChanged)(nil),

	// 430-459 invitations, mail, push, exports
	430: (*InvitesSent)(nil),
	431: (*InviteLinkMade)(nil),
	432: (*InvitesRevoked)(nil),
	433: (*InviteResent)(nil),
	434: (*InviteAccepted)(nil),
	435: (*InvitesChanged)(nil),
	440: (*PushTokensChanged)(nil),
	441: (*DeviceAdded)(nil),
	442: (*DeviceRemoved)(nil),
	443: (*DeviceChanged)(nil),
	444: (*OutboxJobsAdded)(nil),
	445: (*OutboxJobsFinished)(nil),
	446: (*ShownCleared)(nil),
	447: (*PushSecretMade)(nil),
	448: (*PushRightsChanged)(nil),

	// 460-469 archive of deleted messages
	460: (*MessagesArchived)(nil),
	461: (*MessagesRestored)(nil),
	462: (*MessagesPurged)(nil),
	463: (*RestoreBegan)(nil),
	464: (*HoldAdded)(nil),
	465: (*HoldRemoved)(nil),
	466: (*TextsCompacted)(nil),

	// 470-499 uploads, pictures
	470: (*UploadSaved)(nil),
	471: (*AttachmentChanged)(nil),
	472: (*UploadDeleted)(nil),
	473: (*AttachmentGone)(nil),
	474: (*AvatarChanged)(nil),
	475: (*AvatarShown)(nil),
	476: (*ThumbnailStateChanged)(nil),

	// 480-482 additional API keys
	480: (*KeyAdded)(nil),
	481: (*KeysRevoked)(nil),
	482: (*KeyUsed)(nil),

	// 483-489 jobs
	483: (*JobStopped)(nil),

	// 490-509 logins in browsers
	490: (*BrowserSessionOpened)(nil),
	491: (*BrowserSessionRenewed)(nil),
	492: (*BrowserSessionsEnded)(nil),
	493: (*AllBrowserSessionsEnded)(nil),

	// 530-534 the page of the web app
	530: (*WebAppChanged)(nil),

	// 640-659 logins at other providers
	640: (*IdentityLinked)(nil),
	641: (*IdentityUnlinked)(nil),
	642: (*FactorSet)(nil),
	643: (*FactorUsed)(nil),
	644: (*FactorRemoved)(nil),
	645: (*IdentityChanged)(nil),

	// 620-624 deletion of a person's data
	620: (*ErasureBegan)(nil),
	621: (*ErasureStepped)(nil),

	// 630-631 audit log
	630: (*Audited)(nil),
	631: (*AuditDaysSet)(nil),

	// 700-709 bots
	700: (*ServiceCalled)(nil),
	701: (*BotCommandsSet)(nil),

	// 670 scoped keys
	670: (*ScopedKeyAdded)(nil),

	// 671-679 summaries and translations
	671: (*TokensCounted)(nil),

	// 690-694 passkeys
	690: (*PasskeyAdded)(nil),
	691: (*PasskeyUsed)(nil),
	692: (*PasskeyRenamed)(nil),
	693: (*PasskeyRemoved)(nil),
	694: (*FactorAppRemoved)(nil),

	// 695-699 SCIM
	695: (*ScimTokenAdded)(nil),
	696: (*ScimTokenRevoked)(nil),
	697: (*ScimUserSet)(nil),
	698: (*ScimGroupSet)(nil),

	// 680-689 mail
	680: (*DigestsStepped)(nil),
	681: (*InvitesReminded)(nil),

	// 682-689 calls
	682: (*CallChanged)(nil),
	683: (*CallRinging)(nil),

	// 710-719 usage, help, own data
	711: (*HelpSessionOpened)(nil),
	712: (*OwnExportsChanged)(nil),
	713: (*ComplianceChanged)(nil),
}

// formatNumbers are the numbers of changes of the stored form that are no new types. They are never used for types. A
// program from before such a change would report damage, so the version of the data rises with it; see NewestNumber.
var formatNumbers = []uint16{
	590, // the journal keeps facts that the rows contain
	710, // rows count the usage
}

var numberByType = func() map[reflect.Type]uint16 {
	m := make(map[reflect.Type]uint16, len(typeByNumber))
	for n, k := range typeByNumber {
		m[reflect.TypeOf(k).Elem()] = n
	}
	return m
}()

// NumberOf returns the number of a fact's or event's type. It is 0 for a type without number, which only a test should
// ever see.
func NumberOf(x any) uint16 { return numberByType[reflect.TypeOf(x).Elem()] }

// NewByNumber returns a new zero value of the type with that number, to decode into.
func NewByNumber(number uint16) (any, error) {
	k, ok := typeByNumber[number]
	if !ok {
		return nil, fmt.Errorf("no fact or event has the number %d: the data may be from a newer version", number)
	}
	return reflect.New(reflect.TypeOf(k).Elem()).Interface(), nil
}

// NewestNumber returns the largest number of a fact, event or change of format that this program knows.
func NewestNumber() (newest uint16) {
	newest = slices.Max(formatNumbers)
	for n := range typeByNumber {
		newest = max(newest, n)
	}
	return newest
}

// TypesByNumber returns all types by number, for tests that pin them.
func TypesByNumber() map[uint16]reflect.Type {
	m := map[uint16]reflect.Type{}
	for n, k := range typeByNumber {
		m[n] = reflect.TypeOf(k).Elem()
	}
	return m
}

package realm

import "parley/actors/realm/ids"

// smallTables are the tables with few rows, and the data derived from them. The row types are declared in the files of
// their rules. Each table is numbered in init; the numbers are stored and never change.
type smallTables struct {
	// 20-29 users
	alertWords    table[UserID, AlertWords]
	mutedUsers    table[UserID, MutedUsers]
	statuses      table[UserID, UserStatus]
	bots          table[UserID, BotDetails]
	botStorage    table[UserID, BotStorage]
	profileFields table[int64, ProfileField]
	purges        table[int64, Purge] // 26

	browserSessions table[UserID, BrowserSessions] // 27
	erasures        table[UserID, Erasure]         // 28
	identities      table[UserID, Identities]      // 29
	identityOwners  map[IdentityName]UserID

	// 30-39 channels
	defaultGroups table[int64, DefaultGroup] // 30
	folders       table[int64, Folder]       // 31
	mailAddresses table[string, MailAddress] // 32, by token
	leaving       table[int64, Leaving]      // 33
	jobs          table[int64, Job]          // 34
	backlogs      table[int64, Backlog]      // 35

	// 40-49 stored items
	drafts             ownedTable[Draft, *Draft]
	scheduled          ownedTable[ScheduledMessage, *ScheduledMessage]
	reminders          ownedTable[Reminder, *Reminder]
	snippets           ownedTable[Snippet, *Snippet]
	navigationViews    table[UserID, NavigationViews]
	deliveredScheduled table[UserID, SentScheduledMessages] // 45

	// 50-69 organization
	domains     table[int64, Domain]
	playgrounds table[int64, Playground]
	emoji       table[int64, CustomEmoji]
	linkifiers  table[int64, Linkifier]
	scimTokens  table[int64, ScimToken]   // 64
	scimUsers   table[UserID, ScimUser]   // 65
	scimGroups  table[GroupID, ScimGroup] // 66

	// 70-79 invitations, mail, push, exports
	invites            table[int64, Invite]
	inviteLinks        table[int64, Invite]
	pushTokens         table[UserID, PushTokens]
	devices            table[int64, Device]
	devicesOf          map[UserID][]int64
	pushReachable      ids.Set                 // users with a device that can be notified
	outboxJobs         table[int64, OutboxJob] // 74
	outboxCount        outboxCount
	shownNotifications table[UserID, ShownNotifications] // 75
	inviteByToken      map[[32]byte]inviteRef            // by the hash of a link's token
	// staleNotifications are the users whose read messages may have changed since the last unpushDue. It is not
	// derived: after loading it contains all users with shown notifications.
	staleNotifications map[UserID]struct{}

	// 80-89 uploads
	uploads table[int64, Upload]

	// 100-109 archive of deleted messages
	archives        table[string, Archive]         // 100, by name
	archived        table[int64, ArchivedMessages] // 101
	archivedUploads table[int64, Upload]           // 102, files that only archived messages use
	holds           table[int64, LegalHold]        // 103
	purgedTexts     table[int, PurgedTexts]        // 104
	archiveIndex    archiveIndex

	// 110-119 audit log
	audit       table[int64, AuditEntry] // 110
	auditPolicy table[int, AuditPolicy]  // 111
	auditLast   int64                    // number of the last entry

	// 120-129 usage
	usage usageCounters

	// 90-99 others
	onboarding table[UserID, Onboarding] // 90
	exports    table[int64, Export]      // 91
	factors    table[UserID, Factor]     // 92
	passkeys   table[UserID, Passkeys]   // 93

	botDeliveries table[UserID, BotDeliveries] // 94
	botCommands   table[UserID, BotCommands]   // 95

	ownExports table[UserID, OwnExports] // 96

	compliance       table[int64, ComplianceRequest] // 97
	compliancePolicy table[int, CompliancePolicy]    // 98

	assistantTokens table[UserID, AssistantTokens] // 99

	calls table[int64, Call] // 105
}

func (n *smallTables) init(r *Realm) {
	// users
	n.alertWords.init(r, 20)
	n.mutedUsers.init(r, 21)
	n.statuses.init(r, 22)
	n.bots.init(r, 23)
	n.botStorage.init(r, 24)
	n.profileFields.init(r, 25)
	n.purges.init(r, 26)
	n.browserSessions.init(r, 27)
	n.erasures.init(r, 28)
	n.identities.init(r, 29)
	n.identityOwners = map[IdentityName]UserID{}

	paged := numberingOf[int64]()
	paged.paged = true // jobs are added by the thousand with ever new numbers, and removed again

	// channels
	n.defaultGroups.init(r, 30)
	n.folders.init(r, 31)
	n.mailAddresses.init(r, 32)
	n.leaving.init(r, 33)
	n.leaving.useNumbering(paged)
	n.jobs.init(r, 34)
	n.backlogs.init(r, 35)
	n.backlogs.useNumbering(numberingOf[int64]())

	n.leaving.tracksOrder, n.jobs.tracksOrder, n.purges.tracksOrder = true, true, true

	// stored items
	n.drafts.init(r, 40)
	n.scheduled.init(r, 41)
	n.reminders.init(r, 42)
	n.snippets.init(r, 43)
	n.navigationViews.init(r, 44)
	n.deliveredScheduled.init(r, 45)

	// organization
	n.domains.init(r, 60)
	n.playgrounds.init(r, 61)
	n.linkifiers.init(r, 62)
	n.scimTokens.init(r, 64)
	n.scimUsers.init(r, 65)
	n.scimGroups.init(r, 66)
	n.emoji.init(r, 63)

	// invitations, mail, push, exports
	n.invites.init(r, 70)
	n.inviteLinks.init(r, 71)
	n.pushTokens.init(r, 72)
	n.devices.init(r, 73)
	n.devicesOf = map[UserID][]int64{}
	n.outboxJobs.init(r, 74)
	n.outboxCount = outboxCount{map[outboxKey]int{}, map[UserID][]int64{}}
	n.shownNotifications.init(r, 75)
	n.staleNotifications = map[UserID]struct{}{}
	r.marks.onChange = func(u UserID) {
		if n.shownNotifications.find(u) != nil {
			n.staleNotifications[u] = struct{}{}
		}
	}
	n.inviteByToken = map[[32]byte]inviteRef{}

	// uploads
	n.uploads.init(r, 80)

	// archive of deleted messages
	n.archives.init(r, 100)
	n.archived.init(r, 101)
	n.archived.tracksOrder = true
	n.archivedUploads.init(r, 102)
	n.holds.init(r, 103)
	n.purgedTexts.init(r, 104)
	n.initArchive()

	// audit log
	n.audit.init(r, 110)
	n.audit.useNumbering(paged)
	n.audit.tracksOrder = true
	n.auditPolicy.init(r, 111)

	// usage
	n.usage.init(r)

	// others
	n.onboarding.init(r, 90)
	n.exports.init(r, 91)
	n.factors.init(r, 92)
	n.passkeys.init(r, 93)
	n.botDeliveries.init(r, 94)
	n.botCommands.init(r, 95)
	n.ownExports.init(r, 96)
	n.compliance.init(r, 97)
	n.compliancePolicy.init(r, 98)
	n.assistantTokens.init(r, 99)
	n.calls.init(r, 105)
}

// rebuildIndexes rebuilds the data derived from the small tables.
func (n *smallTables) rebuildIndexes(r *Realm) {
	// users
	for u := range n.alertWords.all() {
		r.indexAlertWords(u)
	}
	for u, l := range n.mutedUsers.all() {
		for _, m := range l.List {
			openSet(r.index.mutersOf, m.User).Add(int64(u))
		}
	}
	r.rebuildIdentityOwners()

	// channels
	for token, a := range n.mailAddresses.all() {
		r.index.mailTokens[mailKey{a.Channel, a.User, a.Sender}] = token
	}
	for u, l := range r.topicPolicies.all() {
		for _, p := range l.List {
			r.index.setTopicPolicy(topicKey{p.Channel, fold(p.Topic)}, ids.SetOf(u), p.Policy)
		}
	}

	// audit log
	for id := range n.audit.all() {
		n.auditLast = max(n.auditLast, id)
	}
	n.usage.rebuildIndexes()

	// stored items
	n.drafts.rebuildIndex()
	n.scheduled.rebuildIndex()
	n.reminders.rebuildIndex()
	for id, x := range n.reminders.all() {
		openSet(r.index.remindersOf, x.Message).Add(id)
	}
	n.snippets.rebuildIndex()

	// invitations, mail, push, exports
	for _, id := range n.devices.keys() {
		u := n.devices.find(id).User
		n.devicesOf[u] = append(n.devicesOf[u], id)
		r.updatePushReachable(u)
	}
	for u := range n.pushTokens.all() {
		r.updatePushReachable(u)
	}
	for _, id := range n.outboxJobs.keys() { // in the order they were added
		n.outboxCount.add(n.outboxJobs.must(id), 1)
	}
	for u := range n.shownNotifications.all() {
		n.staleNotifications[u] = struct{}{}
	}
	for _, i := range n.invites.all() {
		r.indexInvite(i)
	}
	for _, i := range n.inviteLinks.all() {
		r.indexInvite(i)
	}

	// uploads
	for _, u := range n.uploads.all() {
		r.index.addUpload(u)
	}

	// archive of deleted messages
	n.initArchive()
	for _, a := range n.archived.all() {
		n.indexArchived(a, 1)
	}
	for name, a := range n.archives.all() {
		if a.RestoreBelow != 0 {
			n.archiveIndex.restoring[name] = struct{}{}
		}
	}
	for _, u := range n.archivedUploads.all() {
		n.indexArchivedUpload(u, 1)
	}
}

// UploadInfo is the part of an upload that rendering needs.
type UploadInfo struct {
	Type          string
	Width, Height int
	Thumbnailed   bool
	Animated      bool
}

// DetachedUpload is an upload that no message links to any more.
type DetachedUpload struct {
	ID       int64
	Name     string
	Path     string
	Size     int64
	Created  int64
	Messages []MessageID
}

// dueWork is a kind of work that the small tables need at some time.
type dueWork struct {
	// due returns the next turn at a time; nil: none.
	due func(*Realm, int64) func(*Turn) (any, error)
	// next returns when due can return a turn at the earliest, for an organization that leaves memory; see NextDue. It
	// is nil for work that does not wait for the clock.
	next func(*Realm, int64) int64
}

// earliest is next for each kind of work: one that does not wait for the clock is due now or never.
func (x dueWork) earliest(r *Realm, now int64) int64 {
	switch {
	case x.next != nil:
		return x.next(r, now)
	case x.due(r, now) != nil:
		return now
	}
	return NeverDue
}

// eachDueWork calls fn with each kind of work until it returns false. The order matters: work that can wait comes last.
func eachDueWork(fn func(dueWork) bool) {
	for _, x := range [...]dueWork{
		// stored items
		{scheduledDue, nextScheduled}, {remindersDue, nextReminder},

		// invitations, mail, push, exports
		{unpushDue, nil}, {inviteRemindersDue, nextInviteReminder}, {digestsDue, nextDigest},
		{ownExportsDue, nextOwnExport},

		{jobsDue, nil}, {restoreDue, nil},

		// users
		{fullMembersDue, nextFullMember}, {purgeDue, nil}, {erasureDue, nil},

		// channels; last, because these jobs can wait
		{leavingDue, nil},
		{inactiveChannelsDue, nextInactiveChannel},

		// archive of deleted messages
		{retentionDue, nextRetention}, {archivePurgeDue, nextArchivePurge},
	} {
		if !fn(x) {
			return
		}
	}
}

// nextDue returns the next turn that the small tables need at a time, such as scheduled messages, reminders and jobs;
// nil: none.
func (n *smallTables) nextDue(r *Realm, now int64) (turn func(*Turn) (any, error)) {
	eachDueWork(func(x dueWork) bool {
		turn = x.due(r, now)
		return turn == nil
	})
	return turn
}

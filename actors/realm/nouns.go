package realm

// nounTables are the tables of the smaller nouns; each is declared in its noun's file and numbered here once, for ever.
type nounTables struct {
	// 20-29 people
	alertWords table[UserID, AlertWords]
	muted      table[UserID, MutedUsers]
	status     table[UserID, UserStatus]
	bots       table[UserID, BotDetails]
	storage    table[UserID, BotStorage]
	fields     table[int64, ProfileField]
	purges     table[int64, Purge] // 26

	// 30-39 channels
	defaultGroups table[int64, DefaultGroup] // 30
	folders       table[int64, Folder]       // 31
	mail          table[string, MailAddress] // 32, by token
	leaving       table[int64, Leaving]      // 33
	works         table[int64, Work]         // 34
	backlogs      table[int64, Backlog]      // 35

	// 40-49 stored items
	drafts    owned[Draft, *Draft]
	scheduled owned[Scheduled, *Scheduled]
	reminders owned[Reminder, *Reminder]
	snippets  owned[Snippet, *Snippet]
	views     table[UserID, NavigationViews]
	delivered table[UserID, Delivered] // 45

	// 50-69 organization
	domains     table[int64, Domain]
	playgrounds table[int64, Playground]
	emoji       table[int64, CustomEmoji]
	linkifiers  table[int64, Linkifier]

	// 70-79 invitations, mail, push, exports
	invites     table[int64, Invite]
	inviteLinks table[int64, Invite]
	pushTokens  table[UserID, PushTokens]
	devices     table[int64, Device]
	devicesOf   map[UserID][]int64
	reachable   Set                  // users with a device that could be notified
	errands     table[int64, Errand] // 74
	waiting     errandCount
	shown       table[UserID, Shown]   // 75
	reread      map[UserID]struct{}    // whose reading may have changed since the devices were told; not derived
	inviteOf    map[[32]byte]inviteRef // by the hash of a link's token

	// 80-89 uploads, pictures
	uploads table[int64, Upload]

	// 90-99 the rest
	onboarding table[UserID, Onboarding] // 90
	exports    table[int64, Export]      // 91
}

func (n *nounTables) init(r *Realm) {
	// people
	n.alertWords.init(r, 20)
	n.muted.init(r, 21)
	n.status.init(r, 22)
	n.bots.init(r, 23)
	n.storage.init(r, 24)
	n.fields.init(r, 25)
	n.purges.init(r, 26)

	paged := numberingOf[int64]()
	paged.paged = true // jobs come by the thousand, each with a new number, and go

	// channels
	n.defaultGroups.init(r, 30)
	n.folders.init(r, 31)
	n.mail.init(r, 32)
	n.leaving.init(r, 33)
	n.leaving.numbered(paged)
	n.works.init(r, 34)
	n.backlogs.init(r, 35)
	n.backlogs.numbered(numberingOf[int64]())

	n.leaving.queued, n.works.queued, n.purges.queued = true, true, true

	// stored items
	n.drafts.init(r, 40)
	n.scheduled.init(r, 41)
	n.reminders.init(r, 42)
	n.snippets.init(r, 43)
	n.views.init(r, 44)
	n.delivered.init(r, 45)

	// organization
	n.domains.init(r, 60)
	n.playgrounds.init(r, 61)
	n.linkifiers.init(r, 62)
	n.emoji.init(r, 63)

	// invitations, mail, push, exports
	n.invites.init(r, 70)
	n.inviteLinks.init(r, 71)
	n.pushTokens.init(r, 72)
	n.devices.init(r, 73)
	n.devicesOf = map[UserID][]int64{}
	n.errands.init(r, 74)
	n.waiting = errandCount{map[errandsOf]int{}, map[UserID][]int64{}}
	n.shown.init(r, 75)
	n.reread = map[UserID]struct{}{}
	r.reading.touched = func(u UserID) {
		if n.shown.find(u) != nil {
			n.reread[u] = struct{}{}
		}
	}
	n.inviteOf = map[[32]byte]inviteRef{}

	// uploads, pictures
	n.uploads.init(r, 80)

	// the rest
	n.onboarding.init(r, 90)
	n.exports.init(r, 91)
}

// index rebuilds what the smaller nouns derive from their rows.
func (n *nounTables) index(r *Realm) {
	// people
	for u := range n.alertWords.all() {
		r.learnAlertWords(u)
	}
	for u, l := range n.muted.all() {
		for _, m := range l.List {
			setOf(r.by.mutersOf, m.User).Add(int64(u))
		}
	}

	// channels
	for token, a := range n.mail.all() {
		r.by.mailToken[mailKey{a.Channel, a.User, a.Sender}] = token
	}
	for u, l := range r.prefs.all() {
		for _, p := range l.List {
			r.by.prefer(topicKey{p.Channel, fold(p.Topic)}, SetOf(u), p.Policy)
		}
	}

	// stored items
	n.drafts.index()
	n.scheduled.index()
	n.reminders.index()
	n.snippets.index()

	// organization

	// invitations, mail, push, exports
	for _, id := range n.devices.keys() {
		u := n.devices.find(id).User
		n.devicesOf[u] = append(n.devicesOf[u], id)
		r.learnDevices(u)
	}
	for u := range n.pushTokens.all() {
		r.learnDevices(u)
	}
	for _, id := range n.errands.keys() { // in order, as they came
		n.waiting.add(n.errands.must(id), 1)
	}
	for u := range n.shown.all() {
		n.reread[u] = struct{}{}
	}
	for _, i := range n.invites.all() {
		r.learnInvite(i)
	}
	for _, i := range n.inviteLinks.all() {
		r.learnInvite(i)
	}

	// uploads, pictures
	for _, u := range n.uploads.all() {
		r.by.addUpload(u)
	}
}

// UploadInfo is what rendering needs to know of an uploaded file.
type UploadInfo struct {
	Type          string
	Width, Height int
	Thumbnailed   bool
	Animated      bool
}

// Detached is an upload that no message uses any more.
type Detached struct {
	ID       int64
	Name     string
	Path     string
	Size     int64
	Created  int64
	Messages []MessageID
}

// due is what the smaller nouns want done at a time: scheduled messages, reminders, expiries. nil is nothing.
func (n *nounTables) due(r *Realm, now int64) func(*Turn) (any, error) {
	for _, due := range []func(*Realm, int64) func(*Turn) (any, error){
		// stored items
		scheduledDue, remindersDue,

		// invitations, mail, push, exports
		unpushDue,

		workDue,

		// people
		fullDue, purgesDue,

		// channels; last, since its jobs can wait
		leavingDue,
		quietDue,
	} {
		if d := due(r, now); d != nil {
			return d
		}
	}
	return nil
}

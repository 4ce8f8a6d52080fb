package realm

// Organization is the row of values that belong to the whole organization: identity, settings, next free ids.
type Organization struct {
	StringID                                string // subdomain; "" is the root organization
	Name                                    string
	Created                                 int64
	UUID                                    string
	Description                             string
	DescriptionHTML                         string
	Deactivated                             bool
	Settings                                map[string]any // values that differ from OrgSettings' defaults
	GroupSettings                           GroupValues    // values that differ from OrgGroupSettings' defaults
	UserDefaults                            map[string]any // values for new accounts that differ from UserSettings
	NextUser                                UserID
	NextGroup                               GroupID
	NextChannel                             ChannelID
	NextMessage                             MessageID
	NextTopic                               TopicID
	NextTalk                                DirectConversationID
	NextClient                              ClientID
	Next                                    Counters // last id used in each small table, by kind
	DefaultChannels                         []ChannelID
	IconVersion                             int
	LogoVersion                             int
	NightLogoVersion                        int
	IconSource, LogoSource, NightLogoSource string
	IconFile, LogoFile, NightLogoFile       string // names of uploaded files

	// FullAt is the time of the last update of the full members group: accounts are full members by their age at that
	// time. 0: by their age now.
	FullAt int64

	Push *PushState // at the push bouncer; nil: never asked

	// LinksChecked is the last message whose text was checked for links that older programs did not count; see
	// message_links.go. MaxMessageID: all are.
	LinksChecked MessageID

	Digest *DigestState // the digests that were sent; nil: none
}

// System bots. They exist from the first fact on.
const (
	NotificationBot UserID = 1
	WelcomeBot      UserID = 2
	EmailGateway    UserID = 3
	firstUserID     UserID = 8 // lower ids are reserved for further system bots
)

// Founded is the first fact of an organization. It sets its identity and creates the system groups and system bots.
type Founded struct {
	StringID, Name, UUID string
	At                   int64
}

func (f *Founded) apply(r *Realm) {
	r.org.put(0, &Organization{
		StringID: f.StringID, Name: f.Name, Created: f.At, UUID: f.UUID,
		Settings: map[string]any{}, GroupSettings: GroupValues{}, UserDefaults: map[string]any{}, Next: Counters{},
		NextUser: firstUserID, NextGroup: 1, NextChannel: 1, NextMessage: 1, NextTopic: 1, NextTalk: 1, NextClient: 1,
		IconVersion: 1, LogoVersion: 1, NightLogoVersion: 1, IconSource: "G", LogoSource: "D", NightLogoSource: "D",
	})
	r.createSystemGroups(f.At)
	for _, b := range []struct {
		id         UserID
		mail, name string
	}{
		{NotificationBot, "notification-bot@parley.invalid", "Notification Bot"},
		{WelcomeBot, "welcome-bot@parley.invalid", "Welcome Bot"},
		{EmailGateway, "emailgateway@parley.invalid", "Email Gateway"},
	} {
		r.addUser(&User{ID: b.id, Email: b.mail, Name: b.name, Role: Member, Bot: GenericBot, System: true,
			Active: true, Joined: f.At, Avatar: "J", AvatarVersion: 1, Settings: map[string]any{}})
	}
}

func (f *Founded) notices(*Realm) []Notice { return nil }

// FoundRealm creates the organization. The server creates its owner next, with CreateUser.
type FoundRealm struct{ StringID, Name string }

func (c FoundRealm) Decide(t *Turn) (Done, error) {
	if t.Realm.Founded() {
		return Done{}, BadRequest("Organization exists already")
	}
	t.Record(&Founded{StringID: c.StringID, Name: c.Name, UUID: t.UUID(), At: t.Now})
	t.Record(&LinksMarked{UpTo: MaxMessageID}) // there are no older texts, so no start has to load it for them
	return Done{}, nil
}

// Org returns the organization's row.
func (r *Realm) Org() *Organization { return r.org.must(0) }

// nextID returns the next free id of a kind of small row. The fact that adds the row carries the id and passes it to
// reserveID when applied.
func (r *Realm) nextID(noun string) int64 { return r.Org().Next[noun] + 1 }

// reserveID marks an id as used.
func (r *Realm) reserveID(noun string, id int64) {
	o := r.org.change(0)
	o.Next[noun] = max(o.Next[noun], id)
}

// CreateFirstChannels gives a new organization its first channels. Every new user is subscribed to them.
type CreateFirstChannels struct{}

func (CreateFirstChannels) Decide(t *Turn) (Done, error) {
	if !t.System || t.channels.size() > 0 {
		return Done{}, errPermission()
	}
	for _, c := range []struct{ name, about string }{
		{"general", "For everything that concerns everybody"},
		{"sandbox", "For trying things out"},
	} {
		n := NewChannel{Name: c.name, Description: c.about, DescriptionHTML: t.Describe(c.about), Default: true}
		if _, err := t.newChannel(n); err != nil {
			return Done{}, err
		}
	}
	return Done{}, nil
}

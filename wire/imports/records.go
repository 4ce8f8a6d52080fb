package imports

// Organization is the first record: the organization itself. Its subdomain comes from the operator.
type Organization struct {
	Name        string // display name; "" uses the subdomain
	Description string // Markdown
	Created     int64  // Unix seconds; 0: the time of the import
	// Product is the program that exported, as in "Organization imported from Slack!".
	Product string
	// OwnMarks says that messages have Marks. Otherwise each message is read by all its recipients.
	OwnMarks bool
	// Settings are values of organization settings by their protocol names. The engine drops unknown ones and those
	// with invalid values.
	Settings              map[string]any
	GroupSettings         map[string]GroupValue
	UserDefaults          map[string]any // values for new accounts
	Icon, Logo, NightLogo *File
	Domains               []Domain
	Linkifiers            []Linkifier
	Playgrounds           []Playground
	ProfileFields         []ProfileField
}

// GroupValue is the value of a permission setting: one group, or users and groups.
type GroupValue struct {
	Group   string // key of a Group, or the name of a system group such as role:members
	Members []string
	Groups  []string
}

// Domain is an email domain that may join.
type Domain struct {
	ID         int64 // wanted number
	Name       string
	Subdomains bool
}

// Linkifier turns a pattern in texts into links.
type Linkifier struct {
	ID                int64 // wanted number
	Pattern, Template string
}

// Playground is a code playground.
type Playground struct {
	ID                       int64 // wanted number
	Name, Language, Template string
}

// ProfileField is a custom profile field.
type ProfileField struct {
	ID                                    int64 // wanted number
	Key                                   string
	Name, Hint                            string
	Type                                  int // number of the protocol's field type
	Data                                  string
	Summary, Required, Editable, Matching bool
}

// Emoji is a custom emoji.
type Emoji struct {
	Key         string
	ID          int64 // wanted number
	Name        string
	Author      string // key of a User that comes later; "": the first owner
	Deactivated bool
	Animated    bool
	Image       File
}

// Roles of users, with the protocol's numbers.
const (
	Owner         = 100
	Administrator = 200
	Moderator     = 300
	Member        = 400
	Guest         = 600
)

// User is an account. Its address is only used for emails that reset the password.
type User struct {
	Key    string
	ID     int64 // wanted number; 0: the next free one
	Email  string
	Name   string
	Role   int
	Active bool
	// Stub marks an account of a person whose account was not exported, such as a user of another workspace.
	Stub     bool
	Deleted  bool
	Bot      int    // 0: a person; otherwise the protocol's bot type
	BotOwner string // key of a User
	// System names a system bot of the exporting server (notification, welcome or gateway), which the engine maps to
	// its own. The other fields are then ignored.
	System   string
	Joined   int64
	Timezone string
	Settings map[string]any // by protocol names
	Avatar   *File          // nil: a generated one
	Gravatar bool           // without Avatar: the picture is Gravatar's for the address
	// AvatarVersion is the version of the picture in addresses; 0: 1.
	AvatarVersion int
	// Profile has the values of custom profile fields, by the key of the field.
	Profile map[string]string
	// Outgoing services of a bot.
	Services []Service
	// SendTo and Register are a bot's default channels (keys of Channels).
	SendTo, Register string
	AllPublic        bool
}

// Service is the address that an outgoing webhook bot posts to. The engine makes a new token.
type Service struct {
	Name, URL string
	Interface int
}

// Group is a user group. System groups are not exported: the engine has them, and users belong to them by role.
type Group struct {
	Key         string
	ID          int64 // wanted number
	Name        string
	Description string
	Created     int64
	Creator     string
	Deactivated bool
	Members     []string
	Subgroups   []string // keys of Groups, or names of system groups
	Settings    map[string]GroupValue
}

// Channel is a channel.
type Channel struct {
	Key          string
	ID           int64 // wanted number
	Name         string
	Description  string // Markdown, one line
	Created      int64
	Creator      string
	Private      bool
	WebPublic    bool
	History      bool // new subscribers see earlier messages
	Archived     bool
	Default      bool   // new users are subscribed
	Retention    *int64 // days; nil: as the organization
	Folder       string
	TopicsPolicy string
	Settings     map[string]GroupValue
}

// Subscription is a user's present or past subscription.
type Subscription struct {
	User, Channel string
	Active        bool // false: the user left; the settings are kept
	Color         string
	Muted, Pinned bool

	Desktop, Audible, Push, Email, Wildcard *bool // nil inherits the user's setting
}

// TopicPolicy is a user's policy for a topic: 1 muted, 2 unmuted, 3 followed.
type TopicPolicy struct {
	User, Channel, Topic string
	Policy               int
	Since                int64
}

// MutedUser says that a user muted another one.
type MutedUser struct {
	User, Muted string
	Since       int64
}

// AlertWord is one alert word of a user.
type AlertWord struct{ User, Word string }

// Status is a user's status.
type Status struct {
	User, Text                      string
	EmojiName, EmojiCode, EmojiType string
}

// Snippet is a saved snippet of a user.
type Snippet struct {
	User, Title, Content string
	Created              int64
}

// Scheduled is a message that is to be sent later.
type Scheduled struct {
	Sender         string
	Channel, Topic string
	People         []string // of a direct message, the sender included
	Text           string
	At             int64
	Client         string
	Files          []File
}

// Onboarding is a hint that a user dismissed.
type Onboarding struct{ User, Step string }

// Message is one message with everything that belongs to it.
type Message struct {
	Key   string // unique; a second message with the key is dropped
	Place string // in the archive, for the report; "": unknown
	Order int64  // messages are numbered by rising Order, then by arrival; usually At
	At    int64  // when it was sent, Unix seconds

	Sender  string
	Channel string // "": a direct message
	Topic   string
	People  []string // participants of a direct message; the engine adds the sender
	// Thread names the thread of the exporting server that the message belongs to, for the counts of the report; "":
	// none.
	Thread string

	Text   string // Markdown; cut at the limit of the protocol
	HTML   string // rendering of the exporting server, for comparison; "": none
	Client string // name of the client program; "": the product

	Edited  int64      // last edit of the text; 0: never
	Moved   int64      // last move; 0: never
	History []Revision // newest first
	// SentTo is the key of the channel that it was first sent to, if it was moved.
	SentTo string

	Reactions   []Reaction
	Submessages []Submessage
	Files       []File // files that the text links to
	Marks       []Mark // see Organization.OwnMarks
}

// Revision is one entry of an edit history.
type Revision struct {
	User                        string
	At                          int64
	Content                     bool // the text changed; Text is the one before
	Text                        string
	HTML                        string
	TopicBefore, TopicAfter     *string
	ChannelBefore, ChannelAfter string
}

// Reaction is one emoji of a user on a message.
type Reaction struct {
	User string
	Name string
	// Code and Type are as in the protocol; the code of a custom emoji is the key of an Emoji. If Type is "", the
	// engine finds the emoji by its name: a custom one first, then a standard one. The characters are a name, too.
	Code, Type string
}

// Submessage is data of a widget.
type Submessage struct {
	Sender, Type, Content string
}

// Flags of a mark.
const (
	Read = 1 << iota
	Starred
	Collapsed
	Mentioned
	ChannelWildcard
	TopicWildcard
	GroupMentioned
	Alert
	Historical
)

// Mark is the flags of a user for a message. A user without a mark has no row of the message.
type Mark struct {
	User  string
	Flags int
}

// File is a file of the archive, or one that Source.Open can read otherwise.
type File struct {
	// Path is the argument of Source.Open: a path in the archive, or any other text that the format chose.
	Path string
	// Address is the text in a message that represents the file, such as /user_uploads/2/ab/cd/name.png. It must not
	// occur for anything else.
	Address string
	Name    string // as users see it
	Type    string // content type; "": found out from the content
	Owner   string // key of a User; "": the sender
	Created int64
	Size    int64 // 0: unknown
}

// Record is any of the records that a Sink takes.
type Record interface{ record() }

func (*Organization) record() {}
func (*Emoji) record()        {}
func (*User) record()         {}
func (*Group) record()        {}
func (*Channel) record()      {}
func (*Subscription) record() {}
func (*TopicPolicy) record()  {}
func (*MutedUser) record()    {}
func (*AlertWord) record()    {}
func (*Status) record()       {}
func (*Snippet) record()      {}
func (*Scheduled) record()    {}
func (*Onboarding) record()   {}
func (*Message) record()      {}

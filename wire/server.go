package wire

import (
	"context"
	"fmt"
	"slices"
	"time"

	"parley/actors/presence"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/actors/session"
	"parley/wire/form"
	"parley/wire/markdown"
)

// Server is the running server as endpoints see it. Package actors implements it. All methods are safe for concurrent
// use.
type Server interface {
	// Turn gives a function exclusive access to a realm. It returns when the recorded facts are on disk.
	Turn(realm.ID, realm.Caller, func(*realm.Turn) (any, error)) (any, error)
	// View runs a function between turns, with read access. It returns when the facts that it could see are on disk.
	View(realm.ID, realm.Caller, func(realm.View) (any, error)) (any, error)
	// RunAsync queues commands in order and does not wait for them. It does not keep the slice.
	RunAsync([]AsyncCommand)
	// Text returns a version of a message's text, from memory or disk; false if it was erased. If it is damaged, the
	// error is a refusal of the kind realm.Damaged.
	Text(realm.ID, realm.BodyRef) (realm.Body, bool, error)
	// FetchTexts reads texts that another node has in one step, so that Text finds them in memory. It does nothing
	// where texts are on the disk of this node.
	FetchTexts(realm.ID, []realm.BodyRef)
	// MarkdownConfigSeq returns the number of the newest fact on disk that can have changed how texts are rendered.
	MarkdownConfigSeq(realm.ID) realm.Seq
	// Search looks up words in the full-text index. The index contains all messages that the caller can have seen.
	Search(id realm.ID, words string) (realm.SearchHits, realm.Highlighter, error)
	// Poll answers through the Reply of the request, at once or after an event. PollAll does the same for several
	// requests; it keeps each request until it is answered, but not the slice. CancelPoll ends a waiting poll.
	Poll(PollRequest)
	PollAll([]*PollRequest)
	CancelPoll(PollRequest)
	// AuthVersion changes whenever a cached key lookup can become invalid: when an account or organization is
	// created, changed or deactivated. It changes before a client can learn of the change.
	AuthVersion() uint64
	// AccountByKeyHash and AccountByEmail find accounts for logins. They know only facts that are on disk. The
	// returned account is immutable.
	AccountByKeyHash(hash [32]byte) (*Account, bool)
	AccountByEmail(id realm.ID, email string) (*Account, bool)
	// AccountBySessionHash finds the account and the browser session whose secret has a hash. It returns nil if there
	// is none, or if the session has expired.
	AccountBySessionHash(hash [32]byte) (*Account, *realm.BrowserSession)
	// ReportPresence records that a user is online. announce reports whether other users must be notified now.
	ReportPresence(id realm.ID, u realm.UserID, active bool) (row presence.Row, announce bool)
	// ReportPresenceAsync is ReportPresence without waiting. done must not block.
	ReportPresenceAsync(id realm.ID, u realm.UserID, active bool, done func(row presence.Row, announce bool))
	// HidePresence makes a user look offline and returns the resulting row.
	HidePresence(id realm.ID, u realm.UserID) presence.Row
	// Now returns the time by the wall clock of the organizations; on an edge it is that of the core.
	Now() time.Time
	// PresenceSince returns the rows with a larger update id that are newer than oldest, in Unix seconds.
	PresenceSince(id realm.ID, update, oldest int64) []presence.Row
	// ActiveSince returns a function that reports whether a user was online at or after oldest, in Unix seconds. The
	// function is fast and can be called at any time.
	ActiveSince(id realm.ID, oldest int64) func(realm.UserID) bool
	// PresenceOf returns the row of one user, nil if the user never was online.
	PresenceOf(id realm.ID, u realm.UserID) *presence.Row
	// DeliveryState reports whether a user is active at a client now, and whether one of the user's clients has
	// received all events up to a fact.
	DeliveryState(id realm.ID, u realm.UserID, fact realm.Seq) (active, delivered bool)
}

// PrefetchTexts reads texts before a view that needs them, because they can be on disk. The returned function returns
// them; it reads any other text when it is called, such as that of a message edited meanwhile. A damaged text is
// replaced by damagedBody: a notification of the message is still sent.
func PrefetchTexts(server Server, id realm.ID, refs []realm.BodyRef) func(realm.BodyRef) (realm.Body, bool) {
	texts := map[realm.BodyRef]realm.Body{}
	for _, ref := range refs {
		if b, ok := textOrMarker(server, id, ref); ok {
			texts[ref] = b
		}
	}
	return func(ref realm.BodyRef) (realm.Body, bool) {
		if b, ok := texts[ref]; ok {
			return b, true
		}
		return textOrMarker(server, id, ref)
	}
}

// damagedBody replaces a damaged text where it cannot be refused: in events and notifications. Requests are refused.
var damagedBody = realm.Body{
	Text: "*(The text of this message is damaged on the server's disk.)*",
	HTML: "<p><em>(The text of this message is damaged on the server's disk.)</em></p>",
}

// textOrMarker returns a text, or damagedBody if it is damaged. It reports false if the text was erased.
func textOrMarker(texts session.TextReader, id realm.ID, ref realm.BodyRef) (realm.Body, bool) {
	b, ok, err := texts.Text(id, ref)
	if err != nil {
		return damagedBody, true
	}
	return b, ok
}

// Plain data types that the server and its endpoints share, under the names that endpoints use.
type (
	Account             = realm.Account
	Site                = realm.Site
	AsyncCommand        = realm.AsyncCommand
	CommandWithCallback = realm.CommandWithCallback
	PollRequest         = queue.PollRequest
	Reply               = queue.Reply
)

// Tools is the functions and settings that endpoints need besides the realm.
type Tools struct {
	// HashPassword returns the hash of a new password of an organization, or ErrWeakPassword.
	HashPassword  func(id realm.ID, password string) (string, error)
	CheckPassword func(id realm.ID, password, hash string) (bool, error)
	HashKey       func(secret string) [32]byte // hash of an API key or token
	Token         func(length int) string      // random text of a length in characters
	Files         Files
	Thumbnails    ThumbnailQueue // nil: thumbnails are made only on request
	UploadQuota   int64          // total size of the files of an organization, in bytes; 0 means no limit
	UserQuota     int64          // the same of one user
	// Sign returns a signature that only this server can make. VerifySignature checks it. An edge does not have the
	// server's secret: there Sign, LinkToken and JWTKeys are nil, and VerifySignature returns false.
	Sign            func(text string) string
	VerifySignature func(text, signature string) bool
	// Places answers whether data is allowed to leave the server; nil on an edge, which sends none.
	Places *Places
	// Calls gives access to calls; nil: LiveKit is not configured.
	Calls Calls
	// StartExport queues a data export; it does not block.
	StartExport func(realm.ID, realm.Export)
	// StartOwnExport does the same for the data of one user.
	StartOwnExport func(realm.ID, realm.UserID, realm.OwnExport)
	// Organizations finds and creates organizations; nil: pages about several organizations are not available.
	Organizations Organizations
	// OpenOrganizations allows every visitor to create an organization.
	OpenOrganizations bool
	// CheckSpace returns ErrNoSpace if a file of so many bytes must not be stored now; nil: every file may.
	CheckSpace func(bytes int64) error
	// SubdomainTaken reports whether an organization with the name exists.
	SubdomainTaken func(subdomain string) bool
	// JWTKeys are the HS256 keys of login tokens, by string id of the organization.
	JWTKeys    map[string]string
	Version    string
	Generation int64 // start of the process in Unix seconds
	// WebPushKey is the public key for notifications of browsers, in base64 for addresses; "": there are none.
	WebPushKey string
	Dev        bool // development logins are enabled
	Renderer   *Renderer
	// Assistant makes summaries and translations; nil: there are none. That of an edge only knows the
	// offers of the cores.
	Assistant Assistant
	// FetchPreview reads the preview data of a page; nil if previews are disabled.
	FetchPreview func(ctx context.Context, address string) (markdown.Preview, error)
	// Meaning searches by meaning; nil if no service is set. That of an edge only says that its core has one.
	Meaning MeaningSearch
	// GIFs finds animated pictures; nil if no provider is set.
	GIFs GIFs
	// ProxyPicture returns the address at which clients load a picture of another site; nil: they load it there.
	ProxyPicture func(address string) string
	// Emails writes the emails that requests cause; nil if the server sends no email.
	Emails EmailComposer
	// Push sends notifications to mobile devices; nil if no push service is configured.
	Push Pusher
	// PushBouncer says that Push is a bouncer, which decides for each organization whether it forwards notifications.
	PushBouncer bool
	// HostnameProof returns the secret that proves to the push bouncer that this server has its hostname; ok is false
	// if none is prepared for the token.
	HostnameProof func(token string) (secret string, ok bool)
	// DailyInvites is how many users an organization can invite by email per day; 0 means no limit.
	DailyInvites int
	// LinkToken returns the token at the end of an organization's invitation link with that number.
	LinkToken func(id realm.ID, link int64) string
	// Integrations are the services whose requests become messages; nil: those of the program.
	Integrations *Integrations
	// EmojiTable is the path of the table of emoji names; "": that of the program.
	EmojiTable string
	// ChannelMailPattern is the pattern of channel email addresses, "%s@example.com"; "" if the server receives no
	// email.
	ChannelMailPattern string
}

// EmojiTablePath is the path of the program's table of emoji names.
const EmojiTablePath = "/static/generated/emoji/emoji_api.json"

func (t *Tools) emojiTable() string {
	if t.EmojiTable != "" {
		return t.EmojiTable
	}
	return EmojiTablePath
}

// Limits of new passwords; registrations send them to clients. Lengths are in characters. A password must need at
// least MinPasswordGuesses by the estimate of zxcvbn, which clients show while the user types (protocol).
const (
	MinPasswordLength  = 8
	MaxPasswordLength  = 100
	MinPasswordGuesses = 10_000
)

// ErrWeakPassword is the error of Tools.HashPassword for a password outside the limits. Endpoints replace it by the
// protocol's refusal; operators read its text.
var ErrWeakPassword = fmt.Errorf("the password is too weak: use %d to %d characters that are not a common password, "+
	"a name or a simple pattern", MinPasswordLength, MaxPasswordLength)

// Call is one request while an endpoint handles it. It is used by one goroutine.
type Call struct {
	Server  Server
	Tools   *Tools
	Realm   realm.ID
	Site    Site
	Caller  realm.Caller
	Account *Account // nil for logged-out visitors
	// AuthVersion is Server.AuthVersion before the credentials were checked; see PollRequest.
	AuthVersion uint64
	Params      *form.Values
	Agent       string // the User-Agent header
	Address     string // network of the client
	// Session is the browser session that the request was sent with; nil: none. If an endpoint gives the session a new
	// secret, it stores it in NewSecret.
	Session   *realm.BrowserSession
	NewSecret string
	// ConfirmPassword records that the session's user has just entered the right password, PasswordConfirmed reports
	// whether that was less than ten minutes ago. Both are for calls with a session.
	ConfirmPassword   func()
	PasswordConfirmed func() bool
	// Opened is the browser session that an endpoint of the API has opened: the answer sets its cookies.
	Opened *realm.OpenedBrowserSession
	// Header returns a header of the request, "" if it is absent.
	Header func(name string) string
	// Body returns the unparsed request body.
	Body func() []byte
	// Files returns the files of a multipart body.
	Files func() ([]File, error)
	// Piece is set if the body is a piece of a resumable upload.
	Piece *Piece
	// Park detaches the request from its handler; the answer is sent through the Reply. gone is called if the client
	// disconnects first.
	Park func(gone func()) Reply
	// CountPasswordAttempt counts an attempt to log in, for the account and the caller's address, and refuses if
	// there were too many recently. ForgetPasswordAttempts takes attempts back after a correct password.
	CountPasswordAttempt   func(account string) error
	ForgetPasswordAttempts func(account string)
	// AskDirectories returns the person with a name and a password in the directories of the organization, nil if there
	// is none; nil: the organization has no directory.
	AskDirectories func(name, password string) (*DirectoryPerson, error)
	// ReserveMemory counts n more bytes of memory for the answer, and refuses if answers take too much memory.
	// Endpoints whose answers can be large call it while they collect the answer; nil: there is no limit.
	ReserveMemory func(n int) error
	// WaitForBuildSlot waits until a large answer can be built, and refuses if too many wait. Large answers wait by
	// themselves as they grow; endpoints call it if that is too late. nil: answers do not wait.
	WaitForBuildSlot func() error
	// OpenQueue opens an event queue on a node that does not own the organization, and builds its state there; nil:
	// this node owns it. QueueOnly says that the caller builds the state, on another node.
	OpenQueue func(realm.Register) (realm.Registered, error)
	QueueOnly bool
	// CountAddressChange counts a request for a new email address and refuses if there were too many recently.
	CountAddressChange func(account string) error

	ignored []string
}

// reserveMemory is ReserveMemory, if there is a limit.
func (c *Call) reserveMemory(n int) error {
	if c.ReserveMemory == nil {
		return nil
	}
	return c.ReserveMemory(n)
}

// waitForSlot is WaitForBuildSlot, if answers wait.
func (c *Call) waitForSlot() error {
	if c.WaitForBuildSlot == nil {
		return nil
	}
	return c.WaitForBuildSlot()
}

// Ignored returns the names of parameters that were sent but are unknown to the endpoint.
func (c *Call) Ignored() []string { return c.ignored }

// markConsumed removes a name from the ignored parameters, because a nested form has read it.
func (c *Call) markConsumed(name string) {
	c.ignored = slices.DeleteFunc(c.ignored, func(n string) bool { return n == name })
}

package wire

import (
	"context"
	"slices"

	"parley/actors/presence"
	"parley/actors/queue"
	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/markdown"
)

// Server is the running server as endpoints see it.
type Server interface {
	Turn(realm.ID, realm.Caller, func(*realm.Turn) (any, error)) (any, error)
	View(realm.ID, realm.Caller, func(realm.View) (any, error)) (any, error)
	// AsyncCommand gives each its turn, in order, and waits for none. It does not keep the slice.
	RunAsync([]AsyncCommand)
	Text(realm.ID, realm.BodyRef) (realm.Body, bool)
	// Dialect is the number of the newest fact on disk that may have changed how texts are rendered.
	MarkdownConfigSeq(realm.ID) realm.Seq
	// Search looks words up in the full-text index, which is as new as what the caller can have seen.
	Search(id realm.ID, words string) (realm.SearchHits, realm.Highlighter, error)
	// Poll answers through its Reply, at once or when something happened; Gone takes a waiting poll back.
	Poll(PollRequest)
	PollAll([]*PollRequest) // keeps each until it is answered, but not the slice
	CancelPoll(PollRequest)
	// Vouched changes when an account does, or whether an organization is open, or which there are: as long as it has not,
	// who was found by a key is found by it again. A change counts from before anybody hears of it.
	AuthVersion() uint64
	// ByKeyHash and ByEmail find accounts for login; both go by what is on disk. What they return does not change.
	AccountByKeyHash(hash [32]byte) (*Account, bool)
	AccountByEmail(id realm.ID, email string) (*Account, bool)
	ReportPresence(id realm.ID, u realm.UserID, active bool) (row presence.Row, tell bool)
	// NotePresence is ReportPresence that nobody waits for. done must not block.
	ReportPresenceAsync(id realm.ID, u realm.UserID, active bool, done func(row presence.Row, tell bool))
	HidePresence(id realm.ID, u realm.UserID) presence.Row
	PresenceSince(id realm.ID, update, oldest int64) []presence.Row
	// SeenSince tells whether users were here at a time, in Unix seconds, or later. It may be asked at any time, and for many.
	ActiveSince(id realm.ID, oldest int64) func(realm.UserID) bool
	PresenceOf(id realm.ID, u realm.UserID) *presence.Row
	// Reached tells whether a user sits at a client now, and whether one of his clients has taken everything up to a fact.
	DeliveryState(id realm.ID, u realm.UserID, fact realm.Seq) (here, heard bool)
}

// PrefetchTexts reads texts before the view that needs them, since they may be on disk. That of a message edited between the
// two is read when it is asked for.
func PrefetchTexts(h Server, id realm.ID, refs []realm.BodyRef) func(realm.BodyRef) (realm.Body, bool) {
	texts := map[realm.BodyRef]realm.Body{}
	for _, ref := range refs {
		if b, ok := h.Text(id, ref); ok {
			texts[ref] = b
		}
	}
	return func(ref realm.BodyRef) (realm.Body, bool) {
		if b, ok := texts[ref]; ok {
			return b, true
		}
		return h.Text(id, ref)
	}
}

// Plain types that the server and its endpoints share, under the names that endpoints use.
type (
	Account             = realm.Account
	Site                = realm.Site
	AsyncCommand        = realm.AsyncCommand
	CommandWithCallback = realm.CommandWithCallback
	PollRequest         = queue.PollRequest
	Reply               = queue.Reply
)

// Tools is what endpoints need of the world outside the realm.
type Tools struct {
	HashPassword  func(password string) (string, error)
	CheckPassword func(password, hash string) (bool, error)
	HashKey       func(secret string) [32]byte
	Token         func(length int) string
	Files         Files
	Thumbnails    ThumbnailQueue // nil: thumbnails are made only on request
	UploadQuota   int64          // bytes of one organization's files; 0: none
	// Sign makes a mark that only this server can make; Signed checks it.
	Sign            func(text string) string
	VerifySignature func(text, mark string) bool
	// Export has a data export written from now on; it does not block.
	StartExport func(realm.ID, realm.Export)
	// Taken: there is an organization of that name.
	SubdomainTaken func(subdomain string) bool
	// JWTKeys are the keys of those who may vouch for people, by string id of the organization.
	JWTKeys    map[string]string
	Version    string
	Generation int64 // Unix seconds of the process start
	Dev        bool  // developmentOnly logins are on
	Renderer   *Renderer
	// FetchPreview reads what a page says of itself; nil if pages are not to be fetched.
	FetchPreview func(ctx context.Context, address string) (markdown.Preview, error)
	// Emails writes the emails that requests cause; nil where the server sends no email.
	Emails EmailComposer
	// Push reaches mobile devices; nil where no push service is configured.
	Push Pusher
	// DailyInvites is how many people an organization may invite by mail in a day; 0: any number.
	DailyInvites int
	// LinkToken is what an organization's invitation link of that number ends in.
	LinkToken func(id realm.ID, link int64) string
	// MailPattern makes mail addresses of channels, with %s for what is before the @: "%s@example.com"; "" if the mail
	// gateway is not set up.
	ChannelMailPattern string
}

// Call is one request on its way through an endpoint.
type Call struct {
	Server  Server
	Tools   *Tools
	Realm   realm.ID
	Site    Site
	Caller  realm.Caller
	Account *Account // nil for visitors
	Params  *form.Values
	Agent   string // the User-Agent header
	// Body is the request's body as it came.
	Body func() []byte
	// Files are the files of a multipart body.
	Files func() ([]File, error)
	// Piece is a body that is a piece of a file; nil for any other.
	Piece *Piece
	// Park takes the request out of its handler; the answer goes through the Reply. gone is called if the client
	// leaves first.
	Park func(gone func()) Reply
	// Guess counts an attempt to tell somebody's password, and refuses when there were too many lately; Guessed forgets them,
	// as one was right.
	CountPasswordAttempt   func(who string) error
	ForgetPasswordAttempts func(who string)
	// Readdress counts somebody's wish for another address, and refuses when there were too many lately.
	CountAddressChange func(who string) error

	ignored []string
}

// Ignored is the parameters that were sent and mean nothing to the endpoint.
func (c *Call) Ignored() []string { return c.ignored }

// markConsumed takes a name off the ignored parameters: a nested form took it.
func (c *Call) markConsumed(name string) {
	c.ignored = slices.DeleteFunc(c.ignored, func(n string) bool { return n == name })
}

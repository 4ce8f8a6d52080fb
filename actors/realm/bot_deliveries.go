package realm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
)

// maxBotDeliveries is how many calls of a bot's service its owner can look at. Each takes up to 500 bytes.
const maxBotDeliveries = 20

// maxDeliveryText bounds the reason and the answer of a call, in bytes.
const maxDeliveryText = 500

// BotDelivery is a call of the service of an outgoing-webhook bot, for the bot's owner.
type BotDelivery struct {
	ID       int64     // of the outbox job
	Time     int64     // when it ended
	Message  MessageID // 0: a test
	Attempts int64
	Status   int64  // of the last HTTP answer; 0: none
	Took     int64  // milliseconds, of all attempts and the pauses between them
	Why      string // reason of the failure; "": the service answered
	Answer   string // beginning of the answer to a test, which is not sent as a message
}

// BotDeliveries is the row of the last calls of a bot's service, oldest first.
type BotDeliveries struct{ List []BotDelivery }

// ServiceCalled says that the call of a bot's service ended.
type ServiceCalled struct {
	Bot      UserID
	Delivery BotDelivery
}

func (f *ServiceCalled) apply(r *Realm) {
	d := r.small.botDeliveries.ensure(f.Bot)
	d.List = append(slices.Clone(d.List), f.Delivery)
	d.List = d.List[max(0, len(d.List)-maxBotDeliveries):]
}

func (*ServiceCalled) notices(*Realm) []Notice { return nil }

// RecordServiceCall records the call of a bot's service, which the server has ended, and that its outbox job is done.
func (t *Turn) RecordServiceCall(bot UserID, d BotDelivery) {
	d.Time, d.Why, d.Answer = t.Now, cutDeliveryText(d.Why), cutDeliveryText(d.Answer)
	if t.users.find(bot) != nil && t.Level() >= deliveriesLevel {
		t.Record(&ServiceCalled{bot, d})
	}
	t.FinishOutboxJobs([]int64{d.ID})
}

// cutDeliveryText shortens a text to maxDeliveryText bytes of valid UTF-8.
func cutDeliveryText(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxDeliveryText)], "")
}

// BotDeliveryList is the answer of ListBotDeliveries.
type BotDeliveryList struct {
	List    []BotDelivery // newest first
	Waiting int           // calls that have not ended
	Secret  string        // see SigningSecret
}

// ListBotDeliveries asks for the last calls of the service of a bot that the caller manages. It records nothing.
type ListBotDeliveries struct{ Bot UserID }

func (c ListBotDeliveries) Decide(t *Turn) (out BotDeliveryList, err error) {
	u, err := t.outgoingBot(c.Bot)
	if err != nil {
		return out, err
	}
	if d := t.small.botDeliveries.find(u.ID); d != nil {
		out.List = slices.Clone(d.List)
		slices.Reverse(out.List)
	}
	out.Waiting = t.small.outboxCount.count[outboxKey{OutboxWebhook, u.ID}]
	out.Secret = t.SigningSecret(u)
	return out, nil
}

// SigningSecret returns the secret with which the calls of a bot's service are signed, in the form of the Standard
// Webhooks specification. It is derived from the bot's API key, so a new key also changes the secret.
func (t *Turn) SigningSecret(bot *User) string {
	h := hmac.New(sha256.New, []byte(t.env.APIKey(bot.ID, bot.KeyEpoch)))
	h.Write([]byte("signatures of outgoing webhooks"))
	return "whsec_" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// outgoingBot returns an outgoing-webhook bot that the caller manages.
func (v View) outgoingBot(bot UserID) (*User, error) {
	u, err := v.ManagedBot(bot)
	if err == nil && (u.Bot != OutgoingWebhook || len(v.BotOf(u.ID).Services) == 0) {
		err = BadRequest("This bot has no service that is called.")
	}
	return u, err
}

// serviceTest is OutboxJob.Why of a test.
const serviceTest = "test"

// TestService asks to call the service of a bot that the caller manages with a test message. Its answer is not sent as
// a message.
type TestService struct{ Bot UserID }

func (c TestService) Decide(t *Turn) (int64, error) {
	u, err := t.outgoingBot(c.Bot)
	switch {
	case err != nil:
		return 0, err
	case t.Level() < deliveriesLevel:
		return 0, errLowLevel()
	case !t.PlaceOpen(PlaceOutgoingWebhooks):
		return 0, ErrPlaceClosed()
	case !u.Active:
		return 0, BadRequest("The bot is deactivated.")
	case !t.hasOutboxCapacity(OutboxWebhook, u.ID, nil):
		return 0, Refuse(Busy, "SERVER_OVERLOADED", "Too many calls of the bot's service are waiting.")
	}
	id := t.nextID("errand")
	t.addOutboxJobs([]OutboxJob{{Kind: OutboxWebhook, User: u.ID, Why: serviceTest}})
	return id, nil
}

// testCall returns the call that tests the service of a bot: a direct message of the bot's owner.
func (v View) testCall(e *OutboxJob, u *User) *ServiceTriggered {
	sender := u.ID
	if owner := v.Find(u.BotOwner); owner != nil && owner.Active {
		sender = owner.ID
	}
	m := MessageInfo{Sender: v.UserInfo(sender), Client: "Internal", Time: e.At,
		Body: &Body{Text: "This is a test.", HTML: "<p>This is a test.</p>"}}
	for _, id := range slices.Compact(slices.Sorted(slices.Values([]UserID{sender, u.ID}))) {
		m.People = append(m.People, v.UserInfo(id))
	}
	return &ServiceTriggered{Bot: v.UserInfo(u.ID), Service: v.BotOf(u.ID).Services[0], Message: m}
}

// IsTest reports whether the call tests the service.
func (e *ServiceTriggered) IsTest() bool { return e.Message.ID == 0 }

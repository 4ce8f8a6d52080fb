package realm

import "slices"

// ServiceTriggered is a message that triggers an outgoing webhook bot: a user mentioned the bot in a channel, or sent
// it a direct message. It is for the server, which then calls the bot's service; clients never get it.
type ServiceTriggered struct {
	Bot     UserInfo
	Mention bool // in a channel; otherwise a direct message
	Service Service
	Message MessageInfo
}

// EventType returns "": no queue gets it. It is no longer recorded, but keeps its number.
func (*ServiceTriggered) EventType() string { return "" }

// serviceJobs returns the outbox jobs for the bots that a message triggers. Messages of bots trigger none, so that two
// bots cannot answer each other forever.
func (t *Turn) serviceJobs(f *MessageSent) (out []OutboxJob) {
	if t.users.must(f.Sender).IsBot() || !t.PlaceOpen(PlaceOutgoingWebhooks) {
		return nil
	}
	concerned := f.People
	if f.Channel != 0 {
		concerned = f.Content.Users
		if bot := t.triggeredByCommand(f); bot != 0 && !slices.Contains(concerned, bot) {
			concerned = append(slices.Clone(concerned), bot)
		}
	}
	for _, id := range concerned {
		if u := t.users.find(id); u != nil && u.Bot == OutgoingWebhook && u.Active && len(t.BotOf(id).Services) > 0 {
			out = append(out, OutboxJob{Kind: OutboxWebhook, User: id, Message: f.ID})
		}
	}
	return out
}

// ServiceCall returns the content of the call for an outbox job, or false if the bot or the message no longer exists,
// or if a command triggered the bot and the bot is no longer allowed to read the message.
func (v View) ServiceCall(e *OutboxJob) (*ServiceTriggered, bool) {
	u, d := v.Find(e.User), v.BotOf(e.User)
	if !v.System || u == nil || !u.Active || len(d.Services) == 0 {
		return nil, false
	}
	if e.Why == serviceTest {
		return v.testCall(e, u), true
	}
	m, err := v.ReadableMessage(e.Message)
	if err != nil || m.Channel != 0 && !v.mentions(e.Message, u.ID) && !v.userMayRead(u.ID, e.Message) {
		return nil, false
	}
	return &ServiceTriggered{Bot: v.UserInfo(u.ID), Mention: m.Channel != 0, Service: d.Services[0], Message: m}, true
}

// mentions reports whether a message mentions a user by name.
func (r *Realm) mentions(id MessageID, u UserID) bool {
	e := r.extra(id, r.message(id))
	return e != nil && containsSorted(e.Mentioned, u)
}

// userMayRead reports whether a user or bot is allowed to read a message.
func (r *Realm) userMayRead(u UserID, id MessageID) bool {
	_, err := r.ViewAs(Caller{User: u}, 0).ReadableMessage(id)
	return err == nil
}

// ReportServiceFailure asks to record that the call of a bot's service failed, and to notify the bot's owner.
type ReportServiceFailure struct {
	Bot      UserID
	Delivery BotDelivery
}

func (c ReportServiceFailure) Decide(t *Turn) (Done, error) {
	bot := t.Find(c.Bot)
	if bot == nil || !bot.Active {
		return Done{}, errNoUser()
	}
	owner := t.Find(bot.BotOwner)
	i, err := t.ViewAs(Caller{System: true}, t.Now).ReadableMessage(c.Delivery.Message)
	if owner != nil && owner.Active && err == nil {
		what := "A message"
		if t.userMayRead(owner.ID, i.ID) { // else the address would tell of a private channel
			what = "[A message](" + t.messageFragment(owner, i) + ")"
		}
		t.NotifyUsers(what+" to your bot "+t.SilentMention(bot.ID)+" could not be passed on to its service:\n\n"+
			QuoteBlock(c.Delivery.Why), owner.ID)
	}
	t.RecordServiceCall(c.Bot, c.Delivery)
	return Done{}, nil
}

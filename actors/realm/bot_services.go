package realm

// ServiceTriggered is a message that concerns an outgoing-webhook bot: a person mentioned it in a channel, or wrote to
// it. It is for the server, not for a client: the bot's service is to be called.
type ServiceTriggered struct {
	Bot     UserInfo
	Mention bool // in a channel; otherwise a direct message
	Service Service
	Message MessageInfo
}

// EventType is empty: no queue hears of it. Nothing records it any more, but its number stays.
func (*ServiceTriggered) EventType() string { return "" }

// serviceJobs is which services a message sets off; messages of bots set off none, so that no two bots talk for ever.
func (t *Turn) serviceJobs(f *MessageSent) (out []OutboxJob) {
	if t.users.must(f.Sender).IsBot() {
		return nil
	}
	concerned := f.People
	if f.Channel != 0 {
		concerned = f.Content.Users
	}
	for _, id := range concerned {
		if u := t.users.find(id); u != nil && u.Bot == OutgoingWebhook && u.Active && len(t.BotOf(id).Services) > 0 {
			out = append(out, OutboxJob{Kind: OutboxWebhook, User: id, Message: f.ID})
		}
	}
	return out
}

// ServiceCall is what the service of an errand's bot is to be told; false if the bot or the message is gone.
func (v View) ServiceCall(e *OutboxJob) (*ServiceTriggered, bool) {
	u, d := v.Find(e.User), v.BotOf(e.User)
	m, err := v.ReadableMessage(e.Message)
	if !v.System || err != nil || u == nil || !u.Active || len(d.Services) == 0 {
		return nil, false
	}
	return &ServiceTriggered{Bot: v.UserInfo(u.ID), Mention: m.Channel != 0, Service: d.Services[0], Message: m}, true
}

// ReportServiceFailure tells a bot's owner that its service could not be called.
type ReportServiceFailure struct {
	Bot     UserID
	Message MessageID
	Why     string
}

func (c ReportServiceFailure) Decide(t *Turn) (Done, error) {
	bot := t.Find(c.Bot)
	if bot == nil || !bot.Active {
		return Done{}, errNoUser()
	}
	owner := t.Find(bot.BotOwner)
	i, err := t.ViewAs(Caller{System: true}, t.Now).ReadableMessage(c.Message)
	if owner == nil || !owner.Active || err != nil {
		return Done{}, err
	}
	t.NotifyUsers("[A message]("+t.messageFragment(owner, i)+") to your bot "+t.SilentMention(bot.ID)+" could not be passed on to its service:\n\n"+QuoteBlock(c.Why), owner.ID)
	return Done{}, nil
}

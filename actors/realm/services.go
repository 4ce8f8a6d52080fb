package realm

// ServiceTriggered is a message that concerns an outgoing-webhook bot: a person mentioned it in a channel, or wrote to
// it. It is for the server, not for a client: the bot's service is to be called.
type ServiceTriggered struct {
	Bot     PersonInfo
	Mention bool // in a channel; otherwise a direct message
	Service Service
	Message MessageInfo
}

// EventType is empty: no queue hears of it, and nothing is kept of it over a restart.
func (*ServiceTriggered) EventType() string { return "" }

// triggers is which services a message sets off; messages of bots set off none, so that no two bots talk for ever.
func (r *Realm) triggers(f *MessageSent, m *MessageInfo) (out []Notice) {
	if r.users.must(f.Sender).IsBot() {
		return nil
	}
	concerned := f.People
	if f.Channel != 0 {
		concerned = f.Content.Users
	}
	for _, id := range concerned {
		u := r.users.find(id)
		if u == nil || u.Bot != OutgoingWebhook || !u.Active {
			continue
		}
		for _, s := range r.BotOf(id).Services {
			out = append(out, Notice{To: []UserID{id}, Event: &ServiceTriggered{Bot: r.Person(id), Mention: f.Channel != 0, Service: s, Message: *m}})
		}
	}
	return out
}

// ServiceFailed tells a bot's owner that its service could not be called.
type ServiceFailed struct {
	Bot     UserID
	Message MessageID
	Why     string
}

func (c ServiceFailed) Decide(t *Turn) (Done, error) {
	bot := t.Find(c.Bot)
	if bot == nil || !bot.Active {
		return Done{}, errNoUser()
	}
	owner := t.Find(bot.BotOwner)
	i, err := t.ViewAs(Caller{System: true}, t.Now).ReadableMessage(c.Message)
	if owner == nil || !owner.Active || err != nil {
		return Done{}, err
	}
	t.Whisper("[A message]("+t.messageAddress(owner, i)+") to your bot "+t.SilentMention(bot.ID)+" could not be passed on to its service:\n\n"+QuoteBlock(c.Why), owner.ID)
	return Done{}, nil
}

package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/markdown/emoji"
)

var reactionEndpoints = []Endpoint{
	CommandFromForm("POST", "/messages/{message_id}/reactions", addReaction, emptyAnswer),
	CommandFromForm("DELETE", "/messages/{message_id}/reactions", removeReaction, emptyAnswer),
}

var reactionEvents = []EventKind{
	Event(func(e *realm.ReactionAdded, to *Recipient) *reactionAddedEvent {
		return &reactionAddedEvent{reactionEvent: newReactionEvent(e.Message, e.Reaction, e.UserName, to)}
	}),
	Event(func(e *realm.ReactionRemoved, to *Recipient) *reactionRemovedEvent {
		return &reactionRemovedEvent{reactionEvent: newReactionEvent(e.Message, e.Reaction, e.UserName, to)}
	}),
}

type reactionAddedEvent struct {
	_ struct{} `const:"type=reaction op=add"`
	reactionEvent
}

type reactionRemovedEvent struct {
	_ struct{} `const:"type=reaction op=remove"`
	reactionEvent
}

type reactionEvent struct {
	Message realm.MessageID `json:"message_id"`
	Who     *reactionUser   `json:"user,omitzero"`
	reactionJSON
}

type reactionJSON struct {
	User realm.UserID     `json:"user_id"`
	Name string           `json:"emoji_name"`
	Code string           `json:"emoji_code"`
	Type reactionTypeJSON `json:"reaction_type"`
}

// reactionUser is for clients that need it; see needsReactionUsers.
type reactionUser struct {
	User  realm.UserID `json:"user_id"`
	ID    realm.UserID `json:"id"`
	Email string       `json:"email"`
	Name  string       `json:"full_name"`
}

func newReaction(r realm.Reaction) reactionJSON {
	return reactionJSON{r.User, r.Name, r.Code, reactionTypeJSON(r.Type)}
}

type addReactionForm struct {
	Message realm.MessageID `path:"message_id"`
	Name    string          `form:"emoji_name,required"`
	Code    string          `form:"emoji_code"`
	Type    string          `form:"reaction_type"`
}

func addReaction(f addReactionForm) realm.AddReaction {
	c := realm.AddReaction{Message: f.Message, Name: f.Name, Code: f.Code, Type: f.Type}
	c.NameCode, _ = emoji.CodeOf(f.Name)
	_, c.KnownCode = emoji.NameOf(f.Code)
	return c
}

type removeReactionForm struct {
	Message realm.MessageID  `path:"message_id"`
	Name    string           `form:"emoji_name"`
	Code    string           `form:"emoji_code"`
	Type    form.Opt[string] `form:"reaction_type"`
}

func removeReaction(f removeReactionForm) realm.RemoveReaction {
	c := realm.RemoveReaction{Message: f.Message, Name: f.Name, Code: f.Code, Type: f.Type.Value}
	c.NameCode, _ = emoji.CodeOf(f.Name)
	return c
}

// newReactionEvent returns the fields of a reaction's event. Clients that need the key user get it with the account's
// id, its placeholder address and its name; name is "" for users that are not allowed to see the account.
func newReactionEvent(id realm.MessageID, r realm.Reaction, name string, to *Recipient) reactionEvent {
	out := reactionEvent{Message: id, reactionJSON: newReaction(r)}
	if to.ReactionUsers {
		if name == "" {
			name = unknownName
		}
		out.Who = &reactionUser{r.User, r.User, dummyEmail(r.User, to.Site), name}
	}
	return out
}

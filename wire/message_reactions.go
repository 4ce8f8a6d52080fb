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
	EventOneOf(func(e *realm.ReactionAdded, to *Recipient) any {
		return reactionEvent("add", e.Message, e.Reaction, e.UserName, to)
	}),
	EventOneOf(func(e *realm.ReactionRemoved, to *Recipient) any {
		return reactionEvent("remove", e.Message, e.Reaction, e.UserName, to)
	}),
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

// reactionEvent returns the event of a reaction. Clients that need the key user get it with the account's id, its
// placeholder address and its name; name is "" for users that are not allowed to see the account.
func reactionEvent(op string, id realm.MessageID, r realm.Reaction, name string, to *Recipient) obj {
	o := obj{"type": "reaction", "op": op, "message_id": id, "user_id": r.User, "emoji_name": r.Name,
		"emoji_code": r.Code, "reaction_type": r.Type}
	if to.ReactionUsers {
		if name == "" {
			name = unknownName
		}
		o["user"] = obj{"user_id": r.User, "id": r.User, "email": dummyEmail(r.User, to.Site), "full_name": name}
	}
	return o
}

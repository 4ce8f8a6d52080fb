package realm

import (
	"slices"
	"strconv"
)

// Namespaces of emoji codes (protocol).
const (
	UnicodeEmoji = "unicode_emoji"
	RealmEmoji   = "realm_emoji"
	ExtraEmoji   = "zulip_extra_emoji"
	extraEmoji   = "zulip" // the only emoji of this namespace
)

// MaxReactionsOfUser is how many reactions one user can have on one message: each is in every answer with the message.
const MaxReactionsOfUser = 100

// AddReaction asks to react to a message with an emoji.
type AddReaction struct {
	Message MessageID
	Name    string
	Code    string // "": follows from the name
	Type    string // "": follows from the name
	// The realm does not know the Unicode emoji: the caller looks them up.
	NameCode  string // code of the Unicode emoji with this name, "" for none
	KnownCode bool   // Code is a Unicode emoji's code
}

func (c AddReaction) Decide(t *Turn) (Done, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	e, err := t.completeEmoji(c)
	if err != nil {
		return Done{}, err
	}
	e.User = me.ID
	existing, own := -1, 0
	for n, x := range i.Reactions {
		if t.SharesBounds(x.User, me.ID) {
			own++
		}
		if x.Type != e.Type || x.Code != e.Code {
			continue
		}
		if x.User == me.ID {
			return Done{}, Refuse(Invalid, "REACTION_ALREADY_EXISTS", "Reaction already exists.")
		}
		if existing < 0 {
			existing = n
		}
	}
	if own >= MaxReactionsOfUser {
		return Done{}, BadRequest("Too many reactions to one message (limit: %d)", MaxReactionsOfUser)
	}
	if existing >= 0 {
		e.Name = i.Reactions[existing].Name // a further user for an emoji that the message has already
	} else if err := t.checkEmoji(e, c); err != nil {
		return Done{}, err
	}
	if i.Channel != 0 {
		t.followOnParticipation(me, i.Channel, i.Topic)
	}
	t.Record(&ReactionAdded{Message: c.Message, Reaction: e})
	return Done{}, nil
}

// emojiByName finds an emoji by name: first the organization's own, then the extra one, then Unicode.
func (t View) emojiByName(c AddReaction) (code, kind string, ok bool) {
	for _, e := range t.activeOrgEmoji() {
		if e.Name == c.Name {
			return strconv.FormatInt(e.ID, 10), RealmEmoji, true
		}
	}
	if c.Name == extraEmoji {
		return extraEmoji, ExtraEmoji, true
	}
	return c.NameCode, UnicodeEmoji, c.NameCode != ""
}

// checkEmoji refuses a name and a code that do not belong together.
func (t View) checkEmoji(e Reaction, c AddReaction) error {
	switch e.Type {
	case RealmEmoji:
		id, err := strconv.ParseInt(e.Code, 10, 64)
		own, ok := t.orgEmojiByID(id)
		switch {
		case err != nil || !ok:
			return BadRequest("Invalid custom emoji.")
		case own.Name != e.Name:
			return BadRequest("Invalid custom emoji name.")
		case own.Deactivated:
			return BadRequest("This custom emoji has been deactivated.")
		}
	case ExtraEmoji:
		if e.Code != extraEmoji {
			return BadRequest("Invalid emoji code.")
		}
		if e.Name != extraEmoji {
			return BadRequest("Invalid emoji name.")
		}
	case UnicodeEmoji:
		if e.Code != c.NameCode && !c.KnownCode {
			return BadRequest("Invalid emoji code.")
		}
		if e.Code != c.NameCode {
			return BadRequest("Invalid emoji name.")
		}
	default:
		return BadRequest("Invalid emoji type.")
	}
	return nil
}

// ReactionAdded says that a user reacted to a message.
type ReactionAdded struct {
	Message  MessageID
	Reaction Reaction
	UserName string // of the user that reacted; notices fills it in for users that can see them
}

func (*ReactionAdded) EventType() string { return "reaction" }

func (f *ReactionAdded) apply(r *Realm) {
	m := r.message(f.Message)
	e := r.changeExtra(f.Message)
	u := f.Reaction.User
	had := r.hasRow(u, f.Message, m)
	e.Reactions = append(e.Reactions, f.Reaction)
	r.index.reacted.Add(int64(f.Message))
	if m.channel != 0 {
		r.topicIndexOf(m).participants[uint32(u)]++
	}
	if !had { // a user that reacts to a message gets a row of it, as read
		rd := r.marks.ensure(u)
		rd.Rows.Add(int64(f.Message))
		rd.Read.Add(int64(f.Message))
	}
}

func (f *ReactionAdded) notices(r *Realm) []Notice {
	return r.reactionNotices(f.Message, f.Reaction.User, func(name string) Event {
		return &ReactionAdded{f.Message, f.Reaction, name}
	})
}

// reactionNotices returns the notices of a reaction. event makes the event with the name of the user that reacted, or
// "" for users that are not allowed to see them.
func (r *Realm) reactionNotices(id MessageID, u UserID, event func(name string) Event) []Notice {
	to := r.messageAudience(id, r.message(id))
	hidden := r.hiddenSenderAudience(to, u)
	if len(hidden) == 0 {
		return []Notice{{To: to, Event: event(r.users.must(u).Name)}}
	}
	return []Notice{
		{To: withoutUsers(to, hidden), Event: event(r.users.must(u).Name)},
		{To: hidden, Event: event("")},
	}
}

// RemoveReaction asks to remove the caller's reaction from a message.
type RemoveReaction struct {
	Message MessageID
	Name    string
	Code    string
	Type    string // "": a Unicode emoji
	// NameCode is the code of the Unicode emoji with this name, "" for none.
	NameCode string
}

func (c RemoveReaction) Decide(t *Turn) (Done, error) {
	me := t.Me()
	i, err := t.WritableMessage(c.Message)
	if err != nil {
		return Done{}, err
	}
	if c.Name == "" && c.Code == "" {
		return Done{}, BadRequest("At least one of the following arguments must be present: emoji_name, emoji_code")
	}
	e := Reaction{Code: c.Code, Type: c.Type}
	if e.Type == "" {
		e.Type = UnicodeEmoji
	}
	if e.Code == "" {
		// The name of the existing reaction decides: a reaction with a deactivated emoji can still be removed.
		at := slices.IndexFunc(i.Reactions, func(x Reaction) bool {
			return x.User == me.ID && x.Name == c.Name && (c.Type == "" || x.Type == c.Type)
		})
		switch code, kind, ok := t.emojiByName(AddReaction{Name: c.Name, NameCode: c.NameCode}); {
		case at >= 0:
			e.Code, e.Type = i.Reactions[at].Code, i.Reactions[at].Type
		case !ok:
			return Done{}, BadRequest("Emoji '%s' does not exist", c.Name)
		default:
			e.Code, e.Type = code, kind
		}
	}
	at := slices.IndexFunc(i.Reactions, func(x Reaction) bool {
		return x.User == me.ID && x.Code == e.Code && x.Type == e.Type
	})
	if at < 0 {
		return Done{}, Refuse(Invalid, "REACTION_DOES_NOT_EXIST", "Reaction doesn't exist.")
	}
	t.Record(&ReactionRemoved{Message: c.Message, Reaction: i.Reactions[at]})
	return Done{}, nil
}

// ReactionRemoved says that a reaction was removed from a message.
type ReactionRemoved struct {
	Message  MessageID
	Reaction Reaction
	UserName string // as in ReactionAdded
}

func (*ReactionRemoved) EventType() string { return "reaction" }

func (f *ReactionRemoved) apply(r *Realm) {
	m := r.message(f.Message)
	e := r.changeExtra(f.Message)
	e.Reactions = slices.DeleteFunc(slices.Clone(e.Reactions), func(x Reaction) bool { return x == f.Reaction })
	if len(e.Reactions) == 0 {
		e.Reactions = nil
		r.index.reacted.Remove(int64(f.Message))
	}
	if m.channel != 0 {
		r.topicIndexOf(m).removeParticipation(f.Reaction.User)
	}
}

func (f *ReactionRemoved) notices(r *Realm) []Notice {
	return r.reactionNotices(f.Message, f.Reaction.User, func(name string) Event {
		return &ReactionRemoved{f.Message, f.Reaction, name}
	})
}

// ResolveEmoji returns the emoji that a request names by any of name, code and type.
func (v View) ResolveEmoji(c AddReaction) (Reaction, error) {
	e, err := v.completeEmoji(c)
	if err != nil {
		return e, err
	}
	return e, v.checkEmoji(e, c)
}

// completeEmoji fills in code and type, as far as the request left them out, from the name.
func (v View) completeEmoji(c AddReaction) (Reaction, error) {
	e := Reaction{Name: c.Name, Code: c.Code, Type: c.Type}
	if e.Code != "" && e.Type != "" {
		return e, nil
	}
	code, kind, ok := v.emojiByName(c)
	if !ok {
		return e, BadRequest("Emoji '%s' does not exist", c.Name)
	}
	if e.Code == "" {
		e.Code = code
	}
	if e.Type == "" {
		e.Type = kind
	}
	return e, nil
}

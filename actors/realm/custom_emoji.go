package realm

import (
	"slices"
	"strings"
)

// CustomEmoji is the row of an emoji of the organization. One that was removed stays: old messages show it.
type CustomEmoji struct {
	ID          int64
	Name        string
	Author      UserID
	Hash        string // of the image's bytes
	Kind        string // content type of the image
	Animated    bool
	Deactivated bool
}

// Limits of emoji; removed ones count, as registrations carry them too.
const (
	maxEmojiName = 100
	maxEmoji     = 5000
)

// File is the emoji's name in addresses.
func (e *CustomEmoji) File() string {
	return UserID(e.ID).String() + "." + strings.TrimPrefix(strings.Replace(e.Kind, "jpeg", "jpg", 1), "image/")
}

// CustomEmojis is every emoji of the organization by id, removed ones too.
func (r *Realm) CustomEmojis() []CustomEmoji { return r.nouns.emoji.list() }

// EmojiFile is the emoji behind an address, or nil.
func (r *Realm) EmojiFile(name string) *CustomEmoji {
	for _, e := range r.nouns.emoji.all() {
		if e.File() == name {
			return e
		}
	}
	return nil
}

// ownEmoji is the organization's active emoji, by id.
func (r *Realm) ownEmoji() (out []OwnEmoji) {
	for _, id := range r.nouns.emoji.keys() {
		if e, _ := r.emojiNumbered(id); !e.Deactivated {
			out = append(out, e)
		}
	}
	return out
}

// emojiNumbered is an emoji of the organization by id, deactivated ones too.
func (r *Realm) emojiNumbered(id int64) (OwnEmoji, bool) {
	e := r.nouns.emoji.find(id)
	if e == nil {
		return OwnEmoji{}, false
	}
	return OwnEmoji{ID: e.ID, Name: e.Name, File: e.File(), Deactivated: e.Deactivated}, true
}

func (r *Realm) activeEmoji(name string) *CustomEmoji {
	for _, e := range r.nouns.emoji.all() {
		if e.Name == name && !e.Deactivated {
			return e
		}
	}
	return nil
}

// EmojiName is an emoji's name in its one spelling.
func EmojiName(name string) string { return strings.ReplaceAll(strings.TrimSpace(name), " ", "_") }

// MayAddEmoji is the checks before the image is looked at. BuiltIn marks a name that means an emoji already.
func (v View) MayAddEmoji(name string, builtIn bool) error {
	me := v.Me()
	switch {
	case me == nil:
		return errMember()
	case me.IsGuest():
		return errGuest()
	case me.IsBot():
		return errBot()
	case name == "":
		return Bad("Emoji name is missing")
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return Bad("Emoji names must contain only lowercase English letters, digits, spaces, dashes, and underscores.")
	case strings.HasSuffix(name, "-") || strings.HasSuffix(name, "_"):
		return Bad("Emoji names must end with either a letter or digit.")
	case len(name) > maxEmojiName:
		return Bad("emoji_name is too long (limit: %d characters)", maxEmojiName)
	case !v.May(me, "can_add_custom_emoji_group"):
		return errPermission()
	case v.activeEmoji(name) != nil:
		return Bad("A custom emoji with this name already exists.")
	case builtIn && !me.IsAdmin():
		return Bad("Only administrators can override default emoji.")
	case v.nouns.emoji.size() >= maxEmoji:
		return Bad("Too many custom emoji (limit: %d)", maxEmoji)
	}
	return nil
}

// AddEmoji asks for an emoji whose image has been kept already.
type AddEmoji struct {
	Name     string
	BuiltIn  bool
	Hash     string
	Kind     string
	Animated bool
}

func (c AddEmoji) Decide(t *Turn) (Done, error) {
	name := EmojiName(c.Name)
	if err := t.MayAddEmoji(name, c.BuiltIn); err != nil {
		return Done{}, err
	}
	t.Record(&EmojiAdded{CustomEmoji{ID: t.nextID("emoji"), Name: name, Author: t.User, Hash: c.Hash, Kind: c.Kind, Animated: c.Animated}})
	return Done{}, nil
}

// EmojiAdded says the organization has a further emoji.
type EmojiAdded struct{ Emoji CustomEmoji }

func (f *EmojiAdded) apply(r *Realm) {
	e := f.Emoji
	r.usedID("emoji", e.ID)
	r.nouns.emoji.put(e.ID, &e)
}

func (f *EmojiAdded) tell(r *Realm) []Notice {
	return []Notice{{To: r.everyone(), Event: &EmojiChanged{Emoji: f.Emoji, All: r.CustomEmojis()}}}
}

// RemoveEmoji asks to take an emoji out of use.
type RemoveEmoji struct{ Name string }

func (c RemoveEmoji) Decide(t *Turn) (Done, error) {
	me, err := t.MemberOnly()
	if err != nil {
		return Done{}, err
	}
	e := t.activeEmoji(c.Name)
	if e == nil {
		return Done{}, Missing("Emoji '" + c.Name + "' does not exist")
	}
	if e.Author != me.ID && !me.IsAdmin() {
		return Done{}, Bad("Must be an organization administrator or emoji author")
	}
	t.Record(&EmojiRemoved{e.ID})
	return Done{}, nil
}

// EmojiRemoved says an emoji is out of use.
type EmojiRemoved struct{ ID int64 }

func (f *EmojiRemoved) apply(r *Realm) { r.nouns.emoji.change(f.ID).Deactivated = true }

func (f *EmojiRemoved) tell(r *Realm) []Notice {
	return []Notice{{To: r.everyone(), Event: &EmojiChanged{Emoji: *r.nouns.emoji.must(f.ID), All: r.CustomEmojis()}}}
}

// EmojiChanged is the event realm_emoji: one emoji was added, or deactivated; clients that follow single changes hear of
// it alone, the others get all of them.
type EmojiChanged struct {
	Emoji CustomEmoji
	All   []CustomEmoji
}

func (*EmojiChanged) EventType() string { return "realm_emoji" }

// usesFile reports whether an emoji shows these bytes.
func (r *Realm) usesFile(hash string) bool {
	return slices.ContainsFunc(r.CustomEmojis(), func(e CustomEmoji) bool { return e.Hash == hash })
}

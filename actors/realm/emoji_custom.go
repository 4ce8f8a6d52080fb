package realm

import (
	"slices"
	"strings"
)

// CustomEmoji is the row of a custom emoji. The rows of removed ones remain, because old messages show them.
type CustomEmoji struct {
	ID          int64
	Name        string
	Author      UserID
	Hash        string // of the image's bytes
	Kind        string // content type of the image
	Animated    bool
	Deactivated bool
}

// Limits of custom emoji. Removed ones count, because registrations contain them too.
const (
	maxEmojiName = 100
	maxEmoji     = 5000
	// MaxEmojiOfUser is how many of them a user below administrator can add, so that one user cannot add all.
	MaxEmojiOfUser = 500
)

// File returns the file name of the emoji in URLs.
func (e *CustomEmoji) File() string {
	return UserID(e.ID).String() + "." + strings.TrimPrefix(strings.Replace(e.Kind, "jpeg", "jpg", 1), "image/")
}

// CustomEmojis returns every custom emoji by ascending id, removed ones too.
func (r *Realm) CustomEmojis() []CustomEmoji { return r.small.emoji.list() }

// EmojiFile returns the emoji with a file name, or nil.
func (r *Realm) EmojiFile(name string) *CustomEmoji {
	for _, e := range r.small.emoji.all() {
		if e.File() == name {
			return e
		}
	}
	return nil
}

// activeOrgEmoji returns the custom emoji that are not removed, by ascending id.
func (r *Realm) activeOrgEmoji() (out []OrgEmoji) {
	for _, id := range r.small.emoji.keys() {
		if e, _ := r.orgEmojiByID(id); !e.Deactivated {
			out = append(out, e)
		}
	}
	return out
}

// orgEmojiByID returns a custom emoji by id, removed ones too.
func (r *Realm) orgEmojiByID(id int64) (OrgEmoji, bool) {
	e := r.small.emoji.find(id)
	if e == nil {
		return OrgEmoji{}, false
	}
	return OrgEmoji{ID: e.ID, Name: e.Name, File: e.File(), Deactivated: e.Deactivated}, true
}

// activeEmojiByName returns the active custom emoji with a name, or nil.
func (r *Realm) activeEmojiByName(name string) *CustomEmoji {
	for _, e := range r.small.emoji.all() {
		if e.Name == name && !e.Deactivated {
			return e
		}
	}
	return nil
}

// EmojiName returns the one spelling of an emoji's name: trimmed, with underscores for spaces.
func EmojiName(name string) string { return strings.ReplaceAll(strings.TrimSpace(name), " ", "_") }

// MayAddEmoji makes the checks that need no look at the image. builtIn says that the name is also the name of a
// built-in emoji.
func (v View) MayAddEmoji(name string, builtIn bool) error {
	me := v.Me()
	switch {
	case me == nil:
		return errNotMember()
	case me.IsGuest():
		return errGuestsNotAllowed()
	case me.IsBot():
		return errBotsNotAllowed()
	case name == "":
		return BadRequest("Emoji name is missing")
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "":
		return BadRequest(
			"Emoji names must contain only lowercase English letters, digits, spaces, dashes, and underscores.")
	case strings.HasSuffix(name, "-") || strings.HasSuffix(name, "_"):
		return BadRequest("Emoji names must end with either a letter or digit.")
	case len(name) > maxEmojiName:
		return BadRequest("emoji_name is too long (limit: %d characters)", maxEmojiName)
	case !v.HasPermission(me, "can_add_custom_emoji_group"):
		return errPermission()
	case v.activeEmojiByName(name) != nil:
		return BadRequest("A custom emoji with this name already exists.")
	case builtIn && !me.IsAdmin():
		return BadRequest("Only administrators can override default emoji.")
	case v.small.emoji.size() >= maxEmoji:
		return BadRequest("Too many custom emoji (limit: %d)", maxEmoji)
	case !me.IsAdmin() && v.emojiOf(me.ID) >= MaxEmojiOfUser:
		return BadRequest("You cannot add more custom emoji (limit: %d)", MaxEmojiOfUser)
	}
	return nil
}

// emojiOf returns how many custom emoji the accounts that count as one with a user have added, removed ones included.
func (r *Realm) emojiOf(u UserID) (n int) {
	for _, e := range r.small.emoji.all() {
		if r.SharesBounds(e.Author, u) {
			n++
		}
	}
	return n
}

// AddEmoji asks for a custom emoji whose image is already stored.
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
	if err := t.checkRegistrationSize(registeredRowBytes); err != nil {
		return Done{}, err
	}
	e := CustomEmoji{ID: t.nextID("emoji"), Name: name, Author: t.User, Hash: c.Hash, Kind: c.Kind,
		Animated: c.Animated}
	t.Record(&EmojiAdded{e})
	return Done{}, nil
}

// EmojiAdded adds a custom emoji.
type EmojiAdded struct{ Emoji CustomEmoji }

func (f *EmojiAdded) apply(r *Realm) {
	e := f.Emoji
	r.reserveID("emoji", e.ID)
	r.small.emoji.put(e.ID, &e)
}

func (f *EmojiAdded) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: &EmojiChanged{Emoji: f.Emoji, All: r.CustomEmojis()}}}
}

// RemoveEmoji asks to deactivate a custom emoji.
type RemoveEmoji struct{ Name string }

func (c RemoveEmoji) Decide(t *Turn) (Done, error) {
	me, err := t.MemberOnly()
	if err != nil {
		return Done{}, err
	}
	e := t.activeEmojiByName(c.Name)
	if e == nil {
		return Done{}, Missing("Emoji '" + c.Name + "' does not exist")
	}
	if e.Author != me.ID && !me.IsAdmin() {
		return Done{}, BadRequest("Must be an organization administrator or emoji author")
	}
	t.Record(&EmojiRemoved{e.ID})
	return Done{}, nil
}

// EmojiRemoved deactivates a custom emoji.
type EmojiRemoved struct{ ID int64 }

func (f *EmojiRemoved) apply(r *Realm) { r.small.emoji.change(f.ID).Deactivated = true }

func (f *EmojiRemoved) notices(r *Realm) []Notice {
	e := &EmojiChanged{Emoji: *r.small.emoji.must(f.ID), All: r.CustomEmojis()}
	return []Notice{{To: r.everyoneAudience(), Event: e}}
}

// EmojiChanged is the event realm_emoji: one emoji was added or deactivated. Clients with the capability for single
// changes get only that one, the others get all of them.
type EmojiChanged struct {
	Emoji CustomEmoji
	All   []CustomEmoji
}

func (*EmojiChanged) EventType() string { return "realm_emoji" }

// emojiUsesFile reports whether the image of a custom emoji has this hash.
func (r *Realm) emojiUsesFile(hash string) bool {
	return slices.ContainsFunc(r.CustomEmojis(), func(e CustomEmoji) bool { return e.Hash == hash })
}

package wire

import (
	"errors"
	"slices"

	"parley/actors/realm"
	"parley/wire/markdown/emoji"
)

var emojiEndpoints = []Endpoint{
	Get("/realm/emoji", func(c *Call, v realm.View, _ noParameters) (*emojisAnswer, error) {
		return &emojisAnswer{emojisByID(v.CustomEmojis(), c.Site)}, nil
	}),
	Custom("POST", "/realm/emoji/{emoji_name}", addEmoji).TakesFile(fileField{imageTypes, MaxEmojiBytes}),
	CommandFromForm("DELETE", "/realm/emoji/{emoji_name}", func(f emojiForm) realm.RemoveEmoji {
		return realm.RemoveEmoji{Name: f.Name}
	}, emptyAnswer),
}

var emojiEvents = []EventKind{
	Events(emojiChanged).sends(formOf[allEmojisEvent](), formOf[emojiAddedEvent](), formOf[emojiEditedEvent](),
		formOf[emojiUpdatedEvent]()),
}

type emojisAnswer struct {
	Emoji map[string]emojiJSON `json:"emoji"`
}

type emojiJSON struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	URL         string       `json:"source_url"`
	Still       *string      `json:"still_url"`
	Deactivated bool         `json:"deactivated"`
	Author      realm.UserID `json:"author_id"`
}

type allEmojisEvent struct {
	_     struct{}             `const:"type=realm_emoji op=update"`
	Emoji map[string]emojiJSON `json:"realm_emoji"`
}

type emojiAddedEvent struct {
	_     struct{}  `const:"type=realm_emoji op=add"`
	Emoji emojiJSON `json:"emoji"`
}

// emojiState is the changed part of an emoji.
type emojiState struct {
	ID   string `json:"emoji_id"`
	Data struct {
		Deactivated bool `json:"deactivated"`
	} `json:"data"`
}

type emojiEditedEvent struct {
	_ struct{} `const:"type=realm_emoji op=edit"`
	emojiState
}

// emojiUpdatedEvent is the older form of emojiEditedEvent.
type emojiUpdatedEvent struct {
	_ struct{} `const:"type=realm_emoji op=update_one"`
	emojiState
}

type emojiForm struct {
	Name string `path:"emoji_name"`
}

// MaxEmojiBytes is the maximum size of the image of an emoji; registrations tell clients in MiB.
const MaxEmojiBytes = 5 << 20

// maxEmojiPixels bounds the memory for decoding an animated emoji to some megabytes.
const maxEmojiPixels = 4 << 20

func addEmoji(c *Call, f emojiForm) (a noFields, _ error) {
	name := realm.EmojiName(f.Name)
	_, builtIn := emoji.CodeOf(name)
	err := checkPermission(c, func(v realm.View) error { return v.MayAddEmoji(name, builtIn) })
	if err != nil {
		return a, err
	}
	files, err := c.Files()
	if err != nil {
		return a, err
	}
	if len(files) != 1 {
		return a, realm.BadRequest("You must upload exactly one file.")
	}
	r, err := files[0].Open()
	if err != nil {
		return a, err
	}
	defer r.Close()
	x, err := c.Tools.Files.SaveUpload(c.Realm, r, MaxEmojiBytes)
	if err != nil {
		return a, refusalOfPicture(c, err, MaxEmojiBytes>>20)
	}
	err = checkEmojiImage(c, x)
	if err == nil {
		_, err = Execute(c, realm.AddEmoji{Name: name, BuiltIn: builtIn, Hash: x.Hash, Kind: x.Type,
			Animated: x.Animated})
	}
	return a, errors.Join(err, c.releaseUpload(x.Hash, err))
}

// checkEmojiImage refuses images that cannot be shown as an emoji. The header of a file does not prove that the rest
// decodes, so the check makes a thumbnail.
func checkEmojiImage(c *Call, x SavedFile) error {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif"}, x.Type) || x.Width <= 0 || x.Height <= 0 {
		return refusalOfPicture(c, ErrNotAnImage, 0)
	}
	if x.Width*x.Height > maxEmojiPixels {
		return refusalOfFile(ErrTooManyPixels, 0)
	}
	_, err := c.Tools.Files.Thumbnail(c.Realm, x.Hash, x.Animated)
	return refusalOfPicture(c, err, 0)
}

// EmojiPath is the part of the path of custom emoji images that follows the organization.
const EmojiPath = "emoji/images/"

func newEmoji(e realm.CustomEmoji, s Site) emojiJSON {
	base := "/user_avatars/" + realmPath(s) + "/" + EmojiPath
	out := emojiJSON{ID: realm.UserID(e.ID).String(), Name: e.Name, URL: base + e.File(), Deactivated: e.Deactivated,
		Author: e.Author}
	if e.Animated {
		out.Still = ptr(base + "still/" + e.File() + ".png")
	}
	return out
}

func emojisByID(list []realm.CustomEmoji, s Site) map[string]emojiJSON {
	out := map[string]emojiJSON{}
	for _, e := range list {
		out[realm.UserID(e.ID).String()] = newEmoji(e, s)
	}
	return out
}

// emojiChanged renders one changed emoji, or the map of all emoji for older clients. A deactivation is sent as two
// events: the protocol documents "edit", but existing clients expect "update_one".
func emojiChanged(e *realm.EmojiChanged, to *Recipient) []any {
	switch {
	case !to.Has(realm.CapIndividualEmoji):
		return []any{&allEmojisEvent{Emoji: emojisByID(e.All, to.Site)}}
	case !e.Emoji.Deactivated:
		return []any{&emojiAddedEvent{Emoji: newEmoji(e.Emoji, to.Site)}}
	}
	state := emojiState{ID: realm.UserID(e.Emoji.ID).String()}
	state.Data.Deactivated = true
	return []any{&emojiEditedEvent{emojiState: state}, &emojiUpdatedEvent{emojiState: state}}
}

package wire

import (
	"errors"
	"slices"

	"parley/actors/realm"
	"parley/wire/markdown/emoji"
)

var emojiEndpoints = []Endpoint{
	Get("/realm/emoji", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		return Answer{"emoji": emojiObjects(v.CustomEmojis(), c.Site)}, nil
	}).Returns("{emoji: {*: Emoji}}"),
	Custom("POST", "/realm/emoji/{emoji_name}", addEmoji).TakesFile(fileField{imageTypes, MaxEmojiBytes}),
	CommandFromForm("DELETE", "/realm/emoji/{emoji_name}", func(f emojiForm) realm.RemoveEmoji {
		return realm.RemoveEmoji{Name: f.Name}
	}, emptyAnswer),
}

var emojiEvents = []EventKind{Events(emojiChanged)}

type emojiForm struct {
	Name string `path:"emoji_name"`
}

// MaxEmojiBytes is the maximum size of the image of an emoji; registrations tell clients in MiB.
const MaxEmojiBytes = 5 << 20

// maxEmojiPixels bounds the memory for decoding an animated emoji to some megabytes.
const maxEmojiPixels = 4 << 20

func addEmoji(c *Call, f emojiForm) (Answer, error) {
	name := realm.EmojiName(f.Name)
	_, builtIn := emoji.CodeOf(name)
	err := checkPermission(c, func(v realm.View) error { return v.MayAddEmoji(name, builtIn) })
	if err != nil {
		return nil, err
	}
	files, err := c.Files()
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		return nil, realm.BadRequest("You must upload exactly one file.")
	}
	r, err := files[0].Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	x, err := c.Tools.Files.SaveUpload(c.Realm, r, MaxEmojiBytes)
	if err != nil {
		return nil, refusalOfPicture(c, err, MaxEmojiBytes>>20)
	}
	err = checkEmojiImage(c, x)
	if err == nil {
		_, err = Execute(c, realm.AddEmoji{Name: name, BuiltIn: builtIn, Hash: x.Hash, Kind: x.Type,
			Animated: x.Animated})
	}
	return Answer{}, errors.Join(err, c.releaseUpload(x.Hash, err))
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

func emojiObject(e realm.CustomEmoji, s Site) obj {
	base := "/user_avatars/" + realmPath(s) + "/" + EmojiPath
	o := obj{"id": realm.UserID(e.ID).String(), "name": e.Name, "source_url": base + e.File(), "still_url": nil,
		"deactivated": e.Deactivated, "author_id": e.Author}
	if e.Animated {
		o["still_url"] = base + "still/" + e.File() + ".png"
	}
	return o
}

func emojiObjects(list []realm.CustomEmoji, s Site) obj {
	o := obj{}
	for _, e := range list {
		o[realm.UserID(e.ID).String()] = emojiObject(e, s)
	}
	return o
}

// emojiChanged renders one changed emoji, or the map of all emoji for older clients. A deactivation is sent as two
// events: the protocol documents "edit", but existing clients expect "update_one".
func emojiChanged(e *realm.EmojiChanged, to *Recipient) []any {
	if !to.Has(realm.CapIndividualEmoji) {
		return []any{obj{"type": "realm_emoji", "op": "update", "realm_emoji": emojiObjects(e.All, to.Site)}}
	}
	if !e.Emoji.Deactivated {
		return []any{obj{"type": "realm_emoji", "op": "add", "emoji": emojiObject(e.Emoji, to.Site)}}
	}
	id := realm.UserID(e.Emoji.ID).String()
	return []any{obj{"type": "realm_emoji", "op": "edit", "emoji_id": id, "data": obj{"deactivated": true}},
		obj{"type": "realm_emoji", "op": "update_one", "emoji_id": id, "data": obj{"deactivated": true}}}
}

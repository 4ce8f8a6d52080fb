package wire

import (
	"parley/actors/realm"
)

type emojiJSON struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	URL         string       `json:"source_url"`
	Still       *string      `json:"still_url"`
	Deactivated bool         `json:"deactivated"`
	Author      realm.UserID `json:"author_id"`
}

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

type deviceJSON struct {
	KeyID        *int64  `json:"push_key_id"`
	TokenID      *string `json:"push_token_id"`
	PendingToken *string `json:"pending_push_token_id"`
	Updated      *int64  `json:"push_token_last_updated_timestamp"`
	Failure      *string `json:"push_registration_error_code"`
}

func devicesByID(list []realm.Device) map[string]deviceJSON {
	out := map[string]deviceJSON{}
	for _, d := range list {
		out[realm.UserID(d.ID).String()] = deviceJSON{d.KeyID, d.TokenID, d.PendingToken, d.Updated, d.Failure}
	}
	return out
}

type integrationJSON struct {
	Name    string         `json:"name"`
	Display string         `json:"display_name"`
	Types   []string       `json:"all_event_types" zero:"null"`
	Config  []configOption `json:"config_options"`
	Options []urlOption    `json:"url_options"`
}

type configOption struct {
	Key       string `json:"key"`
	Label     string `json:"label"`
	Validator string `json:"validator"`
}

type urlOption struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Type  string `json:"input_type"`
}

type attachmentJSON struct {
	ID       int64             `json:"id"`
	Name     string            `json:"name"`
	Path     string            `json:"path_id"`
	Size     int64             `json:"size"`
	Created  int64             `json:"create_time"`
	Messages []realm.MessageID `json:"message_ids"`
}

func newAttachment(d realm.DetachedUpload) attachmentJSON {
	return attachmentJSON{d.ID, d.Name, d.Path, d.Size, d.Created, d.Messages}
}

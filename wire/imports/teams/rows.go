package teams

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// userRow is an account.
type userRow struct {
	ID        string `json:"Id"`
	Name      string `json:"DisplayName"`
	Mail      string `json:"Mail"`
	Principal string `json:"UserPrincipalName"`
}

// guestMark is in the principal names of accounts of other organizations.
const guestMark = "#EXT#"

// email returns the address of an account; "": unknown. The principal name of a guest is no address.
func (u *userRow) email() string {
	if u.Mail == "" && !strings.Contains(u.Principal, guestMark) {
		return u.Principal
	}
	return u.Mail
}

// teamRow is a row of teamsList.json.
type teamRow struct {
	ID          string `json:"GroupsId"`
	Name        string `json:"Name"`
	Privacy     string `json:"Privacy"`
	Description string `json:"Description"`
}

// settingsRow is a row of teamsSettings.json.
type settingsRow struct {
	ID         string `json:"Id"`
	Name       string `json:"DisplayName"`
	Visibility string `json:"Visibility"`
	Archived   bool   `json:"IsArchived"`
}

type memberRow struct {
	User string `json:"UserId"`
}

type channelRow struct {
	ID         string `json:"Id"`
	Name       string `json:"DisplayName"`
	Created    string `json:"CreatedDateTime"`
	Membership string `json:"MembershipType"`
	Archived   bool   `json:"IsArchived"`
}

type messageRow struct {
	ID          string          `json:"Id"`
	Body        *bodyRow        `json:"Body"`
	Created     string          `json:"CreatedDateTime"`
	Edited      string          `json:"LastEditedDateTime"`
	Deleted     string          `json:"DeletedDateTime"`
	Subject     string          `json:"Subject"`
	ReplyTo     string          `json:"ReplyToId"`
	From        *identityRow    `json:"From"`
	Attachments []attachmentRow `json:"Attachments"`
	Mentions    []mentionRow    `json:"Mentions"`
	Reactions   []reactionRow   `json:"Reactions"`
	Type        string          `json:"MessageType"`
	Channel     *placeRow       `json:"ChannelIdentity"`
	Chat        string          `json:"ChatId"`
	Policy      json.RawMessage `json:"PolicyViolation"`
}

type bodyRow struct {
	Type    string `json:"ContentType"`
	Content string `json:"Content"`
}

type placeRow struct {
	Channel string `json:"ChannelId"`
}

// identityRow is who did something: one of its values.
type identityRow struct {
	User         *personRow `json:"User"`
	Application  *personRow `json:"Application"`
	Conversation *personRow `json:"Conversation"`
}

type personRow struct {
	ID   string `json:"Id"`
	Name string `json:"DisplayName"`
}

type mentionRow struct {
	ID        int64        `json:"Id"`
	Text      string       `json:"MentionText"`
	Mentioned *identityRow `json:"Mentioned"`
}

type reactionRow struct {
	Type string       `json:"ReactionType"`
	User *identityRow `json:"User"`
}

type attachmentRow struct {
	ID      string `json:"Id"`
	Type    string `json:"ContentType"`
	URL     string `json:"ContentUrl"`
	Content string `json:"Content"`
	Name    string `json:"Name"`
}

// skipped returns the reason why a message is left out; "": it is imported.
func (m *messageRow) skipped() string {
	switch {
	case m.Type != "" && m.Type != "message", m.Body != nil && strings.HasPrefix(m.Body.Content, "<systemEventMessage"):
		return "system messages are not imported"
	case m.Deleted != "":
		return "deleted"
	case bytes.Contains(bytes.ToLower(m.Policy), []byte("blockaccess")):
		return "blocked by a policy of the organization"
	case m.Body == nil:
		return "without a text"
	case m.From.key() == "":
		return "without a sender"
	case m.sent() <= 0:
		return "the time is impossible"
	}
	return ""
}

// key returns the key of a user or of an app; "": neither.
func (i *identityRow) key() string {
	switch {
	case i == nil:
		return ""
	case i.User != nil && i.User.ID != "":
		return i.User.ID
	case i.Application != nil && i.Application.ID != "":
		return appKey(i.Application.ID)
	}
	return ""
}

// appKey returns the key of an app. Apps and users have numbers of different kinds.
func appKey(id string) string { return "app " + id }

// sent returns when a message was sent, in Unix milliseconds. Its id is the same number.
func (m *messageRow) sent() int64 {
	if at := millis(m.Created); at > 0 {
		return at
	}
	at, err := strconv.ParseInt(m.ID, 10, 64)
	if err != nil {
		return 0
	}
	return at
}

// millis returns a time in Unix milliseconds; 0: there is none.
func millis(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// html returns the text of a message as HTML.
func (m *messageRow) html() string {
	if m.Body.Type == "text" {
		return "<pre>" + escaper.Replace(m.Body.Content) + "</pre>"
	}
	return m.Body.Content
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

package zulip

import (
	"cmp"
	"encoding/json"
)

// The rows of the tables that are read, with the fields that are used.

type row = map[string]any

type recipientRow struct {
	ID     int64 `json:"id"`
	Type   int   `json:"type"`
	TypeID int64 `json:"type_id"`
}

// Types of recipients.
const (
	toUser    = 1
	toChannel = 2
	toGroup   = 3
)

type crossRealmRow struct {
	ID    int64  `json:"id"`
	Email string `json:"email"`
}

type userRow struct {
	ID                          int64   `json:"id"`
	DeliveryEmail               string  `json:"delivery_email"`
	Email                       string  `json:"email"`
	FullName                    string  `json:"full_name"`
	DateJoined                  float64 `json:"date_joined"`
	IsActive                    bool    `json:"is_active"`
	IsMirrorDummy               bool    `json:"is_mirror_dummy"`
	IsBot                       bool    `json:"is_bot"`
	BotType                     int     `json:"bot_type"`
	BotOwner                    int64   `json:"bot_owner"`
	Role                        int     `json:"role"`
	Timezone                    string  `json:"timezone"`
	AvatarSource                string  `json:"avatar_source"`
	AvatarVersion               int     `json:"avatar_version"`
	DefaultSendingStream        int64   `json:"default_sending_stream"`
	DefaultEventsRegisterStream int64   `json:"default_events_register_stream"`
	DefaultAllPublicStreams     bool    `json:"default_all_public_streams"`
	IsImportedStub              bool    `json:"is_imported_stub"`
	IsDeleted                   bool    `json:"is_deleted"`

	settings row
}

// SetColumns sets the values of all columns; see imports.FullRow.
func (u *userRow) SetColumns(v row) { u.settings = v }

type streamRow struct {
	ID               int64   `json:"id"`
	Name             string  `json:"name"`
	Description      string  `json:"description"`
	DateCreated      float64 `json:"date_created"`
	Creator          int64   `json:"creator"`
	Deactivated      bool    `json:"deactivated"`
	InviteOnly       bool    `json:"invite_only"`
	History          *bool   `json:"history_public_to_subscribers"`
	IsWebPublic      bool    `json:"is_web_public"`
	RetentionDays    *int64  `json:"message_retention_days"`
	TopicsPolicy     any     `json:"topics_policy"`
	StreamPostPolicy int     `json:"stream_post_policy"`
	groupSettings    row
}

// SetColumns sets the values of all columns; see imports.FullRow.
func (s *streamRow) SetColumns(v row) { s.groupSettings = v }

type subscriptionRow struct {
	User      int64  `json:"user_profile"`
	Recipient int64  `json:"recipient"`
	Active    bool   `json:"active"`
	IsMuted   bool   `json:"is_muted"`
	Color     string `json:"color"`
	Pinned    bool   `json:"pin_to_top"`
	Desktop   *bool  `json:"desktop_notifications"`
	Audible   *bool  `json:"audible_notifications"`
	Push      *bool  `json:"push_notifications"`
	Email     *bool  `json:"email_notifications"`
	Wildcard  *bool  `json:"wildcard_mentions_notify"`
}

type namedGroupRow struct {
	ID          int64   `json:"id"`
	Pointer     int64   `json:"usergroup_ptr"`
	Name        string  `json:"name"`
	Description string  `json:"description"`
	DateCreated float64 `json:"date_created"`
	Creator     int64   `json:"creator"`
	IsSystem    bool    `json:"is_system_group"`
	Deactivated bool    `json:"deactivated"`

	settings row
}

// SetColumns sets the values of all columns; see imports.FullRow.
func (g *namedGroupRow) SetColumns(v row) { g.settings = v }

// id returns the id that other tables refer to.
func (g *namedGroupRow) id() int64 { return cmp.Or(g.Pointer, g.ID) }

type messageRow struct {
	ID          int64   `json:"id"`
	Sender      int64   `json:"sender"`
	Recipient   int64   `json:"recipient"`
	Subject     string  `json:"subject"`
	Content     string  `json:"content"`
	Rendered    *string `json:"rendered_content"`
	DateSent    float64 `json:"date_sent"`
	Client      int64   `json:"sending_client"`
	LastEdit    float64 `json:"last_edit_time"`
	LastMoved   float64 `json:"last_moved_time"`
	EditHistory *string `json:"edit_history"`

	place string // in the archive
}

type flagsRow struct {
	User    int64 `json:"user_profile"`
	Message int64 `json:"message"`
	Flags   int64 `json:"flags_mask"`
}

type reactionRow struct {
	User    int64  `json:"user_profile"`
	Message int64  `json:"message"`
	Name    string `json:"emoji_name"`
	Code    string `json:"emoji_code"`
	Type    string `json:"reaction_type"`
}

type editRow struct {
	User         int64   `json:"user_id"`
	Timestamp    float64 `json:"timestamp"`
	PrevContent  *string `json:"prev_content"`
	PrevRendered string  `json:"prev_rendered_content"`
	PrevTopic    *string `json:"prev_topic"`
	PrevSubject  *string `json:"prev_subject"`
	Topic        *string `json:"topic"`
	PrevStream   int64   `json:"prev_stream"`
	Stream       int64   `json:"stream"`
}

type attachmentRow struct {
	FileName   string  `json:"file_name"`
	PathID     string  `json:"path_id"`
	Owner      int64   `json:"owner"`
	CreateTime float64 `json:"create_time"`
	Size       int64   `json:"size"`
	Type       *string `json:"content_type"`
	Messages   []int64 `json:"messages"`
	Scheduled  []int64 `json:"scheduled_messages"`
}

type fileRow struct {
	Path   string          `json:"path"`
	S3Path string          `json:"s3_path"`
	User   json.RawMessage `json:"user_profile_id"`
	Name   string          `json:"file_name"`
}

type scheduledRow struct {
	ID        int64   `json:"id"`
	Sender    int64   `json:"sender"`
	Recipient int64   `json:"recipient"`
	Subject   string  `json:"subject"`
	Content   string  `json:"content"`
	Client    int64   `json:"sending_client"`
	At        float64 `json:"scheduled_timestamp"`
	Delivered bool    `json:"delivered"`
	Failed    bool    `json:"failed"`
	Type      int     `json:"delivery_type"`
}

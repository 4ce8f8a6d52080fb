package mattermost

type line struct {
	Type          string      `json:"type"`
	Version       int         `json:"version"`
	Team          *teamRow    `json:"team"`
	Channel       *channelRow `json:"channel"`
	User          *userRow    `json:"user"`
	Bot           *botRow     `json:"bot"`
	Emoji         *emojiRow   `json:"emoji"`
	Post          *postRow    `json:"post"`
	DirectPost    *postRow    `json:"direct_post"`
	DirectChannel *struct{}   `json:"direct_channel"`
}

type teamRow struct {
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Description string `json:"description"`
	Type        string `json:"type"`
}

type channelRow struct {
	Team        string `json:"team"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Type        string `json:"type"`
	Header      string `json:"header"`
	Purpose     string `json:"purpose"`
	DeletedAt   int64  `json:"deleted_at"`
}

type userRow struct {
	Username  string `json:"username"`
	Email     string `json:"email"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	DeleteAt  int64  `json:"delete_at"`
	Picture   string `json:"profile_image"`
	Teams     []struct {
		Name     string `json:"name"`
		Roles    string `json:"roles"`
		Channels []struct {
			Name     string `json:"name"`
			Favorite bool   `json:"favorite"`
		} `json:"channels"`
	} `json:"teams"`
}

type botRow struct {
	Username    string `json:"username"`
	DisplayName string `json:"display_name"`
	Owner       string `json:"owner"`
	DeleteAt    int64  `json:"delete_at"`
}

type emojiRow struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

type postRow struct {
	Team      string   `json:"team"`
	Channel   string   `json:"channel"`
	Members   []string `json:"channel_members"`
	User      string   `json:"user"`
	Message   string   `json:"message"`
	CreateAt  int64    `json:"create_at"` // milliseconds
	Pinned    bool     `json:"is_pinned"`
	FlaggedBy []string `json:"flagged_by"`
	Reactions []struct {
		User string `json:"user"`
		Name string `json:"emoji_name"`
	} `json:"reactions"`
	Replies     []postRow `json:"replies"`
	Attachments []struct {
		Path string `json:"path"`
	} `json:"attachments"`
	Followers []struct {
		User string `json:"user"`
	} `json:"thread_followers"`
}

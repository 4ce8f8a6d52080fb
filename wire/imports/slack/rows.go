package slack

import (
	"encoding/json"
	"strconv"
	"strings"
)

type userRow struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Deleted *bool  `json:"deleted"`
	Real    string `json:"real_name"`
	TZ      string `json:"tz"`
	Profile struct {
		Real       string `json:"real_name"`
		Normalized string `json:"real_name_normalized"`
		First      string `json:"first_name"`
		Email      string `json:"email"`
		Phone      string `json:"phone"`
		Skype      string `json:"skype"`
		Fields     fields `json:"fields"`
	} `json:"profile"`
	Admin      bool `json:"is_admin"`
	Owner      bool `json:"is_owner"`
	Primary    bool `json:"is_primary_owner"`
	Restricted bool `json:"is_restricted"`
	Ultra      bool `json:"is_ultra_restricted"`
	Bot        bool `json:"is_bot"`
}

// fields are the values of custom profile fields. Slack writes an empty list if there are none.
type fields map[string]struct {
	Value string `json:"value"`
}

func (f *fields) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	type plain fields
	return json.Unmarshal(data, (*plain)(f))
}

type channelRow struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Created  number   `json:"created"`
	Creator  string   `json:"creator"`
	Archived bool     `json:"is_archived"`
	Members  []string `json:"members"`
	Purpose  struct {
		Value string `json:"value"`
	} `json:"purpose"`
}

// number is a number that may be written as a text.
type number int64

func (n *number) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && f > 0 && f < 1<<33 {
		*n = number(f)
	}
	return nil
}

type messageRow struct {
	User     string  `json:"user"`
	Text     *string `json:"text"`
	TS       string  `json:"ts"`
	Subtype  string  `json:"subtype"`
	ThreadTS string  `json:"thread_ts"`
	Mimetype string  `json:"mimetype"`
	Edited   *struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Reactions []struct {
		Name  string   `json:"name"`
		Users []string `json:"users"`
	} `json:"reactions"`
	Files   []fileRow `json:"files"`
	File    *fileRow  `json:"file"`
	Comment *struct {
		User string `json:"user"`
	} `json:"comment"`
	Profile *struct {
		Real string `json:"real_name"`
		Name string `json:"name"`
	} `json:"user_profile"`
}

type fileRow struct {
	ID       string `json:"id"`
	User     string `json:"user"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	Mimetype string `json:"mimetype"`
	Mode     string `json:"mode"`
	Access   string `json:"file_access"`
	URL      string `json:"url_private"`
	Created  number `json:"timestamp"`
	Size     number `json:"size"`
}

// sender returns the id of the user that wrote a message; "": unknown.
func (m *messageRow) sender() string {
	switch {
	case m.Subtype == "file_comment" && m.Comment != nil && m.Comment.User != "":
		return m.Comment.User
	case m.User != "":
		return m.User
	case m.File != nil:
		return m.File.User
	}
	return ""
}

// skipped returns the reason why a message is left out; "": it is imported.
func (m *messageRow) skipped() string {
	switch m.Subtype {
	case "pinned_item", "unpinned_item", "channel_join", "channel_leave", "channel_name":
		return "a notice of Slack: " + m.Subtype
	}
	switch {
	case m.User == "U00" || m.Mimetype == "application/vnd.slack-docs":
		return "a notice or document of Slack"
	case m.sender() == "":
		return "without a sender (a message of an integration)"
	case m.Text == nil:
		return "without a text"
	}
	return ""
}

// micros returns a time of Slack, "seconds.fraction", in microseconds; false if it is invalid.
func micros(ts string) (int64, bool) {
	whole, fraction, _ := strings.Cut(ts, ".")
	fraction = (fraction + "000000")[:6]
	s, err1 := strconv.ParseInt(whole, 10, 64)
	f, err2 := strconv.ParseUint(fraction, 10, 32)
	return s*1_000_000 + int64(f), err1 == nil && err2 == nil && s >= 0 && s < 1<<33
}

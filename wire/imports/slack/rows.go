package slack

import (
	"math/big"
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

// fields are the values of custom profile fields.
type fields map[string]struct {
	Value string `json:"value"`
}

type channelRow struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Created  int64    `json:"created"`
	Creator  string   `json:"creator"`
	Archived bool     `json:"is_archived"`
	Members  []string `json:"members"`
	Purpose  struct {
		Value string `json:"value"`
	} `json:"purpose"`
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
	Created  int64  `json:"timestamp"`
	Size     int64  `json:"size"`
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

// micros returns a time of Slack, "seconds.fraction", in microseconds; false if it is invalid. Numbers may be written
// with an exponent.
func micros(ts string) (int64, bool) {
	ts = strings.TrimSpace(ts)
	if len(ts) > maxTime {
		return 0, false
	}
	if strings.ContainsAny(ts, "eE") {
		f, _, err := big.ParseFloat(ts, 10, 128, big.ToNearestEven)
		if err != nil || f.Sign() < 0 || f.Cmp(big.NewFloat(1<<33)) >= 0 {
			return 0, false
		}
		ts = f.Text('f', 6)
	}
	whole, fraction, _ := strings.Cut(ts, ".")
	fraction = (fraction + "000000")[:6]
	s, err1 := strconv.ParseInt(whole, 10, 64)
	f, err2 := strconv.ParseUint(fraction, 10, 32)
	return s*1_000_000 + int64(f), err1 == nil && err2 == nil && s > 0 && s < 1<<33
}

// maxTime limits the texts of times in bytes: Slack writes 17.
const maxTime = 64

// identity returns a time of Slack as the identity of its message: the same for each way of writing it. at is the time
// in microseconds.
func identity(ts string, at int64) string {
	_, fraction, _ := strings.Cut(ts, ".")
	if len(fraction) <= 6 || strings.ContainsAny(ts, "eE") {
		return strconv.FormatInt(at, 10)
	}
	return strconv.FormatInt(at, 10) + strings.TrimRight(fraction[6:], "0")
}

// reactions returns the number of reactions of a message.
func (m *messageRow) reactions() (n int) {
	for _, e := range m.Reactions {
		n += len(e.Users)
	}
	return n
}

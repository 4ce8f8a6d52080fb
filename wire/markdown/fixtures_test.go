package markdown

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// fixturesFile holds the cases that clients and servers of the protocol share. Each result must be equal in all
// bytes.
const fixturesFile = "../../../shared/fixtures/markdown-cases.json"

// knownDifferences lists the cases with another result, and the reason. A case that passes must leave the list.
var knownDifferences = map[string]string{
	"timestamp_invalid_input":    noTime,
	"timestamp_incorrect":        noTime,
	"timestamp_invalid_timezone": noTime,
}

// noTime is a difference by level 451 of the protocol. The fixtures are older.
const noTime = "what is no time remains plain text"

type fixtures struct {
	Regular []struct {
		Name      string  `json:"name"`
		Input     string  `json:"input"`
		Expected  string  `json:"expected_output"`
		Text      *string `json:"text_content"`
		Emoticons bool    `json:"translate_emoticons"`
	} `json:"regular_tests"`
	Linkify [][3]string `json:"linkify_tests"`
}

func readFixtures(t *testing.T) (f fixtures) {
	data, err := os.ReadFile(fixturesFile)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the shared fixtures are not here:", fixturesFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// testLookup is a small organization for tests.
type testLookup struct{ EmptyLookup }

func (testLookup) UserByName(name string) (User, bool) {
	switch strings.ToLower(name) {
	case "ann lee":
		return User{12, "Ann Lee", true}, true
	case "zoe":
		return User{7, "Zoe", true}, true
	case "gone":
		return User{13, "Gone", false}, true
	case "a & b <c>":
		return User{14, "A & B <C>", true}, true
	}
	return User{}, false
}

func (t testLookup) UserByID(id int64) (User, bool) {
	for _, name := range []string{"ann lee", "zoe", "gone"} {
		if u, _ := t.UserByName(name); u.ID == id {
			return u, true
		}
	}
	if id == 99 {
		return User{99, "all", true}, true
	}
	return User{}, false
}

func (testLookup) GroupByName(name string) (Group, bool) {
	switch name {
	case "ops":
		return Group{ID: 5, Name: "ops", Active: true}, true
	case "old":
		return Group{ID: 6, Name: "old"}, true
	case "role:administrators":
		return Group{ID: 1, Name: name, DisplayName: "Administrators", Active: true, System: true}, true
	}
	return Group{}, false
}

func (testLookup) Channel(name string) (Channel, bool) {
	switch name {
	case "dev":
		return Channel{3, "dev", true}, true
	case "big news.":
		return Channel{4, "big news.", true}, true
	case "board":
		return Channel{5, "board", false}, true
	}
	return Channel{}, false
}

func (testLookup) Topic(channel int64, topic string) (int64, bool) {
	return 77, channel == 3 && topic == "big plan"
}

func (testLookup) Emoji(name string) (CustomEmoji, bool) {
	switch name {
	case "party":
		return CustomEmoji{ID: 1, File: "1.png"}, true
	case "smile_cat":
		return CustomEmoji{ID: 2, File: "2.gif"}, true
	}
	return CustomEmoji{}, false
}

func (testLookup) Upload(id string) (UploadMeta, bool) {
	switch id {
	case "2/ab/cat.png":
		return UploadMeta{ContentType: "image/png", Width: 30, Height: 20, Thumbnailed: true}, true
	case "2/ab/new.png":
		return UploadMeta{ContentType: "image/png", Width: 30, Height: 20}, true
	case "2/ab/fun.gif":
		return UploadMeta{ContentType: "image/gif", Width: 3, Height: 2, Thumbnailed: true, Animated: true}, true
	case "2/ab/film.mp4":
		return UploadMeta{ContentType: "video/mp4"}, true
	case "2/ab/song.mp3":
		return UploadMeta{ContentType: "audio/mpeg"}, true
	case "2/ab/text.txt":
		return UploadMeta{ContentType: "text/plain"}, true
	}
	return UploadMeta{}, false
}

func testOptions() *Options {
	return &Options{RealmURL: "http://zulip.testserver", RealmID: "2", InlineImages: true,
		ImageProxy: func(url string) string {
			mac := hmac.New(sha1.New, []byte("dummy")) // the key of the fixtures
			mac.Write([]byte(url))
			return "https://external-content.zulipcdn.net/external_content/" + hex.EncodeToString(mac.Sum(nil)) + "/" +
				hex.EncodeToString([]byte(url))
		}}
}

func TestFixtures(t *testing.T) {
	f := readFixtures(t)
	passed := 0
	for _, c := range f.Regular {
		o := testOptions()
		o.Emoticons = c.Emoticons
		got, err := Render(c.Input, testLookup{}, o)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		reason, listed := knownDifferences[c.Name]
		html, want := got.HTML, c.Expected
		switch {
		case html == want && listed:
			t.Errorf("%s passes now: remove it from knownDifferences (%s)", c.Name, reason)
		case html == want:
			passed++
		case !listed:
			t.Errorf("%s\ninput: %q\n got: %q\nwant: %q", c.Name, c.Input, html, want)
		}
	}
	t.Logf("%d of %d regular cases are byte-equal", passed, len(f.Regular))
	if passed*100 < 95*len(f.Regular) {
		t.Errorf("only %d of %d regular cases are byte-equal", passed, len(f.Regular))
	}
}

func TestLinkifyFixtures(t *testing.T) {
	f := readFixtures(t)
	for _, c := range f.Linkify {
		input, want, link := c[0], c[1], c[2]
		if link != "" {
			href := link
			switch {
			case strings.Contains(link, "@") && !strings.Contains(link, "//"):
				href = "mailto:" + link
			case !strings.HasPrefix(link, "http"):
				href = "http://" + link
			}
			want = strings.Replace(want, "%s", `<a href="`+href+`">`+link+`</a>`, 1)
		}
		o := testOptions()
		o.InlineImages = false
		got, err := Render(input, testLookup{}, o)
		if err != nil || got.HTML != want {
			t.Errorf("%q\n got: %q %v\nwant: %q", input, got.HTML, err, want)
		}
	}
	t.Logf("%d linkify cases", len(f.Linkify))
}

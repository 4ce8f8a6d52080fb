package wire

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// chapters are the first words of file names in actors/realm and wire: the subject of the file.
var chapters = []string{"answer", "audit", "bot", "channel", "emoji", "endpoint", "file", "group", "invite", "login",
	"mail", "message", "org", "outbox", "push", "queue", "realm", "search", "topic", "upload", "user", "webhook"}

// cores are the files that every reader opens first; they have one word.
var cores = []string{"audience.go", "bounds.go", "doc.go", "endpoint.go", "facts.go", "realm.go", "server.go",
	"settings.go"}

// facesAlone are files of wire without a rule of the same name in actors/realm, each with its reason.
var facesAlone = map[string]string{
	"bot_storage.go":          "a table of values, whose rule is in bot_accounts.go",
	"channel_events.go":       "events of all rules of channels, which share their objects",
	"mail_composer.go":        "the interface of the package that writes emails",
	"message_call_links.go":   "links to calls are no state of the organization",
	"message_content.go":      "chooses Markdown or HTML for answers",
	"message_edit_history.go": "computed from the revisions that message_edit.go records",
	"message_events.go":       "the fast encoder of message events",
	"message_gifs.go":         "what a provider has is no state of the organization",
	"message_page.go":         "the size of an answer with messages",
	"message_rendering.go":    "rendering comes before the turn",
	"message_send_fast.go":    "the fast path of message_send.go",
	"message_sender.go":       "the sender's name and picture as one reader sees them",
	"message_widgets.go":      "polls and todo lists are parsed before the turn",
	"user_email_address.go":   "links of confirmation emails",
	"user_presence_fast.go":   "the fast path of user_presence.go",
	"user_timezones.go":       "names of time zones",
	"user_zcommands.go":       "commands of the compose box, which stand for settings",
	"push_web.go":             "subscriptions of browsers, which are push tokens",
	"upload_resumable.go":     "the protocol of uploads in parts",
	"upload_thumbnails.go":    "sizes and formats of thumbnails are the protocol's",
}

// withoutRule are chapters of wire that are about the protocol, not about rules.
var withoutRule = []string{"answer", "endpoint", "file", "login", "queue", "webhook"}

// TestFileNames holds that a file is named by chapter and noun, and that a face has the name of its rule.
func TestFileNames(t *testing.T) {
	rules := goFileNames(t, "../actors/realm")
	faces := goFileNames(t, ".")
	for _, f := range append(slices.Clone(rules), faces...) {
		chapter, _, ok := strings.Cut(strings.TrimSuffix(f, ".go"), "_")
		if !slices.Contains(cores, f) && (!ok || !slices.Contains(chapters, chapter)) {
			t.Errorf("%s: a file is named chapter_noun.go; the chapters are %v", f, chapters)
		}
	}
	for _, f := range faces {
		chapter, _, _ := strings.Cut(f, "_")
		free := slices.Contains(cores, f) || slices.Contains(withoutRule, chapter) || facesAlone[f] != ""
		if !free && !slices.Contains(rules, f) {
			t.Errorf("wire/%s: there is no actors/realm/%s; use the rule's name, or add a reason to facesAlone", f, f)
		}
	}
	for f := range facesAlone {
		if !slices.Contains(faces, f) {
			t.Errorf("facesAlone names %s, which does not exist", f)
		}
	}
}

// goFileNames returns the names of the Go files in dir, tests apart.
func goFileNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			out = append(out, e.Name())
		}
	}
	return out
}

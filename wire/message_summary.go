package wire

import (
	"html"
	"slices"
	"strings"

	"parley/actors/realm"
	"parley/wire/form"
	"parley/wire/markdown"
)

// Assistant makes summaries and translations with services of the operator's choice; see package assist. Its methods
// wait for the service and return refusals.
type Assistant interface {
	// Offers reports whether the server makes summaries and translations.
	Offers() (summaries, translations bool)
	// Summarize returns a summary as plain text.
	Summarize(by Asker, messages []AssistedMessage) (string, error)
	// Translate returns a text in the language with a code of realm.Languages, as plain text.
	Translate(by Asker, text, language string) (string, error)
}

// Asker is a user who asks for a summary or translation.
type Asker struct {
	Realm realm.ID
	User  realm.UserID
}

// AssistedMessage is a message as a service gets it. Its text is that of notifications: without addresses of links and
// hidden parts of spoilers.
type AssistedMessage struct {
	Sender string `json:"sender"`
	Text   string `json:"text"`
}

const (
	// maxSummarized is how many messages a summary is made of (protocol).
	maxSummarized = 100
	// maxAssistedText bounds the texts of a request in bytes: about 10,000 tokens of a model.
	maxAssistedText = 40_000
)

var summaryEndpoints = []Endpoint{
	Custom("GET", "/messages/summary", summarize).atOwner(),
	Custom("GET", "/messages/{message_id}/translation", translate).atOwner().
		extension("translations of messages by a service of the operator's choice"),
}

type summaryForm struct {
	Narrow form.Narrow `form:"narrow"`
}

type summaryAnswer struct {
	Summary string `json:"summary"` // HTML
}

// offers reports whether the server makes summaries and translations for users of the caller's organization, if its
// owners agree.
func (c *Call) offers() (summaries, translations bool) {
	if c.Tools.Assistant == nil {
		return false, false
	}
	return c.Tools.Assistant.Offers()
}

// summarize returns a summary of the newest messages of a narrow that the caller can read.
func summarize(c *Call, f summaryForm) (*summaryAnswer, error) {
	if summaries, _ := c.offers(); !summaries {
		return nil, realm.BadRequest("Topic summaries are not enabled on this server.")
	}
	if err := checkPermission(c, realm.View.MaySummarize); err != nil {
		return nil, err
	}
	terms, query := narrowTerms(f.Narrow)
	search, err := newNarrowSearch(c, query)
	if err != nil {
		return nil, err
	}
	newest := realm.Anchor{Kind: realm.AnchorNewest}
	page, err := search.page(c, terms, realm.PageRange{Anchor: newest, Before: maxSummarized})
	if err != nil {
		return nil, err
	}
	messages, err := assistedMessages(c, page.IDs[max(0, len(page.IDs)-maxSummarized):])
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, realm.BadRequest("No messages in conversation to summarize")
	}
	text, err := c.Tools.Assistant.Summarize(Asker{c.Realm, c.Caller.User}, messages)
	if err != nil {
		return nil, err
	}
	return &summaryAnswer{plainHTML(text)}, nil
}

// assistedMessages returns those of the messages that the caller can read, oldest first. If their texts are too long
// together, the oldest ones are left out.
func assistedMessages(c *Call, list []realm.MessageID) (out []AssistedMessage, err error) {
	size := 0
	err = forEachMessage(c, list, func(m *realm.VisibleMessage, body realm.Body) error {
		text := assistedText(body)
		name := m.Sender.Name
		if m.SenderHidden {
			name = unknownName
		}
		out = append(out, AssistedMessage{name, text})
		for size += len(text); size > maxAssistedText; out = out[1:] {
			size -= len(out[0].Text)
		}
		return nil
	})
	return out, err
}

// assistedText returns the text of a message for a service, cut to maxAssistedText.
func assistedText(body realm.Body) string {
	text := markdown.PlainText(body.HTML)
	return strings.ToValidUTF8(text[:min(len(text), maxAssistedText)], "")
}

type translationForm struct {
	Message  realm.MessageID  `path:"message_id"`
	Language form.Opt[string] `form:"language"`
}

type translationAnswer struct {
	Translation string `json:"translation"` // HTML
}

// translate returns the text of a message that the caller can read in another language, by default that of the caller.
func translate(c *Call, f translationForm) (*translationAnswer, error) {
	if _, translations := c.offers(); !translations {
		return nil, realm.BadRequest("Translations are not enabled on this server.")
	}
	language := f.Language.Value
	m, err := Read(c, func(v realm.View) (m realm.VisibleMessage, err error) {
		if err = v.MayTranslate(); err != nil {
			return m, err
		}
		if !f.Language.Set {
			language = v.Me().TextSetting("default_language")
		}
		return v.VisibleMessage(f.Message)
	})
	if err != nil {
		return nil, err
	}
	if realm.Languages[language] == "" {
		return nil, realm.BadRequest("Invalid language '%s'", language)
	}
	fetchTexts(c, []realm.VisibleMessage{m})
	body, ok, err := c.Server.Text(c.Realm, m.Ref)
	if err != nil {
		return nil, err
	}
	text := assistedText(body)
	if !ok || text == "" {
		return nil, realm.BadRequest("Invalid message(s)")
	}
	text, err = c.Tools.Assistant.Translate(Asker{c.Realm, c.Caller.User}, text, language)
	if err != nil {
		return nil, err
	}
	return &translationAnswer{plainHTML(text)}, nil
}

// plainHTML returns plain text as HTML: paragraphs, and lists of lines that begin with a hyphen or a star. Nothing else
// in it has a meaning: there are no mentions, links and pictures.
func plainHTML(text string) string {
	var b strings.Builder
	var items []string
	endList := func() {
		if len(items) > 0 {
			b.WriteString("<ul>\n<li>" + strings.Join(items, "</li>\n<li>") + "</li>\n</ul>\n")
		}
		items = nil
	}
	for line := range strings.Lines(text) {
		line = html.EscapeString(strings.TrimSpace(line))
		if slices.Contains([]string{"- ", "* "}, line[:min(2, len(line))]) {
			items = append(items, strings.TrimSpace(line[2:]))
			continue
		}
		endList()
		if line != "" {
			b.WriteString("<p>" + line + "</p>\n")
		}
	}
	endList()
	return strings.TrimSuffix(b.String(), "\n")
}

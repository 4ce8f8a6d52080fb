package wire

import (
	"html"
	"slices"
	"strings"
	"unicode/utf8"

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
	// BeginSummary and BeginTranslation start to write such a text. They return it if it is known, else the id with
	// which it is read and stopped.
	BeginSummary(by Asker, messages []AssistedMessage) (AssistedPart, error)
	BeginTranslation(by Asker, text, language string) (AssistedPart, error)
	// ReadPart waits some seconds until a text has more than a number of characters, or is complete.
	ReadPart(by Asker, id string, after int) (AssistedPart, error)
	// StopPart stops the writing of a text.
	StopPart(by Asker, id string) error
}

// AssistedPart is a text so far.
type AssistedPart struct {
	ID       string // "": the text was known
	Text     string // plain text
	Complete bool
	Error    string // why it will not be complete
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
	Custom("POST", "/assisted_texts", beginAssistedText).extension(assistedReason),
	Custom("GET", "/assisted_texts/{text_key}", readAssistedText).atOwner().extension(assistedReason),
	Custom("DELETE", "/assisted_texts/{text_key}", stopAssistedText).extension(assistedReason),
}

const assistedReason = "summaries and translations that are shown while they are written"

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
	messages, err := messagesToSummarize(c, f.Narrow)
	if err != nil {
		return nil, err
	}
	text, err := c.Tools.Assistant.Summarize(c.asker(), messages)
	if err != nil {
		return nil, err
	}
	return &summaryAnswer{plainHTML(text)}, nil
}

func (c *Call) asker() Asker { return Asker{c.Realm, c.Caller.User} }

// messagesToSummarize returns the newest messages of a narrow that the caller can read. It refuses a caller that is not
// allowed to have them summarized.
func messagesToSummarize(c *Call, narrow form.Narrow) ([]AssistedMessage, error) {
	if summaries, _ := c.offers(); !summaries {
		return nil, realm.BadRequest("Topic summaries are not enabled on this server.")
	}
	if err := checkPermission(c, realm.View.MaySummarize); err != nil {
		return nil, err
	}
	terms, query := narrowTerms(narrow)
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
	if err == nil && len(messages) == 0 {
		err = realm.BadRequest("No messages in conversation to summarize")
	}
	return messages, err
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
	text, language, err := textToTranslate(c, f)
	if err != nil {
		return nil, err
	}
	text, err = c.Tools.Assistant.Translate(c.asker(), text, language)
	if err != nil {
		return nil, err
	}
	return &translationAnswer{plainHTML(text)}, nil
}

// textToTranslate returns the text of a message that the caller can read, and the language that the caller wants. It
// refuses a caller that is not allowed to have it translated.
func textToTranslate(c *Call, f translationForm) (text, language string, err error) {
	if _, translations := c.offers(); !translations {
		return "", "", realm.BadRequest("Translations are not enabled on this server.")
	}
	language = f.Language.Value
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
		return "", "", err
	}
	if realm.Languages[language] == "" {
		return "", "", realm.BadRequest("Invalid language '%s'", language)
	}
	fetchTexts(c, []realm.VisibleMessage{m})
	body, ok, err := c.Server.Text(c.Realm, m.Ref)
	if err != nil {
		return "", "", err
	}
	text = assistedText(body)
	if !ok || text == "" {
		return "", "", realm.BadRequest("Invalid message(s)")
	}
	return text, language, nil
}

// assistedForm asks for the summary of a narrow, or for the translation of a message.
type assistedForm struct {
	Narrow   form.Opt[form.Narrow]     `form:"narrow"`
	Message  form.Opt[realm.MessageID] `form:"message_id"`
	Language form.Opt[string]          `form:"language"`
}

// assistedAnswer is a text so far.
type assistedAnswer struct {
	ID         string `json:"text_key"`
	Text       string `json:"text"` // HTML
	Characters int    `json:"characters"`
	Complete   bool   `json:"complete"`
	Error      string `json:"error,omitzero"` // the text remains incomplete
}

func newAssistedAnswer(p AssistedPart, err error) (*assistedAnswer, error) {
	if err != nil {
		return nil, err
	}
	return &assistedAnswer{p.ID, plainHTML(p.Text), utf8.RuneCountInString(p.Text), p.Complete, p.Error}, nil
}

// beginAssistedText starts a summary or translation.
func beginAssistedText(c *Call, f assistedForm) (*assistedAnswer, error) {
	if f.Narrow.Set == f.Message.Set {
		return nil, realm.BadRequest("Either 'narrow' or 'message_id' is required")
	}
	if f.Narrow.Set {
		messages, err := messagesToSummarize(c, f.Narrow.Value)
		if err != nil {
			return nil, err
		}
		return newAssistedAnswer(c.Tools.Assistant.BeginSummary(c.asker(), messages))
	}
	text, language, err := textToTranslate(c, translationForm{f.Message.Value, f.Language})
	if err != nil {
		return nil, err
	}
	return newAssistedAnswer(c.Tools.Assistant.BeginTranslation(c.asker(), text, language))
}

type readAssistedForm struct {
	ID    string `path:"text_key"`
	After int    `form:"after,min=0,default=0"`
}

// readAssistedText returns more of a text that the caller has started.
func readAssistedText(c *Call, f readAssistedForm) (*assistedAnswer, error) {
	if err := mayReadAssistedText(c); err != nil {
		return nil, err
	}
	return newAssistedAnswer(c.Tools.Assistant.ReadPart(c.asker(), f.ID, f.After))
}

// mayReadAssistedText refuses callers that could not start a text at this moment.
func mayReadAssistedText(c *Call) error {
	if _, translations := c.offers(); !translations { // a server that makes summaries can translate
		return realm.BadRequest("Translations are not enabled on this server.")
	}
	return checkPermission(c, realm.View.MayTranslate)
}

type stopAssistedForm struct {
	ID string `path:"text_key"`
}

// stopAssistedText stops a text that the caller has started.
func stopAssistedText(c *Call, f stopAssistedForm) (*noFields, error) {
	if err := mayReadAssistedText(c); err != nil {
		return nil, err
	}
	return &noFields{}, c.Tools.Assistant.StopPart(c.asker(), f.ID)
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

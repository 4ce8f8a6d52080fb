package teams

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"parley/wire/imports"
)

const (
	// maxQuotes limits the messages that quote each other: a forwarded message can contain one.
	maxQuotes = 2
	// titleBytes limits the text that firstWords reads, in bytes.
	titleBytes = 4 * maxTopic
)

// converter converts the HTML of a message to Markdown.
//
// The text of users is not escaped: the protocol's Markdown shows backslashes. Text that looks like Markdown is read as
// Markdown.
type converter struct {
	*reader
	message *messageRow
	out     *imports.Message
	depth   int    // of quotes
	last    string // key of the user that the text before mentions; "": it has other text
}

// convert returns a text as Markdown. A text that cannot be parsed is returned without its tags.
func (c *converter) convert(text string, depth int) string {
	root, err := html.Parse(strings.NewReader(text))
	if err != nil { // nested too deeply for the parser
		c.sink.DropAt("values", "the text is nested too deeply: its format is left out", c.out.Place)
		return firstText(text, len(text))
	}
	before := c.depth
	c.depth = depth
	defer func() { c.depth = before }()
	return strings.TrimSpace(c.blocks(root))
}

// blocks returns the children of a node as paragraphs.
func (c *converter) blocks(n *html.Node) string {
	var done []string
	line := ""
	flush := func(block string) {
		for _, text := range []string{trimLines(line), block} {
			if text != "" {
				done = append(done, text)
			}
		}
		line, c.last = "", ""
	}
	for x := n.FirstChild; x != nil; x = x.NextSibling {
		if block, ok := c.block(x); ok {
			flush(block)
		} else {
			line += c.inline(x)
		}
	}
	flush("")
	return strings.Join(done, "\n\n")
}

// block returns a block; false if the node is a part of a line.
func (c *converter) block(n *html.Node) (string, bool) {
	if n.Type == html.DocumentNode {
		return c.blocks(n), true
	}
	if n.Type != html.ElementNode {
		return "", false
	}
	switch n.Data {
	case "head", "script", "style", "title", "template":
		return "", true
	case "h1", "h2", "h3", "h4", "h5", "h6":
		text := oneLine(c.children(n))
		if text == "" {
			return "", true
		}
		return strings.Repeat("#", int(n.Data[1]-'0')) + " " + text, true
	case "ul", "ol":
		return c.list(n), true
	case "blockquote":
		return quoted(c.blocks(n)), true
	case "pre", "codeblock":
		return fenced(language(n), plainText(n)), true
	case "table":
		return c.table(n), true
	case "hr":
		return "---", true
	case "attachment":
		return c.attachment(attribute(n, "id")), true
	case "html", "body", "p", "div", "section", "article", "header", "footer", "center", "dl", "dt", "dd", "li", "tr",
		"td", "th", "tbody", "thead":
		return c.blocks(n), true
	}
	return "", false
}

// marks are the Markdown marks around the text of an element.
var marks = map[string]string{"strong": "**", "b": "**", "em": "*", "i": "*", "s": "~~", "del": "~~", "strike": "~~"}

// inline returns a part of a line. Lines end with \n.
func (c *converter) inline(n *html.Node) string {
	switch n.Type {
	case html.TextNode:
		text := strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "\u00a0", " ").Replace(n.Data)
		if strings.TrimSpace(text) != "" {
			c.last = ""
		}
		return text
	case html.ElementNode:
	default:
		return ""
	}
	if block, ok := c.block(n); ok { // inside of an element of a line
		c.last = ""
		return "\n" + block + "\n"
	}
	if n.Data != "at" && marks[n.Data] == "" && n.FirstChild == nil {
		c.last = ""
	}
	switch n.Data {
	case "br":
		return "\n"
	case "at":
		return c.mention(n)
	case "emoji":
		return attribute(n, "alt")
	case "customemoji":
		c.sink.Drop("emoji", "the export has no pictures of custom emoji: the text has the name", 1)
		return ":" + strings.Trim(attribute(n, "alt"), ":") + ":"
	case "img":
		return c.picture(n)
	case "a":
		return c.link(n)
	case "code":
		return codeText(plainText(n))
	}
	return emphasize(marks[n.Data], c.children(n))
}

func (c *converter) children(n *html.Node) string {
	var b strings.Builder
	for x := n.FirstChild; x != nil; x = x.NextSibling {
		b.WriteString(c.inline(x))
	}
	return b.String()
}

// emphasize puts marks around a text. Marks do not go around lines, white space, or other marks of the same kind.
func emphasize(mark, text string) string {
	inner := strings.TrimSpace(text)
	if mark == "" || inner == "" || strings.ContainsAny(inner, "\n"+mark[:1]) {
		return text
	}
	at := strings.Index(text, inner)
	return text[:at] + mark + inner + mark + text[at+len(inner):]
}

// mention returns a mention. Teams writes one element for each word of a name.
func (c *converter) mention(n *html.Node) string {
	text := oneLine(plainText(n))
	id, err := strconv.ParseInt(attribute(n, "id"), 10, 64)
	if err != nil {
		return text
	}
	for i := range c.message.Mentions {
		m := &c.message.Mentions[i]
		if m.ID != id || m.Mentioned == nil {
			continue
		}
		if place := m.Mentioned.Conversation; place != nil {
			c.last = ""
			if c.isHere(place.ID) {
				return "@**all**"
			}
			return text
		}
		key := m.Mentioned.key()
		name, ok := c.mentions.Of(key)
		switch {
		case !ok:
			return text
		case c.last == key:
			return ""
		}
		c.last = key
		return name
	}
	return text
}

// isHere reports whether a conversation that is mentioned is the one of the message.
func (c *converter) isHere(id string) bool {
	if c.message.Channel == nil {
		return id == c.message.Chat
	}
	x := c.channels[c.message.Channel.Channel]
	return x != nil && (id == x.id || id == x.team.id)
}

func (c *converter) link(n *html.Node) string {
	text, to := oneLine(c.children(n)), strings.TrimSpace(attribute(n, "href"))
	u, err := url.Parse(to)
	if err != nil {
		return text
	}
	switch u.Scheme {
	case "http", "https", "mailto", "tel", "ftp":
	default:
		return text
	}
	if text == "" || text == to {
		return to
	}
	return imports.Link(text, to)
}

// picture returns the link to a picture. Pictures that Teams stores are fetched from Microsoft Graph.
func (c *converter) picture(n *html.Node) string {
	alt, from := oneLine(attribute(n, "alt")), attribute(n, "src")
	if alt == "" {
		alt = "image"
	}
	if !isHosted(from) {
		if strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://") {
			return imports.Link(alt, from)
		}
		c.sink.DropAt("attachments", "a picture without an address", c.out.Place)
		return alt
	}
	if !c.online() {
		c.sink.DropAt("attachments", "the export has no pictures: a token gets them", c.out.Place)
		return alt
	}
	h := sha256.Sum256([]byte(from))
	f := imports.File{Path: from, Address: "/user_uploads/import/" + hex.EncodeToString(h[:16]), Name: fileName(alt)}
	c.out.Files = append(c.out.Files, f)
	return imports.Link(alt, f.Address)
}

// isHosted reports whether an address is of a picture that Teams stores.
func isHosted(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.HasPrefix(address, graphAddress+"/") && strings.Contains(u.Path, "/hostedContents/")
}

// fileName returns the name of a picture that has only a description.
func fileName(alt string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:`, r) {
			return '-'
		}
		return r
	}, imports.FirstRunes(alt, maxTopic))
	if path.Ext(name) == "" {
		name += ".png"
	}
	return name
}

// list returns a list. The lines of an item are below its text.
func (c *converter) list(n *html.Node) string {
	var items []string
	for x := n.FirstChild; x != nil; x = x.NextSibling {
		if x.Type != html.ElementNode {
			continue
		}
		mark := "* "
		if n.Data == "ol" {
			mark = strconv.Itoa(len(items)+1) + ". "
		}
		text := strings.ReplaceAll(c.blocks(x), "\n\n", "\n")
		text = strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", len(mark)))
		items = append(items, mark+text)
	}
	return strings.Join(items, "\n")
}

// table returns a table. Its first row is the head.
func (c *converter) table(n *html.Node) string {
	var rows [][]string
	width := 0
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		for x := n.FirstChild; x != nil; x = x.NextSibling {
			switch x.Data {
			case "tr":
				var row []string
				for cell := x.FirstChild; cell != nil; cell = cell.NextSibling {
					if cell.Data == "td" || cell.Data == "th" {
						row = append(row, strings.ReplaceAll(oneLine(c.blocks(cell)), "|", "¦"))
					}
				}
				rows, width = append(rows, row), max(width, len(row))
			case "tbody", "thead", "tfoot":
				walk(x)
			}
		}
	}
	walk(n)
	var lines []string
	for i, row := range rows {
		for len(row) < width {
			row = append(row, "")
		}
		if lines = append(lines, "| "+strings.Join(row, " | ")+" |"); i == 0 {
			lines = append(lines, "|"+strings.Repeat(" --- |", width))
		}
	}
	return strings.Join(lines, "\n")
}

// attachment returns an attachment: a quoted message, the link to a file, or the text of a card.
func (c *converter) attachment(id string) string {
	for i := range c.message.Attachments {
		a := &c.message.Attachments[i]
		if a.ID != id || id == "" {
			continue
		}
		switch {
		case a.Type == "messageReference" || a.Type == "forwardedMessageReference":
			return c.reference(a)
		case a.URL != "":
			c.sink.DropAt("attachments", "files stay in SharePoint: the text has the link", c.out.Place)
			name := oneLine(a.Name)
			if name == "" {
				name = "file"
			}
			return imports.Link(name, a.URL)
		case strings.HasPrefix(a.Type, "application/vnd.microsoft.card."):
			c.sink.DropAt("cards", "of a card only the text is imported", c.out.Place)
			return cardText(a)
		}
		c.sink.DropAt("attachments", "of an unknown type", c.out.Place)
		return oneLine(a.Name)
	}
	return ""
}

// reference is the content of an attachment that refers to another message.
type reference struct {
	Preview   string       `json:"messagePreview"`
	Sender    *identityRow `json:"messageSender"`
	Forwarded string       `json:"originalMessageContent"`
	Author    *identityRow `json:"originalMessageSender"`
}

// reference returns a quoted or forwarded message.
func (c *converter) reference(a *attachmentRow) string {
	var r reference
	if json.Unmarshal([]byte(a.Content), &r) != nil {
		c.sink.DropAt("attachments", "the quoted message cannot be read", c.out.Place)
		return ""
	}
	sender, text := r.Sender, escaper.Replace(r.Preview)
	if r.Forwarded != "" {
		sender, text = r.Author, r.Forwarded
	}
	if c.depth >= maxQuotes {
		return ""
	}
	quote := quoted(c.convert(text, c.depth+1))
	name, ok := c.mentions.Of(sender.key())
	switch {
	case ok:
		return strings.Replace(name, "@**", "@_**", 1) + ":\n\n" + quote
	case sender != nil && sender.User != nil && imports.Name(sender.User.Name) != "":
		return imports.Name(sender.User.Name) + ":\n\n" + quote
	}
	return quote
}

// card is the part of a card that has its text.
type card struct {
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Text    string `json:"text"`
	Body    []struct {
		Text string `json:"text"`
	} `json:"body"`
}

// cardText returns the text of a card.
func cardText(a *attachmentRow) string {
	var x card
	if json.Unmarshal([]byte(a.Content), &x) != nil {
		return oneLine(a.Name)
	}
	lines := []string{x.Title, x.Summary, x.Text}
	for _, b := range x.Body {
		lines = append(lines, b.Text)
	}
	var out []string
	for _, l := range lines {
		if l = oneLine(l); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n\n")
}

// quoted returns a text as a quote.
func quoted(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// fenced returns code as a block. Its fence is longer than any in the code.
func fenced(language, code string) string {
	fence := "```"
	for strings.Contains(code, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.Trim(code, "\n") + "\n" + fence
}

// codeText returns code in a line. Its marks are longer than any in the code.
func codeText(code string) string {
	if code = oneLine(code); code == "" {
		return ""
	}
	mark := "`"
	for strings.Contains(code, mark) {
		mark += "`"
	}
	if len(mark) > 1 {
		code = " " + code + " "
	}
	return mark + code + mark
}

// language returns the language of a block of code; "": unknown.
func language(n *html.Node) string {
	for _, class := range strings.Fields(attribute(n, "class")) {
		name := strings.ToLower(strings.TrimPrefix(class, "language-"))
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789+#-") == "" {
			return name
		}
	}
	return ""
}

// plainText returns the text of a node. br is the end of a line.
func plainText(n *html.Node) string {
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case n.Data == "br":
			b.WriteByte('\n')
		}
		for x := n.FirstChild; x != nil; x = x.NextSibling {
			walk(x)
		}
	}
	walk(n)
	return strings.ReplaceAll(b.String(), "\u00a0", " ")
}

// firstWords returns the first words of a text, as a title.
func firstWords(text string) string {
	words := strings.Fields(firstText(text, titleBytes))
	title := ""
	for _, w := range words {
		longer := strings.TrimSpace(title + " " + w)
		if title != "" && imports.FirstRunes(longer, maxTopic-1) != longer {
			return title + "…"
		}
		title = longer
	}
	return title
}

// firstText returns about the first bytes of a text without its tags.
func firstText(text string, limit int) string {
	z := html.NewTokenizer(strings.NewReader(text))
	var b strings.Builder
	for b.Len() < limit {
		switch z.Next() {
		case html.ErrorToken:
			return strings.TrimSpace(b.String())
		case html.TextToken:
			b.WriteString(strings.ReplaceAll(string(z.Text()), "\u00a0", " "))
		default:
			t := z.Token()
			switch t.Data {
			case "emoji":
				for _, a := range t.Attr {
					if a.Key == "alt" {
						b.WriteString(a.Val)
					}
				}
			case "p", "br", "li", "div":
				b.WriteByte(' ')
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// trimLines removes white space at both ends of and repeated within lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
		if !strings.HasPrefix(lines[i], "`") {
			lines[i] = strings.Join(strings.Fields(l), " ")
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

package wire

import (
	"cmp"
	"slices"

	"parley/actors/realm"
)

// Limits of an answer with messages.
const (
	// MaxPageBytes is the size of the messages of one answer before they are encoded, in bytes. 5,000 messages of the
	// usual length fit. Larger ones come in shorter pages, of at least one message: the HTML of one message can take 20
	// times as much as its text, and a client can ask for 5,000 of them.
	MaxPageBytes = 8 << 20
	// foundMessageBytes is about the size of a message in the answer without its text, reactions and history.
	foundMessageBytes = 600
	// reactionBytes and submessageBytes are about the sizes of a reaction, and of a submessage without its text.
	reactionBytes, submessageBytes = 160, 120
	// memoryStep is how many bytes of memory an answer asks for at a time.
	memoryStep = 256 << 10
)

// answerMemory counts the memory of an answer while it is collected.
type answerMemory struct {
	call           *Call
	used, reserved int
}

// add counts n more bytes. It refuses if answers take too much memory.
func (m *answerMemory) add(n int) error {
	if m.used += n; m.used <= m.reserved {
		return nil
	}
	more := m.used - m.reserved
	if m.reserved > 0 || more >= memoryStep { // a small answer takes no more than it needs
		more = max(more, memoryStep)
	}
	if err := m.call.reserveMemory(more); err != nil {
		return err
	}
	m.reserved += more
	return nil
}

// foundMessage is a message of an answer before it is encoded.
type foundMessage struct {
	realm.VisibleMessage
	body         realm.Body // only the form that the client wants
	revisions    rawJSON
	matchContent string
	matchTopic   string
	size         int
}

// messagePage is the messages of one answer.
type messagePage struct {
	call   *Call
	client Client
	search *narrowSearch
	list   []foundMessage
	memory answerMemory
}

// collect reads messages with their texts, in the order of the list, until the page is full. It returns the messages
// that did not fit. Messages that were deleted meanwhile are left out. It reads in short views, so that other requests
// do not wait.
func (p *messagePage) collect(list []realm.MessageID) (rest []realm.MessageID, err error) {
	for len(list) > 0 {
		part := list[:min(len(list), messagesPerView)]
		if err := p.memory.add(len(part) * foundMessageBytes); err != nil {
			return nil, err
		}
		seen, err := Read(p.call, func(v realm.View) ([]realm.VisibleMessage, error) {
			return v.VisibleMessages(part), nil
		})
		if err != nil {
			return nil, err
		}
		fetchTexts(p.call, seen)
		for i := range seen {
			body, ok, err := p.call.Server.Text(p.call.Realm, seen[i].Ref)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			fits, err := p.add(&seen[i], body)
			if err != nil {
				return nil, err
			}
			if !fits {
				return list[slices.Index(list, seen[i].ID):], nil
			}
		}
		list = list[len(part):]
	}
	return nil, nil
}

// fetchTexts reads the texts of messages in one step, if they are at another node.
func fetchTexts(c *Call, seen []realm.VisibleMessage) {
	refs := make([]realm.BodyRef, len(seen))
	for i := range seen {
		refs[i] = seen[i].Ref
	}
	c.Server.FetchTexts(c.Realm, refs)
}

// add adds a message whose memory is counted but for the texts, unless the page is full. The first message always fits.
func (p *messagePage) add(m *realm.VisibleMessage, body realm.Body) (fits bool, err error) {
	x := foundMessage{VisibleMessage: *m, body: realm.Body{Text: body.Text}}
	if p.client.Markdown {
		x.body = realm.Body{HTML: body.HTML}
	}
	if x.Channel != 0 {
		x.Links = topicLinksOf(p.call, x.Topic)
	}
	if p.search.wanted {
		x.matchContent, x.matchTopic = p.search.highlight(p.client.Topic(x.Topic), body)
	}
	if len(x.History) > 0 {
		old := revisionTexts{call: p.call, left: maxListedHistoryBytes}
		revisions, err := old.revisions(m, p.client)
		if err != nil {
			return false, err
		}
		x.revisions = encode(revisions) // the objects take several times as much memory
	}
	x.size = x.estimate()
	texts := x.size - foundMessageBytes
	if len(p.list) > 0 && p.memory.used+texts > MaxPageBytes {
		return false, nil
	}
	p.list = append(p.list, x)
	return true, p.memory.add(texts)
}

// estimate returns about the size of the message in the answer.
func (x *foundMessage) estimate() int {
	n := foundMessageBytes + len(x.body.Text) + len(x.body.HTML) + len(x.matchContent) + len(x.matchTopic)
	n += reactionBytes * len(x.Reactions)
	for _, s := range x.Submessages {
		n += submessageBytes + len(s.Content)
	}
	return n + len(x.revisions)
}

// forReader returns the message as the reader gets it.
func (x *foundMessage) forReader(p *messagePage) *foundMessageJSON {
	out := &foundMessageJSON{messageJSON: newMessageOf(&x.VisibleMessage, x.body, p.client, p.call.Site)}
	if p.search.wanted {
		out.MatchContent, out.MatchTopic = &x.matchContent, &x.matchTopic
	}
	if x.revisions != nil {
		out.History = ptr(encodedAs[[]revisionJSON](x.revisions))
	}
	return out
}

// elements returns the messages by ascending id.
func (p *messagePage) elements() *ElementList {
	slices.SortFunc(p.list, func(a, b foundMessage) int { return cmp.Compare(a.ID, b.ID) })
	return p.inOrder()
}

// inOrder returns the messages in the order in which they were collected.
func (p *messagePage) inOrder() *ElementList {
	return &ElementList{
		page: p,
		len:  len(p.list),
		size: p.memory.used,
		encode: func(b []byte, i int) []byte {
			return appendJSON(b, p.list[i].forReader(p))
		},
		drop: func(i int) int {
			n := p.list[i].size
			p.list[i] = foundMessage{}
			return n
		},
	}
}

// collectAround collects the messages of a page, those next to the anchor first. If they do not all fit, the page is
// shortened at the end that is farther away.
func (p *messagePage) collectAround(page *realm.Page) error {
	rest, err := p.collect(nearestFirst(page.IDs, page.Anchor))
	for _, id := range rest {
		if int64(id) < page.Anchor {
			page.Oldest = false
		} else {
			page.Newest = false
		}
	}
	return err
}

// collectAll collects all messages of a list, and refuses if they do not fit.
func (p *messagePage) collectAll(list []realm.MessageID) error {
	rest, err := p.collect(list)
	if err == nil && len(rest) > 0 {
		return errAnswerTooLarge()
	}
	return err
}

// nearestFirst returns ascending ids in the order of their distance from an anchor: the first one at or above it, then
// alternately one below and one above.
func nearestFirst(list []realm.MessageID, anchor int64) []realm.MessageID {
	after, _ := slices.BinarySearchFunc(list, anchor, func(id realm.MessageID, a int64) int {
		return cmp.Compare(int64(id), a)
	})
	before := after - 1
	out := make([]realm.MessageID, 0, len(list))
	for before >= 0 || after < len(list) {
		if after < len(list) {
			out = append(out, list[after])
			after++
		}
		if before >= 0 {
			out = append(out, list[before])
			before--
		}
	}
	return out
}

// errAnswerTooLarge refuses a request for messages that do not fit into one answer, where a part of them would be
// taken for all.
func errAnswerTooLarge() error {
	return realm.Refuse(realm.TooLarge, "BAD_REQUEST",
		"The messages are too large for one answer; request fewer at a time.")
}

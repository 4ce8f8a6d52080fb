package wire

import (
	"strings"
	"testing"

	"parley/actors/realm"
)

// bodies is a TextReader that counts the texts it reads.
type bodies struct {
	of   map[realm.BodyRef]realm.Body
	read int
}

func (b *bodies) Text(_ realm.ID, ref realm.BodyRef) (realm.Body, bool, error) {
	b.read++
	body, ok := b.of[ref]
	return body, ok, nil
}

// A large event is encoded once for the queues of all session actors, and no event holds the bytes. Beyond the bound
// the oldest encodings are dropped, and encoded again when a queue asks for them.
func TestLargeEventsAreSharedAndNotHeld(t *testing.T) {
	large := realm.Body{Text: strings.Repeat(":o: ", 2000), HTML: strings.Repeat("<p>o</p>", 20_000)}
	texts := &bodies{of: map[realm.BodyRef]realm.Body{}}
	encodings := NewEventEncodings()
	options := QueueOptionsOf(&realm.Queue{Markdown: true})
	event := func(n *realm.Notice) []byte {
		events := NewNoticeRenderer(n, RenderContext{Texts: texts}, encodings).EventsFor(1, &realm.Queue{}, options)
		b, err := events[0].Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if events[0].JSON != nil {
			t.Fatalf("an event holds %d bytes", len(events[0].JSON))
		}
		return b
	}
	var notices []*realm.Notice
	for id := range realm.MessageID(2 * MaxEncodingBytes / len(large.HTML)) {
		ref := realm.BodyRef{Message: id}
		texts.of[ref] = large
		notices = append(
			notices,
			&realm.Notice{Event: &realm.MessageArrived{Message: realm.MessageInfo{ID: id, Ref: ref}}},
		)
		first, second := event(notices[id]), event(notices[id])
		if &first[0] != &second[0] {
			t.Fatal("two session actors encoded the same event")
		}
		if encodings.Bytes() > MaxEncodingBytes {
			t.Fatalf("%d bytes of encodings are held", encodings.Bytes())
		}
	}
	if texts.read != len(notices) || encodings.Dropped() == 0 {
		t.Errorf("%d texts were read for %d events, %d encodings were dropped", texts.read, len(notices),
			encodings.Dropped())
	}
	if b := event(notices[0]); !strings.Contains(string(b), "<p>o</p>") || texts.read != len(notices)+1 {
		t.Errorf("after it was dropped, the event has %d bytes, and %d texts were read", len(b), texts.read)
	}
	if n := encodings.Bytes(); int64(len(encodings.byKey)) != int64(len(encodings.oldest)) || n < MaxEncodingBytes/2 {
		t.Errorf("%d encodings, %d in order, %d bytes", len(encodings.byKey), len(encodings.oldest), n)
	}
}

// An edit that also moved the message is told as a move if its text was erased before the event was delivered.
func TestMoveWithErasedTextIsTold(t *testing.T) {
	update := &realm.MessageUpdate{
		Message: 7,
		IDs:     []realm.MessageID{7},
		Channel: 1,
		User:    5,
		Content: true,
		Version: 3,
	}
	event := func() []byte {
		events := NewNoticeRenderer(&realm.Notice{Event: update}, RenderContext{Texts: &bodies{}}, nil).
			EventsFor(1, &realm.Queue{}, QueueOptionsOf(&realm.Queue{}))
		b, err := events[0].Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if b := event(); b != nil {
		t.Errorf("an edit without its text was told: %s", b)
	}
	update.Moved, update.TopicChanged, update.Topic, update.OrigTopic = true, true, "new", "old"
	if b := string(event()); !strings.Contains(b, `"subject":"new"`) || strings.Contains(b, `"content"`) {
		t.Errorf("the move was told as %q", b)
	}
}

// unreachable is a TextReader whose texts are at a node that cannot be reached.
type unreachable struct{}

func (unreachable) Text(realm.ID, realm.BodyRef) (realm.Body, bool, error) {
	return realm.Body{}, false, realm.Refuse(realm.Busy, "SERVER_OVERLOADED", "no link")
}

// While the node that has a text cannot be reached, no event is encoded: neither without the text nor with a note that
// the text is damaged.
func TestEventWaitsForUnreachableText(t *testing.T) {
	for _, e := range []realm.Event{
		&realm.MessageArrived{Message: realm.MessageInfo{ID: 7, Ref: realm.BodyRef{Message: 7}}},
		&realm.MessageUpdate{Message: 7, IDs: []realm.MessageID{7}, Channel: 1, User: 5, Content: true, Version: 3},
		&realm.MessageUpdate{Message: 7, IDs: []realm.MessageID{7}, Channel: 1, User: 5, Content: true, Version: 3,
			Body: &realm.Body{Text: "new"}}, // the old text is needed, too
	} {
		events := NewNoticeRenderer(&realm.Notice{Event: e}, RenderContext{Texts: unreachable{}}, nil).
			EventsFor(1, &realm.Queue{}, QueueOptionsOf(&realm.Queue{}))
		if b, err := events[0].Bytes(); err == nil || b != nil {
			t.Errorf("%T is encoded as %s", e, b)
		}
	}
}

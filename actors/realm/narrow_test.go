package realm

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// world is a random organization and what it is made of.
type world struct {
	*rand.Rand
	t        testing.TB
	r        *Realm
	now      int64
	tokens   int
	users    []UserID
	channels []ChannelID
}

var worldTopics = []string{"", "tea", "Tea", "✔ tea", "coffee", "über"}

func play[A any](w *world, u UserID, c Command[A]) error {
	w.now += int64(w.Intn(50))
	w.r.Clock(w.now)
	token := func(n int) string { w.tokens++; return fmt.Sprintf("%0*d", n, w.tokens) }
	_, _, _, err := Play(w.r, Caller{User: u, Client: "test", System: u == 0}, Moment{Now: w.now, Token: token,
		UUID: func() string { return token(32) }, Hash: func(s string) (h [32]byte) { copy(h[:], s); return h },
		Render:   func(text string, _ View) (Body, Content) { return Body{Text: text, HTML: text}, Content{} },
		Describe: func(text string, _ View) string { return text },
		Links:    func(string, View) []TopicLink { return nil }}, c.Decide)
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		w.t.Fatalf("%T: %v", c, err)
	}
	return err
}

func newWorld(t testing.TB, seed int64, steps int) *world {
	w := &world{Rand: rand.New(rand.NewSource(seed)), t: t, r: New(1), now: 1_700_000_000}
	play(w, 0, FoundRealm{Name: "World"})
	w.r.Org().Settings["enable_spectator_access"] = true
	for i, role := range []Role{Owner, Administrator, Member, Member, Member, Guest, Guest} {
		if err := play(w, 0, JoinUser{Name: fmt.Sprint("User ", i), Email: fmt.Sprintf("u%d@example.com", i), Role: role}); err != nil {
			t.Fatal(err)
		}
		w.users = append(w.users, w.r.Org().NextUser-1)
	}
	yes, no := true, false
	for i, n := range []NewChannel{{}, {}, {Private: true, History: &yes}, {Private: true, History: &no}, {Private: true, History: &no}, {WebPublic: true}} {
		n.Name = fmt.Sprint("channel ", i)
		if _, err := w.turn(func(t *Turn) error { _, err := t.newChannel(n); return err }); err != nil {
			t.Fatal(err)
		}
		w.channels = append(w.channels, w.r.Org().NextChannel-1)
	}
	for range steps {
		w.step()
	}
	return w
}

func (w *world) turn(fn func(*Turn) error) (Done, error) {
	return Done{}, play[Done](w, 0, decide(func(t *Turn) (Done, error) { return Done{}, fn(t) }))
}

type decide func(*Turn) (Done, error)

func (d decide) Decide(t *Turn) (Done, error) { return d(t) }

func (w *world) user() UserID       { return w.users[w.Intn(len(w.users))] }
func (w *world) channel() *Channel  { return w.r.chans.must(w.channels[w.Intn(len(w.channels))]) }
func (w *world) topic() string      { return worldTopics[w.Intn(len(worldTopics))] }
func (w *world) message() MessageID { return 1 + MessageID(w.Intn(int(w.r.LastMessage())+1)) }

// step lets somebody do something; refusals are part of it.
func (w *world) step() {
	u := w.user()
	switch w.Intn(24) {
	case 0, 13:
		c, joining := w.channel().ID, ascending([]UserID{u, w.user()})
		w.turn(func(t *Turn) error {
			var users []*User
			for _, id := range joining {
				users = append(users, t.Find(id))
			}
			if f := t.planJoin(t.chans.must(c), users, "", map[UserID]uint64{}); f != nil {
				t.Record(f)
			}
			return nil
		})
	case 1, 14:
		c := w.channel().ID
		w.turn(func(t *Turn) error {
			if f := t.planLeave(t.chans.must(c), []UserID{u}, 0); f != nil {
				t.Record(f)
			}
			return nil
		})
	case 2, 3:
		var to []Principal
		for range w.Intn(3) {
			to = append(to, Principal{ID: w.user()})
		}
		play[Sent](w, u, SendMessage{People: append(to, Principal{ID: w.user()}), Body: Body{Text: "x"}, Content: w.content(), ReadBySender: w.Intn(2) == 0})
	case 4:
		play[Flagged](w, u, Flag{Messages: []MessageID{w.message(), w.message()}, Op: []string{"add", "remove"}[w.Intn(2)], Flag: []string{"read", "starred", "collapsed"}[w.Intn(3)]})
	case 5:
		topic, mode := w.topic(), []string{MoveOne, MoveLater, MoveAll}[w.Intn(3)]
		play[Edited](w, w.users[w.Intn(2)], EditMessage{Message: w.message(), Topic: &topic, Mode: mode})
	case 6, 15:
		play[Edited](w, w.users[w.Intn(2)], EditMessage{Message: w.message(), Channel: w.channel().ID, Mode: []string{MoveOne, MoveLater, MoveAll}[w.Intn(3)]})
	case 7:
		if w.Intn(3) == 0 {
			play[Done](w, w.users[0], DeleteMessage{w.message()})
		}
	case 8:
		play[Done](w, u, SetTopicPolicy{w.channel().ID, w.topic(), w.Intn(4)})
	case 9:
		muted := w.Intn(2) == 0
		play[int64](w, u, SetProperties{Changes: []PropertyChange{{Channel: w.channel().ID, Property: "is_muted", Bool: &muted}}})
	case 10:
		w.turn(func(t *Turn) error { // an emoji nobody had to look up
			if m := t.message(w.r.LastMessage()); m != nil && len(t.extras.open(w.r.LastMessage()).Reactions) == 0 {
				t.changeExtra(w.r.LastMessage()).Reactions = []Reaction{{User: u, Name: "tea"}}
				t.unplaceMessage(w.r.LastMessage(), m)
				t.placeMessage(w.r.LastMessage(), m)
				t.indexContent(w.r.LastMessage(), m)
			}
			return nil
		})
	case 16:
		role := []Role{Member, Guest}[w.Intn(2)]
		if u := w.users[2+w.Intn(len(w.users)-2)]; w.Intn(2) == 0 {
			w.turn(func(t *Turn) error { t.Record(&UserChanged{ID: u, Role: &role}); return nil })
		}
	case 17:
		private, history := w.Intn(2) == 0, w.Intn(2) == 0
		play[Done](w, w.users[0], EditChannel{Channel: w.channel().ID, Private: &private, History: &history})
	case 11:
		if w.Intn(12) == 0 {
			play[Done](w, w.users[0], ArchiveChannel{w.channel().ID})
		}
	default:
		play[Sent](w, u, SendMessage{ToChannel: true, Channel: w.channel().ID, Topic: w.topic(), Body: Body{Text: "x"}, Content: w.content(), ReadBySender: w.Intn(2) == 0})
	}
}

func (w *world) content() Content {
	c := Content{Link: w.Intn(4) == 0, Image: w.Intn(5) == 0, Attachment: w.Intn(6) == 0}
	if w.Intn(4) == 0 {
		c.Users = []UserID{w.user()}
	}
	c.ChannelWildcard, c.TopicWildcard = w.Intn(12) == 0, w.Intn(12) == 0
	return c
}

// narrow is random terms; most are understood.
func (w *world) narrow() []Term {
	var out []Term
	for range w.Intn(4) {
		t := Term{Negated: w.Intn(3) == 0}
		text := func(list ...string) { t.Operand.Text = list[w.Intn(len(list))] }
		who := func() {
			if u := w.user(); w.Intn(2) == 0 {
				t.Operand.IsID, t.Operand.ID = true, int64(u)
			} else {
				t.Operand.Text = fmt.Sprintf("user%d@example.com", u)
			}
		}
		switch w.Intn(16) {
		case 0, 1, 2, 3:
			t.Operator = "channel"
			if c := w.channel(); w.Intn(2) == 0 {
				t.Operand.IsID, t.Operand.ID = true, int64(c.ID)
			} else {
				t.Operand.Text = strings.ToUpper(c.Name)
			}
		case 4:
			t.Operator = "channels"
			text("public", "public", "web-public", "archived", "odd")
		case 5, 6:
			t.Operator = "topic"
			text(append(worldTopics, "general chat", "TEA", "nowhere")...)
		case 7:
			t.Operator = "sender"
			who()
		case 8:
			t.Operator, t.Operand.IsList = "dm", true
			for range w.Intn(3) {
				t.Operand.IDs = append(t.Operand.IDs, int64(w.user()))
			}
		case 9:
			t.Operator = []string{"dm-including", "group-pm-with", "mentions"}[w.Intn(3)]
			who()
		case 10, 11, 12:
			t.Operator = "is"
			text("dm", "private", "starred", "unread", "mentioned", "followed", "muted", "resolved", "alerted", "odd")
		case 13:
			t.Operator = "in"
			text("home", "home", "all")
		case 14:
			t.Operator = "has"
			text("link", "image", "attachment", "reaction")
		default:
			t.Operator = []string{"id", "with", "near", "search"}[w.Intn(3)]
			t.Operand.Text = w.message().String()
		}
		t.Sent = t.Operator
		out = append(out, t)
	}
	return out
}

// naively decides one message of a narrow the way the protocol's description goes, term by term.
func (w *world) naively(u UserID, terms []Term, id MessageID) bool {
	r, me, m := w.r, w.r.Find(u), w.r.message(id)
	if m == nil {
		return false
	}
	history := false
	for _, t := range terms {
		if t.Negated {
			continue
		}
		switch t.Operator {
		case "channel":
			c := r.FindChannelByName(t.Operand.Text)
			if t.Operand.IsID {
				c = r.FindChannel(ChannelID(t.Operand.ID))
			}
			history = r.hasContent(me, c) && (c.History || c.WebPublic)
		case "channels":
			if t.Operand.Text == "public" && me != nil && !me.IsGuest() {
				history = true
			}
		}
	}
	for _, t := range terms {
		history = history && (t.Operator != "is" || t.Operand.Text == "resolved")
	}
	if !w.reads(u, id, m) || me != nil && !history && !r.received(u, id, m) {
		return false
	}
	return w.meetsAll(u, terms, id, m)
}

func (w *world) meetsAll(u UserID, terms []Term, id MessageID, m *message) bool {
	for _, t := range terms {
		if t.Operator == "near" || t.Operator == "in" && t.Operand.Text == "all" {
			continue
		}
		if w.meets(u, t, id, m) == t.Negated {
			return false
		}
	}
	return true
}

// expected is every message of a narrow, and the unread ones of them that count as its first.
func (w *world) expected(u UserID, terms []Term) (all, unread []MessageID) {
	terms = w.inTerms(u, terms)
	named := slices.ContainsFunc(terms, func(t Term) bool { return t.Operator == "channel" })
	for id := MessageID(1); id <= w.r.LastMessage(); id++ {
		if !w.naively(u, terms, id) {
			continue
		}
		all = append(all, id)
		m := w.r.message(id)
		muted := m.channel != 0 && (w.r.TopicPolicyOf(u, ChannelID(m.channel), w.r.topics.must(m.topic).Name) == 1 || !named && w.meets(u, term("is", "muted"), id, m))
		if w.r.flagsOf(u, id, m)&FlagRead == 0 && !muted {
			unread = append(unread, id)
		}
	}
	return all, unread
}

func (w *world) meets(u UserID, t Term, id MessageID, m *message) bool {
	r := w.r
	var channel *Channel
	topic := ""
	policy, muted := 0, false
	if m.channel != 0 {
		channel, topic = r.FindChannel(ChannelID(m.channel)), r.topics.must(m.topic).Name
		policy = r.TopicPolicyOf(u, channel.ID, topic)
		s := r.SubscriptionOf(u, channel.ID)
		muted = policy == 1 || policy == 0 && s != nil && s.Active && s.Muted
	}
	var people []UserID
	if m.channel == 0 {
		people = r.talks.must(m.talk).Members
	}
	who := UserID(t.Operand.ID)
	if !t.Operand.IsID {
		if p := r.ViewAs(Caller{User: u}, w.now).FindAddress(t.Operand.Text); p != nil {
			who = p.ID
		}
	}
	flags := r.flagsOf(u, id, m)
	switch t.Operator + ":" + t.Operand.Text {
	case "channels:public":
		return channel != nil && !channel.Private
	case "channels:web-public":
		return channel != nil && channel.WebPublic && !channel.Archived
	case "channels:archived":
		return channel != nil && channel.Archived
	case "is:dm", "is:private":
		return channel == nil
	case "is:starred":
		return flags&FlagStarred != 0
	case "is:unread":
		return flags&FlagRead == 0
	case "is:mentioned":
		return flags&(FlagMentioned|FlagChannelWildcard|FlagTopicWildcard) != 0
	case "is:alerted":
		return flags&FlagAlert != 0
	case "is:followed":
		return policy == 3
	case "is:muted":
		return muted
	case "in:home":
		return !muted
	case "is:resolved":
		return strings.HasPrefix(topic, "✔ ")
	case "has:link":
		return m.bits&bitLink != 0
	case "has:image":
		return m.bits&bitImage != 0
	case "has:attachment":
		return m.bits&bitAttachment != 0
	case "has:reaction":
		e := r.extra(id, m)
		return e != nil && len(e.Reactions) > 0
	}
	switch t.Operator {
	case "channel":
		return channel != nil && (t.Operand.IsID && channel.ID == ChannelID(t.Operand.ID) || !t.Operand.IsID && strings.EqualFold(channel.Name, strings.TrimSpace(t.Operand.Text)))
	case "topic":
		want := operandText(t.Operand)
		if want == "general chat" {
			want = ""
		}
		return channel != nil && strings.ToLower(topic) == want
	case "sender":
		return UserID(m.sender) == who
	case "mentions":
		e := r.extra(id, m)
		return e != nil && slices.Contains(e.Mentioned, who)
	case "dm-including":
		return channel == nil && slices.Contains(people, who)
	case "group-pm-with":
		return channel == nil && len(people) > 2 && slices.Contains(people, who)
	case "dm":
		want, others := []UserID{u}, 0
		for _, x := range t.Operand.IDs {
			want = append(want, UserID(x))
			others++
		}
		for _, e := range strings.Split(t.Operand.Text, ",") {
			if p := r.ViewAs(Caller{User: u}, w.now).FindAddress(strings.TrimSpace(e)); p != nil {
				want = append(want, p.ID)
				others++
			}
		}
		slices.Sort(want)
		return channel == nil && others > 0 && slices.Equal(slices.Compact(want), people)
	case "id":
		n, err := strconv.ParseInt(strings.TrimSpace(t.Operand.Text), 10, 64)
		return t.Operand.IsID && MessageID(t.Operand.ID) == id || err == nil && MessageID(n) == id
	}
	w.t.Fatalf("the naive evaluator does not know %+v", t)
	return false
}

// inTerms is the narrow with a with term carried out, by the rule's own words.
func (w *world) inTerms(u UserID, terms []Term) []Term {
	i := slices.IndexFunc(terms, func(t Term) bool { return t.Operator == "with" })
	if i < 0 {
		return terms
	}
	id := MessageID(terms[i].Operand.ID)
	if !terms[i].Operand.IsID {
		n, _ := strconv.ParseInt(strings.TrimSpace(terms[i].Operand.Text), 10, 64)
		id = MessageID(n)
	}
	rest := slices.Delete(slices.Clone(terms), i, i+1)
	m := w.r.message(id)
	if m == nil || !w.reads(u, id, m) {
		return rest
	}
	rest = slices.DeleteFunc(rest, func(t Term) bool {
		return !t.Negated && slices.Contains([]string{"channel", "topic", "dm"}, t.Operator)
	})
	if m.channel != 0 {
		return append(rest, Term{Operator: "channel", Operand: Operand{IsID: true, ID: int64(m.channel)}}, Term{Operator: "topic", Operand: Operand{Text: w.r.topics.must(m.topic).Name}})
	}
	t := Term{Operator: "dm", Operand: Operand{IsList: true}}
	for _, p := range w.r.talks.must(m.talk).Members {
		t.Operand.IDs = append(t.Operand.IDs, int64(p))
	}
	return append(rest, t)
}

// TestNarrowAgainstNaive compares pages of random narrows in random organizations with deciding message by message. It
// lets messages be tested one by one, some of them, or none before whole sets are worked out.
func TestNarrowAgainstNaive(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	old := walkable
	defer func() { walkable = old }()
	answered := 0
	for round := range int64(4) {
		w := newWorld(t, seed+round, 700)
		for range 180 {
			walkable = []int{0, 20, 300, old}[w.Intn(4)]
			u, terms := w.user(), w.narrow()
			if w.Intn(8) == 0 { // a visitor
				u, terms = 0, append(terms, term("channels", "web-public"))
			}
			w.compareAmong(t, u, terms, SetOf(w.message(), w.message(), w.message(), w.message(), w.message(), w.message()))
			v := w.r.ViewAs(Caller{User: u}, w.now)
			n, err := v.Narrow(terms, nil)
			if err != nil {
				continue
			}
			answered++
			want, unread := w.expected(u, terms)
			a := Anchor{Kind: AnchorKind(w.Intn(5)), ID: int64(w.message()), Time: w.now - int64(w.Intn(20_000))}
			g := Range{Anchor: a, Before: w.Intn(8), After: w.Intn(8), Exclude: w.Intn(4) == 0}
			wanted := naivePage(w, want, unread, g)
			if w.Intn(4) == 0 {
				n = n.Frozen()
				got := n.Matching(nil)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d: user %d, %+v:\n got %v\nwant %v", seed+round, u, terms, got, want)
				}
			}
			got := n.Page(v.Spot(&n, a).In(nil), g, nil)
			if fmt.Sprint(got) != fmt.Sprint(wanted) {
				t.Fatalf("seed %d: user %d, %+v, %+v:\n got %v\nwant %v\nall %v\nunread %v", seed+round, u, terms, g, got, wanted, want, unread)
			}
		}
	}
	if answered < 300 {
		t.Errorf("only %d narrows were answered", answered)
	}
}

// channels:public opens no history to a guest, and closes none that a channel named beside it has opened.
func TestGuestsNarrowWithinWebPublicChannels(t *testing.T) {
	w := newWorld(t, 1, 700)
	guest := UserID(0)
	for _, u := range w.r.users.all() {
		if u.IsGuest() {
			guest = u.ID
		}
	}
	for id, c := range w.r.chans.all() {
		if !c.WebPublic || w.r.Subscribed(guest, id) {
			continue
		}
		named := Term{Operator: "channel", Sent: "channel", Operand: Operand{IsID: true, ID: int64(id)}}
		v := w.r.ViewAs(Caller{User: guest}, w.now)
		alone, err := v.Narrow([]Term{named}, nil)
		both, err2 := v.Narrow([]Term{named, term("channels", "public")}, nil)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		alone, both = alone.Frozen(), both.Frozen()
		want, got := alone.Matching(nil), both.Matching(nil)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("channel %d: %v, with channels:public %v", id, want, got)
		}
		return
	}
	t.Fatal("no such channel")
}

// naivePage is a page and its found_* by the protocol's words.
func naivePage(w *world, all, unread []MessageID, g Range) Page {
	at := int64(NewestAnchor)
	switch g.Anchor.Kind {
	case AnchorAt:
		at = g.Anchor.ID
	case AnchorOldest:
		at = 0
	case AnchorFirstUnread:
		if len(unread) > 0 {
			at = int64(unread[0])
		}
	case AnchorDate:
		for _, id := range all {
			if int64(w.r.message(id).time) >= g.Anchor.Time {
				at = int64(id)
				break
			}
		}
	}
	p := Page{Anchor: at}
	var before, after []MessageID
	for _, id := range all {
		switch {
		case int64(id) < at:
			before = append(before, id)
		case int64(id) > at:
			after = append(after, id)
		default:
			p.Found = !g.Exclude
		}
	}
	before, after = before[max(0, len(before)-g.Before):], after[:min(len(after), g.After)]
	p.IDs = append(p.IDs, before...)
	if p.Found {
		p.IDs = append(p.IDs, MessageID(at))
	}
	p.IDs = append(p.IDs, after...)
	p.Oldest, p.Newest = at == 0 || len(before) < g.Before, at >= NewestAnchor || len(after) < g.After
	return p
}

func term(operator, operand string) Term {
	return Term{Operator: operator, Sent: operator, Operand: Operand{Text: operand}}
}

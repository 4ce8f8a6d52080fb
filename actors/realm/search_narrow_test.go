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

	"parley/actors/realm/ids"
)

// randomRealm is a random organization, with its users, channels and topics.
type randomRealm struct {
	*rand.Rand
	t        testing.TB
	realm    *Realm
	now      int64
	tokens   int
	users    []UserID
	channels []ChannelID
}

var randomTopics = []string{"", "tea", "Tea", "✔ tea", "coffee", "über"}

// runCommand runs a command as a user. It returns refusals and fails the test on other errors.
func runCommand[A any](w *randomRealm, u UserID, c Command[A]) error {
	w.now += int64(w.Intn(50))
	w.realm.SetClock(w.now)
	token := func(n int) string { w.tokens++; return fmt.Sprintf("%0*d", n, w.tokens) }
	_, _, _, err := RunTurn(w.realm, Caller{User: u, Client: "test", System: u == 0}, TurnEnv{Now: w.now, Token: token,
		UUID: func() string { return token(32) }, Hash: func(s string) (h [32]byte) { copy(h[:], s); return h },
		RenderMessage: func(text string, _ View) (Body, ContentInfo) {
			return Body{Text: text, HTML: text}, ContentInfo{}
		},
		RenderDescription: func(text string, _ View) string { return text },
		TopicLinks:        func(string, View) []TopicLink { return nil }}, c.Decide)
	var refusal *Refusal
	if err != nil && !errors.As(err, &refusal) {
		w.t.Fatalf("%T: %v", c, err)
	}
	return err
}

// newRandomRealm makes an organization and runs random commands in it. The same seed gives the same organization.
func newRandomRealm(t testing.TB, seed int64, steps int) *randomRealm {
	w := &randomRealm{Rand: rand.New(rand.NewSource(seed)), t: t, realm: New(1), now: 1_700_000_000}
	runCommand(w, 0, FoundRealm{Name: "World"})
	w.realm.Org().Settings["enable_spectator_access"] = true
	for i, role := range []Role{Owner, Administrator, Member, Member, Member, Guest, Guest} {
		c := CreateUser{Name: fmt.Sprint("User ", i), Email: fmt.Sprintf("u%d@example.com", i), Role: role}
		if err := runCommand(w, 0, c); err != nil {
			t.Fatal(err)
		}
		w.users = append(w.users, w.realm.Org().NextUser-1)
	}
	yes, no := true, false
	for i, n := range []NewChannel{
		{}, {}, {Private: true, History: &yes}, {Private: true, History: &no}, {Private: true, History: &no},
		{WebPublic: true},
	} {
		n.Name = fmt.Sprint("channel ", i)
		if _, err := w.runTurn(func(t *Turn) error { _, err := t.newChannel(n); return err }); err != nil {
			t.Fatal(err)
		}
		w.channels = append(w.channels, w.realm.Org().NextChannel-1)
	}
	for range steps {
		w.step()
	}
	return w
}

// runTurn runs fn in a turn of the server.
func (w *randomRealm) runTurn(fn func(*Turn) error) (Done, error) {
	return Done{}, runCommand[Done](w, 0, decideFunc(func(t *Turn) (Done, error) { return Done{}, fn(t) }))
}

type decideFunc func(*Turn) (Done, error)

func (d decideFunc) Decide(t *Turn) (Done, error) { return d(t) }

func (w *randomRealm) randomUser() UserID { return w.users[w.Intn(len(w.users))] }
func (w *randomRealm) randomChannel() *Channel {
	return w.realm.channels.must(w.channels[w.Intn(len(w.channels))])
}
func (w *randomRealm) randomTopic() string { return randomTopics[w.Intn(len(randomTopics))] }
func (w *randomRealm) randomMessageID() MessageID {
	return 1 + MessageID(w.Intn(int(w.realm.LastMessageID())+1))
}

// step runs one random command. It may be refused.
func (w *randomRealm) step() {
	u := w.randomUser()
	switch w.Intn(24) {
	case 0, 13:
		c, joining := w.randomChannel().ID, sortUnique([]UserID{u, w.randomUser()})
		w.runTurn(func(t *Turn) error {
			var users []*User
			for _, id := range joining {
				users = append(users, t.Find(id))
			}
			if f := t.planJoin(t.channels.must(c), users, "", map[UserID]uint64{}); f != nil {
				t.Record(f)
			}
			return nil
		})
	case 1, 14:
		c := w.randomChannel().ID
		w.runTurn(func(t *Turn) error {
			if f := t.planLeave(t.channels.must(c), []UserID{u}, 0); f != nil {
				t.Record(f)
			}
			return nil
		})
	case 2, 3:
		var to []Principal
		for range w.Intn(3) {
			to = append(to, Principal{ID: w.randomUser()})
		}
		runCommand[SendResult](w, u, SendMessage{People: append(to, Principal{ID: w.randomUser()}),
			Body: Body{Text: "x"}, Content: w.randomContent(), ReadBySender: w.Intn(2) == 0})
	case 4:
		runCommand[Flagged](w, u, Flag{Messages: []MessageID{w.randomMessageID(), w.randomMessageID()},
			Op:   []string{"add", "remove"}[w.Intn(2)],
			Flag: []string{"read", "starred", "collapsed"}[w.Intn(3)]})
	case 5:
		topic, mode := w.randomTopic(), []string{MoveOne, MoveLater, MoveAll}[w.Intn(3)]
		runCommand[Edited](w, w.users[w.Intn(2)], EditMessage{Message: w.randomMessageID(), Topic: &topic, Mode: mode})
	case 6, 15:
		runCommand[Edited](w, w.users[w.Intn(2)], EditMessage{Message: w.randomMessageID(),
			Channel: w.randomChannel().ID, Mode: []string{MoveOne, MoveLater, MoveAll}[w.Intn(3)]})
	case 7:
		if w.Intn(3) == 0 {
			runCommand[Done](w, w.users[0], DeleteMessage{w.randomMessageID()})
		}
	case 8:
		runCommand[Done](w, u, SetTopicPolicy{w.randomChannel().ID, w.randomTopic(), w.Intn(4)})
	case 9:
		muted := w.Intn(2) == 0
		change := PropertyChange{Channel: w.randomChannel().ID, Property: "is_muted", Bool: &muted}
		runCommand[int64](w, u, SetSubscriptionProperties{Changes: []PropertyChange{change}})
	case 10:
		w.runTurn(func(t *Turn) error { // a reaction without checking the emoji
			m := t.message(w.realm.LastMessageID())
			if m != nil && len(t.extras.ensure(w.realm.LastMessageID()).Reactions) == 0 {
				t.changeExtra(w.realm.LastMessageID()).Reactions = []Reaction{{User: u, Name: "tea"}}
				t.unindexConversation(w.realm.LastMessageID(), m)
				t.indexConversation(w.realm.LastMessageID(), m)
				t.indexContent(w.realm.LastMessageID(), m)
			}
			return nil
		})
	case 16:
		role := []Role{Member, Guest}[w.Intn(2)]
		if u := w.users[2+w.Intn(len(w.users)-2)]; w.Intn(2) == 0 {
			w.runTurn(func(t *Turn) error { t.Record(&UserChanged{ID: u, Role: &role}); return nil })
		}
	case 17:
		private, history := w.Intn(2) == 0, w.Intn(2) == 0
		edit := EditChannel{Channel: w.randomChannel().ID, Private: &private, History: &history}
		runCommand[Done](w, w.users[0], edit)
	case 11:
		if w.Intn(12) == 0 {
			runCommand[Done](w, w.users[0], ArchiveChannel{w.randomChannel().ID})
		}
	default:
		runCommand[SendResult](w, u, SendMessage{ToChannel: true, Channel: w.randomChannel().ID, Topic: w.randomTopic(),
			Body: Body{Text: "x"}, Content: w.randomContent(), ReadBySender: w.Intn(2) == 0})
	}
}

func (w *randomRealm) randomContent() ContentInfo {
	c := ContentInfo{Link: w.Intn(4) == 0, Image: w.Intn(5) == 0, Attachment: w.Intn(6) == 0}
	if w.Intn(4) == 0 {
		c.Users = []UserID{w.randomUser()}
	}
	c.ChannelWildcard, c.TopicWildcard = w.Intn(12) == 0, w.Intn(12) == 0
	return c
}

// randomNarrow returns random terms. Most of them are valid.
func (w *randomRealm) randomNarrow() []Term {
	var out []Term
	for range w.Intn(4) {
		t := Term{Negated: w.Intn(3) == 0}
		text := func(list ...string) { t.Operand.Text = list[w.Intn(len(list))] }
		who := func() {
			if u := w.randomUser(); w.Intn(2) == 0 {
				t.Operand.IsID, t.Operand.ID = true, int64(u)
			} else {
				t.Operand.Text = fmt.Sprintf("user%d@example.com", u)
			}
		}
		switch w.Intn(16) {
		case 0, 1, 2, 3:
			t.Operator = "channel"
			if c := w.randomChannel(); w.Intn(2) == 0 {
				t.Operand.IsID, t.Operand.ID = true, int64(c.ID)
			} else {
				t.Operand.Text = strings.ToUpper(c.Name)
			}
		case 4:
			t.Operator = "channels"
			text("public", "public", "web-public", "archived", "odd")
		case 5, 6:
			t.Operator = "topic"
			text(append(randomTopics, "general chat", "TEA", "nowhere")...)
		case 7:
			t.Operator = "sender"
			who()
		case 8:
			t.Operator, t.Operand.IsList = "dm", true
			for range w.Intn(3) {
				t.Operand.IDs = append(t.Operand.IDs, int64(w.randomUser()))
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
			t.Operand.Text = w.randomMessageID().String()
		}
		t.SentOperator = t.Operator
		out = append(out, t)
	}
	return out
}

// isExpected decides about one message of a narrow term by term, following the protocol's description.
func (w *randomRealm) isExpected(u UserID, terms []Term, id MessageID) bool {
	r, me, m := w.realm, w.realm.Find(u), w.realm.message(id)
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
			history = r.hasContentAccess(me, c) && (c.History || c.WebPublic)
		case "channels":
			if t.Operand.Text == "public" && me != nil && !me.IsGuest() {
				history = true
			}
		}
	}
	for _, t := range terms {
		history = history && (t.Operator != "is" || t.Operand.Text == "resolved")
	}
	if !w.mayRead(u, id, m) || me != nil && !history && !r.hasRow(u, id, m) {
		return false
	}
	return w.matchesTerms(u, terms, id, m)
}

// matchesTerms reports whether a message matches all terms, without checking access.
func (w *randomRealm) matchesTerms(u UserID, terms []Term, id MessageID, m *message) bool {
	for _, t := range terms {
		if t.Operator == "near" || t.Operator == "in" && t.Operand.Text == "all" {
			continue
		}
		if w.matchesTerm(u, t, id, m) == t.Negated {
			return false
		}
	}
	return true
}

// expected returns every message of a narrow, and those unread ones that the anchor first_unread considers.
func (w *randomRealm) expected(u UserID, terms []Term) (all, unread []MessageID) {
	terms = w.expandWith(u, terms)
	named := slices.ContainsFunc(terms, func(t Term) bool { return t.Operator == "channel" })
	for id := MessageID(1); id <= w.realm.LastMessageID(); id++ {
		if !w.isExpected(u, terms, id) {
			continue
		}
		all = append(all, id)
		m := w.realm.message(id)
		topicMuted := func() bool {
			name := w.realm.topics.must(m.topic).Name
			return w.realm.TopicPolicyOf(u, ChannelID(m.channel), name) == TopicMuted
		}
		muted := m.channel != 0 && (topicMuted() || !named && w.matchesTerm(u, term("is", "muted"), id, m))
		if w.realm.flagsOf(u, id, m)&FlagRead == 0 && !muted {
			unread = append(unread, id)
		}
	}
	return all, unread
}

// matchesTerm reports whether a message matches one term, without its negation.
func (w *randomRealm) matchesTerm(u UserID, t Term, id MessageID, m *message) bool {
	r := w.realm
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
		people = r.conversations.must(m.conversation).Members
	}
	who := UserID(t.Operand.ID)
	if !t.Operand.IsID {
		if p := r.ViewAs(Caller{User: u}, w.now).FindByShownEmail(t.Operand.Text); p != nil {
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
		if t.Operand.IsID {
			return channel != nil && channel.ID == ChannelID(t.Operand.ID)
		}
		return channel != nil && strings.EqualFold(channel.Name, strings.TrimSpace(t.Operand.Text))
	case "topic":
		want := foldOperand(t.Operand)
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
			if p := r.ViewAs(Caller{User: u}, w.now).FindByShownEmail(strings.TrimSpace(e)); p != nil {
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
	w.t.Fatalf("this test cannot evaluate the term %+v", t)
	return false
}

// expandWith replaces the term "with" by the terms of its conversation, following the protocol's description.
func (w *randomRealm) expandWith(u UserID, terms []Term) []Term {
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
	m := w.realm.message(id)
	if m == nil || !w.mayRead(u, id, m) {
		return rest
	}
	rest = slices.DeleteFunc(rest, func(t Term) bool {
		return !t.Negated && slices.Contains([]string{"channel", "topic", "dm"}, t.Operator)
	})
	if m.channel != 0 {
		return append(rest, Term{Operator: "channel", Operand: Operand{IsID: true, ID: int64(m.channel)}},
			Term{Operator: "topic", Operand: Operand{Text: w.realm.topics.must(m.topic).Name}})
	}
	t := Term{Operator: "dm", Operand: Operand{IsList: true}}
	for _, p := range w.realm.conversations.must(m.conversation).Members {
		t.Operand.IDs = append(t.Operand.IDs, int64(p))
	}
	return append(rest, t)
}

// TestNarrowMatchesMessageByMessage compares pages of random narrows in random organizations with a decision message
// by message. It varies maxTestedMessages, so that both ways of evaluating a narrow are compared.
func TestNarrowMatchesMessageByMessage(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	old := maxTestedMessages
	defer func() { maxTestedMessages = old }()
	answered := 0
	for round := range int64(4) {
		w := newRandomRealm(t, seed+round, 700)
		for range 180 {
			maxTestedMessages = []int{0, 20, 300, old}[w.Intn(4)]
			u, terms := w.randomUser(), w.randomNarrow()
			if w.Intn(8) == 0 { // a logged-out visitor
				u, terms = 0, append(terms, term("channels", "web-public"))
			}
			var some ids.Set
			for range 6 {
				some.Add(int64(w.randomMessageID()))
			}
			w.compareAmong(t, u, terms, some)
			v := w.realm.ViewAs(Caller{User: u}, w.now)
			n, err := v.Narrow(terms, nil)
			if err != nil {
				continue
			}
			answered++
			want, unread := w.expected(u, terms)
			a := Anchor{Kind: AnchorKind(w.Intn(5)), ID: int64(w.randomMessageID()),
				Time: w.now - int64(w.Intn(20_000))}
			g := PageRange{Anchor: a, Before: w.Intn(8), After: w.Intn(8), Exclude: w.Intn(4) == 0}
			wanted := expectedPage(w, want, unread, g)
			if w.Intn(4) == 0 {
				n = n.Frozen()
				got := n.AllIDs(nil)
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d: user %d, %+v:\n got %v\nwant %v", seed+round, u, terms, got, want)
				}
			}
			got := n.Page(v.ResolveAnchor(&n, a).ID(nil), g, nil)
			if fmt.Sprint(got) != fmt.Sprint(wanted) {
				t.Fatalf("seed %d: user %d, %+v, %+v:\n got %v\nwant %v\nall %v\nunread %v",
					seed+round, u, terms, g, got, wanted, want, unread)
			}
		}
	}
	if answered < 300 {
		t.Errorf("only %d narrows were answered", answered)
	}
}

// For guests, channels:public neither opens a channel's history nor closes one that a channel term has opened.
func TestChannelsPublicForGuests(t *testing.T) {
	w := newRandomRealm(t, 1, 700)
	guest := UserID(0)
	for _, u := range w.realm.users.all() {
		if u.IsGuest() {
			guest = u.ID
		}
	}
	for id, c := range w.realm.channels.all() {
		if !c.WebPublic || w.realm.Subscribed(guest, id) {
			continue
		}
		named := Term{Operator: "channel", SentOperator: "channel", Operand: Operand{IsID: true, ID: int64(id)}}
		v := w.realm.ViewAs(Caller{User: guest}, w.now)
		alone, err := v.Narrow([]Term{named}, nil)
		both, err2 := v.Narrow([]Term{named, term("channels", "public")}, nil)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		alone, both = alone.Frozen(), both.Frozen()
		want, got := alone.AllIDs(nil), both.AllIDs(nil)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("channel %d: %v, with channels:public %v", id, want, got)
		}
		return
	}
	t.Fatal("no web-public channel without the guest")
}

// expectedPage returns a page with its found_*, following the protocol's description.
func expectedPage(w *randomRealm, all, unread []MessageID, g PageRange) Page {
	at := int64(NewestAnchor)
	switch g.Anchor.Kind {
	case AnchorMessage:
		at = g.Anchor.ID
	case AnchorOldest:
		at = 0
	case AnchorFirstUnread:
		if len(unread) > 0 {
			at = int64(unread[0])
		}
	case AnchorDate:
		for _, id := range all {
			if int64(w.realm.message(id).time) >= g.Anchor.Time {
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
	return Term{Operator: operator, SentOperator: operator, Operand: Operand{Text: operand}}
}

package realm_test

import (
	"reflect"
	"slices"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/ids"
	"parley/actors/realm/realmtest"
)

func oneTerm(operator, operand string) []Term {
	return []Term{{Operator: operator, SentOperator: operator, Operand: Operand{Text: operand}}}
}

// expectNarrow checks the messages that a narrow shows to a user.
func (s *testScene) expectNarrow(u UserID, terms []Term, want ...MessageID) {
	s.T.Helper()
	v := s.ViewAs(u)
	n, err := v.Narrow(terms, nil)
	if err != nil {
		s.T.Fatalf("user %d, narrow %+v: %v", u, terms, err)
	}
	if got := n.Page(NewestAnchor, PageRange{Before: 100}, nil).IDs; !slices.Equal(got, want) {
		s.T.Fatalf("user %d, narrow %+v: got messages %v, want %v", u, terms, got, want)
	}
}

// expectReaders checks that exactly these users may read a message. Others get the same refusal for hidden and unknown
// messages.
func (s *testScene) expectReaders(id MessageID, who ...UserID) {
	s.T.Helper()
	for _, u := range s.allUsers() {
		_, err := s.ViewAs(u).VisibleMessage(id)
		switch {
		case slices.Contains(who, u) && err != nil:
			s.T.Errorf("user %d cannot read message %d: %v", u, id, err)
		case !slices.Contains(who, u) && (err == nil || err.Error() != "Invalid message(s)"):
			s.T.Errorf("user %d can read message %d or got another refusal: %v", u, id, err)
		}
	}
}

func TestReadableMessages(t *testing.T) {
	s := newTestScene(t)
	public, private := s.post(s.ann, s.public, "a", "1"), s.post(s.ann, s.private, "a", "2")
	protected, direct := s.post(s.ann, s.protected, "a", "3"), do(s, s.ann, directMessage("4", s.bo)).ID
	all := s.allUsers()
	s.expectReaders(public, slices.DeleteFunc(slices.Clone(all), func(u UserID) bool {
		return s.Realm.Find(u).IsGuest() && u != s.guest
	})...)
	s.expectReaders(private, s.ann, s.bo)
	s.expectReaders(protected, s.ann, s.bo)
	s.expectReaders(direct, s.ann, s.bo)
	s.expectReaders(9999)

	s.join(s.cy, s.private)
	s.join(s.cy, s.protected)
	s.expectReaders(private, s.ann, s.bo, s.cy)
	s.expectReaders(protected, s.ann, s.bo) // cy does not see messages sent before joining
	s.expectNarrow(s.cy, oneTerm("channel", "private"), private)
	s.expectNarrow(s.cy, oneTerm("channel", "protected"))

	s.leave(s.bo, s.private)
	s.expectReaders(private, s.ann, s.cy)
	s.expectNarrow(s.bo, oneTerm("sender", s.Realm.Find(s.ann).Email), public, protected, direct)
	s.leave(s.guest, s.public)
	s.expectNarrow(s.guest, nil)
	s.expectHiddenFromNarrows(s.guest, s.public)
	s.expectNarrow(s.cy, nil) // cy was not subscribed when they were sent
	s.expectNarrow(s.cy, oneTerm("channel", "public"), public)
	s.expectNarrow(s.cy, oneTerm("channels", "public"), public)
}

func TestVisitorNarrows(t *testing.T) {
	s := newTestScene(t)
	web := s.channel("web", NewChannel{}, s.ann)
	open := s.post(s.ann, web, "a", "for all the world")
	closed := s.post(s.ann, s.public, "a", "for us")
	visitor := s.Realm.ViewAs(Caller{}, s.Now)
	public := oneTerm("channels", "web-public")
	if _, err := visitor.Narrow(public, nil); err == nil || err.(*Refusal).Kind != Unauthenticated {
		t.Errorf("visitor without spectator access: %v", err)
	}
	s.setOrgSetting("enable_spectator_access", true)
	do(s, s.owner, EditChannel{Channel: web, WebPublic: ptr(true)})
	for _, c := range []struct {
		terms []Term
		want  string
	}{
		{nil, "UNAUTHORIZED"},
		{oneTerm("channel", "web"), "UNAUTHORIZED"},
		{append(oneTerm("is", "unread"), public...), "UNAUTHORIZED"},
		{append(oneTerm("dm", "x"), public...), "UNAUTHORIZED"},
		{append(oneTerm("channel", "public"), public...), "BAD_NARROW"},
		{append(oneTerm("topic", "a"), public...), ""}, {append(oneTerm("is", "resolved"), public...), ""},
	} {
		_, err := visitor.Narrow(c.terms, nil)
		if r, _ := err.(*Refusal); (r == nil) != (c.want == "") || r != nil && r.Code != c.want {
			t.Errorf("%+v: %v, want %q", c.terms, err, c.want)
		}
	}
	n, _ := visitor.Narrow(public, nil)
	if got := n.Page(0, PageRange{After: 9}, nil).IDs; !slices.Contains(got, open) || slices.Contains(got, closed) {
		t.Errorf("a visitor got %v", got)
	}
	if m, err := visitor.VisibleMessage(open); err != nil || m.Flags != FlagRead {
		t.Errorf("visitor and web-public message: %v, flags %b", err, m.Flags)
	}
	for _, id := range []MessageID{closed, 9999} {
		if _, err := visitor.VisibleMessage(id); err == nil || err.(*Refusal).Code != "UNAUTHORIZED" {
			t.Errorf("a visitor asks for message %d: %v", id, err)
		}
	}
}

func TestRefusedNarrows(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.private, "a", "1")
	v := s.ViewAs(s.cy)
	for _, c := range []struct {
		terms []Term
		want  string
	}{
		{oneTerm("channel", "nowhere"), "Invalid narrow operator: unknown channel nowhere"},
		{oneTerm("channels", "all"), "Invalid narrow operator: unknown channels operand all"},
		{oneTerm("sender", "x@example.com"), "Invalid narrow operator: unknown user x@example.com"},
		{oneTerm("dm", "x@example.com"), "Invalid narrow operator: unknown user in x@example.com"},
		{
			[]Term{{Operator: "dm", Operand: Operand{IsList: true, IDs: []int64{int64(s.ann), 999}}}},
			"Invalid narrow operator: unknown user in [10, 999]",
		},
		{oneTerm("is", "odd"), "Invalid narrow operator: unknown 'is' operand odd"},
		{oneTerm("in", "odd"), "Invalid narrow operator: unknown 'in' operand odd"},
		{oneTerm("has", "odd"), "Invalid narrow operator: unknown 'has' operand odd"},
		{oneTerm("id", "x"), "Invalid narrow operator: Invalid message ID"},
		{oneTerm("Channel", "public"), "Invalid narrow operator: unknown operator Channel"},
		{oneTerm("with", id.String()), "Invalid narrow operator: Invalid 'with' operator"},
		{
			append(oneTerm("with", "1"), oneTerm("with", "1")...),
			"Invalid narrow operator combination: Duplicate 'with' operators.",
		},
		{
			append(oneTerm("topic", "a"), oneTerm("is", "dm")...),
			"Invalid narrow operator combination: No message can be both a channel message and direct message",
		},
	} {
		if c.want == "Invalid narrow operator: unknown user in [10, 999]" {
			c.want = "Invalid narrow operator: unknown user in [" + s.ann.String() + ", 999]"
		}
		_, err := v.Narrow(c.terms, nil)
		if r, _ := err.(*Refusal); r == nil || r.Msg != c.want || r.Code != "BAD_NARROW" || r.Data["desc"] == nil {
			t.Errorf("%+v: %v, want %q", c.terms, err, c.want)
		}
	}
	for _, u := range []UserID{s.cy, s.guest} {
		s.expectHiddenFromNarrows(u, s.private)
	}
	s.expectNarrow(s.owner, oneTerm("channel", "private")) // may know the channel, but not read it
}

// expectHiddenFromNarrows holds that a narrow to the channel, by id or name, gets the answer of a channel that does not
// exist.
func (s *testScene) expectHiddenFromNarrows(u UserID, c ChannelID) {
	s.T.Helper()
	name := s.Realm.FindChannel(c).Name
	for _, o := range []Operand{{IsID: true, ID: int64(c)}, {Text: name}} {
		for _, negated := range []bool{false, true} {
			_, err := s.ViewAs(u).Narrow([]Term{{Operator: "channel", Operand: o, Negated: negated}}, nil)
			want := "Invalid narrow operator: unknown channel " + o.String()
			if r, _ := err.(*Refusal); r == nil || r.Msg != want {
				s.T.Errorf("user %d, channel %v, negated %t: %v, want %q", u, o, negated, err, want)
			}
		}
	}
}

func TestWithOperatorFollowsMovedMessage(t *testing.T) {
	s := newTestScene(t)
	one, two := s.post(s.ann, s.public, "a", "1"), s.post(s.ann, s.public, "a", "2")
	other := s.post(s.ann, s.public, "b", "3")
	narrow := append(append(oneTerm("channel", "public"), oneTerm("topic", "a")...), oneTerm("with", one.String())...)
	s.expectNarrow(s.bo, narrow, one, two)
	do(s, s.admin, moveToTopic(one, MoveOne, "b"))
	s.expectNarrow(s.bo, narrow, one, other)
	narrow = slices.Concat(oneTerm("channel", "public"), oneTerm("topic", "a"), oneTerm("with", "9999"))
	s.expectNarrow(s.cy, narrow, two)
}

func TestFlags(t *testing.T) {
	s := newTestScene(t)
	one, two := s.post(s.ann, s.public, "a", "1"), s.post(s.ann, s.public, "a", "2")
	flag := func(op, name string, ids ...MessageID) Flag { return Flag{Messages: ids, Op: op, Flag: name} }
	refused(s, s.bo, flag("add", "odd", one), "Invalid flag: 'odd'")
	refused(s, s.bo, flag("add", "mentioned", one), "Flag not editable: 'mentioned'")
	refused(s, s.bo, flag("flip", "read", one), "Invalid message flag operation: 'flip'")

	if a := do(s, s.bo, flag("add", "read", one, one, 9999)); a.Changed != 1 {
		t.Errorf("changed %d messages, want 1", a.Changed)
	}
	s.ExpectEvents(s.bo, "update_message_flags")
	s.ExpectNoEvents(s.ann, s.cy)
	do(s, s.bo, flag("add", "read", one))
	s.ExpectNoEvents(s.bo) // it is already read
	s.expectNarrow(s.bo, oneTerm("is", "unread"), two)

	do(s, s.bo, flag("remove", "read", one))
	e := realmtest.ListEventsOf[*FlagsEvent](s.Scene, s.bo)
	if len(e) != 1 || !reflect.DeepEqual(e[0].Details(), []UnreadDetail{{
		ID: one, Channel: s.public, Topic: "a", Unmuted: true,
	}}) {
		t.Errorf("Bo got %+v", e)
	}
	s.leave(s.bo, s.public)
	if a := do(s, s.bo, flag("remove", "read", one, two)); a.Changed != 0 ||
		!slices.Equal(a.Ignored, []ChannelID{s.public}) {
		t.Errorf("marking messages of a left channel as unread: %+v", a)
	}

	// Nor does a message become unread in a channel the user never joined. The user needs access to every message.
	secret := s.post(s.ann, s.private, "a", "3")
	if a := do(s, s.cy, flag("remove", "read", one)); a.Changed != 0 ||
		!slices.Equal(a.Ignored, []ChannelID{s.public}) {
		t.Errorf("marking messages of a channel never joined as unread: %+v", a)
	}
	for _, id := range []MessageID{secret, 9999} {
		refused(s, s.cy, flag("remove", "read", one, id), "Invalid message(s)")
		if a := do(s, s.cy, flag("add", "read", one, id)); a.Changed != 0 {
			t.Errorf("marking an inaccessible message as read: %+v", a)
		}
	}

	// Starring gives the user a row of the message, if the user may read it.
	refused(s, s.cy, flag("add", "starred", one, secret), "Invalid message(s)")
	refused(s, s.cy, flag("add", "starred", 9999), "Invalid message(s)")
	if a := do(s, s.cy, flag("add", "collapsed", one)); a.Changed != 0 {
		t.Error("Cy collapsed a message without having a row of it")
	}
	do(s, s.cy, flag("add", "starred", one))
	if f := s.ViewAs(s.cy).FlagsOf(one); f != FlagRead|FlagStarred|FlagHistorical {
		t.Errorf("a starred message the user had not received has flags %b", f)
	}
	s.expectNarrow(s.cy, oneTerm("is", "starred"), one)
	s.expectNarrow(s.cy, nil, one)
	if got := s.ViewAs(s.cy).Starred(); !slices.Equal(got, []MessageID{one}) {
		t.Errorf("starred are %v", got)
	}
}

// A message from before the reader's subscription becomes unread: the reader gets a historical row of it, it counts as
// unread, and the reader's clients get the event.
func TestMarkHistoryUnread(t *testing.T) {
	s := newTestScene(t)
	old := s.post(s.ann, s.public, "a", "before cy came")
	do(s, s.cy, Subscribe{Channels: channelsToJoin("public")})
	flag := Flag{Op: "remove", Flag: "read", Messages: []MessageID{old}}
	if a := do(s, s.cy, flag); a.Changed != 1 || len(a.Ignored) != 0 {
		t.Errorf("marked as unread: %+v", a)
	}
	if f := s.ViewAs(s.cy).FlagsOf(old); f != FlagHistorical {
		t.Errorf("the message has the flags %b", f)
	}
	s.expectNarrow(s.cy, oneTerm("is", "unread"), old)
	if a := do(s, s.cy, flag); a.Changed != 0 {
		t.Error("an unread message became unread again")
	}
	flag.Op = "add"
	do(s, s.cy, flag)
	s.expectNarrow(s.cy, oneTerm("is", "unread"))
}

func TestFlagNarrow(t *testing.T) {
	s := newTestScene(t)
	var ids []MessageID
	for range 6 {
		ids = append(ids, s.post(s.ann, s.public, "a", "x"))
	}
	c := FlagNarrow{
		Terms: oneTerm("channel", "public"), Op: "add", Flag: "read",
		Range: PageRange{Anchor: Anchor{ID: int64(ids[2])}, Before: 1, After: 2},
	}
	a := do(s, s.bo, c)
	if a.Changed != 4 || !slices.Equal(a.Page.IDs, ids[1:5]) || a.Page.Oldest || a.Page.Newest {
		t.Errorf("marked %+v", a)
	}
	s.expectNarrow(s.bo, oneTerm("is", "unread"), ids[0], ids[5])
	c.Range.Exclude, c.Flag = true, "starred" // a range may have a hole: the anchor keeps its flag
	if a := do(s, s.bo, c); !slices.Equal(a.Page.IDs, []MessageID{ids[1], ids[3], ids[4]}) {
		t.Errorf("around an excluded anchor were flagged %v", a.Page.IDs)
	}
	s.expectNarrow(s.bo, oneTerm("is", "starred"), ids[1], ids[3], ids[4])
	c.Terms, c.Range.Exclude = oneTerm("is", "odd"), false
	refused(s, s.bo, c, "BAD_NARROW")
	for _, r := range []struct{ before, after, wantBefore, wantAfter int }{
		{10, 10, 10, 10}, {9000, 0, 5000, 0}, {9000, 1000, 4000, 1000}, {9000, 9000, 2500, 2500},
		{0, 9000, 0, 5000},
	} {
		if got := (PageRange{Before: r.before, After: r.after}).Bounded(); got.Before != r.wantBefore ||
			got.After != r.wantAfter {
			t.Errorf("%+v is bounded to %d, %d", r, got.Before, got.After)
		}
	}
}

func TestMarkAllRead(t *testing.T) {
	s := newTestScene(t)
	one := s.post(s.ann, s.public, "a", "1")
	s.post(s.ann, s.public, "B", "2")
	s.post(s.ann, s.private, "a", "3")
	do(s, s.ann, directMessage("4", s.bo))
	do(s, s.bo, ReadTopic{s.public, "A"})
	if e := realmtest.ListEventsOf[*FlagsEvent](s.Scene, s.bo); len(e) != 1 ||
		!slices.Equal(ids.IDs[MessageID](e[0].IDs), []MessageID{one}) {
		t.Errorf("Bo got %+v", e)
	}
	refused(s, s.bo, ReadTopic{s.public, "nothing"}, "No such topic 'nothing'")
	refused(s, s.cy, ReadTopic{s.private, "a"}, "Invalid channel ID")
	refused(s, s.cy, ReadChannel{s.private}, "Invalid channel ID")
	do(s, s.bo, ReadChannel{s.public})
	if u := s.ViewAs(s.bo).Unread().Sorted(); u.Count != 2 || len(u.Channels) != 1 || len(u.Direct) != 1 ||
		u.Direct[0].Other != s.ann {
		t.Errorf("unread: %+v", u)
	}
	do(s, s.bo, ReadAll{})
	if e := realmtest.ListEventsOf[*FlagsEvent](s.Scene, s.bo); len(e) != 1 || !e[0].All || !e[0].IDs.Empty() {
		t.Errorf("Bo got %+v", e)
	}
	if u := s.ViewAs(s.bo).Unread().Sorted(); u.Count != 0 {
		t.Errorf("unread after all was read: %+v", u)
	}
	do(s, s.bo, ReadAll{})
	s.ExpectNoEvents(s.bo)
}

func TestUnread(t *testing.T) {
	s := newTestScene(t)
	one, two := s.post(s.ann, s.public, "Tea", "1"), s.post(s.ann, s.public, "tea", "2")
	mention := channelMessage(s.private, "a", "@**Bo**")
	mention.Content.Users = []UserID{s.bo}
	three := do(s, s.ann, mention).ID
	group := do(s, s.ann, directMessage("4", s.bo, s.cy)).ID
	note := do(s, s.bo, directMessage("5", s.bo)).ID
	do(s, s.bo, SetTopicPolicy{s.private, "a", TopicMuted})
	u := s.ViewAs(s.bo).Unread().Sorted()
	if len(u.Channels) != 2 || u.Channels[0].Topic != "tea" ||
		!slices.Equal(u.Channels[0].IDs, []MessageID{one, two}) ||
		!slices.Equal(u.Channels[1].IDs, []MessageID{three}) {
		t.Errorf("channels: %+v", u.Channels)
	}
	if len(u.Groups) != 1 || !slices.Equal(u.Groups[0].Members, []UserID{s.ann, s.bo, s.cy}) ||
		!slices.Equal(u.Groups[0].IDs, []MessageID{group}) {
		t.Errorf("groups: %+v", u.Groups)
	}
	if len(u.Direct) != 1 || u.Direct[0].Other != s.bo || !slices.Equal(u.Direct[0].IDs, []MessageID{note}) {
		t.Errorf("direct: %+v", u.Direct)
	}
	if u.Count != 4 || !slices.Equal(u.Mentions, []MessageID{three}) || u.Missing {
		t.Errorf("count %d, mentions %v", u.Count, u.Mentions)
	}
	recent := s.ViewAs(s.bo).RecentConversations()
	if len(recent) != 2 || recent[0].Newest != note || len(recent[0].Others(s.bo)) != 0 || recent[1].Newest != group ||
		!slices.Equal(recent[1].Others(s.bo), []UserID{s.ann, s.cy}) {
		t.Errorf("recent: %+v", recent)
	}
}

func TestReadReceipts(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "1")
	receipts := func(u UserID) []UserID {
		t.Helper()
		list, err := s.ViewAs(u).ReadReceipts(id)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, u := range []UserID{s.ann, s.bo, s.guest} {
		do(s, u, ReadAll{})
	}
	if got := receipts(s.cy); !slices.Equal(got, []UserID{s.bo, s.guest}) {
		t.Errorf("read by %v, want neither the sender nor Cy, who did not receive it", got)
	}
	do(s, s.cy, MuteUser{User: s.bo})
	if got := receipts(s.cy); !slices.Equal(got, []UserID{s.guest}) {
		t.Errorf("receipts after muting Bo: %v", got)
	}
	if got := receipts(s.bo); !slices.Equal(got, []UserID{s.bo, s.guest}) {
		t.Errorf("receipts for a reader of the message: %v", got)
	}
	hidden := s.post(s.ann, s.private, "a", "2")
	mayNot := func() {
		t.Helper()
		if _, err := s.ViewAs(s.cy).ReadReceipts(hidden); err == nil || err.Error() != "Invalid message(s)" {
			t.Errorf("receipts of a message that Cy may not read: %v", err)
		}
	}
	mayNot()
	s.setOrgSetting("enable_read_receipts", false)
	mayNot()
	if _, err := s.ViewAs(s.bo).ReadReceipts(id); err == nil ||
		err.Error() != "Read receipts are disabled in this organization." {
		t.Errorf("receipts are disabled: %v", err)
	}
}

func TestEditHistoryPolicy(t *testing.T) {
	s := newTestScene(t)
	id := s.post(s.ann, s.public, "a", "1")
	do(s, s.ann, s.editText(id, "2"))
	do(s, s.ann, moveToTopic(id, MoveOne, "b"))
	for policy, want := range map[string][]bool{"all": {true, false}, "moves": {false}, "none": {}} {
		s.setOrgSetting("message_edit_history_visibility_policy", policy)
		m, err := s.ViewAs(s.bo).VisibleMessage(id)
		if err != nil {
			t.Fatal(err)
		}
		var got []bool
		for _, r := range m.History {
			got = append(got, r.Content)
		}
		if !slices.Equal(got, append([]bool(nil), want...)) {
			t.Errorf("%s: %+v", policy, m.History)
		}
	}
}

// A topic narrow without a channel finds the topic in all channels, also after renames, moves and deletions.
func TestTopicNarrowAcrossChannels(t *testing.T) {
	s := newTestScene(t)
	s.join(s.owner, s.private)
	s.join(s.owner, s.protected)
	tea, other := oneTerm("topic", "tea"), oneTerm("topic", "coffee")
	here, there := s.post(s.ann, s.public, "tea", "one"), s.post(s.ann, s.private, "TEA", "two")
	more := s.post(s.ann, s.private, "tea", "three")
	s.expectNarrow(s.ann, tea, here, there, more)
	s.expectNarrow(s.guest, tea, here)
	s.expectNarrow(s.ann, other)

	move := func(id MessageID, c ChannelID, topic string) {
		t.Helper()
		do(s, s.owner, EditMessage{Message: id, Topic: &topic, Channel: c, Mode: MoveAll})
	}
	move(here, 0, "Coffee")
	s.expectNarrow(s.ann, tea, there, more)
	s.expectNarrow(s.ann, other, here)
	do(s, s.owner, DeleteMessage{there})
	s.expectNarrow(s.ann, tea, more)
	do(s, s.owner, DeleteMessage{more})
	s.expectNarrow(s.ann, tea)
	move(here, 0, "tea")
	again := s.post(s.ann, s.private, "tea", "four")
	s.expectNarrow(s.ann, tea, here, again)
	move(here, s.protected, "tea")
	s.expectNarrow(s.ann, tea, here, again)
	s.expectNarrow(s.guest, tea)
	do(s, s.owner, DeleteTopic{Channel: s.protected, Topic: "tea"})
	s.expectNarrow(s.ann, tea, again)
	do(s, s.ann, ArchiveChannel{s.private})
	s.expectNarrow(s.ann, tea, again)
	s.expectNarrow(s.ann, other)
}

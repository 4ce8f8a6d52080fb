package realm_test

import (
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
	. "parley/actors/realm/realmtest"
)

// scopeScene has a user with two channels, each with a secret topic, and a direct message.
type scopeScene struct {
	*Scene
	ann, bo    realm.UserID
	open, shut realm.ChannelID
	in, out    map[string]realm.MessageID // messages by name: those in the scope of tests, and the others
}

func newScopeScene(t *testing.T) *scopeScene {
	s := &scopeScene{Scene: New(t), in: map[string]realm.MessageID{}, out: map[string]realm.MessageID{}}
	s.ann, s.bo = s.Join("Ann"), s.Join("Bo")
	s.open, s.shut = s.channel(s.ann, "open", false), s.channel(s.ann, "shut", false)
	post := func(to map[string]realm.MessageID, name string, c realm.ChannelID, topic string) {
		to[name] = Do(s.Scene, s.ann, realm.SendMessage{ToChannel: true, Channel: c, Topic: topic,
			Body: realm.Body{Text: name}}).ID
	}
	post(s.in, "deploy", s.open, "deploy")
	post(s.out, "other topic", s.open, "salaries")
	post(s.out, "other channel", s.shut, "deploy")
	s.out["direct"] = Do(s.Scene, s.bo, realm.SendMessage{People: []realm.Principal{{ID: s.ann}},
		Body: realm.Body{Text: "direct"}}).ID
	return s
}

func (s *scopeScene) channel(u realm.UserID, name string, private bool) realm.ChannelID {
	c := newChannels(name)
	c.New.Private = private
	Do(s.Scene, u, c)
	return s.Realm.FindChannelByName(name).ID
}

// key adds a key of Ann and returns its id, and the caller of its requests.
func (s *scopeScene) key(scope *realm.KeyScope) (int64, realm.Caller) {
	k := Do(s.Scene, s.ann, realm.AddKey{User: s.ann, Label: "agent", Scope: scope})
	return k.ID, realm.Caller{User: s.ann, Key: k.Hash}
}

// deployScope is limited to one topic.
func (s *scopeScene) deployScope(rights ...string) *realm.KeyScope {
	topic := "Deploy"
	return &realm.KeyScope{Rights: rights, Places: []realm.KeyPlace{{Channel: s.open, Topic: &topic}}}
}

// TestScopedKeyReadsOnlyItsPlaces checks each way from an id or a narrow to a message.
func TestScopedKeyReadsOnlyItsPlaces(t *testing.T) {
	s := newScopeScene(t)
	_, caller := s.key(s.deployScope(realm.RightRead))
	v := s.Realm.ViewAs(caller, s.Now)
	all := []realm.MessageID{}
	for name, id := range s.in {
		all = append(all, id)
		if _, err := v.ReadableMessage(id); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, id := range s.out {
		all = append(all, id)
		if _, err := v.ReadableMessage(id); err == nil {
			t.Errorf("%s can be read", name)
		}
		if _, err := v.WritableMessage(id); err == nil {
			t.Errorf("%s can be changed", name)
		}
	}
	if got := v.VisibleMessages(all); len(got) != 1 || got[0].ID != s.in["deploy"] {
		t.Errorf("visible: %v", got)
	}
	for _, terms := range [][]realm.Term{nil,
		{{Operator: "channel", Operand: realm.Operand{IsID: true, ID: int64(s.open)}}},
		{{Operator: "channels", Operand: realm.Operand{Text: "public"}}},
		{{Operator: "sender", Operand: realm.Operand{IsID: true, ID: int64(s.ann)}}},
		{{Operator: "is", Operand: realm.Operand{Text: "dm"}, Negated: true}},
		{{Operator: "topic", Operand: realm.Operand{Text: "salaries"}, Negated: true}}} {
		n, err := v.Narrow(terms, nil)
		if err != nil {
			t.Errorf("%v: %v", terms, err)
			continue
		}
		if got := n.AllIDs(nil); !slices.Equal(got, []realm.MessageID{s.in["deploy"]}) {
			t.Errorf("%v: %v", terms, got)
		}
	}
	if _, err := v.Narrow([]realm.Term{{Operator: "channel", SentOperator: "channel",
		Operand: realm.Operand{IsID: true, ID: int64(s.shut)}}}, nil); err == nil {
		t.Error("a narrow of another channel is not refused")
	}
	if _, err := v.ReadableChannel(s.shut); err == nil {
		t.Error("another channel can be read")
	}
	if _, err := v.VisibleChannel(s.shut); err == nil {
		t.Error("another channel is visible")
	}
	if c, err := v.ReadableChannel(s.open); err != nil || len(v.Topics(c)) != 1 || v.Topics(c)[0].Name != "deploy" {
		t.Errorf("topics of the own channel: %v", err)
	}
	if v.LatestReadableIn(s.Realm.FindChannel(s.open), "salaries") != 0 {
		t.Error("the newest message of another topic is known")
	}
	whole := s.Realm.ViewAs(realm.Caller{User: s.ann}, s.Now)
	if got := whole.VisibleMessages(all); len(got) != len(all) {
		t.Errorf("without a key: %v", got)
	}
}

// TestScopedKeySendsOnlyToItsPlaces also moves messages.
func TestScopedKeySendsOnlyToItsPlaces(t *testing.T) {
	s := newScopeScene(t)
	_, caller := s.key(s.deployScope(realm.RightRead, realm.RightSend, realm.RightEdit))
	send := func(c realm.SendMessage) error {
		_, err := TryAs(s.Scene, caller, c)
		return err
	}
	body := realm.Body{Text: "hello"}
	if err := send(realm.SendMessage{ToChannel: true, Channel: s.open, Topic: "DEPLOY", Body: body}); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]realm.SendMessage{
		"not allowed to send there": {ToChannel: true, Channel: s.open, Topic: "salaries", Body: body},
		"does not exist":            {ToChannel: true, Channel: s.shut, Topic: "deploy", Body: body},
		"Channel 'shut'":            {ToChannel: true, ChannelName: "shut", Topic: "deploy", Body: body},
		"to send there":             {People: []realm.Principal{{ID: s.bo}}, Body: body},
	} {
		if err := send(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	elsewhere := "salaries"
	for _, c := range []realm.EditMessage{
		{Message: s.in["deploy"], Topic: &elsewhere, Mode: realm.MoveOne},
		{Message: s.in["deploy"], Channel: s.shut, Mode: realm.MoveAll},
		{Message: s.out["other topic"], Topic: &elsewhere, Mode: realm.MoveOne},
	} {
		if _, err := TryAs(s.Scene, caller, c); err == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
}

// TestScopedKeyCannotGrow checks that a key makes no keys, and that a scope needs valid values.
func TestScopedKeyCannotGrow(t *testing.T) {
	s := newScopeScene(t)
	_, caller := s.key(&realm.KeyScope{Rights: []string{realm.RightRead, realm.RightManage}})
	for _, c := range []realm.AddKey{{User: s.ann, Label: "x"},
		{User: s.ann, Label: "x", Scope: s.deployScope("read")}} {
		if _, err := TryAs(s.Scene, caller, c); err == nil {
			t.Error("a scoped key made a key")
		}
	}
	secret := s.channel(s.bo, "secret", true)
	for want, scope := range map[string]*realm.KeyScope{
		"at least one of these rights": {},
		"one of these rights: read":    {Rights: []string{"read", "fly"}},
		"only together":                {Rights: []string{"read"}, Direct: true},
		"right 'manage'":               {Rights: []string{"read", "manage"}, Places: []realm.KeyPlace{}},
		"right 'mark'":                 {Rights: []string{"read", "mark"}, Places: []realm.KeyPlace{}},
		"Invalid channel ID":           {Rights: []string{"read"}, Places: []realm.KeyPlace{{Channel: secret}}},
		"'10.0.0.1' is not a network":  {Rights: []string{"read"}, Networks: []string{"10.0.0.1"}},
		"at most 64 bits":              {Rights: []string{"read"}, Networks: []string{"2001:db8::/65"}},
		"at most 50 channels":          {Rights: []string{"read"}, Places: make([]realm.KeyPlace, 51)},
		"50 endpoints":                 {Rights: []string{"read"}, Endpoints: make([]string, 51)},
		"20 networks":                  {Rights: []string{"read"}, Networks: make([]string, 21)},
	} {
		c := realm.AddKey{User: s.ann, Label: "x", Scope: scope}
		if _, err := Try(s.Scene, s.ann, c); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for address, want := range map[string]bool{"192.0.2.7": true, "192.0.3.7": false, "2001:db8:1:2::/64": true,
		"2001:db9::/64": false, "": false, "edge": false} {
		n := &realm.KeyScope{Networks: []string{"192.0.2.0/24", "2001:db8::/32"}}
		if n.HasAddress(address) != want {
			t.Errorf("HasAddress(%q) = %t", address, !want)
		}
	}
}

// TestScopedKeyQueue checks who may close a queue, that it ends with its key, and which events it accepts.
func TestScopedKeyQueue(t *testing.T) {
	s := newScopeScene(t)
	key, caller := s.key(s.deployScope(realm.RightRead))
	_, other := s.key(&realm.KeyScope{Rights: []string{realm.RightRead}})
	register := func(c realm.Caller) *realm.Queue {
		none := func(realm.View, *realm.Queue) (any, error) { return nil, nil }
		return DoAs(s.Scene, c, realm.Register{State: none}).Queue
	}
	own, whole := register(caller), register(realm.Caller{User: s.ann})
	for _, x := range []struct {
		c realm.Caller
		q *realm.Queue
	}{{caller, whole}, {other, own}, {other, whole}} {
		if _, err := TryAs(s.Scene, x.c, realm.CloseQueue{ID: x.q.ID}); err == nil {
			t.Error("a scoped key closed a queue that it did not open")
		}
	}
	message := func(c realm.ChannelID, topic string) *realm.MessageArrived {
		return &realm.MessageArrived{Message: realm.MessageInfo{Channel: c, Topic: topic}}
	}
	move := func(from, to string) *realm.MessageUpdate {
		return &realm.MessageUpdate{Channel: s.open, NewChannel: s.open, Moved: true, OrigTopic: from, Topic: to}
	}
	for _, x := range []struct {
		event        realm.Event
		want, leaves bool
	}{
		{message(s.open, "deploy"), true, false}, {message(s.open, "salaries"), false, false},
		{message(s.shut, "deploy"), false, false}, {message(0, ""), false, false},
		{&realm.MessageUpdate{Channel: s.open, OrigTopic: "deploy"}, true, false},
		{&realm.MessageUpdate{Channel: s.open, OrigTopic: "salaries"}, false, false},
		{move("deploy", "Deploy"), true, false}, {move("deploy", "salaries"), false, true},
		{move("salaries", "deploy"), false, false},
		{&realm.MessagesVanished{Channel: s.open, Topic: "deploy"}, true, false},
		{&realm.MessagesVanished{Channel: s.shut, Topic: "deploy"}, false, false},
		{&realm.ReactionAdded{}, false, false}, {&realm.FlagsEvent{}, false, false},
		{&realm.ChannelAppeared{}, false, false},
		{&realm.Typing{}, false, false}, {&realm.ServerRestarted{}, true, false},
	} {
		if got := own.Scope.AllowsEvent(x.event); got != x.want {
			t.Errorf("%T %+v: %t", x.event, x.event, got)
		}
		if got := own.Scope.Leaves(x.event) != nil; got != x.leaves {
			t.Errorf("%T %+v leaves: %t", x.event, x.event, got)
		}
		if !whole.Scope.AllowsEvent(x.event) {
			t.Errorf("%T does not reach a queue of the whole account", x.event)
		}
	}
	Do(s.Scene, s.ann, realm.RevokeKey{User: s.ann, Key: key})
	if s.Realm.FindQueue(own.ID) != nil || s.Realm.FindQueue(whole.ID) == nil {
		t.Error("the revoked key's queue, and only it, must end")
	}
}

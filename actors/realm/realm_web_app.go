package realm

// ChangeWebApp asks web clients to load their page again, because the server has another one. Only the server runs it.
type ChangeWebApp struct{}

func (ChangeWebApp) Decide(t *Turn) (Done, error) {
	if t.Realm.Founded() {
		t.Record(&WebAppChanged{})
	}
	return Done{}, nil
}

// WebAppChanged records that the server has another page than before. The page is not part of the state of a realm.
type WebAppChanged struct{}

func (*WebAppChanged) apply(*Realm) {}
func (f *WebAppChanged) notices(r *Realm) []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: f}}
}

// EventType returns the type of the event, which only web clients get.
func (*WebAppChanged) EventType() string { return "web_reload_client" }

// maxNewestTests limits the messages that NewestVisibleIn looks at.
const maxNewestTests = 1000

// NewestVisibleIn returns the newest message of a channel that the caller can read, or 0. If more than maxNewestTests
// newer ones are not visible, it returns 0.
func (v View) NewestVisibleIn(c ChannelID) (newest MessageID) {
	ix := v.index.channels[c]
	if ix == nil {
		return 0
	}
	tests := 0
	ix.ids.EachBackward(func(x int64) bool {
		if len(v.VisibleMessages([]MessageID{MessageID(x)})) == 1 {
			newest = MessageID(x)
			return false
		}
		tests++
		return tests < maxNewestTests
	})
	return newest
}

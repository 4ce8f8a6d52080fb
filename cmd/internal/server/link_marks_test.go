package server

import (
	"fmt"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"parley/actors/realm"
	"parley/snapshot"
	"parley/wire/linkmarks"
)

// Messages that an older program did not count as messages with a link are found by has:link after the start.
func TestOldLinksAreMarked(t *testing.T) {
	d := startDemo(t)
	d.linkMarks.Close() // it begins linkmarks.Delay after the start, maybe while the messages below are being stored
	d.linkMarks = nil
	id, general := d.orgs.Realms()[""], realm.ChannelID(0)
	if _, err := d.orgs.Turn(id, realm.System, func(t *realm.Turn) (any, error) {
		t.Org().LinksChecked = 0 // as in an organization that an older program has founded
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	_, err := d.orgs.View(id, realm.System, func(v realm.View) (any, error) {
		general = v.FindChannelByName("general").ID
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	me := d.call("ann@example.org", "GET", "users/me", nil)
	ann := realm.Caller{User: realm.UserID(me["user_id"].(float64)), Client: "test"}
	old := func(html string) realm.MessageID { // as an older program stored it
		a, err := realm.Execute(d.orgs, id, ann, realm.SendMessage{ToChannel: true, Channel: general,
			Topic: "old links",
			Body:  realm.Body{Text: "see #**general**", HTML: html}})
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	const link = `<p>see <a class="stream" data-stream-id="1" href="/#narrow/channel/1-general">#general</a></p>`
	old("<p>&lt;a href=x&gt;</p>")
	want := []realm.MessageID{old(link)}
	for range linkmarks.StepTexts {
		want = append(want, old(link))
	}
	found := func() (out []realm.MessageID) {
		a := d.call("ann@example.org", "GET", "messages", url.Values{"anchor": {"oldest"}, "num_before": {"0"},
			"num_after": {"5000"}, "narrow": {`[["topic","old links"],["has","link"]]`}})
		for _, m := range a["messages"].([]any) {
			out = append(out, realm.MessageID(m.(map[string]any)["id"].(float64)))
		}
		return out
	}
	if got := found(); len(got) != 0 {
		t.Fatalf("%d messages have a link before", len(got))
	}
	m := linkmarks.Start(d.orgs, snapshot.Disk{Store: d.store}, slog.New(slog.DiscardHandler), 0)
	d.linkMarks = m // closed with the server
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got := found()
		if len(got) == len(want) && fmt.Sprint(got) == fmt.Sprint(want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d messages have a link, want %d", len(got), len(want))
		}
	}
	<-m.Done()
	checked, err := d.orgs.View(id, realm.System, func(v realm.View) (any, error) { return v.Org().LinksChecked, nil })
	if checked != realm.MessageID(realm.MaxMessageID) || err != nil {
		t.Errorf("after the last step: checked up to %v, %v", checked, err)
	}
}

package delivery

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"parley/actors/realm"
)

// An event whose size is estimated from a few fields has at least the size that inspecting all of it finds, and at most
// twice as much.
func TestEstimateManySubscribers(t *testing.T) {
	yes := true
	e := &realm.SubscriptionAdded{Info: realm.ChannelInfo{Channel: realm.Channel{Name: strings.Repeat("crowd", 10)}}}
	for u := range realm.UserID(2000) {
		e.Users, e.Knows = append(e.Users, u+1), append(e.Knows, true)
		e.Roster.Add(int64(u) + 1)
		e.Own = append(e.Own, realm.Subscription{
			Channel:  7,
			Active:   true,
			Color:    realm.Palette[0],
			Desktop:  &yes,
			Audible:  &yes,
			Push:     &yes,
			Email:    &yes,
			Wildcard: &yes,
		})
		e.Inherited = append(e.Inherited, realm.ChannelNotifications{Desktop: true})
	}
	set := realm.SubscriptionSet{Property: "audible_notifications", Color: realm.Palette[0]}
	for _, x := range []realm.Event{e, &realm.SubscriptionsAdded{Each: []realm.SubscriptionAdded{*e, *e}},
		&realm.SubscriptionsSet{Each: slices.Repeat([]realm.SubscriptionSet{set}, 60)}} {
		if walked, got := estimateValue(reflect.ValueOf(x), 0), estimateEvent(x); got < walked || got > 2*walked {
			t.Errorf("%T is estimated as %d bytes, inspected as %d", x, got, walked)
		}
	}
}

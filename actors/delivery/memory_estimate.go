package delivery

import (
	"reflect"

	"parley/actors/realm"
)

// eventRefBytes is the size of one queue's reference to an event.
const eventRefBytes = 16

// estimateBytes estimates the memory of a fact's events, in bytes: the event, its encoding once for each session actor
// of the audience, and a reference for each recipient. It is an upper bound if the clients are of one kind and have one
// queue each. Texts count even if the text cache holds them too.
func estimateBytes(t *realm.Publication) int64 {
	sum := int64(96)
	for i := range t.Notices {
		n := &t.Notices[i]
		e := int64(256) + estimateEvent(n.Event)
		sum += e*int64(1+min(len(n.To), SessionActors)) + eventRefBytes*int64(len(n.To))
	}
	return sum
}

// estimateEvent estimates the size of an event, in bytes. It runs inside the turn. So the most frequent events, and
// those that may name ten thousand users, are estimated from a few of their fields; the others are inspected by
// reflection.
func estimateEvent(e realm.Event) int64 {
	switch e := e.(type) {
	case *realm.MessageArrived:
		return estimateMessage(e)
	case *realm.MessagesReadAfterLeaving:
		return int64(readMessageBytes * e.Messages.Len())
	case *realm.SubscriptionAdded:
		return estimateSubscription(e)
	case *realm.SubscriptionsAdded:
		sum := int64(24)
		for i := range e.Each {
			sum += estimateSubscription(&e.Each[i])
		}
		return sum
	case *realm.SubscriptionsSet:
		return int64(settingChangeBytes * len(e.Each))
	}
	return estimateValue(reflect.ValueOf(e), 0)
}

func estimateMessage(m *realm.MessageArrived) int64 {
	i := &m.Message
	users := len(m.Mentioned) + len(m.GroupMentioned) + len(m.TopicMentioned)
	users += len(m.Alerted) + len(m.ReadBy) + len(m.Unknown)
	sum := 600 + len(i.ChannelName) + len(i.Topic) + 100*len(i.People) + 8*users
	if i.Body != nil {
		sum += len(i.Body.Text) + len(i.Body.HTML)
	}
	return int64(sum)
}

// readMessageBytes is the size of one message in an event that marks messages as read: its id.
const readMessageBytes = 8

// newSubscriberBytes is the size of one new subscriber in the event subscription/add: their settings of the channel,
// with a color such as #76ce90 and five pointers to notification settings, the settings they inherit, and their id.
const newSubscriberBytes = 192

// settingChangeBytes is the size of one change of a personal channel setting, with its name and a color.
const settingChangeBytes = 128

// channelBytes is about the size of a channel in such an event, without its texts: one event may have a thousand
// channels.
const channelBytes = 1500

func estimateSubscription(e *realm.SubscriptionAdded) int64 {
	texts := len(e.Info.Name) + len(e.Info.Description) + len(e.Info.DescriptionHTML)
	ids := len(e.Members) + len(e.Here) + e.Roster.Len() + e.Present.Len()
	return channelBytes + int64(texts) + 8*int64(ids) + newSubscriberBytes*int64(len(e.Users))
}

// maxEstimateDepth is how deep events are inspected.
const maxEstimateDepth = 8

// estimateValue estimates the size of a value and of everything that it points to.
func estimateValue(v reflect.Value, depth int) int64 {
	if depth == maxEstimateDepth {
		return 0
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 8
		}
		return 8 + estimateValue(v.Elem(), depth+1)
	case reflect.String:
		return 16 + int64(v.Len())
	case reflect.Slice, reflect.Array:
		if hasNoPointers(v.Type().Elem()) {
			return 24 + int64(v.Len())*int64(v.Type().Elem().Size())
		}
		sum := int64(24)
		// Reflection on each of ten thousand strings would be slow.
		if v.Type() == reflect.TypeFor[[]string]() && v.CanInterface() {
			for _, x := range v.Interface().([]string) {
				sum += 16 + int64(len(x))
			}
			return sum
		}
		for i := range v.Len() {
			sum += estimateValue(v.Index(i), depth+1)
		}
		return sum
	case reflect.Map:
		sum := int64(48)
		for it := v.MapRange(); it.Next(); {
			sum += estimateValue(it.Key(), depth+1) + estimateValue(it.Value(), depth+1)
		}
		return sum
	case reflect.Struct:
		var sum int64
		for i := range v.NumField() {
			sum += estimateValue(v.Field(i), depth+1)
		}
		return sum
	}
	return int64(v.Type().Size())
}

// hasNoPointers reports whether values of a type point to no other memory.
func hasNoPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Pointer, reflect.Interface, reflect.Map:
		return false
	case reflect.Array:
		return hasNoPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !hasNoPointers(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

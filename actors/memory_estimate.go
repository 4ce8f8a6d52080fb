package actors

import (
	"reflect"

	"parley/actors/realm"
)

// eventRefBytes is what one queue's reference to an event takes.
const eventRefBytes = 16

// estimateBytes estimates the memory of what a fact tells: the event, its encoding once for each shard that some of the audience
// belong to, and a reference for everybody. It is an upper bound where clients are alike and have one queue each; texts
// also count when the text cache has them anyway.
func estimateBytes(t *realm.Told) int64 {
	sum := int64(96)
	for i := range t.Notices {
		n := &t.Notices[i]
		e := int64(256) + estimateEvent(n.Event)
		sum += e*int64(1+min(len(n.To), Shards)) + eventRefBytes*int64(len(n.To))
	}
	return sum
}

// estimateEvent is about how many bytes an event takes. This happens inside the turn, so the commonest events, and those that
// may name ten thousand users, are estimated from a few of their fields; only the others are walked through.
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
	sum := 600 + len(i.ChannelName) + len(i.Topic) + 100*len(i.People) + 8*(len(m.Mentioned)+len(m.GroupMentioned)+len(m.TopicMentioned)+len(m.Alerted)+len(m.ReadBy)+len(m.Unknown))
	if i.Body != nil {
		sum += len(i.Body.Text) + len(i.Body.HTML)
	}
	return int64(sum)
}

// readMessageBytes is what a message takes in an event that says it is read: its number.
const readMessageBytes = 8

// newSubscriberBytes is what one of those who join takes in the event subscription/add: his own settings of the channel, with a
// colour such as #76ce90 and five pointers to notification settings, what he inherits, and his number.
const newSubscriberBytes = 192

// settingChangeBytes is what a change of one's own setting of a channel takes, with its name and a colour.
const settingChangeBytes = 128

// channelBytes is about what a channel takes in it, but for its texts: a thousand of them are joined at once.
const channelBytes = 1500

func estimateSubscription(e *realm.SubscriptionAdded) int64 {
	return channelBytes + int64(len(e.Info.Name)+len(e.Info.Description)+len(e.Info.DescriptionHTML)) + 8*int64(len(e.Members)+len(e.Here)+e.Roster.Len()+e.Present.Len()) + newSubscriberBytes*int64(len(e.Users))
}

// maxEstimateDepth is how deep events are looked into.
const maxEstimateDepth = 8

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
		if v.Type() == reflect.TypeFor[[]string]() && v.CanInterface() { // ten thousand of them, one by one through reflection, are felt
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

// hasNoPointers reports whether values of a type lead to no memory but their own.
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

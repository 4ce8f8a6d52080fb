package form

import (
	"reflect"
	"testing"
)

func TestRecipients(t *testing.T) {
	const exactlyOne = "Expected exactly one channel"
	const badChannel = "Invalid data type for channel"
	const badPeople = "Invalid data type for recipients"
	const mixed = "Recipient lists may contain emails or user IDs, but not both."
	for _, c := range []struct {
		to      string
		channel any // ChannelTarget, or the error message
		people  any // UserRefs, or the error message
	}{
		{"Verona", ChannelTarget{Name: "Verona"}, UserRefs{Emails: []string{"Verona"}}},
		{`"Verona"`, ChannelTarget{Name: "Verona"}, UserRefs{Emails: []string{"Verona"}}},
		{`["Verona"]`, ChannelTarget{Name: "Verona"}, UserRefs{Emails: []string{"Verona"}}},
		{"7", ChannelTarget{ID: 7, ByID: true}, badPeople},
		{"[7]", ChannelTarget{ID: 7, ByID: true}, UserRefs{IDs: []int64{7}, Emails: nil}},
		{"99999999999999999999", ChannelTarget{ID: 1<<63 - 1, ByID: true, OutOfRange: "99999999999999999999"},
			badPeople},
		{"9223372036854775807", ChannelTarget{ID: 1<<63 - 1, ByID: true}, badPeople},
		{"[1,-99999999999999999999]", exactlyOne, UserRefs{IDs: []int64{1, -1 << 63},
			OutOfRange: map[int]string{1: "-99999999999999999999"}}},
		{`"a@x, b@x,,"`, ChannelTarget{Name: "a@x, b@x,,"}, UserRefs{Emails: []string{"a@x", "b@x"}}},
		{"a@x,b@x", ChannelTarget{Name: "a@x,b@x"}, UserRefs{Emails: []string{"a@x", "b@x"}}},
		{`["a@x"," b@x"]`, exactlyOne, UserRefs{Emails: []string{"a@x", "b@x"}}},
		{"[1,2]", exactlyOne, UserRefs{IDs: []int64{1, 2}}},
		{"[]", exactlyOne, UserRefs{}},
		{"", ChannelTarget{}, UserRefs{Emails: []string{}}},
		{"{}", badChannel, badPeople},
		{"null", badChannel, badPeople},
		{"1.5", badChannel, badPeople},
		{"[true]", badChannel, badPeople},
		{`[1,"a@x"]`, exactlyOne, mixed},
		{`["a@x",1]`, exactlyOne, mixed},
		{`[[1]]`, badChannel, badPeople},
	} {
		to := decodeAllFields(t, "to", c.to).To
		if !to.IsSet() {
			t.Errorf("to=%s is not set", c.to)
		}
		channel, err := to.Channel()
		if got := valueOrMsg(channel, err); !reflect.DeepEqual(got, c.channel) {
			t.Errorf("to=%s as channel: got %#v, want %#v", c.to, got, c.channel)
		}
		people, err := to.Direct()
		if got := valueOrMsg(people, err); !reflect.DeepEqual(got, c.people) {
			t.Errorf("to=%s as people: got %#v, want %#v", c.to, got, c.people)
		}
	}
	if decodeAllFields(t).To.IsSet() {
		t.Error("an absent `to` is set")
	}
}

func valueOrMsg(v any, err *Error) any {
	if err != nil {
		return err.Msg
	}
	return v
}

func TestScheduledRecipients(t *testing.T) {
	const badChannel = "Invalid data type for channel ID"
	const badPeople = "Invalid data type for recipients"
	for _, c := range []struct {
		to              string
		channel, people any
	}{
		{"7", ChannelTarget{ID: 7, ByID: true}, badPeople},
		{"[7]", ChannelTarget{ID: 7, ByID: true}, UserRefs{IDs: []int64{7}}},
		{"[7,8]", badChannel, UserRefs{IDs: []int64{7, 8}}},
		{"[]", badChannel, UserRefs{}},
		{"Verona", badChannel, badPeople},
		{`"7"`, badChannel, badPeople},
		{`["7"]`, badChannel, badPeople},
		{`[" "]`, badChannel, badPeople},
		{`[7,"8"]`, badChannel, badPeople},
		{"{}", badChannel, badPeople},
	} {
		to := decodeAllFields(t, "to", c.to).To
		id, err := to.ChannelID()
		if got := valueOrMsg(id, err); got != c.channel {
			t.Errorf("to=%s as channel: got %v, want %v", c.to, got, c.channel)
		}
		ids, err := to.UserIDs()
		if got := valueOrMsg(ids, err); !reflect.DeepEqual(got, c.people) {
			t.Errorf("to=%s as people: got %#v, want %#v", c.to, got, c.people)
		}
	}
}

package form_test

import (
	"fmt"
	"strings"

	"parley/wire/form"
)

// color is a JSON string with a rule of its own. Such types belong beside the endpoints that need them.
type color string

func (c *color) DecodeValue(v form.Value) *form.Error {
	s, err := v.Text()
	if err == nil && !strings.HasPrefix(s, "#") {
		err = form.Invalid("not a color")
	}
	*c = color(s)
	return err
}

// window is plain text with its own syntax.
type window struct{ from, to int64 }

func (w *window) DecodeParam(raw, name string) *form.Error {
	if _, err := fmt.Sscanf(raw, "%d-%d", &w.from, &w.to); err != nil {
		return form.BadValue(name, raw)
	}
	return nil
}

type channelID int64

type subscribeForm struct {
	Channel       channelID `path:"stream_id"`
	Subscriptions []struct {
		Name  string          `form:"name,required,strip,minlen=1,maxlen=60"`
		Color form.Opt[color] `form:"color"`
	} `form:"subscriptions,required"`
	Principals form.Principals  `form:"principals"`
	Announce   bool             `form:"announce,default=false"`
	Folder     form.Null[int64] `form:"folder_id"`
	Window     window           `form:"window"`
}

var subscribe = form.Of[subscribeForm]()

func Example() {
	for _, subscriptions := range []string{
		`[{"name":" design ","color":"#76ce90"}]`,
		`[{"name":"design"},{"color":"#76ce90"}]`,
		`[{"name":"design","color":"red"}]`,
	} {
		v := &form.Values{}
		v.Add(form.Path, "stream_id", "12")
		v.Add(form.Body, "subscriptions", subscriptions)
		v.Add(form.Body, "folder_id", "null")
		v.Add(form.Query, "window", "3-9")
		v.Add(form.Query, "verbose", "true")
		var f subscribeForm
		if err := subscribe.Decode(v, &f); err != nil {
			fmt.Println(err.Code, err.Msg)
			continue
		}
		fmt.Printf("%d %+v %v %v ignored %v\n", f.Channel, f.Subscriptions, f.Folder.IsNull, f.Window,
			subscribe.Ignored(v))
	}
	v := &form.Values{}
	v.Add(form.Path, "stream_id", "12")
	v.Add(form.Body, "subscriptions", "[]")
	v.Add(form.Body, "window", "now")
	err := subscribe.Decode(v, new(subscribeForm))
	fmt.Println(err.Code, err.Msg, err.Fields["bad_value"])
	// Output:
	// 12 [{Name:design Color:{Value:#76ce90 Set:true}}] true {3 9} ignored [verbose]
	// BAD_REQUEST subscriptions[1]["name"] field is missing: Field required
	// BAD_REQUEST Invalid subscriptions[0]["color"]: Value error, not a color
	// REQUEST_VARIABLE_INVALID Bad value for 'window': now now
}

// Null distinguishes an absent parameter from null and from a value.
func ExampleNull() {
	type editForm struct {
		Folder form.Null[int64] `form:"folder_id"`
	}
	edit := form.Of[editForm]()
	for _, sent := range []string{"", "null", "7"} {
		v := &form.Values{}
		if sent != "" {
			v.Add(form.Body, "folder_id", sent)
		}
		var f editForm
		if err := edit.Decode(v, &f); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("set %v, null %v, value %d\n", f.Folder.Set, f.Folder.IsNull, f.Folder.Value)
	}
	// Output:
	// set false, null false, value 0
	// set true, null true, value 0
	// set true, null false, value 7
}

// A parameter may have several names, a default and bounds. The error is complete for the client.
func ExampleForm_Decode() {
	type listForm struct {
		Topic string `form:"topic,alias=subject,required,strip,maxlen=10"`
		Count int    `form:"count,default=20,min=1,max=100"`
	}
	list := form.Of[listForm]()
	for _, params := range [][2]string{{"subject", " lunch "}, {"topic", "a very long topic"}, {"count", "500"}} {
		v := &form.Values{}
		v.Add(form.Query, params[0], params[1])
		var f listForm
		if err := list.Decode(v, &f); err != nil {
			fmt.Println(err.Code, err.Msg)
			continue
		}
		fmt.Printf("%q %d\n", f.Topic, f.Count)
	}
	// Output:
	// "lunch" 20
	// BAD_REQUEST topic is too long (limit: 10 characters)
	// REQUEST_VARIABLE_MISSING Missing 'topic' argument
}

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

package form

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

type id int64

type item struct {
	Name  string       `json:"name" form:",required,strip,maxlen=5"`
	Color *string      `json:"color" form:",pattern=^#[0-9a-f]{6}$"`
	Many  []int        `form:"many"`
	Pin   bool         `form:"pin,default=true"`
	Note  Null[string] `form:"note"`
}

type lax struct {
	_ struct{} `form:",extra"`
	A int      `form:"a,required"`
}

type paging struct {
	Before int `form:"num_before,min=0,max=5000"`
	After  int `form:"num_after,min=0,max=5000"`
}

// allFields has a field of every kind.
type allFields struct {
	Message id     `path:"message_id"`
	Who     string `path:"who"`

	Text   string            `form:"text"`
	Topic  Opt[string]       `form:"topic,alias=subject,strip,maxlen=10"`
	Op     string            `form:"op,enum=add|remove"`
	Ref    *string           `form:"ref"`
	Quoted string            `form:"quoted,json"`
	NullS  Null[string]      `form:"null_s"`
	NullR  Null[string]      `form:"null_r,raw"`
	Hash   string            `form:"hash,len=4"`
	Short  string            `form:"short,minlen=3"`
	Title  string            `form:"title,strip,minlen=1"`
	Word   string            `form:"word,in=x|y"`
	Day    string            `form:"day,date"`
	Policy int               `form:"policy,in=1|2|3"`
	Choice int               `form:"choice,enum=1|2"`
	Tiny   int8              `form:"tiny"`
	Port   uint16            `form:"port"`
	Huge   uint64            `form:"huge"`
	Flag   bool              `form:"flag,default=true"`
	Maybe  Opt[bool]         `form:"maybe,default=true"`
	Ratio  float64           `form:"ratio,min=-1.5,max=100"`
	Ref8   Null[id]          `form:"ref8"`
	IDs    []id              `form:"ids,maxitems=3,max=100"`
	Words  []string          `form:"words,minitems=1,maxlen=4"`
	Nested [][]string        `form:"nested"`
	Data   map[string]string `form:"data,maxlen=4"`
	Items  []item            `form:"items"`
	Loose  item              `form:"loose,extra"`
	Lax    *lax              `form:"lax"`
	Any    any               `form:"any"`
	Raw    Value             `form:"value"`
	paging

	To       Recipients         `form:"to"`
	Anchor   Anchor             `form:"anchor"`
	Narrow   Narrow             `form:"narrow"`
	Group    GroupSetting       `form:"group"`
	Update   GroupSettingUpdate `form:"update"`
	Users    Principals         `form:"users"`
	JSON     JSONText           `form:"json"`
	Idle     IdleTimeout        `form:"idle"`
	Members  IncludeSubscribers `form:"members"`
	When     Instant            `form:"when"`
	Limit    NumberOrWord       `form:"limit"`
	Ignored2 string             `form:"-"`
}

var allFieldsForm = Of[allFields]()

func values(pairs ...string) *Values {
	v := &Values{}
	v.Add(Path, "message_id", "7")
	v.Add(Path, "who", "me")
	for i := 0; i < len(pairs); i += 2 {
		v.Add(Body, pairs[i], pairs[i+1])
	}
	return v
}

func decodeAllFields(t *testing.T, pairs ...string) allFields {
	t.Helper()
	var f allFields
	if err := allFieldsForm.Decode(values(pairs...), &f); err != nil {
		t.Fatalf("%q refused: %s", pairs, err.Msg)
	}
	return f
}

// The largest number of values is accepted, as numbers and as empty lists. One more is refused before anything is
// parsed.
func TestManyValues(t *testing.T) {
	for _, list := range []string{"[" + strings.Repeat("1,", MaxJSONValues-2) + "1]", "[" +
		strings.Repeat("[], ", MaxJSONValues-2) + "[]]"} {
		if v, ok := JSON(list); !ok || len(v.list) != MaxJSONValues-1 {
			t.Errorf("%.10s...: %v, %d in the list", list, ok, len(v.list))
		}
		more := "[1," + list[1:]
		if _, ok := JSON(more); ok {
			t.Errorf("%.10s...: one more value is accepted", more)
		}
		if n := testing.AllocsPerRun(1, func() { JSON(more) }); n > 0 {
			t.Errorf("%.10s...: refusing it takes %v allocations", more, n)
		}
	}
}

// formError is a parameter that is refused, with the expected message.
type formError struct{ name, value, msg string }

// checkErrorMessages decodes each parameter into allFields and compares the error.
func checkErrorMessages(t *testing.T, cases []formError) {
	t.Helper()
	for _, c := range cases {
		var f allFields
		err := allFieldsForm.Decode(values(c.name, c.value), &f)
		if len(c.value) > 60 {
			c.value = c.value[:60]
		}
		if err == nil {
			t.Errorf("%s=%s is accepted; want: %s", c.name, c.value, c.msg)
			continue
		}
		if err.Msg != c.msg || err.Code != "BAD_REQUEST" || err.Fields != nil || err.RouteMiss {
			t.Errorf("%s=%s\n got %s %q %v\nwant %s", c.name, c.value, err.Code, err.Msg, err.Fields, c.msg)
		}
	}
}

func TestScalarErrors(t *testing.T) {
	checkErrorMessages(t, []formError{
		{"tiny", "", "tiny is not valid JSON"},
		{"tiny", "x", "tiny is not valid JSON"},
		{"tiny", "1 2", "tiny is not valid JSON"},
		{"tiny", "01", "tiny is not valid JSON"},
		{"tiny", "+1", "tiny is not valid JSON"},
		{"tiny", "1.", "tiny is not valid JSON"},
		{"tiny", "NaN", "tiny is not valid JSON"},
		{"tiny", "True", "tiny is not valid JSON"},
		{"tiny", `"5"`, "tiny is not an integer"},
		{"tiny", "true", "tiny is not an integer"},
		{"tiny", "1.0", "tiny is not an integer"},
		{"tiny", "1e1", "tiny is not an integer"},
		{"tiny", "null", "tiny is not an integer"},
		{"tiny", "[1]", "tiny is not an integer"},
		{"tiny", "128", "tiny is too large"},
		{"tiny", "-129", "tiny is too small"},
		{"tiny", "99999999999999999999999", "tiny is too large"},
		{"tiny", "-99999999999999999999999", "tiny is too small"},
		{"port", "-1", "port is too small"},
		{"port", "65536", "port is too large"},
		{"huge", "9223372036854775808", "huge is too large"},
		{"flag", "1", "flag is not a boolean"},
		{"flag", `"true"`, "flag is not a boolean"},
		{"maybe", "null", "maybe is not a boolean"},
		{"ratio", `"1"`, "ratio is not a float"},
		{"ratio", "true", "ratio is not a float"},
		{"ratio", "-2", "ratio is too small"},
		{"ratio", "1e400", "ratio is too large"},
		{"policy", "4", "Invalid policy: Value error, Not in the list of possible values"},
		{"word", "z", "Invalid word: Value error, Not in the list of possible values"},
		{"choice", "4", "Invalid choice"},
		{"op", "", "Invalid op"},
		{"op", `"add"`, "Invalid op"},
		{"topic", "12345678901", "topic is too long (limit: 10 characters)"},
		{"topic", "ééééééééééé", "topic is too long (limit: 10 characters)"},
		{"title", " \t\u2003", "title cannot be blank"},
		{"short", "éé", "short is too short."},
		{"hash", "abc", "hash is not length 4"},
		{"day", "2026-02-30", "day is not a date"},
		{"quoted", "plain", "quoted is not valid JSON"},
		{"quoted", "7", "quoted is not a string"},
		{"null_s", "plain", "null_s is not valid JSON"},
		{"null_s", "7", "null_s is not a string"},
		{"ref8", `"x"`, "ref8 is not an integer"},
		{"ratio", "-1e400", "ratio is too small"},
	})
}

func TestCompositeErrors(t *testing.T) {
	checkErrorMessages(t, []formError{
		{"num_after", "-1", "num_after is too small"},
		{"num_after", "5001", "num_after is too large"},
		{"ids", "7", "ids is not a list"},
		{"ids", `{"a":1}`, "ids is not a list"},
		{"ids", `[1,"2"]`, "ids[1] is not an integer"},
		{"ids", `[1,101]`, "ids[1] is too large"},
		{"ids", `[1,2,3,4]`, "ids is too long (limit: 3 items)"},
		{"words", `[]`, "words cannot be blank"},
		{"words", `["abcde"]`, "words[0] is too long (limit: 4 characters)"},
		{"nested", `[["a"],["b",3]]`, "nested[1][1] is not a string"},
		{"data", `[]`, "data is not a dict"},
		{"data", `{"a":1}`, `data["a"] is not a string`},
		{"data", `{"a<\"é":"12345"}`, `data["a<\"é"] is too long (limit: 4 characters)`},
		{"items", `[7]`, "items[0] is not a dict"},
		{"items", `[{}]`, `items[0]["name"] field is missing: Field required`},
		{"items", `[{"name":"a"},{"name":null}]`, `items[1]["name"] is not a string`},
		{"items", `[{"name":"a","color":"red"}]`, `items[0]["color"] has invalid format`},
		{"items", `[{"name":"a","many":[1,true]}]`, `items[0]["many"][1] is not an integer`},
		{"items", `[{"name":"a","x":1}]`, `Argument "x" at items[0] is unexpected`},
		{"loose", `{"x":1}`, `loose["name"] field is missing: Field required`},
		{"lax", `{}`, `lax["a"] field is missing: Field required`},
	})
}

func TestInvalidJSON(t *testing.T) {
	deep := strings.Repeat("[", MaxJSONDepth+1) + strings.Repeat("]", MaxJSONDepth+1)
	many := "[" + strings.Repeat("1,", MaxJSONValues) + "1]"
	for _, text := range []string{
		deep,
		many,
		`"\ud800"`,
		`"\ud800\u0041"`,
		`"\udc00\ud800"`,
		"\"a\nb\"",
		`{"a":1,}`,
		`[1,]`,
		`{a:1}`,
		`'a'`,
		"\ufeff1",
		`"\x41"`,
		`"\u12"`,
		"--1",
		"1e",
		"[",
		`"\`,
		`"\n`,
		"\"\\n\x01\"",
		`"a`,
		`{"a" 1}`,
		`{"\q":1}`,
		`[1 2]`,
	} {
		checkErrorMessages(t, []formError{{"any", text, "any is not valid JSON"}})
	}
}

func TestProtocolTypeErrors(t *testing.T) {
	checkErrorMessages(t, []formError{
		{"anchor", "latest", "Invalid anchor"},
		{"anchor", "", "Invalid anchor"},
		{"anchor", `"newest"`, "Invalid anchor"},
		{"anchor", "-+1", "Invalid anchor"},
		{"when", "tomorrow", "when is not a date"},
		{"narrow", "stream", "narrow is not valid JSON"},
		{"narrow", "{}", "narrow is not a list"},
		{"narrow", `[["a","b"],["a"]]`, "Invalid narrow[1]: Value error, element is not a string pair"},
		{"narrow", `[["stream",7]]`, "Invalid narrow[0]: Value error, element is not a string pair"},
		{"narrow", `[7]`, "Invalid narrow[0]: Value error, dict or list required"},
		{"narrow", `[{"operator":"channel"}]`, "Invalid narrow[0]: Value error, operand is missing"},
		{"narrow", `[{"operator":"channel","operand":null}]`, "Invalid narrow[0]: Value error, operand is missing"},
		{"narrow", `[{"operand":"x"}]`, "Invalid narrow[0]: Value error, operator is missing"},
		{"narrow", `[{"operator":"topic","operand":7}]`, "operand is not a string"},
		{"narrow", `[{"operator":"topic","operand":7},7]`, "Invalid narrow[1]: Value error, dict or list required"},
		{"narrow", `[{"operator":"stream","operand":[7]}]`, "operand is not a string or integer"},
		{"narrow", `[{"operator":"mentions","operand":[7]}]`, "operand is not a string or integer"},
		{"narrow", `[{"operator":"pm_with","operand":7}]`, "operand is not a string or an integer list"},
		{"narrow", `[{"operator":"dm","operand":["a@b"]}]`, "operand is not a string or an integer list"},
		{"narrow", `[{"operator":7,"operand":"x"}]`, "operator is not a string"},
		{"narrow", `[{"operator":"search","operand":" "}]`, "operand cannot be blank."},
		{"narrow", `[{"operator":"is","operand":"dm","negated":1}]`, "negated is not a boolean"},
		{"narrow", "[" + strings.Repeat("7,", MaxNarrowTerms) + "7]",
			"Invalid narrow: Value error, more than 100 terms"},
		{"group", `"x"`, "group is not an integer"},
		{"group", `{"direct_members":[1]}`, `group["direct_subgroups"] field is missing: Field required`},
		{"group", `{"direct_members":["1"],"direct_subgroups":[]}`, `group["direct_members"][0] is not an integer`},
		{"group", `{"direct_members":[],"direct_subgroups":[],"x":1}`, `Argument "x" at group is unexpected`},
		{"update", `{"old":1}`, `update["new"] field is missing: Field required`},
		{"update", `7`, `update is not a dict`},
		{"update", `{"new":{"direct_members":1,"direct_subgroups":[]}}`,
			`update["new"]["direct_members"] is not a list`},
		{"update", `{"new":1,"now":2}`, `Argument "now" at update is unexpected`},
		{"users", "7", "users is not a list"},
		{"users", `[1,"a@b"]`, "users[1] is not an integer"},
		{"users", `["a@b",1]`, "users[1] is not a string"},
		{"json", "{", "json is not valid JSON"},
		{"idle", "soon", "idle is not valid JSON"},
		{"idle", `"soon"`, "idle is not an integer"},
		{"idle", "-1", "idle is too small"},
		{"limit", "unlimited", "limit is not valid JSON"},
		{"limit", "true", "limit is not an integer"},
		{"limit", "99999999999999999999", "limit is too large"},
		{"members", "some", "Invalid members"},
		{"members", "1", "Invalid members"},
	})
}

func TestAcceptedValues(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		name, value string
		field       func(f *allFields) any
		want        any
	}{
		{"text", `"quoted"`, func(f *allFields) any { return f.Text }, `"quoted"`},
		{"text", " a\x00b ", func(f *allFields) any { return f.Text }, " a\x00b "},
		{"topic", "\u2003 a \n", func(f *allFields) any { return f.Topic }, Opt[string]{"a", true}},
		{"subject", "a", func(f *allFields) any { return f.Topic }, Opt[string]{"a", true}},
		{"topic", "éééééééééé", func(f *allFields) any { return f.Topic.Value }, "éééééééééé"},
		{"ref", "null", func(f *allFields) any { return f.Ref }, text("null")},
		{"quoted", ` "\u00e9\ud83d\ude00\/\n" `, func(f *allFields) any { return f.Quoted }, "é😀/\n"},
		{"null_s", "null", func(f *allFields) any { return f.NullS }, Null[string]{Set: true, IsNull: true}},
		{"null_s", `""`, func(f *allFields) any { return f.NullS }, Null[string]{Set: true}},
		{"null_r", "null", func(f *allFields) any { return f.NullR }, Null[string]{Value: "null", Set: true}},
		{"ref8", "null", func(f *allFields) any { return f.Ref8 }, Null[id]{Set: true, IsNull: true}},
		{"ref8", "8", func(f *allFields) any { return f.Ref8 }, Null[id]{Value: 8, Set: true}},
		{"tiny", " -128\n", func(f *allFields) any { return f.Tiny }, int8(-128)},
		{"huge", "9223372036854775807", func(f *allFields) any { return f.Huge }, uint64(1<<63 - 1)},
		{"flag", "false", func(f *allFields) any { return f.Flag }, false},
		{"maybe", "false", func(f *allFields) any { return f.Maybe }, Opt[bool]{false, true}},
		{"ratio", "7", func(f *allFields) any { return f.Ratio }, 7.0},
		{"ratio", "-15e-1", func(f *allFields) any { return f.Ratio }, -1.5},
		{"ids", "[]", func(f *allFields) any { return f.IDs }, []id{}},
		{"ids", "[3, 1]", func(f *allFields) any { return f.IDs }, []id{3, 1}},
		{"data", `{"a":"1","a":"2"}`, func(f *allFields) any { return f.Data }, map[string]string{"a": "2"}},
		{"items", `[{"name":" abcde ","name":"b","many":[1],"note":null}]`, func(f *allFields) any { return f.Items },
			[]item{{Name: "b", Many: []int{1}, Pin: true, Note: Null[string]{Set: true, IsNull: true}}}},
		{"items", `[{"name":"b","color":null,"pin":false}]`, func(f *allFields) any { return f.Items },
			[]item{{Name: "b"}}},
		{"loose", `{"name":"b","x":1}`, func(f *allFields) any { return f.Loose.Name }, "b"},
		{"lax", `{"a":2,"b":3}`, func(f *allFields) any { return f.Lax }, &lax{A: 2}},
		{"lax", `null`, func(f *allFields) any { return f.Lax == nil }, true},
		{"num_before", "5", func(f *allFields) any { return f.Before }, 5},
		{"any", `{"a":[1,1.5,null,true,"x",1e999]}`, func(f *allFields) any { return f.Any },
			map[string]any{"a": []any{int64(1), 1.5, nil, true, "x", 1.7976931348623157e308}}},
		{"value", `"\u0000"`, func(f *allFields) any { s, _ := f.Raw.Text(); return s }, "\x00"},

		{"anchor", "newest", func(f *allFields) any { return f.Anchor }, Anchor{Kind: AnchorNewest}},
		{"anchor", "oldest", func(f *allFields) any { return f.Anchor }, Anchor{Kind: AnchorOldest}},
		{"anchor", "first_unread", func(f *allFields) any { return f.Anchor }, Anchor{Kind: AnchorFirstUnread}},
		{"anchor", "date", func(f *allFields) any { return f.Anchor }, Anchor{Kind: AnchorDate}},
		{"anchor", " 12 ", func(f *allFields) any { return f.Anchor }, Anchor{Kind: AnchorID, ID: 12}},
		{"anchor", "-12", func(f *allFields) any { return f.Anchor }, Anchor{Kind: AnchorID}},
		{"anchor", "99999999999999999999", func(f *allFields) any { return f.Anchor },
			Anchor{Kind: AnchorID, ID: MaxAnchor}},
		{"when", "1970-01-02", func(f *allFields) any { return f.When }, Instant{86400, true}},
		{"when", "1970-01-01T01:00:05+01:00", func(f *allFields) any { return f.When }, Instant{5, true}},
		{"when", "1970-01-01T00:01:05.5Z", func(f *allFields) any { return f.When }, Instant{65, true}},
		{"narrow", `[["stream","x"],{"operator":"pm-with","operand":[2,1],"negated":true},{"operator":"sender",` +
			`"operand":5}]`,
			func(f *allFields) any { return f.Narrow }, Narrow{
				{Operator: "stream", Operand: Operand{Text: "x"}},
				{Operator: "pm-with", Operand: Operand{Kind: OperandIDs, IDs: []int64{2, 1}}, Negated: true},
				{Operator: "sender", Operand: Operand{Kind: OperandID, ID: 5}}}},
		{"narrow", `[{"operator":"pm_with","operand":"a@b"}]`,
			func(f *allFields) any { return f.Narrow[0].Canonical() }, "dm"},
		{"narrow", `[["streams","public"]]`, func(f *allFields) any { return f.Narrow[0].Canonical() }, "channels"},
		{"narrow", `[["Stream","public"]]`, func(f *allFields) any { return f.Narrow[0].Canonical() }, "Stream"},
		{"group", "3", func(f *allFields) any { return f.Group }, GroupSetting{Group: 3}},
		{"group", `{"direct_subgroups":[2],"direct_members":[1]}`, func(f *allFields) any { return f.Group },
			GroupSetting{Direct: true, Members: []int64{1}, Subgroups: []int64{2}}},
		{"update", `{"new":3,"old":4}`, func(f *allFields) any { return f.Update },
			GroupSettingUpdate{New: GroupSetting{Group: 3}, Old: &GroupSetting{Group: 4}}},
		{"update", `{"new":3,"old":null}`, func(f *allFields) any { return f.Update.Old == nil }, true},
		{"users", "[]", func(f *allFields) any { return f.Users },
			Principals{Set: true, UserRefs: UserRefs{IDs: []int64{}}}},
		{"users", `["a@b"]`, func(f *allFields) any { return f.Users },
			Principals{Set: true, UserRefs: UserRefs{Emails: []string{"a@b"}}}},
		{"json", ` {"a": 1}`, func(f *allFields) any { return f.JSON }, JSONText(` {"a": 1}`)},
		{"idle", "mobile", func(f *allFields) any { return f.Idle }, IdleTimeout{Mobile: true, Set: true}},
		{"idle", `"mobile"`, func(f *allFields) any { return f.Idle }, IdleTimeout{Mobile: true, Set: true}},
		{"idle", "0", func(f *allFields) any { return f.Idle }, IdleTimeout{Set: true}},
		{"idle", "99999999999999999999", func(f *allFields) any { return f.Idle },
			IdleTimeout{Seconds: 1<<63 - 1, Set: true}},
		{"any", `"\"\\\/\b\f\n\r\t"`, func(f *allFields) any { return f.Any }, "\"\\/\b\f\n\r\t"},
		{"any", " null ", func(f *allFields) any { return f.Any }, nil},
		{"limit", "-5", func(f *allFields) any { return f.Limit }, NumberOrWord{Number: -5, Set: true}},
		{"limit", `"unlimited"`, func(f *allFields) any { return f.Limit },
			NumberOrWord{Word: "unlimited", IsWord: true, Set: true}},
		{"members", "true", func(f *allFields) any { return f.Members }, AllSubscribers},
		{"members", `"partial"`, func(f *allFields) any { return f.Members }, PartialSubscribers},
	} {
		f := decodeAllFields(t, c.name, c.value)
		if got := c.field(&f); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s=%s\n got %#v\nwant %#v", c.name, c.value, got, c.want)
		}
	}
}

func TestDefaults(t *testing.T) {
	f := decodeAllFields(t)
	if !f.Flag || f.Maybe != (Opt[bool]{Value: true}) || f.Message != 7 || f.Who != "me" {
		t.Errorf("defaults: %+v", f)
	}
	type lists struct {
		IDs []int `form:"ids,default=[1,2]"`
	}
	form, a, b := Of[lists](), lists{}, lists{}
	form.Decode(&Values{}, &a)
	a.IDs[0] = 9
	form.Decode(&Values{}, &b)
	if !slices.Equal(b.IDs, []int{1, 2}) {
		t.Errorf("two requests share a default: %v", b.IDs)
	}
}

func TestLongList(t *testing.T) {
	type lists struct {
		Items []item `form:"items"`
	}
	const n = 3*preallocatedItems + 1
	v, f := &Values{}, lists{}
	v.Add(Body, "items", "["+strings.Repeat(`{"name":"a","many":[1]},`, n-1)+`{"name":"z"}]`)
	if err := Of[lists]().Decode(v, &f); err != nil || len(f.Items) != n {
		t.Fatalf("%d items, %v", len(f.Items), err)
	}
	for i, it := range f.Items[:n-1] {
		if it.Name != "a" || len(it.Many) != 1 || !it.Pin {
			t.Fatalf("item %d is %+v", i, it)
		}
	}
	if last := f.Items[n-1]; last.Name != "z" || last.Many != nil {
		t.Errorf("the last item is %+v", last)
	}
}

func TestPath(t *testing.T) {
	type f struct {
		ID  id    `path:"id"`
		Sub int32 `path:"sub"`
	}
	form := Of[f]()
	for _, c := range []struct {
		id   string
		want id
		miss bool
	}{{"12", 12, false}, {"007", 7, false}, {"99999999999999999999", 1<<63 - 1, false},
		{"", 0, true}, {"-1", 0, true}, {"+1", 0, true}, {"1.0", 0, true}, {"٣", 0, true}} {
		v, got := &Values{}, f{}
		v.Add(Path, "id", c.id)
		v.Add(Path, "sub", "4294967296")
		v.Add(Query, "id", "5")
		err := form.Decode(v, &got)
		if c.miss != (err != nil && err.RouteMiss) || err == nil && (got.ID != c.want || got.Sub != 1<<31-1) {
			t.Errorf("path %q: %+v %v", c.id, got, err)
		}
		if ignored := form.Ignored(v); !slices.Equal(ignored, []string{"id"}) {
			t.Errorf("a query parameter with the name of a path parameter: ignored %v", ignored)
		}
	}
}

func TestMissingAndConfusing(t *testing.T) {
	type f struct {
		Op    string `form:"op,required"`
		Topic string `form:"topic,alias=subject,required"`
		N     int    `form:"n,alias=count"`
	}
	form := Of[f]()
	for _, c := range []struct {
		pairs  []string
		code   string
		msg    string
		fields map[string]any
	}{
		{nil, "REQUEST_VARIABLE_MISSING", "Missing 'op' argument", map[string]any{"var_name": "op"}},
		{[]string{"op", "", "n", "x"}, "REQUEST_VARIABLE_MISSING", "Missing 'topic' argument",
			map[string]any{"var_name": "topic"}},
		{[]string{"op", "", "subject", "a", "topic", "a"}, "REQUEST_CONFUSING_VAR",
			"Can't decide between 'topic' and 'subject' arguments",
			map[string]any{"var_name1": "topic", "var_name2": "subject"}},
		{[]string{"op", "", "subject", "a", "n", "x"}, "BAD_REQUEST", "n is not valid JSON", nil},
		{[]string{"op", "", "topic", "a", "count", "x"}, "BAD_REQUEST", "count is not valid JSON", nil},
	} {
		err := form.Decode(values(c.pairs...), new(f))
		if err == nil || err.Code != c.code || err.Msg != c.msg || !maps.Equal(err.Fields, c.fields) {
			t.Errorf("%q: got %+v, want %s %s", c.pairs, err, c.code, c.msg)
		}
	}
}

func TestSourcePrecedence(t *testing.T) {
	v := &Values{}
	for _, e := range []entry{{"text", "1", Query}, {"text", "2", Body}, {"text", "3", Body}, {"text", "4", Query},
		{"ref", "5", Query}, {"ref", "6", Query}, {"message_id", "1", Path}, {"who", "", Path}} {
		v.Add(e.source, e.name, e.value)
	}
	var f allFields
	if err := allFieldsForm.Decode(v, &f); err != nil || f.Text != "3" || *f.Ref != "6" {
		t.Errorf("body before query, last one wins: %q %q %v", f.Text, *f.Ref, err)
	}
	if s, ok := v.Get("text"); s != "3" || !ok {
		t.Errorf("Get: %q %v", s, ok)
	}
	v.Reset()
	if s, ok := v.Get("text"); s != "" || ok || allFieldsForm.Ignored(v) != nil {
		t.Errorf("after Reset: %q %v", s, ok)
	}
}

func TestIgnored(t *testing.T) {
	v := values("zeta", "", "alpha", "", "zeta", "", "client", "x", "subject", "x", "method", "PATCH", "text", "")
	v.Add(Query, "beta", "")
	v.Consume("method")
	if got := allFieldsForm.Ignored(v); !slices.Equal(got, []string{"alpha", "beta", "zeta"}) {
		t.Errorf("ignored: %v", got)
	}
	if got := Of[struct{}]().Ignored(values("client", "x")); got != nil {
		t.Errorf("ignored: %#v, want nil", got)
	}
}

func TestTooManyParameters(t *testing.T) {
	v := values()
	for range MaxParams {
		v.Add(Query, "text", "x")
	}
	if err := allFieldsForm.Decode(v, new(allFields)); err != nil {
		t.Fatal(err)
	}
	v.Add(Query, "text", "x")
	if err := allFieldsForm.Decode(v, new(allFields)); err == nil || err.Msg != "Too many parameters (limit: 1000)" {
		t.Errorf("%d parameters: %v", MaxParams+1, err)
	}
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a\xffb", "a\ufffdb"},
		{"\xe2\x82", "\ufffd"}, // an incomplete character becomes one replacement
		{"\xe2\x82x", "\ufffdx"},
		{"\xf0\x9f\x98\xf0\x9f", "\ufffd\ufffd"},
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd"}, // a surrogate begins no character
		{"\xc0\xaf", "\ufffd\ufffd"},           // overlong
		{"é\x80\ufffd", "é\ufffd\ufffd"},
	} {
		f := decodeAllFields(t, "text", c.in)
		if f.Text != c.want {
			t.Errorf("%q: got %q, want %q", c.in, f.Text, c.want)
		}
	}
}

type checked struct {
	A Opt[int] `form:"a"`
	B Opt[int] `form:"b"`
}

func (c *checked) Check() *Error {
	if c.A.Set && c.B.Set {
		return Unsupported("a", "b")
	}
	return nil
}

func TestCheck(t *testing.T) {
	err := Of[checked]().Decode(values("a", "1", "b", "2"), new(checked))
	if err == nil || err.Msg != "Unsupported parameter combination: a, b" || err.Fields["parameters"] != "a, b" {
		t.Errorf("got %+v", err)
	}
	if err := Of[checked]().Decode(values("a", "1"), new(checked)); err != nil {
		t.Error(err)
	}
}

func TestBadValue(t *testing.T) {
	err := BadValue("limit", "0")
	if err.Code != "REQUEST_VARIABLE_INVALID" || err.Msg != "Bad value for 'limit': 0" ||
		!maps.Equal(err.Fields, map[string]any{"var_name": "limit", "bad_value": "0"}) {
		t.Errorf("got %+v", err)
	}
}

func TestDecodeIntoWrongType(t *testing.T) {
	defer func() {
		if s, _ := recover().(string); !strings.HasPrefix(s, "BUG: ") {
			t.Errorf("got %q", s)
		}
	}()
	allFieldsForm.Decode(&Values{}, new(checked))
}

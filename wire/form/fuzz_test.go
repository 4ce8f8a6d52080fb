package form

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkError checks that an error has a code and a message in valid UTF-8.
func checkError(t *testing.T, err *Error) {
	if err != nil && (err.Msg == "" || err.Code == "" || !utf8.ValidString(err.Msg)) {
		t.Fatalf("incomplete error %+v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, p := range allFieldsForm.Describe() {
		f.Add(p.Name, "1", p.Name, `[{"a":"b"}]`, true)
		f.Add(p.Name, `{"name":"é","direct_members":[1],"direct_subgroups":[]}`, "x", "\xff", false)
	}
	f.Fuzz(func(t *testing.T, name, value, name2, value2 string, body bool) {
		v := values()
		v.Add(Query, name, value)
		if body {
			v.Add(Body, name2, value2)
		} else {
			v.Add(Query, name2, value2)
		}
		var form allFields
		checkError(t, allFieldsForm.Decode(v, &form))
		for _, n := range allFieldsForm.Ignored(v) {
			if _, sent := v.Get(n); !sent {
				t.Fatalf("%q is ignored but was not sent", n)
			}
		}
	})
}

// FuzzJSON compares JSON with encoding/json. The latter also accepts invalid UTF-8, which Values.Add removes, and
// lone surrogates.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{"", " 1 ", `"\ud83d\ude00"`, `{"a":[1.5e3,null,true]}`, `[1,]`, "-0", "\"\\u0000\"",
		`[[],{}, [[1,"a,[\"],"] ,{"b":{"c":[]},"d":2}],3]`, `{"a":1 , "b":[ ]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		v, ok := JSON(s)
		switch valid := json.Valid([]byte(s)); {
		case ok && !valid:
			t.Fatalf("%q is accepted, though it is not valid JSON", s)
		case !ok && valid && !strings.Contains(strings.ToLower(s), `\ud`) &&
			strings.Count(s, "[")+strings.Count(s, "{") < MaxJSONDepth:
			t.Fatalf("%q is refused", s)
		}
		if !ok {
			return
		}
		if all, outer := countValues(s); all != countNested(v) || outer != len(v.list) {
			t.Fatalf("%q: counted %d values, %d in the outermost", s, all, outer)
		}
		if _, err := json.Marshal(v.Any()); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if text, err := v.Text(); err == nil {
			var want string
			if json.Unmarshal([]byte(s), &want); want != text {
				t.Fatalf("%q: got %q, want %q", s, text, want)
			}
		}
	})
}

// countNested returns the number of values in v, including v.
func countNested(v Value) int {
	n := 1
	for _, x := range v.list {
		n += countNested(x)
	}
	return n
}

// fuzzParam decodes any text into a form with one parameter.
func fuzzParam[T any](f *testing.F, then func(*testing.T, T), seeds ...string) {
	type union struct {
		V T `form:"v"`
	}
	form := Of[union]()
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v := &Values{}
		v.Add(Query, "v", raw)
		var u union
		err := form.Decode(v, &u)
		checkError(t, err)
		if err == nil {
			then(t, u.V)
		}
	})
}

func FuzzRecipients(f *testing.F) {
	fuzzParam(f, func(t *testing.T, r Recipients) {
		_, err := r.Channel()
		checkError(t, err)
		p, err := r.Direct()
		checkError(t, err)
		if len(p.IDs) > 0 && len(p.Emails) > 0 {
			t.Fatalf("IDs and emails: %+v", p)
		}
	}, "Verona", "7", "[7]", `["a@x",1]`, "a@x,b@x", "")
}

func FuzzAnchor(f *testing.F) {
	fuzzParam(f, func(t *testing.T, a Anchor) {
		if a.Kind == AnchorAbsent || a.ID < 0 || a.ID > MaxAnchor {
			t.Fatalf("got %+v", a)
		}
	}, "newest", "-1", "99999999999999999999", "+")
}

func FuzzNarrow(f *testing.F) {
	fuzzParam(f, func(t *testing.T, n Narrow) {
		for _, term := range n {
			if (term.Operand.Kind == OperandIDs) != (term.Operand.IDs != nil) {
				t.Fatalf("got %+v", term)
			}
		}
	}, `[["stream","x"]]`, `[{"operator":"dm","operand":[1],"negated":true}]`, `[[]]`, `[{}]`)
}

func FuzzGroupSetting(f *testing.F) {
	fuzzParam(f, func(t *testing.T, u GroupSettingUpdate) {
		if !u.New.Direct && (u.New.Members != nil || u.New.Subgroups != nil) {
			t.Fatalf("got %+v", u)
		}
	}, `{"new":1,"old":{"direct_members":[1],"direct_subgroups":[2]}}`)
}

func FuzzPrincipals(f *testing.F) {
	fuzzParam(f, func(t *testing.T, p Principals) {
		if len(p.IDs) > 0 && len(p.Emails) > 0 || !p.Set {
			t.Fatalf("got %+v", p)
		}
	}, "[1]", `["a"]`, "[]")
}

func FuzzIdleTimeout(f *testing.F) {
	fuzzParam(f, func(t *testing.T, i IdleTimeout) {
		if i.Seconds < 0 || i.Mobile && i.Seconds != 0 {
			t.Fatalf("got %+v", i)
		}
	}, "mobile", `"mobile"`, "600")
}

func FuzzIncludeSubscribers(f *testing.F) {
	fuzzParam(f, func(t *testing.T, s IncludeSubscribers) {
		if s > PartialSubscribers {
			t.Fatalf("got %v", s)
		}
	}, "true", `"partial"`)
}

func FuzzJSONText(f *testing.F) {
	fuzzParam(f, func(t *testing.T, s JSONText) {
		if !json.Valid([]byte(s)) {
			t.Fatalf("got %q", s)
		}
	}, `{"a":[1]}`)
}

func FuzzLists(f *testing.F) {
	type lists struct {
		Strings []string `form:"s"`
		Ints    []int64  `form:"i"`
	}
	fuzzParam(f, func(t *testing.T, l lists) {
		if len(l.Strings)+len(l.Ints) > MaxJSONValues {
			t.Fatal("more elements than MaxJSONValues")
		}
	}, `{"s":["a"],"i":[1]}`)
}

func FuzzNumberOrWord(f *testing.F) {
	fuzzParam(f, func(t *testing.T, n NumberOrWord) {
		if !n.Set || n.IsWord && n.Number != 0 || !n.IsWord && n.Word != "" {
			t.Fatalf("got %+v", n)
		}
	}, "60", `"unlimited"`)
}

func FuzzInstant(f *testing.F) {
	fuzzParam(f, func(t *testing.T, i Instant) {
		if !i.Set {
			t.Fatalf("got %+v", i)
		}
	}, "2026-01-02", "2026-01-02T03:04:05+01:00")
}

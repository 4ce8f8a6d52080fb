package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"parley/actors/realm"
)

// encodeWithLibrary returns the output of encoding/json without HTML escapes.
func encodeWithLibrary(t testing.TB, v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func checkSameBytes(t *testing.T, v any) {
	t.Helper()
	if got, want := string(encode(v)), encodeWithLibrary(t, v); got != want {
		t.Errorf("%#v is %s, encoding/json writes %s", v, got, want)
	}
}

func FuzzStringsMatchEncodingJSON(f *testing.F) {
	for _, s := range []string{"", "plain", `"\/`, "\x00\x01\b\f\n\r\t\x1f\x7f", "<a href=\"x\">&amp;</a>",
		"é 😀 \u2028\u2029 \ufffd", "\xff\xc3", "a\xe2\x80", "\xed\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkSameBytes(t, s)
		checkSameBytes(t, map[string]any{s: s, "z" + s: []string{s}})
	})
}

// TestValuesMatchEncodingJSON encodes random nested values of all types that appendJSON handles, and of some others.
func TestValuesMatchEncodingJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n, s := int64(7), "x"
	leaves := []any{nil, true, false, "", "text\n<b>", 0, -1, 1 << 40, int64(-9), 1.5, 1e21, realm.UserID(8),
		realm.ChannelID(3), realm.MessageID(1 << 30),
		[]string(nil), []string{}, []string{"a", "ü"}, []int64(nil), []int64{}, []int64{1, -2}, []realm.UserID{1, 2},
		[]realm.MessageID{}, (*int64)(nil), &n, (*string)(nil), &s,
		struct {
			A int    `json:"a"`
			B string `json:"b"`
		}{1, "<>"}, map[string]int{"b": 1, "a": 2},
		Fragments{ownFragment([]byte(`[1,`)), sharedFragment([]byte(`2]`))},
		map[string]any(nil), []any(nil), uint8(3), json.RawMessage(`{"a":[]}`),
		[]map[string]any{{"k": 1}, nil}}
	var value func(depth int) any
	value = func(depth int) any {
		switch k := r.IntN(4); {
		case k == 0 && depth > 0:
			o := map[string]any{}
			for range r.IntN(5) {
				o[string(rune('a'+r.IntN(26)))+string(rune(r.IntN(0x500)))] = value(depth - 1)
			}
			return o
		case k == 1 && depth > 0:
			list := []any{}
			for range r.IntN(5) {
				list = append(list, value(depth-1))
			}
			return list
		}
		return leaves[r.IntN(len(leaves))]
	}
	for _, l := range leaves {
		checkSameBytes(t, l)
	}
	for range 5000 {
		checkSameBytes(t, value(4))
	}
}

// BenchmarkEncode encodes one message event, beside the library.
func BenchmarkEncode(b *testing.B) {
	o := obj{"type": "message", "flags": []string{"read"}, "message": obj{
		"id":                realm.MessageID(123456),
		"sender_id":         realm.UserID(12),
		"content":           "<p>Some words of a message that is about as long as most are, I would say.</p>",
		"recipient_id":      int64(77),
		"timestamp":         int64(1700000000),
		"client":            "website",
		"subject":           "a topic",
		"topic_links":       []any{},
		"is_me_message":     false,
		"reactions":         []any{},
		"submessages":       []any{},
		"sender_full_name":  "Ann Lee",
		"sender_email":      "user12@chat.example",
		"sender_realm_str":  "",
		"display_recipient": "general",
		"type":              "stream",
		"stream_id":         realm.ChannelID(4),
		"avatar_url":        nil,
		"content_type":      "text/html",
	}}
	b.Run("parley", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			encode(o)
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			encodeWithLibrary(b, o)
		}
	})
}

// TestStructsMatchMaps checks that a struct has the same bytes as a map with its fields, and that its shape accepts
// them.
func TestStructsMatchMaps(t *testing.T) {
	type inner struct {
		B string  `json:"b"`
		A *string `json:"a"`
	}
	type embedded struct {
		List []inner `json:"list"`
		Zero int     `json:"zero" zero:"null"`
	}
	type section struct {
		No bool `json:"no"`
	}
	type missing struct {
		Never bool `json:"never"`
	}
	type unset struct {
		Unset bool `json:"unset"`
	}
	type ready struct {
		Ready int `json:"ready"`
	}
	type outer struct {
		_ struct{} `const:"type=x op=y"`
		embedded
		*section
		*missing
		Absent  *int                    `json:"absent,omitzero"`
		Present *int                    `json:"present,omitzero"`
		Map     map[string]int          `json:"map"`
		Of      either[int, string]     `json:"of"`
		Null    orNull[int]             `json:"null"`
		Done    encoded[map[string]int] `json:"done"`
		Here    encoded[int]            `json:"here"`
		Ready   encodedFields[ready]
		None    encodedFields[unset]
		Choice  string `json:"choice" enum:"a|b"`
		Hidden  int
	}
	x := outer{embedded: embedded{List: []inner{{B: "<b>"}, {A: ptr("a")}}}, Present: ptr(0),
		Map: map[string]int{"z": 1, "a": 2}, Of: either[int, string]{"s"},
		Done: encodedAs[map[string]int]([]byte(`{"k":1}`)), Choice: "b", Hidden: 3, section: &section{},
		Here: encoded[int]{Fragments{ownFragment([]byte("5"))}, true}}
	x.Ready.JSON = encodedFieldsOf(ready{7})
	want := obj{"type": "x", "op": "y", "list": []any{obj{"a": nil, "b": "<b>"}, obj{"a": "a", "b": ""}}, "zero": nil,
		"present": 0, "map": obj{"a": 2, "z": 1}, "of": "s", "null": nil, "done": obj{"k": 1}, "choice": "b",
		"no":   false,
		"here": 5, "ready": 7}
	for _, v := range []any{x, &x} {
		if got := string(encode(v)); got != string(encode(want)) {
			t.Errorf("got  %s\nwant %s", got, encode(want))
		}
	}
	if found := formOf[outer]().Check("", "", decodeNumbers(t, encode(x))); len(found) > 0 {
		t.Error(found)
	}
	with := maps.Clone(want)
	with["msg"], with["result"], with["ignored_parameters_unsupported"] = "", "success", []string{"p"}
	if got := string(Success(&x, []string{"p"})); got != string(encodeLine(with)) {
		t.Errorf("got  %s\nwant %s", got, encode(with))
	}
	delete(with, "done")
	delete(with, "ready")
	late := strings.TrimSuffix(string(encode(with)), "}") + `,"done":{"k":1},"ready":7}` + "\n"
	if got := string(SuccessFragments(&x, []string{"p"}).Bytes()); got != late {
		t.Errorf("got  %s\nwant %s", got, late)
	}
}

// TestEmptyAnswers checks that answers without fields have those of every success only.
func TestEmptyAnswers(t *testing.T) {
	for _, a := range []any{nil, noFields{}, (*settingsAnswer)(nil), &settingsAnswer{}} {
		if got, want := string(Success(a, nil)), `{"msg":"","result":"success"}`+"\n"; got != want {
			t.Errorf("%T: %s", a, got)
		}
	}
}

func decodeNumbers(t testing.TB, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// BenchmarkEncodeUser makes and encodes an account as a struct, beside the same fields in a map.
func BenchmarkEncodeUser(b *testing.B) {
	h, ids := newTestRealm(b, 10, 1)
	v := h.r.ViewAs(realm.Caller{User: ids[0]}, 1_700_000_000)
	u := h.r.Find(ids[4])
	b.Run("struct", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			encode(newUserJSON(v, u, testSite, true, true))
		}
	})
	b.Run("map", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			x := newUserJSON(v, u, testSite, true, true)
			encode(obj{"user_id": x.ID, "email": x.Email, "delivery_email": x.DeliveryEmail, "full_name": x.Name,
				"date_joined": x.Joined, "is_active": x.Active, "is_owner": x.IsOwner, "is_admin": x.IsAdmin,
				"is_guest": x.IsGuest, "is_bot": x.IsBot, "bot_type": nil, "bot_owner_id": nil, "role": int(x.Role),
				"timezone": x.Timezone, "avatar_url": x.Avatar, "avatar_version": x.AvatarVersion,
				"is_imported_stub": x.ImportedStub, "profile_data": obj{}})
		}
	})
}

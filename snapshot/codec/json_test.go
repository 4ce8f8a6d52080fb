package codec

import (
	"bytes"
	"reflect"
	"testing"

	"parley/actors/realm"
)

// Everything that is stored can be exported: every fact, event and row, filled and empty, comes back from JSON as the
// same bytes.
func TestJSONRoundTrip(t *testing.T) {
	for _, x := range storedTypes() {
		for what, v := range map[string]reflect.Value{"full": fillFields(x, 0), "empty": reflect.New(x).Elem()} {
			in := reflect.New(x)
			in.Elem().Set(v)
			data, err := JSON(in.Interface())
			if err != nil {
				t.Errorf("%v, %s: %v", x, what, err)
				continue
			}
			out := reflect.New(x)
			if err := FromJSON(data)(out.Interface()); err != nil {
				t.Errorf("%v, %s: %v in %s", x, what, err, data)
				continue
			}
			if a, b := EncodeRow(in.Interface()), EncodeRow(out.Interface()); !bytes.Equal(a, b) {
				t.Errorf("%v, %s: %s decodes to %x, want %x", x, what, data, b, a)
			}
		}
	}
}

func TestJSONOfUnusualValues(t *testing.T) {
	for what, in := range map[string]realm.Body{
		"not UTF-8": {Text: "a\xffb"},
		"controls":  {Text: "\x00\u2028<>&", HTML: "\U0001f389"},
	} {
		data, err := JSON(&in)
		if err != nil {
			t.Fatal(err)
		}
		var out realm.Body
		if err := FromJSON(data)(&out); err != nil || out != in {
			t.Errorf("%s: %q as %s decodes to %q, %v", what, in, data, out, err)
		}
	}
	var b realm.Body
	if err := FromJSON([]byte(`{"Text":"a","Color":"red"}`))(&b); err == nil {
		t.Error("an unknown field was dropped")
	}
	if err := FromJSON([]byte(`{"Text":7}`))(&b); err == nil {
		t.Error("a number passes for a text")
	}
}

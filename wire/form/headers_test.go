package form

import "testing"

type piece struct {
	ID      string `path:"id"`
	Version string `header:"Tus-Resumable,required,in=1.0.0"`
	Offset  int64  `header:"Upload-Offset,default=7,min=0"`
	Note    string `header:"Upload-Metadata,maxlen=3"`
}

// TestHeaders decodes headers, which are separate from parameters of the same name.
func TestHeaders(t *testing.T) {
	f := Of[piece]()
	for _, c := range []struct {
		name, value, says string
		offset            int64
	}{
		{"Upload-Offset", "12", "", 12},
		{"Upload-Offset", "-1", "Upload-Offset is too small", 0},
		{"Upload-Offset", "+1", "Upload-Offset is not valid JSON", 0},
		{"Upload-Metadata", "abcd", "Upload-Metadata is too long (limit: 3 characters)", 0},
		{"Else", "x", "", 7},
	} {
		v := &Values{}
		v.Add(Path, "id", "one")
		v.Add(Header, "Tus-Resumable", "1.0.0")
		v.Add(Header, c.name, c.value)
		v.Add(Body, "Upload-Offset", "99")
		var p piece
		err := f.Decode(v, &p)
		switch {
		case err != nil && err.Msg != c.says, err == nil && c.says != "":
			t.Errorf("%s=%s: %v, want %q", c.name, c.value, err, c.says)
		case err == nil && (p.Offset != c.offset || p.ID != "one" || p.Version != "1.0.0"):
			t.Errorf("%s=%s: %+v", c.name, c.value, p)
		}
		v.Reset()
		if _, ok := v.Header("Tus-Resumable"); ok {
			t.Error("Reset kept a header")
		}
		v.Add(Path, "id", "one")
		if err := f.Decode(v, new(piece)); err == nil || err.Code != "REQUEST_VARIABLE_MISSING" {
			t.Errorf("without the header: %v", err)
		}
	}
}

package bouncertest

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The requests were recorded at the reference's bouncer without services for devices. The answers must be the same.
func TestBouncerAnswersAsRecorded(t *testing.T) {
	f, err := os.Open("testdata/requests.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := New()
	b.StrictTokens = false // the recorded bouncer accepted other characters than hexadecimal ones
	b.NoServices = true
	b.Now = func() time.Time { return time.Unix(1795437368, 0) }
	b.LookupMail = func(domain string) (exists, mx bool) {
		mx = domain == "operator.example" || domain == "second.example"
		return mx || domain == "nomx.example", mx
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x struct {
			N                                            int
			Label, Method, Path, Agent, Type, Auth, Body string
			Status                                       int
			Answer                                       map[string]any
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(x.Method, x.Path, strings.NewReader(x.Body))
		r.Header.Set("Content-Type", x.Type)
		if x.Auth != "" {
			r.Header.Set("Authorization", x.Auth)
		}
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		got := map[string]any{}
		json.Unmarshal(w.Body.Bytes(), &got)
		for _, m := range []map[string]any{got, x.Answer} {
			maps.DeleteFunc(m, func(k string, _ any) bool { return k == "verification_secret" })
		}
		if w.Code != x.Status || x.Answer != nil && !reflect.DeepEqual(got, x.Answer) {
			t.Errorf("%d %s %s %s:\nanswered %d %v\nrecorded %d %v", x.N, x.Label, x.Method, x.Path, w.Code, got,
				x.Status, x.Answer)
		}
	}
}

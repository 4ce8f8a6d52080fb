package form

import (
	"strings"
	"testing"
)

// pollForm is the form decoded most often: nearly every request of a quiet server is an event poll.
type pollForm struct {
	Queue     Opt[string] `form:"queue_id"`
	LastEvent Opt[int64]  `form:"last_event_id"`
	DontBlock bool        `form:"dont_block,default=false"`
}

var pollForms = Of[pollForm]()

func pollValues(v *Values) {
	v.Add(Query, "queue_id", "fb67bf8a-c031-47cc-84cf-ed80accacda8")
	v.Add(Query, "last_event_id", "24831")
	v.Add(Query, "dont_block", "true")
}

func BenchmarkDecodePoll(b *testing.B) {
	b.ReportAllocs()
	v := &Values{}
	for b.Loop() {
		v.Reset()
		pollValues(v)
		var f pollForm
		if err := pollForms.Decode(v, &f); err != nil || pollForms.Ignored(v) != nil {
			b.Fatal(err)
		}
	}
}

func TestDecodingAPollAllocatesTwiceAtMost(t *testing.T) {
	v := &Values{}
	n := testing.AllocsPerRun(100, func() {
		v.Reset()
		pollValues(v)
		var f pollForm
		if err := pollForms.Decode(v, &f); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecodeIDs(b *testing.B) {
	type flags struct {
		Messages []int64 `form:"messages"`
	}
	form, v := Of[flags](), &Values{}
	v.Add(Body, "messages", "["+strings.Repeat("123456,", 999)+"7]")
	b.ReportAllocs()
	for b.Loop() {
		var f flags
		if err := form.Decode(v, &f); err != nil {
			b.Fatal(err)
		}
	}
}

package wire

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"parley/actors/realm"
)

// A page is collected from its anchor outwards, so that a shortened page is the part next to the anchor.
func TestNearestFirst(t *testing.T) {
	list := []realm.MessageID{10, 20, 30, 40, 50}
	for _, x := range []struct {
		anchor int64
		want   []realm.MessageID
	}{
		{5, []realm.MessageID{10, 20, 30, 40, 50}},
		{30, []realm.MessageID{30, 20, 40, 10, 50}},
		{31, []realm.MessageID{40, 30, 50, 20, 10}},
		{realm.NewestAnchor, []realm.MessageID{50, 40, 30, 20, 10}},
	} {
		if got := nearestFirst(list, x.anchor); !slices.Equal(got, x.want) {
			t.Errorf("around %d: %v, want %v", x.anchor, got, x.want)
		}
	}
	if got := nearestFirst(nil, 7); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// An answer that is encoded part by part has the same bytes as one that is encoded at once.
func TestAnswerStreamEqualsSuccess(t *testing.T) {
	for _, n := range []int{0, 1, 2, 30} {
		type message struct {
			ID   int    `json:"id"`
			Text string `json:"text"`
		}
		type answer struct {
			Anchor   int             `json:"anchor"`
			Zeta     bool            `json:"zeta"`
			Messages listOf[message] `json:"messages"`
		}
		build := func(size int) answer {
			list := make([]*message, n)
			for i := range list {
				list[i] = &message{i, "<é>\n"}
			}
			return answer{3, true, listOf[message]{&ElementList{
				len: n, size: size,
				encode: func(b []byte, i int) []byte { return appendJSON(b, list[i]) },
				drop:   func(i int) int { list[i] = nil; return size / n },
			}}}
		}
		ignored := []string{"odd"}
		if SuccessStream(build(streamedBytes-1), ignored) != nil {
			t.Errorf("%d elements: a small answer must be encoded at once", n)
		}
		s := SuccessStream(build(streamedBytes), ignored)
		var got []byte
		for more, sent, all := true, 0, 0; more; {
			got, sent, more = s.Append(got)
			if all += sent; !more && n > 0 && all != streamedBytes/n*n {
				t.Errorf("%d elements: %d bytes were given back", n, all)
			}
		}
		var streamed, whole any
		err := errors.Join(json.Unmarshal(got, &streamed), json.Unmarshal(Success(build(0), ignored), &whole))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(streamed, whole) {
			t.Errorf("%d elements: %v, want %v", n, streamed, whole)
		}
	}
}

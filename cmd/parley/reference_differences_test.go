package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestFollowsReference checks behaviour in which the program once differed from the reference server. The page
// .github/docs/differences.md lists the differences that remain.
func TestFollowsReference(t *testing.T) {
	k := newDemoClient(t)
	for _, x := range []struct {
		name  string
		check func(t *testing.T, k *demoClient)
	}{
		{"stop words of searches", followsStopWords},
		{"hidden addresses in searches", followsHiddenAddresses},
		{"highlights of phrases", followsPhraseHighlights},
	} {
		t.Run(x.name, func(t *testing.T) {
			sub := *k
			sub.T = t
			x.check(t, &sub)
		})
	}
}

// post sends a message to a topic of the channel general and returns its id.
func (k *demoClient) post(who, topic, content string) int64 {
	k.Helper()
	a := k.must(who, "POST messages", "type", "channel", "to", "general", "topic", topic, "content", content)
	return int64(a["id"].(float64))
}

// search returns the messages that a search finds.
func (k *demoClient) search(who, words string) (list []map[string]any) {
	k.Helper()
	a := k.must(who, "GET messages", "anchor", "newest", "num_before", 50, "num_after", 0, "narrow",
		[]any{[]string{"search", words}})
	for _, m := range a["messages"].([]any) {
		list = append(list, m.(map[string]any))
	}
	return list
}

// finds requires that a search finds exactly these messages.
func (k *demoClient) finds(words string, want ...int64) {
	k.Helper()
	var got []int64
	for _, m := range k.search("ann", words) {
		got = append(got, int64(m["id"].(float64)))
	}
	if !slices.Equal(got, want) {
		k.Errorf("%q finds %v, want %v", words, got, want)
	}
}

// Searches ignore the stop words of a query; a query of nothing else finds no message. Register lists them.
func followsStopWords(_ *testing.T, k *demoClient) {
	first := k.post("ann", "T1", "deploy the narwhal at noon")
	second := k.post("ann", "T1", "it was completed: unreadable narwhals")
	k.finds("how to deploy", first)
	k.finds("is completed", second)
	k.finds("unreadable OR T1", second)
	k.finds("the")
	k.finds("how? to the!")
	k.finds("narwhal the", first, second)
	k.equal("the topic of a hit", k.search("ann", "the narwhal")[0]["match_content"],
		`<p>deploy the <span class="highlight">narwhal</span> at noon</p>`)
	all := k.must("ann", "GET messages", "anchor", "newest", "num_before", 5, "num_after", 0, "narrow",
		[]any{map[string]any{"operator": "search", "operand": "the", "negated": true}, []string{"topic", "T1"}})
	k.equal("messages without a stop word", len(all["messages"].([]any)), 2)
	words := fmt.Sprint(k.must("ann", "POST register", "fetch_event_types", []string{"stop_words"})["stop_words"])
	if n := len(strings.Fields(words)); n != 149 || !strings.HasPrefix(words, "[i me my ") {
		k.Errorf("%d stop words: %s", n, words)
	}

	// Parley finds parts of words with punctuation, which the reference does not.
	cpp := k.post("ann", "T1", "written in C++ and C#, or don't; path/to/ledger.txt")
	k.finds("C++", cpp)
	k.finds("c#", cpp)
	k.finds("don't", cpp)
	k.finds("ledger", cpp)
	k.finds(`"was completed"`, second)
	k.finds(`"the narwhal at"`, first)
}

// A search does not find the address of a link that has another text.
func followsHiddenAddresses(_ *testing.T, k *demoClient) {
	hidden := k.post("ann", "links", "[label of gnu](http://gnuhidden.example/gnuxyz) and https://gnushown.example/gnuabc")
	code := k.post("ann", "links", "`[label of gnu](http://gnuhidden.example/gnucode)`")
	k.finds("gnushown gnuabc", hidden)
	k.finds(`"gnushown.example"`, hidden)
	k.finds("gnuxyz")
	k.finds("gnuhidden", code)
	k.finds(`"gnuhidden.example/gnuxyz"`)
	k.finds(`"label of gnu](http"`, code)
	k.finds(`"label of gnu"`, hidden, code)
}

// The words of a phrase are highlighted each, in text and topic, and the name of an emoji in its element.
func followsPhraseHighlights(_ *testing.T, k *demoClient) {
	k.post("ann", "okapi topic", "okapis seen by an okapi keeper :wave:")
	m := k.search("ann", `"seen by an okapi"`)[0]
	mark := func(s string) string { return `<span class="highlight">` + s + `</span>` }
	k.equal("the text", m["match_content"], "<p>"+mark("okapis")+" "+mark("seen")+" by an "+mark("okapi")+
		` keeper <span aria-label="wave" class="emoji emoji-1f44b" role="img" title="wave">:wave:</span></p>`)
	k.equal("the topic", m["match_subject"], mark("okapi")+" topic")
	m = k.search("ann", "waving keeper")[0]
	k.equal("the emoji", m["match_content"], "<p>okapis seen by an okapi "+mark("keeper")+
		` <span aria-label="wave" class="emoji emoji-1f44b" role="img" title="wave">:`+mark("wave")+`:</span></p>`)
}

package search

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/actors/realm"
)

func newDoc(id realm.MessageID, text string) Doc {
	return Doc{Ref: realm.BodyRef{Message: id}, Text: text}
}

func newIndex(t testing.TB, docs ...Doc) *Index {
	x, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	if err := x.Write(1, docs); err != nil {
		t.Fatal(err)
	}
	return x
}

// find returns the result of a search after the candidates of phrases were compared with the texts.
func find(t testing.TB, x *Index, texts map[realm.MessageID]string, query string) []realm.MessageID {
	t.Helper()
	q := Parse(query)
	words, phrases, err := x.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	out := []realm.MessageID{}
	for id := range texts {
		ok := true
		for _, w := range words {
			ok = ok && w.Messages.Has(int64(id))
		}
		for i, p := range phrases {
			candidate := p.All || p.Messages.Has(int64(id))
			has := strings.Contains(strings.ToLower(texts[id]), q.Phrases[i])
			if has && !candidate {
				t.Errorf("%q: message %d %q contains the phrase but is not a candidate", query, id, texts[id])
			}
			ok = ok && candidate && has
		}
		if ok {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

func TestFind(t *testing.T) {
	texts := map[realm.MessageID]string{
		1: "The quick brown fox was running home",
		2: "He runs. Quickly! RUN, I said: cats",
		3: "a cat's tale — naïve résumé of dying stars",
		4: "日本語のテキスト and some code: foo_bar(baz)",
		5: "stars die; skies, happy happiness",
		6: "https://example.org/path?q=brown%20fox :-)",
	}
	var docs []Doc
	for id, text := range texts {
		docs = append(docs, newDoc(id, text))
	}
	x := newIndex(t, docs...)
	for _, c := range []struct {
		query string
		want  []realm.MessageID
	}{
		{"run", []realm.MessageID{1, 2}},
		{"RUNNING home", []realm.MessageID{1}},
		{"cats", []realm.MessageID{2, 3}},
		{"brown fox", []realm.MessageID{1}},
		{`"brown fox"`, []realm.MessageID{1}},
		{`"own fo"`, []realm.MessageID{1}},
		{`"ROWN"`, []realm.MessageID{1, 6}},
		{"die", []realm.MessageID{3, 5}},
		{"naïve", []realm.MessageID{3}},
		{"日本", []realm.MessageID{4}},
		{`"テキ"`, []realm.MessageID{4}},
		{"foo_bar", []realm.MessageID{4}},
		{":-)", []realm.MessageID{6}},
		{"happy", []realm.MessageID{5}},
		{`happy "die"`, []realm.MessageID{5}},
		{"absent", []realm.MessageID{}},
		{`run "quick`, []realm.MessageID{1, 2}},
		{`"`, []realm.MessageID{}},
	} {
		if got := find(t, x, texts, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%q finds %v, want %v", c.query, got, c.want)
		}
	}
}

func TestWriteReplaces(t *testing.T) {
	dir := t.TempDir()
	x, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := x.Seq(); at != 0 || err != nil {
		t.Fatalf("an empty index has the number %d, %v", at, err)
	}
	for _, w := range []struct {
		at   realm.Seq
		docs []Doc
	}{
		{3, []Doc{newDoc(1, "apple"), newDoc(2, "pear")}},
		{9, []Doc{
			{Ref: realm.BodyRef{Message: 1, Version: 4}, Text: "plum"},
			{Ref: realm.BodyRef{Message: 2}, Deleted: true},
		}},
	} {
		if err := x.Write(w.at, w.docs); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if at, err := x.Seq(); at != 9 || err != nil {
		t.Errorf("the index has the number %d, %v, want 9", at, err)
	}
	texts := map[realm.MessageID]string{1: "plum", 2: ""}
	for query, want := range map[string][]realm.MessageID{"plum": {1}, "apple": {}, "pear": {}} {
		if got := find(t, x, texts, query); !slices.Equal(got, want) {
			t.Errorf("%q finds %v, want %v", query, got, want)
		}
	}
	v, err := x.Versions()
	if err != nil || len(v) != 1 || v[1] != 4 {
		t.Errorf("versions are %v, %v", v, err)
	}
}

// Finding the words of a stem depends on this: a word begins with its stem, apart from the stem's last letter.
func TestStemPrefix(t *testing.T) {
	check := func(w string) {
		if s := stem(w); !strings.HasPrefix(w, stemPrefix(s)) && !slices.Contains(irregular[s], w) {
			t.Errorf("%q has the stem %q but not its prefix", w, s)
		}
	}
	for _, w := range strings.Fields("skis skies dying lying tying idly gently ugly early only singly news howe " +
		"atlas cosmos bias andes inning outing canning herring earring proceed exceed succeed generously " +
		"communication arsenal national conditional sensibility electricity hopefulness formalize relational " +
		"happily cries ties kiwis hoping hopping falling luxuriated troubled sized") {
		check(w)
	}
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	ends := strings.Fields(
		"s es ed ing ly edly ingly tional ational enci anci abli entli izer ization ation ator alism aliti " +
			"alli fulness ousli ousness iveness iviti biliti bli ogi fulli lessli alize icate iciti ical ful ness " +
			"ative al ance ence er ic able ible ant ement ment ent ism ate iti ous ive ize sion tion y e ies ied sses",
	)
	for range 50_000 {
		b := make([]byte, 1+r.Intn(7))
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyzaeiouaeiou"[r.Intn(36)]
		}
		w := string(b)
		for range r.Intn(3) {
			w += ends[r.Intn(len(ends))]
		}
		check(w)
	}
}

// TestFindAgainstScan compares the index with a scan of all texts, for random texts written in random batches.
func TestFindAgainstScan(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	words := strings.Fields(
		"run runs running cat cats catalog über naïve 日本 本 tea-time foo_bar x1 happy happily die dying ok :) " +
			"http://a.b/c? RUN Cat",
	)
	seps := []string{" ", ", ", "-", "", ". ", "\n"}
	text := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(words[r.Intn(len(words))] + seps[r.Intn(len(seps))])
		}
		return b.String()
	}
	x := newIndex(t)
	texts := map[realm.MessageID]string{}
	for at := realm.Seq(1); at < 12; at++ {
		var docs []Doc
		for range 1 + r.Intn(20) {
			id := realm.MessageID(1 + r.Intn(80))
			if slices.ContainsFunc(docs, func(d Doc) bool { return d.Ref.Message == id }) {
				continue
			}
			d := newDoc(id, text(1+r.Intn(8)))
			if d.Deleted = r.Intn(5) == 0; d.Deleted {
				delete(texts, id)
			} else {
				texts[id] = d.Text
			}
			docs = append(docs, d)
		}
		if err := x.Write(at, docs); err != nil {
			t.Fatal(err)
		}
	}
	for range 300 {
		query := text(1 + r.Intn(2))
		if r.Intn(2) == 0 {
			runes := []rune(strings.ReplaceAll(text(2), `"`, ""))
			from := r.Intn(len(runes))
			query = `"` + string(runes[from:from+1+r.Intn(len(runes)-from)]) + `"`
		}
		q := Parse(query)
		want := []realm.MessageID{}
		for id, text := range texts {
			has := map[string]bool{}
			tokens(text, func(t string, _, _ bool) { has[stem(t)] = true })
			ok := true
			for _, w := range q.Words {
				ok = ok && has[w]
			}
			for _, p := range q.Phrases {
				ok = ok && strings.Contains(strings.ToLower(text), p)
			}
			if ok {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		if got := find(t, x, texts, query); !slices.Equal(got, want) {
			t.Fatalf("%q finds %v, want %v", query, got, want)
		}
	}
}

func BenchmarkStem(b *testing.B) {
	for range b.N {
		stem("communication")
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text           string
		words, phrases []string
	}{
		{"how to deploy", []string{"deploy"}, nil},
		{"The", nil, nil},
		{"what is this?", nil, nil},
		{"(and) 'or'.", nil, nil},
		{"C++ c#, don't!", nil, []string{"c++", "c#", "don't"}},
		{"and/or", nil, []string{"and/or"}},
		{"state-of-the-art", []string{"state", "art"}, nil},
		{"a & b", nil, []string{"&"}},
		{`"The End" Now`, nil, []string{"the end"}},
		{`"open`, []string{"open"}, nil},
	} {
		q := Parse(c.text)
		if !slices.Equal(q.Words, c.words) || !slices.Equal(q.Phrases, c.phrases) {
			t.Errorf("%q: words %q, phrases %q", c.text, q.Words, q.Phrases)
		}
		if q.Empty() != (c.words == nil && c.phrases == nil) {
			t.Errorf("%q is empty: %v", c.text, q.Empty())
		}
	}
}

func ExampleQuery_Highlights() {
	fmt.Println(Parse(`runner fox "were run" "ot wal"`).Highlights("Foxes were running, not walking"))
	// Output: [foxes running] [ot wal]
}

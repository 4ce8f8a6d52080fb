package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ownedObject is an object of one account. For all other users, also administrators, it does not exist.
type ownedObject struct {
	name         string
	make         func(s *matrixStage, p *matrixUser, n int) string // returns the id
	method, path string
	params       pairs
	missing      string // the error for an object that does not exist
	humans       bool
}

func ownedObjects() []ownedObject {
	draft := func(s *matrixStage, p *matrixUser, n int) string {
		r := s.must(p, "POST", "/drafts", "drafts",
			[]any{map[string]any{"type": "private", "to": []int64{}, "topic": "", "content": "secret"}})
		return fmt.Sprint(nums(r.body["ids"])[0])
	}
	scheduled := func(s *matrixStage, p *matrixUser, n int) string {
		return fmt.Sprint(s.must(p, "POST", "/scheduled_messages", "type", "direct", "to", []int64{p.id}, "content",
			"secret", "scheduled_delivery_timestamp", s.now.Load()+10*day).int("scheduled_message_id"))
	}
	reminder := func(s *matrixStage, p *matrixUser, n int) string {
		m := s.must(p, "POST", "/messages", "type", "direct", "to", []int64{p.id}, "content", "to remember").int("id")
		return fmt.Sprint(s.must(p, "POST", "/reminders", "message_id", m, "scheduled_delivery_timestamp",
			s.now.Load()+10*day).int("reminder_id"))
	}
	snippet := func(s *matrixStage, p *matrixUser, n int) string {
		return fmt.Sprint(s.must(p, "POST", "/saved_snippets", "title", "secret", "content",
			"secret").int("saved_snippet_id"))
	}
	view := func(s *matrixStage, p *matrixUser, n int) string {
		fragment := fmt.Sprintf("narrow/topic/%d", n)
		s.must(p, "POST", "/navigation_views", "fragment", fragment, "is_pinned", true, "name",
			fmt.Sprintf("view %d", n))
		return fragment
	}
	file := func(s *matrixStage, p *matrixUser, n int) string {
		s.must(p, "POST", "/user_uploads", "file", fmt.Sprintf("secret %d", n))
		all := objects(s.must(p, "GET", "/attachments").body["attachments"])
		last := int64(0)
		for _, a := range all {
			last = max(last, num(a["id"]))
		}
		return fmt.Sprint(last)
	}
	path := func(s *matrixStage, p *matrixUser, n int) string {
		url, _ := s.must(p, "POST", "/user_uploads", "file", fmt.Sprintf("secret %d", n)).body["url"].(string)
		return strings.TrimPrefix(url, "/user_uploads/")
	}
	queue := func(s *matrixStage, p *matrixUser, n int) string {
		q, _ := s.must(p, "POST", "/register").body["queue_id"].(string)
		return q
	}
	key := func(s *matrixStage, p *matrixUser, n int) string {
		maker := *p
		if p.firstKey != "" {
			maker.key = p.firstKey
		}
		return fmt.Sprint(s.must(&maker, "POST", "/users/me/api_keys", "label", "secret", "expires_in", 600).int("id"))
	}
	device := func(s *matrixStage, p *matrixUser, n int) string {
		return fmt.Sprint(s.must(p, "POST", "/register_client_device").int("device_id"))
	}
	tus := pairs{"Tus-Resumable", "1.0.0"}
	piece := func(s *matrixStage, p *matrixUser, n int) string {
		// the request contains the first byte
		return s.must(p, "POST", "/tus", append(slices.Clone(tus), "Upload-Length", "5")...).at
	}
	entire := func(s *matrixStage, p *matrixUser, n int) string {
		return s.must(p, "POST", "/tus", append(slices.Clone(tus), "Upload-Length", "1")...).at
	}
	return []ownedObject{
		{"edit a draft", draft, "PATCH", "/drafts/%s",
			pairs{"draft", map[string]any{"type": "private", "to": []int64{}, "topic": "", "content": "y"}},
			"Draft does not exist", false},
		{"delete a draft", draft, "DELETE", "/drafts/%s", nil, "Draft does not exist", false},
		{"edit a scheduled message", scheduled, "PATCH", "/scheduled_messages/%s", pairs{"content", "y"},
			"Scheduled message does not exist", false},
		{"cancel a scheduled message", scheduled, "DELETE", "/scheduled_messages/%s", nil,
			"Scheduled message does not exist", false},
		{"cancel a reminder", reminder, "DELETE", "/reminders/%s", nil, "Reminder does not exist", false},
		{"edit a snippet", snippet, "PATCH", "/saved_snippets/%s", pairs{"title", "y"}, "Saved snippet does not exist.",
			false},
		{"delete a snippet", snippet, "DELETE", "/saved_snippets/%s", nil, "Saved snippet does not exist.", false},
		{"edit a view", view, "PATCH", "/navigation_views/%s", pairs{"is_pinned", false},
			"Navigation view does not exist.", false},
		{"delete a view", view, "DELETE", "/navigation_views/%s", nil, "Navigation view does not exist.", false},
		{"delete an attachment", file, "DELETE", "/attachments/%s", nil, "Invalid attachment", false},
		{"open a file that was not sent", path, "GET", "/user_uploads/%s", nil, "File not found", false},
		{"ask for its thumbnail", path, "GET", "/thumbnail/status/%s", nil, "File not found", false},
		{"drop a queue", queue, "DELETE", "/events", pairs{"queue_id", "%s"}, "Bad event queue ID: %s", false},
		{"ask for the offset of a resumable upload", piece, "HEAD", "/tus/%s", tus, "Upload not found", false},
		{"fetch a resumable upload", entire, "GET", "/tus/%s", tus, "Upload not found", false},
		{"continue a resumable upload", piece, "PATCH", "/tus/%s", append(slices.Clone(tus), "Upload-Offset", "1"),
			"Upload not found", false},
		{"abandon a resumable upload", piece, "DELETE", "/tus/%s", tus, "Upload not found", false},
		{"poll a queue", queue, "GET", "/events", pairs{"queue_id", "%s", "last_event_id", -1, "dont_block", true},
			"Bad event queue ID: %s", false},
		{"revoke an API key", key, "DELETE", "/users/me/api_keys/%s", nil, "API key does not exist", false},
		{"remove a device", device, "POST", "/remove_client_device", pairs{"device_id", "%s"}, "Invalid 'device_id'",
			true},
	}
}

// fillID replaces %s by an id.
func fillID(p pairs, id string) pairs {
	out := make(pairs, len(p))
	for i, x := range p {
		if x == "%s" {
			x = id
		}
		out[i] = x
	}
	return out
}

// matrixOwned sends requests of every user for objects of the named holders. Lists of others never contain them.
func matrixOwned(names ...string) func(*testing.T, *coverage) {
	return func(t *testing.T, l *coverage) {
		s := newMatrixStage(t, l)
		var holders []*matrixUser
		for _, name := range names {
			holders = append(holders, s.by[name])
		}
		s.askOwned(holders)
		s.askLists(holders)
		s.summary()
	}
}

// askOwned asks for each object of each holder.
func (s *matrixStage) askOwned(holders []*matrixUser) {
	s.Helper()
	all := append(slices.Clone(s.people), s.outsiders()...)
	n := 0
	for _, b := range ownedObjects() {
		for _, holder := range holders {
			if b.humans && holder.name == "bot" {
				continue // it can have no such object
			}
			for _, p := range all {
				if p.name == "gone" {
					continue
				}
				n++
				id := b.make(s, holder, n)
				missing := strings.ReplaceAll(b.missing, "%s", id)
				ask := func(id string) reply {
					path := b.path
					if strings.Contains(path, "%s") {
						path = fmt.Sprintf(path, id)
					}
					return s.call(p, b.method, path, fillID(b.params, id)...)
				}
				want := loginError(p, false)
				switch {
				case want != "" || p == holder:
				case b.humans && p.name == "bot":
					want = noBots
				default:
					want = missing
				}
				got := ask(id)
				s.checkAnswer(s.question(b.name), got.msg(), want, "%s: %s of %s", p.name, b.name, holder.name)
				if want == missing {
					none := fmt.Sprint(missingID)
					if strings.Contains(id, "/") || strings.Contains(id, "-") {
						none = strings.Repeat("9", 8) + id[8:]
						if strings.HasPrefix(id, "1/") {
							none = "1/99/none/f.txt"
						}
					}
					void := ask(none)
					s.check(fmt.Sprint(got.status, strings.ReplaceAll(got.raw, id, "#")),
						fmt.Sprint(void.status, strings.ReplaceAll(void.raw, none, "#")),
						"%s: %s of %s, as where there is nothing", p.name, b.name, holder.name)
				}
			}
		}
	}
}

// askLists asks for the lists that only contain objects of the caller.
func (s *matrixStage) askLists(holders []*matrixUser) {
	s.Helper()
	for _, list := range []string{"/drafts", "/saved_snippets", "/scheduled_messages", "/reminders",
		"/navigation_views", "/attachments"} {
		for _, p := range s.people {
			if p.name == "gone" {
				continue
			}
			raw := s.must(p, "GET", list).raw
			s.check(shownOrAbsent(strings.Contains(raw, "secret") || strings.Contains(raw, "view ") ||
				strings.Contains(raw, "f.txt") || strings.Contains(raw, "to remember")),
				shownOrAbsent(slices.Contains(holders, p)), "%s: list %s", p.name, list)
		}
	}
}

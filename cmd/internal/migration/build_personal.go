package migration

import (
	"slices"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/imports"
)

// addPersonal adds the records that belong to one user, except scheduled messages: describe adds these.
func (x *importer) addPersonal() error {
	policies := map[realm.UserID]*realm.TopicPolicies{}
	muted := map[realm.UserID]*realm.MutedUsers{}
	words := map[realm.UserID]*realm.AlertWords{}
	seen := map[realm.UserID]*realm.Onboarding{}
	snippets := int64(0)
	for _, r := range x.personal {
		ok := true
		switch v := r.(type) {
		case *imports.TopicPolicy:
			u, c := x.userIDs[v.User], x.channelID[v.Channel]
			if ok = u >= firstUserID && c != 0 && v.Policy >= 1 && v.Policy <= 3; ok {
				l := ensure(policies, u)
				l.List = append(l.List,
					realm.TopicPolicy{Channel: c, Topic: x.topic(v.Topic), Policy: v.Policy, Since: v.Since})
			}
		case *imports.MutedUser:
			u, m := x.userIDs[v.User], x.userIDs[v.Muted]
			if ok = u >= firstUserID && m >= firstUserID; ok {
				l := ensure(muted, u)
				l.List = append(l.List, realm.MutedUser{User: m, Since: v.Since})
			}
		case *imports.AlertWord:
			u, word := x.userIDs[v.User], clean(v.Word, maxWord)
			if ok = u >= firstUserID && word != ""; ok {
				l := ensure(words, u)
				l.List = append(l.List, word)
			}
		case *imports.Onboarding:
			u := x.userIDs[v.User]
			if ok = u >= firstUserID && slices.Contains(realm.OnboardingSteps, v.Step); ok {
				l := ensure(seen, u)
				l.Seen = append(l.Seen, v.Step)
			}
		case *imports.Status:
			u := x.userIDs[v.User]
			if ok = u >= firstUserID; ok {
				s := &realm.UserStatus{Text: clean(v.Text, 60)}
				e, found := x.reaction(imports.Reaction{Name: v.EmojiName, Code: v.EmojiCode, Type: v.EmojiType})
				if found {
					s.EmojiName, s.EmojiCode, s.EmojiType = e.Name, e.Code, e.Type
				}
				x.build.PutOf(u, s)
			}
		case *imports.Snippet:
			u := x.userIDs[v.User]
			if ok = u >= firstUserID; ok {
				snippets++
				x.build.Put(&realm.Snippet{ID: snippets, User: u, Title: clean(v.Title, 60), Content: x.text(v.Content),
					Created: v.Created})
			}
		}
		if !ok {
			x.Drop(kindOf(r), "it names something that is missing or invalid", 1)
		}
	}
	for u, l := range policies {
		l.List = lastOfEach(l.List)
		x.build.PutOf(u, l)
	}
	for u, l := range muted {
		x.build.PutOf(u, l)
	}
	for u, l := range words {
		slices.Sort(l.List)
		l.List = slices.Compact(l.List)
		x.build.PutOf(u, l)
	}
	for u, l := range seen {
		x.build.PutOf(u, l)
	}
	return nil
}

// lastOfEach returns the last policy of each topic, in the order of the list.
func lastOfEach(list []realm.TopicPolicy) []realm.TopicPolicy {
	type topic struct {
		channel realm.ChannelID
		name    string
	}
	topicOf := func(p realm.TopicPolicy) topic { return topic{p.Channel, realm.FoldTopic(p.Topic)} }
	last := make(map[topic]int, len(list))
	for i, p := range list {
		last[topicOf(p)] = i
	}
	kept := list[:0]
	for i, p := range list {
		if last[topicOf(p)] == i {
			kept = append(kept, p)
		}
	}
	return kept
}

// ensure returns the row of a user, which is added if it is missing.
func ensure[V any](m map[realm.UserID]*V, u realm.UserID) *V {
	if m[u] == nil {
		m[u] = new(V)
	}
	return m[u]
}

// kindOf returns the name of a record's kind in the report.
func kindOf(r imports.Record) string {
	switch r.(type) {
	case *imports.TopicPolicy:
		return "topic policies"
	case *imports.MutedUser:
		return "muted users"
	case *imports.AlertWord:
		return "alert words"
	case *imports.Onboarding:
		return "onboarding steps"
	case *imports.Status:
		return "statuses"
	case *imports.Snippet:
		return "snippets"
	}
	return "others"
}

// describe renders the descriptions, profile values and scheduled messages, once everything can be found by name.
func (x *importer) describe() error {
	v := x.build.View(x.began.Unix())
	o := x.build.Org()
	o.DescriptionHTML = x.renderer.RenderDescription(o.Description, v, x.site)
	for _, id := range x.channelID {
		c := v.FindChannel(id)
		c.DescriptionHTML = x.renderer.RenderDescription(c.Description, v, x.site)
	}
	rendered := map[int64]bool{}
	for _, f := range v.ProfileFields() {
		rendered[f.ID] = f.Type == realm.ShortText || f.Type == realm.LongText
	}
	for _, id := range x.userIDs {
		u := v.Find(id)
		for field, value := range u.Profile {
			if rendered[field] {
				u.ProfileHTML[field] = x.renderer.RenderDescription(value, v, x.site)
			}
		}
	}
	n := int64(0)
	for _, r := range x.personal {
		if s, ok := r.(*imports.Scheduled); ok {
			added, err := x.addScheduled(s, v, n+1)
			if err != nil {
				return err
			}
			if added {
				n++
			}
		}
	}
	x.personal = nil
	return nil
}

// addScheduled adds a scheduled message under an id, and its files. It returns false if the message is dropped.
func (x *importer) addScheduled(s *imports.Scheduled, v realm.View, id int64) (bool, error) {
	row := &realm.ScheduledMessage{ID: id, User: x.userIDs[s.Sender], Channel: x.channelID[s.Channel], At: s.At,
		Client: x.clientName(s.Client)}
	people, ok := x.people(s.People, row.User)
	if row.User < firstUserID || s.Channel != "" && row.Channel == 0 || s.Channel == "" && !ok {
		x.Drop("scheduled messages", "it names something that is missing or invalid", 1)
		return false, nil
	}
	if row.Channel != 0 {
		row.Topic = x.topic(s.Topic)
	} else {
		row.People = people
	}
	j := &job{in: imports.Message{Text: s.Text, Files: s.Files, At: x.began.Unix()}}
	j.out.Sender = row.User
	if err := x.files(j); err != nil {
		return false, err
	}
	text := wire.ImportedText{Text: j.in.Text, Author: row.User}
	body, content, err := x.renderer.RenderImported(text, x.viewOf(row.User), x.site)
	if err != nil {
		x.Drop("scheduled messages", "the text cannot be rendered", 1)
		return false, nil
	}
	row.Body, row.Content = body, content
	x.build.Put(row)
	return true, nil
}

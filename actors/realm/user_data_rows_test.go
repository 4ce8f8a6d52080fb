package realm_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// eachText calls fn with the texts and user numbers in a value, and the paths that UserDataFields uses.
func eachText(v reflect.Value, path string, fn func(path string, value any)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachText(v.Elem(), path, fn)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			eachText(v.Index(i), path, fn)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			eachText(v.MapIndex(k), path+"[]", fn)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				eachText(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), fn)
			}
		}
	case reflect.String:
		fn(path, v.String())
	default:
		if v.Type() == reflect.TypeFor[UserID]() {
			fn(path, UserID(v.Int()))
		}
	}
}

// rowsNaming returns the fields, as "Row path", that have the number of a user or one of the texts.
func (s *testScene) rowsNaming(u UserID, texts ...string) map[string]bool {
	out := map[string]bool{}
	s.Realm.EachRow(func(_ uint16, key, row any) {
		name := reflect.TypeOf(row).Elem().Name()
		if key == u {
			out[name+" Key"] = true
		}
		eachText(reflect.ValueOf(row), "", func(path string, value any) {
			if value == u {
				out[name+" "+path] = true
			}
			for _, text := range texts {
				if x, ok := value.(string); ok && strings.Contains(strings.ToLower(x), text) {
					out[name+" "+path] = true
				}
			}
		})
	})
	return out
}

// After an erasure no row has the number or a text of the person, except in fields that UserDataFields says remain.
func TestErasureLeavesOnlyWhatIsListed(t *testing.T) {
	s := newTestScene(t)
	sent := do(s, s.owner, InviteByMail{Emails: "zebra@example.com", InviteOptions: InviteOptions{Role: Member}})
	var hash [32]byte
	copy(hash[:], sent.Emails[0].Token)
	me := do(s, realmtest.System, AcceptInvite{Hash: hash, Name: "Zebra Zed"})
	other := do(s, s.owner, InviteByMail{Emails: "kept@example.com", InviteOptions: InviteOptions{Role: Member}})
	s.join(me, s.public)
	id := s.post(me, s.public, "zebratopic", "zebra **"+"text**")
	others := s.post(s.bo, s.public, "topic", "of bo, @**Zebra Zed** zebra")
	do(s, s.cy, AddReminder{Message: id, At: s.Now + 1000, Text: "zebra"})
	do(s, me, AddReminder{Message: others, At: s.Now + 1000, Note: "zebra", Text: "x"})
	do(s, me, AddReaction{Message: others, Name: "zulip"})
	do(s, me, MuteUser{User: s.cy})
	do(s, s.cy, MuteUser{User: me})
	do(s, me, AddSnippet{Title: "zebra", Content: "zebra"})
	do(s, me, AddDrafts{Drafts: []Draft{{Content: "zebra"}}})
	do(s, me, ChangeAlertWords{Words: []string{"zebraword"}})
	do(s, me, SetTopicPolicy{Channel: s.public, Topic: "zebraplan", Policy: 1})
	do(s, me, SaveUpload{Name: "zebra.txt", Hash: "cd34", Size: 10})
	text := "zebra away"
	do(s, me, SetStatus{Text: &text})
	do(s, me, Flag{Messages: []MessageID{others}, Op: "add", Flag: "starred"})
	deleted := s.post(me, s.public, "topic", "zebra")
	do(s, s.owner, DeleteMessage{Message: deleted})
	s.OpenQueue(me)
	realmtest.RunTurn(s.Scene, realmtest.System, func(t *Turn) (any, error) {
		t.SendEmails(Email{To: "zebra@example.com", Subject: "zebra"}, Email{To: "x@example.com", Subject: "zebra zed"})
		return nil, nil
	})
	before := s.rowsNaming(me, "zebra")
	s.erase(me)
	s.Restart()
	after := s.rowsNaming(me, "zebra")

	mustFind, removed := 0, 0
	for _, x := range UserDataFields {
		for _, f := range strings.Fields(x.Fields) {
			name := fmt.Sprintf("%s %s", x.Row, f)
			if before[name] {
				mustFind++
			}
			if x.ErasedBy == "" {
				continue
			}
			if after[name] {
				t.Errorf("%s still has data of the person, although %s erases it", name, x.ErasedBy)
			}
			if before[name] {
				removed++
			}
		}
	}
	if mustFind < 30 || removed < 20 {
		t.Errorf("only %d fields had data of the person, %d of them to be erased", mustFind, removed)
	}
	invites, err := s.ViewAs(s.owner).ManagedInvites()
	if err != nil || len(invites) != 1 || invites[0].ID != other.Emails[0].Invite.ID ||
		invites[0].Email != "kept@example.com" {
		t.Errorf("the open invitations are %+v, %v", invites, err)
	}
}

package realmtest_test

import (
	"fmt"
	"testing"

	"parley/actors/realm"
	"parley/actors/realm/realmtest"
)

// output is used in place of the *testing.T that a test passes to New. It prints failures.
type output struct {
	testing.TB
	atEnd []func()
}

func (o *output) Helper()                           {}
func (o *output) Failed() bool                      { return false }
func (o *output) Cleanup(f func())                  { o.atEnd = append(o.atEnd, f) }
func (o *output) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (o *output) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func Example() {
	t := &output{}
	s := realmtest.New(t)
	ann, bo := s.Join("Ann"), s.Join("Bo")

	hi := realm.SendMessage{People: []realm.Principal{{ID: bo}}, Body: realm.Body{Text: "hi"}}
	message := realmtest.Do(s, ann, hi).ID
	s.ExpectEvents(bo, "message")

	wave := realm.AddReaction{Message: message, Name: "wave", NameCode: "1f44b"}
	realmtest.Do(s, bo, wave)
	for _, e := range realmtest.ListEventsOf[*realm.ReactionAdded](s, ann) {
		fmt.Println("Ann got the reaction", e.Reaction.Name)
	}
	realmtest.ExpectRefusal(s, bo, wave, "REACTION_ALREADY_EXISTS")

	s.Advance(60) // seconds
	s.Restart()
	fmt.Println("Bo has read it:", s.ViewAs(bo).FlagsOf(message)&realm.FlagRead != 0)

	for _, check := range t.atEnd { // a test does this when it ends: check recovery from facts and from rows
		check()
	}
	// Output:
	// Ann got the reaction wave
	// Bo has read it: false
}

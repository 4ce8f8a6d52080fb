package realm

import (
	"errors"
	"testing"
)

// A fact of a higher level is refused until the level of the cluster is raised, and nothing is recorded. A batch has
// the level at which its facts were recorded, and followers apply them at that level.
func TestFactsOfHigherLevels(t *testing.T) {
	factLevels[NumberOf(&Ticked{})] = 2
	t.Cleanup(func() { delete(factLevels, NumberOf(&Ticked{})) })
	r := New(1)
	run := func(level uint16, f Fact) ([]Fact, error) {
		_, facts, _, err := RunTurn(r, Caller{System: true}, TurnEnv{Level: level}, func(t *Turn) (Done, error) {
			t.Record(f)
			return Done{}, nil
		})
		return facts, err
	}
	if _, err := run(1, &Founded{Name: "Levels"}); err != nil {
		t.Fatal(err)
	}
	var refused *Refusal
	if _, err := run(1, &Ticked{}); !errors.As(err, &refused) || refused.Kind != Busy || r.Seq() != 1 {
		t.Fatalf("below its level a fact was answered with %v; the realm is at fact %d", err, r.Seq())
	}
	facts, err := run(2, &Ticked{})
	if err != nil || r.Seq() != 2 {
		t.Fatalf("at its level: %v; the realm is at fact %d", err, r.Seq())
	}
	if b := NewBatch(r, 1, facts, func(Fact) []byte { return nil }); b.Level != 2 {
		t.Errorf("the batch has the level %d", b.Level)
	}
	if got := NewestNumberAt(Level); got != NewestNumber() {
		t.Errorf("the newest number at the newest level is %d", got)
	}
	if newest := NewestNumber(); NewestNumberAt(factLevels[newest]-1) >= newest {
		t.Errorf("the newest number below level %d is not below %d", factLevels[newest], newest)
	}
}

// levelSeen is a fact that notes the level at which it is applied.
type levelSeen struct{ at *uint16 }

func (f *levelSeen) apply(r *Realm)          { *f.at = r.Level() }
func (f *levelSeen) notices(*Realm) []Notice { return nil }

// A replayed fact is applied at the level of its batch, whatever the level of the program is.
func TestReplayUsesTheLevelOfTheBatch(t *testing.T) {
	var at uint16
	r := New(1)
	for stored, want := range map[uint16]uint16{0: FirstLevel, 1: 1, 7: 7} {
		if r.ReplayAt(&levelSeen{&at}, 1, stored); at != want {
			t.Errorf("a fact of level %d was applied at level %d, want %d", stored, at, want)
		}
	}
	if r.Level() != Level {
		t.Errorf("after the replay the level is %d", r.Level())
	}
}

// Emails are stored without the place of their answers while a node with an older program applies the facts.
func TestRepliesNeedTheirLevel(t *testing.T) {
	for level, want := range map[uint16]bool{mailLevel - 1: false, mailLevel: true} {
		given := []Email{{To: "bo@example.com", Reply: &EmailReply{User: 7, Message: 8}}}
		_, _, _, err := RunTurn(New(1), Caller{System: true}, TurnEnv{Level: level}, func(t *Turn) (Done, error) {
			if got := t.withoutReplies(given)[0].Reply != nil; got != want {
				return Done{}, BadRequest("a reply is stored: %t", got)
			}
			return Done{}, nil
		})
		if err != nil || given[0].Reply == nil {
			t.Errorf("level %d: %v", level, err)
		}
	}
}

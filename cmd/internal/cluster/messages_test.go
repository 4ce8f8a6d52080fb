package cluster

import (
	"testing"

	"parley/actors/realm"
)

// The report of a node is understood by the release before, which knows three fields, and by a later one with more.
func TestReportOfAnotherRelease(t *testing.T) {
	type older struct {
		Applied       map[realm.ID]realm.Seq
		Queues, Polls int64
	}
	type newer struct {
		Applied       map[realm.ID]realm.Seq
		Queues, Polls int64
		Full          bool
		Sleep         sleepReport
		More          []string
	}
	applied := map[realm.ID]realm.Seq{1: 7}
	var got edgeReport
	if err := decode(encode(msgReport, &older{applied, 2, 3})[1:], &got); err != nil || got.Applied[1] != 7 ||
		got.Queues != 2 || got.Polls != 3 || got.Full {
		t.Errorf("of an older release: %+v, %v", got, err)
	}
	got = edgeReport{}
	err := decode(encode(msgReport, &newer{applied, 2, 3, true, sleepReport{4, 5, 6}, []string{"x"}})[1:], &got)
	if err != nil || !got.Full || got.Polls != 3 || got.Sleep.Due != 6 {
		t.Errorf("of a newer release: %+v, %v", got, err)
	}
	if sent, want := encodeReport(&edgeReport{Applied: applied, Queues: 2, Polls: 3}),
		encode(msgReport, &older{applied, 2, 3}); string(sent) != string(want) {
		t.Errorf("a report has %x, which an older release does not decode; want %x", sent, want)
	}
	full := edgeReport{}
	if err := decode(encodeReport(&edgeReport{Full: true})[1:], &full); err != nil || !full.Full {
		t.Errorf("of a full disk: %+v, %v", full, err)
	}
	asleep := edgeReport{Applied: applied, Sleep: sleepReport{Asleep: 9}}
	if err := decode(encodeReport(&asleep)[1:], &got); err != nil || got.Sleep.Asleep != 9 || got.Full {
		t.Errorf("of organizations that are asleep: %+v, %v", got, err)
	}
	if decode([]byte{0xc1}, &got) == nil || decode([]byte{0x93, 1, 2, 3}, &got) == nil {
		t.Error("a message that is none is accepted")
	}
}

package certificates

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// Tickets are encrypted with a new key each day and accepted for a week, also across processes: a successor goes on
// with the keys of its predecessor, and neither makes one that the other does not have.
func TestTicketKeysRotate(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	at := func(hours int) time.Time { return start.Add(time.Duration(hours) * time.Hour) }
	k := NewTicketKeys(start)
	first, next := k.Rotate(at(0))
	if len(first) != 1 || next != ticketKeyPeriod {
		t.Fatalf("%d keys at first, the next one after %v", len(first), next)
	}
	seen := map[[32]byte]bool{first[0]: true}
	for hour := 1; hour <= 24*9; hour++ {
		keys, next := k.Rotate(at(hour))
		if fresh := !seen[keys[0]]; fresh != (hour%24 == 0) {
			t.Fatalf("hour %d: a new key is %t", hour, fresh)
		}
		seen[keys[0]] = true
		if valid := slices.Contains(keys, first[0]); valid != (hour < 24*7) {
			t.Fatalf("hour %d: tickets of the first key are accepted: %t", hour, valid)
		}
		if want := time.Duration(24-hour%24) * time.Hour; next != want {
			t.Fatalf("hour %d: the next key is made after %v, want %v", hour, next, want)
		}
	}
	var answer TicketAnswer
	if err := json.Unmarshal(EncodeTicketAnswer(k), &answer); err != nil {
		t.Fatal(err)
	}
	successor := NewTicketKeys(at(24 * 9))
	successor.Replace(answer.TicketKeys)
	before, _ := k.Rotate(at(24*9 + 1))
	if after, _ := successor.Rotate(at(24*9 + 1)); !slices.Equal(before, after) {
		t.Error("the successor has other keys")
	}
	if late, _ := k.Rotate(at(24 * 10)); late[0] != before[0] {
		t.Error("a server that has shared its keys makes one that its successor does not have")
	}
	if late, _ := successor.Rotate(at(24 * 10)); late[0] == before[0] {
		t.Error("the successor makes no further keys")
	}
	if keys, _ := successor.Rotate(at(-48)); len(keys) != 1 || seen[keys[0]] {
		t.Errorf("%d keys after the clock was set back", len(keys))
	}
	old, _ := NewTicketKeys(start).Rotate(start)
	successor.Replace(nil) // of a predecessor that sends none
	if keys, _ := successor.Rotate(at(-48)); len(keys) != 1 || keys[0] == old[0] {
		t.Error("without keys of the predecessor there are none")
	}
	if b := EncodeTicketAnswer(nil); string(b) != "{}\n" {
		t.Errorf("without TLS the answer to a successor is %s", b)
	}
}

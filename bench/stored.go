package bench

import (
	"encoding/json"
	"fmt"
	"slices"

	"parley/bench/swarm"
)

const (
	// storedPage is the number of messages in one request: half a megabyte of answer.
	storedPage = 500
	// maxStoredChecks bounds the sends that are read again after a run, so that this takes at most about a minute.
	maxStoredChecks = 200_000
)

// checkStored reads all acknowledged sends to channels again, as a member of each channel. A send that the server does
// not return is a violation: it was acknowledged, but not stored. Scenarios that delete messages are not checked.
func (r *run) checkStored() error {
	if r.scenario.Crowd || r.options.traceSteps != nil || r.options.floorTarget {
		return nil
	}
	sends := map[int32][]int{} // numbers of the sends by audience
	count := 0
	for no := range r.ledger.sends {
		s := &r.ledger.sends[no]
		if s.state == sendAcked && r.byAudience[s.audience] != nil {
			if count++; count > maxStoredChecks {
				r.result.Notes = append(r.result.Notes, fmt.Sprintf("only the first %d acknowledged sends were "+
					"read again",
					maxStoredChecks))
				break
			}
			sends[s.audience] = append(sends[s.audience], no)
		}
	}
	if count > 0 {
		r.logf("reading %d acknowledged sends again", min(count, maxStoredChecks))
	}
	for i := range r.population.channels {
		ch := &r.population.channels[i]
		if err := r.checkStoredIn(ch, sends[ch.audience]); err != nil {
			return fmt.Errorf("reading the messages of channel %q again: %w", ch.Name, err)
		}
	}
	return nil
}

// checkStoredIn reads the messages of one channel, page after page, and compares them with acknowledged sends.
func (r *run) checkStoredIn(ch *channel, sends []int) error {
	slices.SortFunc(sends, func(a, b int) int {
		return int(r.ledger.sends[a].message - r.ledger.sends[b].message)
	})
	reader := &r.population.people[ch.Members[0]]
	for len(sends) > 0 {
		anchor := r.ledger.sends[sends[0]].message
		page, texts, end, err := r.messagesFrom(ch, reader, anchor)
		if err != nil {
			return err
		}
		last := anchor
		if len(page) > 0 {
			last = page[len(page)-1]
		}
		for len(sends) > 0 {
			s := &r.ledger.sends[sends[0]]
			if !end && s.message > last {
				break
			}
			_, found := slices.BinarySearch(page, s.message)
			if found {
				// The text names the send, unless it was edited.
				no, ours := r.ledger.sendNumber([]byte(texts[s.message]))
				found = !ours || no == r.ledger.global(sends[0])
			}
			if !found {
				r.ledger.report(nil, s.message, "not stored", "send %d of person %d was acknowledged as message %d in "+
					"channel %s, at %s, but GET /messages does not return it to %s", sends[0], s.sender, s.message,
					ch.Name,
					r.loop.Wall(s.intended).UTC().Format("15:04:05.000"), reader.Email)
			}
			sends = sends[1:]
		}
	}
	return nil
}

// messagesFrom returns the ids of the messages of a channel from anchor on, at most storedPage of them, in ascending
// order, their texts, and whether these are the newest.
func (r *run) messagesFrom(ch *channel, reader *person, anchor int64) (ids []int64, texts map[int64]string, end bool,
	err error) {
	texts = map[int64]string{}
	err = r.callEach(1, func(int) *swarm.Call {
		return r.newCall("GET", "messages", reader, params{"anchor": anchor, "num_before": 0, "num_after": storedPage,
			"apply_markdown": false,
			"narrow":         []any{map[string]any{"operator": r.channelWord(), "operand": ch.ID}}})
	}, func(_ int, body []byte) error {
		var v struct {
			Messages []struct {
				ID      int64  `json:"id"`
				Content string `json:"content"`
			} `json:"messages"`
			Newest bool `json:"found_newest"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return err
		}
		for _, m := range v.Messages {
			ids = append(ids, m.ID)
			texts[m.ID] = m.Content
		}
		slices.Sort(ids)
		end = v.Newest || len(ids) == 0 || ids[len(ids)-1] <= anchor && len(ids) < 2
		return nil
	})
	return ids, texts, end, err
}

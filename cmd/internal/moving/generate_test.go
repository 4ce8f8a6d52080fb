package moving

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

type obj = map[string]any

// writeZulip writes an export with so many messages by 100 users in 50 channels, each message with 20 rows of flags.
func writeZulip(t testing.TB, dir string, messages int) {
	t.Helper()
	const users, channels, receivers = 100, 50, 20
	rng := rand.New(rand.NewPCG(1, 2))
	realm := obj{"zerver_realm": []obj{{"id": 1, "name": "Generated", "date_created": 1.6e9}}}
	var us, streams, recipients, subs, reactions []obj
	for u := range users {
		us = append(
			us,
			obj{
				"id":             10 + u,
				"delivery_email": fmt.Sprintf("u%d@example.com", u),
				"full_name":      fmt.Sprintf("User %d", u),
				"is_active":      true,
				"role":           400,
				"date_joined":    1.6e9,
			},
		)
		recipients = append(recipients, obj{"id": 1000 + u, "type": 1, "type_id": 10 + u})
	}
	for c := range channels {
		streams = append(streams, obj{"id": 1 + c, "name": fmt.Sprintf("channel %d", c), "date_created": 1.6e9})
		recipients = append(recipients, obj{"id": 1 + c, "type": 2, "type_id": 1 + c})
		for i := range receivers {
			subs = append(
				subs,
				obj{"id": len(subs), "user_profile": 10 + (c+i*5)%users, "recipient": 1 + c, "active": true},
			)
		}
	}
	for i := range messages / 4 {
		reactions = append(reactions, obj{"message": 1 + i*4, "user_profile": 10 + i%users, "emoji_name": "+1",
			"emoji_code": "1f44d", "reaction_type": "unicode_emoji"})
	}
	realm["zerver_userprofile"], realm["zerver_stream"], realm["zerver_recipient"] = us, streams, recipients
	realm["zerver_subscription"], realm["zerver_reaction"] = subs, reactions
	realm["zerver_client"] = []obj{{"id": 1, "name": "website"}}
	data, _ := json.Marshal(realm)
	if err := os.WriteFile(filepath.Join(dir, "realm.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	words := []string{
		"the",
		"deploy",
		"is",
		"**done**",
		"see",
		"`code`",
		"@**User 3**",
		"#**channel 4**",
		"later",
		":tada:",
		"https://example.com/x",
		"meeting",
		"at",
		"noon",
		"please",
		"review",
	}
	for file, id := 1, 1; id <= messages; file++ {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("messages-%06d.json", file)))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		flags := []byte(nil)
		w.WriteString(`{"zerver_message":[`)
		for n := 0; n < 1000 && id <= messages; n, id = n+1, id+1 {
			text := ""
			for range 8 + rng.IntN(20) {
				text += words[rng.IntN(len(words))] + " "
			}
			c := rng.IntN(channels)
			if n > 0 {
				w.WriteByte(',')
			}
			row, _ := json.Marshal(obj{"id": id, "sender": 10 + (c+rng.IntN(receivers)*5)%users, "recipient": 1 + c,
				"subject": fmt.Sprintf(
					"topic %d",
					rng.IntN(40),
				), "content": text, "date_sent": float64(1_600_000_000 + id*30),
				"sending_client": 1, "rendered_content": "<p>" + text + "</p>"})
			w.Write(row)
			for i := range receivers {
				if len(flags) > 0 {
					flags = append(flags, ',')
				}
				flags = fmt.Appendf(flags, `{"id":%d,"user_profile":%d,"message":%d,"flags_mask":%d}`, id*100+i,
					10+(c+i*5)%users, id, 1-rng.IntN(50)/49)
			}
		}
		w.WriteString(`],"zerver_usermessage":[`)
		w.Write(flags)
		w.WriteString(`]}`)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// TestGenerateZulip writes a generated export for measurements: PARLEY_GENERATE is its folder and
// PARLEY_GENERATE_MESSAGES the number of its messages.
func TestGenerateZulip(t *testing.T) {
	dir := os.Getenv("PARLEY_GENERATE")
	if dir == "" {
		t.Skip("PARLEY_GENERATE is not set")
	}
	n, err := strconv.Atoi(os.Getenv("PARLEY_GENERATE_MESSAGES"))
	if err != nil {
		t.Fatal(err)
	}
	writeZulip(t, dir, n)
}

// Small memory limits change nothing: runs are merged, flags and reactions are joined from disk.
func TestGeneratedImport(t *testing.T) {
	dir := t.TempDir()
	writeZulip(t, dir, 12_000)
	var want string
	for _, memory := range []int64{DefaultMemory, 1 << 20} {
		p := openPlace(t, t.TempDir())
		o := p.options("zulip", dir)
		o.Memory = memory
		reports, err := Run(context.Background(), o, p.target)
		if err != nil {
			t.Fatal(err)
		}
		if r := reports[0]; r.Messages != 12_000 || r.Reactions != 3000 || len(r.Dropped) != 0 {
			t.Errorf("%d messages, %d reactions, dropped %v", r.Messages, r.Reactions, r.Dropped)
		}
		if got := p.digest(t).String(); want == "" {
			want = got
		} else if got != want {
			t.Errorf("with little memory the state is\n%s, otherwise\n%s", got, want)
		}
		p.store.Close()
	}
}

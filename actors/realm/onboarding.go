package realm

import "slices"

// OnboardingSteps are the hints a client shows once (protocol), in the order they are listed.
var OnboardingSteps = []string{"visibility_policy_banner", "intro_inbox_view_modal", "intro_recent_view_modal", "first_stream_created_banner",
	"jump_to_conversation_banner", "non_interleaved_view_messages_fading", "interleaved_view_messages_fading", "intro_resolve_topic", "navigation_tour_video"}

// Onboarding is the row of the hints somebody has seen.
type Onboarding struct{ Seen []string }

// StepsLeft is the hints somebody has not seen; bots and visitors are shown none.
func (r *Realm) StepsLeft(u UserID) []string {
	out := []string{}
	if who := r.users.find(u); who == nil || who.IsBot() {
		return out
	}
	row := r.nouns.onboarding.find(u)
	for _, s := range OnboardingSteps {
		if row == nil || !slices.Contains(row.Seen, s) {
			out = append(out, s)
		}
	}
	return out
}

// DismissStep asks not to be shown a hint again.
type DismissStep struct{ Step string }

func (c DismissStep) Decide(t *Turn) (Done, error) {
	me, err := t.Human()
	if err != nil {
		return Done{}, err
	}
	if !slices.Contains(OnboardingSteps, c.Step) {
		return Done{}, Bad("Unknown onboarding_step: %s", c.Step)
	}
	if slices.Contains(t.StepsLeft(me.ID), c.Step) {
		t.Record(&StepDismissed{me.ID, c.Step})
	}
	return Done{}, nil
}

// StepDismissed says somebody has seen a hint.
type StepDismissed struct {
	User UserID
	Step string
}

func (f *StepDismissed) apply(r *Realm) {
	o := r.nouns.onboarding.open(f.User)
	o.Seen = append(slices.Clip(o.Seen), f.Step)
}

func (f *StepDismissed) tell(r *Realm) []Notice {
	if to := r.only(f.User); len(to) > 0 {
		return []Notice{{To: to, Event: &StepsTold{r.StepsLeft(f.User)}}}
	}
	return nil
}

// StepsTold is the event with the hints that are left.
type StepsTold struct{ Left []string }

func (*StepsTold) EventType() string { return "onboarding_steps" }

// TestWelcome asks the welcome bot to show an administrator a text as new people would get it.
type TestWelcome struct{ Text string }

func (c TestWelcome) Decide(t *Turn) (MessageID, error) {
	me, err := t.Admin()
	if err != nil {
		return 0, err
	}
	if length(c.Text) > MaxWelcome {
		return 0, Bad("welcome_message_custom_text is too long (limit: %d characters)", MaxWelcome)
	}
	if _, err := NormalizeContent(c.Text); err != nil {
		return 0, err
	}
	return t.Say(BotMessage{Bot: WelcomeBot, People: []UserID{me.ID}, Text: c.Text}), nil
}

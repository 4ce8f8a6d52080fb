package realm

import "slices"

// OnboardingSteps are the hints that a client shows once (protocol), in the order they are listed.
var OnboardingSteps = []string{"visibility_policy_banner", "intro_inbox_view_modal", "intro_recent_view_modal",
	"first_stream_created_banner", "jump_to_conversation_banner", "non_interleaved_view_messages_fading",
	"interleaved_view_messages_fading", "intro_resolve_topic", "navigation_tour_video"}

// Onboarding is the row of the hints a user has dismissed.
type Onboarding struct{ Seen []string }

// OnboardingStepsLeft returns the hints a user has not dismissed. Bots and visitors get none.
func (r *Realm) OnboardingStepsLeft(u UserID) []string {
	out := []string{}
	if user := r.users.find(u); user == nil || user.IsBot() {
		return out
	}
	row := r.small.onboarding.find(u)
	for _, s := range OnboardingSteps {
		if row == nil || !slices.Contains(row.Seen, s) {
			out = append(out, s)
		}
	}
	return out
}

// DismissOnboardingStep asks not to show a hint again.
type DismissOnboardingStep struct{ Step string }

func (c DismissOnboardingStep) Decide(t *Turn) (Done, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return Done{}, err
	}
	if !slices.Contains(OnboardingSteps, c.Step) {
		return Done{}, BadRequest("Unknown onboarding_step: %s", c.Step)
	}
	if slices.Contains(t.OnboardingStepsLeft(me.ID), c.Step) {
		t.Record(&OnboardingStepDismissed{me.ID, c.Step})
	}
	return Done{}, nil
}

// OnboardingStepDismissed says that a user dismissed a hint.
type OnboardingStepDismissed struct {
	User UserID
	Step string
}

func (f *OnboardingStepDismissed) apply(r *Realm) {
	o := r.small.onboarding.ensure(f.User)
	o.Seen = append(slices.Clip(o.Seen), f.Step)
}

func (f *OnboardingStepDismissed) notices(r *Realm) []Notice {
	if to := r.usersAudience(f.User); len(to) > 0 {
		return []Notice{{To: to, Event: &OnboardingStepsChanged{r.OnboardingStepsLeft(f.User)}}}
	}
	return nil
}

// OnboardingStepsChanged is the event onboarding_steps with the remaining hints.
type OnboardingStepsChanged struct{ Left []string }

func (*OnboardingStepsChanged) EventType() string { return "onboarding_steps" }

// SendTestWelcome asks the welcome bot to send an administrator a text as new users would get it.
type SendTestWelcome struct{ Text string }

func (c SendTestWelcome) Decide(t *Turn) (MessageID, error) {
	me, err := t.RequireAdmin()
	if err != nil {
		return 0, err
	}
	if runeCount(c.Text) > MaxWelcomeMessage {
		return 0, BadRequest("welcome_message_custom_text is too long (limit: %d characters)", MaxWelcomeMessage)
	}
	if _, err := NormalizeContent(c.Text); err != nil {
		return 0, err
	}
	return t.SendBotMessage(BotMessage{Bot: WelcomeBot, People: []UserID{me.ID}, Text: c.Text}), nil
}

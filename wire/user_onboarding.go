package wire

import "parley/actors/realm"

var onboardingEndpoints = []Endpoint{
	CommandFromForm("POST", "/users/me/onboarding_steps", func(f stepForm) realm.DismissOnboardingStep {
		return realm.DismissOnboardingStep{Step: f.Step}
	}, emptyAnswer),
	CommandFromForm("POST", "/realm/test_welcome_bot_custom_message", func(f welcomeForm) realm.SendTestWelcome {
		return realm.SendTestWelcome{Text: f.Text}
	}, func(id realm.MessageID) Answer { return Answer{"message_id": id} }).Returns("{message_id: int}"),
}

// welcomeForm has no length limit: the command checks the length, with the same error text as for the setting.
type welcomeForm struct {
	Text string `form:"welcome_message_custom_text,required"`
}

var onboardingEvents = []EventKind{
	Event(func(e *realm.OnboardingStepsChanged, _ *Recipient) any {
		return obj{"type": "onboarding_steps", "onboarding_steps": stepObjects(e.Left)}
	}),
}

type stepForm struct {
	Step string `form:"onboarding_step,required,maxlen=100"`
}

func stepObjects(names []string) []any {
	out := []any{}
	for _, n := range names {
		out = append(out, obj{"type": "one_time_notice", "name": n})
	}
	return out
}

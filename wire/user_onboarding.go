package wire

import "parley/actors/realm"

var onboardingEndpoints = []Endpoint{
	CommandFromForm("POST", "/users/me/onboarding_steps", func(f stepForm) realm.DismissOnboardingStep {
		return realm.DismissOnboardingStep{Step: f.Step}
	}, emptyAnswer),
	CommandFromForm("POST", "/realm/test_welcome_bot_custom_message", func(f welcomeForm) realm.SendTestWelcome {
		return realm.SendTestWelcome{Text: f.Text}
	}, func(id realm.MessageID) *testWelcomeAnswer { return &testWelcomeAnswer{id} }),
}

// welcomeForm has no length limit: the command checks the length, with the same error text as for the setting.
type welcomeForm struct {
	Text string `form:"welcome_message_custom_text,required"`
}

var onboardingEvents = []EventKind{
	Event(func(e *realm.OnboardingStepsChanged, _ *Recipient) *onboardingStepsEvent {
		return &onboardingStepsEvent{Steps: newOnboardingSteps(e.Left)}
	}),
}

type stepForm struct {
	Step string `form:"onboarding_step,required,maxlen=100"`
}

type testWelcomeAnswer struct {
	Message realm.MessageID `json:"message_id"`
}

type onboardingStepsEvent struct {
	_     struct{}             `const:"type=onboarding_steps"`
	Steps []onboardingStepJSON `json:"onboarding_steps"`
}

type onboardingStepJSON struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

func newOnboardingSteps(names []string) []onboardingStepJSON {
	out := make([]onboardingStepJSON, len(names))
	for i, n := range names {
		out[i] = onboardingStepJSON{"one_time_notice", n}
	}
	return out
}

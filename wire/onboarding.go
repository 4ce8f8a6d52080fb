package wire

import "parley/actors/realm"

var onboardingEndpoints = []Endpoint{
	Do("POST", "/users/me/onboarding_steps", func(f stepForm) realm.DismissStep { return realm.DismissStep{Step: f.Step} }, silent),
}

var onboardingEvents = []EventKind{
	Event(func(e *realm.StepsTold, _ *To) any {
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

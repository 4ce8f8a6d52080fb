package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var registerEndpoints = []Endpoint{
	Custom("POST", "/register", register).Visitor(),
}

type registerForm struct {
	Markdown    bool                    `form:"apply_markdown"`
	Gravatar    form.Opt[bool]          `form:"client_extavatar,alias=client_gravatar"`
	Subscribers form.IncludeSubscribers `form:"include_subscribers"`
	Slim        bool                    `form:"slim_presence"`
	HistoryDays int64                   `form:"presence_history_limit_days,default=14"`
	EventTypes  form.Opt[[]string]      `form:"event_types"`
	FetchTypes  form.Opt[[]string]      `form:"fetch_event_types"`
	AllPublic   form.Opt[bool]          `form:"all_public_streams"`
	Caps        form.Opt[capsForm]      `form:"client_capabilities"`
	Narrow      form.Narrow             `form:"narrow"`
	Idle        form.IdleTimeout        `form:"idle_queue_timeout,alias=queue_lifespan_secs"`
}

// capsForm is what a client says it understands; keys nobody knows are ignored.
type capsForm struct {
	_      struct{} `form:",extra"`
	Values [12]bool `form:"-"`
}

func register(c *Call, f registerForm) (Answer, error) {
	q := realm.Queue{Markdown: f.Markdown, Slim: f.Slim, AllPublic: f.AllPublic.Value, Gravatar: c.Account != nil, Client: c.Caller.Client, Idle: f.Idle.Seconds}
	if f.Idle.Mobile {
		q.Idle = realm.MobileIdle
	}
	if f.Gravatar.Set {
		q.Gravatar = f.Gravatar.Value
	}
	if f.EventTypes.Set {
		q.EventTypes = f.EventTypes.Value
	}
	fetch := f.FetchTypes
	if !fetch.Set {
		fetch = f.EventTypes
	}
	r, err := Play(c, realm.Register{Queue: q, State: func(v realm.View, q *realm.Queue) (any, error) {
		return Answer{}, nil
	}})
	if err != nil {
		return nil, err
	}
	a := r.State.(Answer)
	a["zulip_version"], a["zulip_merge_base"], a["zulip_feature_level"] = Version, Version, FeatureLevel
	if r.Queue != nil {
		a["queue_id"], a["last_event_id"], a["idle_queue_timeout_secs"] = r.Queue.ID, -1, r.Queue.Idle
	}
	return a, nil
}

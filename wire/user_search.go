package wire

import (
	"time"

	"parley/actors/presence"
	"parley/actors/realm"
	"parley/wire/form"
)

// People are an extension of the protocol: clients with a short list of users fetch the others by id when they show
// them, and search for them.

var peopleEndpoints = []Endpoint{
	Custom("GET", "/people", getPeople).AllowVisitors().extension(peopleReason),
}

const peopleReason = "a client with a short list of users fetches others by id, and searches for them by name"

// peopleForm limits the ids to 200: a page of messages has fewer senders. A search returns at most 50 users. A user
// beyond the offset of 5000 is found by more letters.
type peopleForm struct {
	Gravatar    bool                      `form:"client_gravatar,default=true"`
	IDs         form.Opt[[]realm.UserID]  `form:"user_ids,maxitems=200"`
	Query       string                    `form:"query"`
	Kind        string                    `form:"kind,default=all,in=all|people|bots"`
	Deactivated string                    `form:"deactivated,default=none,in=none|also|only"`
	Offset      int64                     `form:"offset,default=0,min=0,max=5000"`
	Max         int64                     `form:"max,default=50,min=1,max=50"`
	Channel     form.Opt[realm.ChannelID] `form:"channel_id"`
	Group       form.Opt[realm.GroupID]   `form:"group_id"`
}

// peopleAnswer has users with their presence and status, because clients that fetch a user show these too.
type peopleAnswer struct {
	People    []listedUserJSON        `json:"people"`
	Presences map[string]presenceJSON `json:"presences"`
	Statuses  map[string]statusJSON   `json:"user_status"`
	More      bool                    `json:"more"`
}

// people are users found in one view.
type people struct {
	answer   *peopleAnswer
	presence []realm.UserID // users whose presence is looked up
}

func (p *people) add(c *Call, v realm.View, u *realm.User, gravatar bool) {
	x := newUserJSON(v, u, c.Site, gravatar, true)
	p.answer.People = append(p.answer.People, x.listed(v.Me()))
	if !u.Active {
		return
	}
	if s := v.StatusOf(u.ID); s != (realm.UserStatus{}) {
		p.answer.Statuses[u.ID.String()] = newStatus(s)
	}
	if !u.IsBot() && !v.OrgBool("presence_disabled") && v.Me() != nil {
		p.presence = append(p.presence, u.ID)
	}
}

func getPeople(c *Call, f peopleForm) (*peopleAnswer, error) {
	if !f.IDs.Set {
		if err := preparePeopleSearch(c); err != nil {
			return nil, err
		}
	}
	found, err := Read(c, func(v realm.View) (*people, error) {
		p := &people{answer: &peopleAnswer{People: []listedUserJSON{}, Presences: map[string]presenceJSON{},
			Statuses: map[string]statusJSON{}}}
		if f.IDs.Set {
			eachUserOf(v, f.IDs.Value, func(u *realm.User) {
				if !u.System && v.MaySeeUser(u) {
					p.add(c, v, u, f.Gravatar)
				}
			})
			return p, nil
		}
		users, more, err := v.SearchPeople(f.query())
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			p.add(c, v, u, f.Gravatar)
		}
		p.answer.More = more
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	rows := presenceOf(c, found.presence, -1, presence.PartialSubscriberDays)
	return Read(c, func(v realm.View) (*peopleAnswer, error) {
		for _, r := range rows {
			if p, ok := shownPresence(v, r); ok {
				found.answer.Presences[r.User.String()] = p
			}
		}
		return found.answer, nil
	})
}

func (f *peopleForm) query() realm.PeopleQuery {
	return realm.PeopleQuery{Text: f.Query, Active: f.Deactivated != "only", Deactivated: f.Deactivated != "none",
		People: f.Kind != "bots", Bots: f.Kind != "people", Offset: int(f.Offset), Max: int(f.Max),
		Channel: f.Channel.Value, Group: f.Group.Value}
}

const (
	// peopleTextsPerView is how many texts one view copies for the index of names: about a millisecond.
	peopleTextsPerView = 10_000
	// peopleWait is how long a request waits for the index that another one builds, and peoplePause how often it looks.
	peopleWait  = 10 * time.Second
	peoplePause = 50 * time.Millisecond
)

// preparePeopleSearch builds the index of names of a large organization, or waits for another request that does. The
// index is built outside of views, from texts that several views copy.
func preparePeopleSearch(c *Call) error {
	for began := time.Now(); ; {
		var number int
		step, err := Read(c, func(v realm.View) (step realm.PeopleBuild, _ error) {
			step, number = v.BeginPeopleBuild()
			return step, nil
		})
		switch {
		case err != nil || step == realm.PeopleReady:
			return err
		case step == realm.PeopleBegun:
			return buildPeopleIndex(c, number)
		case time.Since(began) > peopleWait:
			return realm.Refuse(realm.Busy, "SERVER_OVERLOADED",
				"The index of names is being built; try again in a few seconds.")
		}
		time.Sleep(peoplePause)
	}
}

func buildPeopleIndex(c *Call, number int) error {
	var texts []realm.PersonText
	for after, more := realm.UserID(0), true; more; {
		if _, err := Read(c, func(v realm.View) (_ any, _ error) {
			texts, after, more = v.PeopleTexts(texts, after, peopleTextsPerView)
			return nil, nil
		}); err != nil {
			return err
		}
	}
	index := realm.BuildPeopleIndex(texts)
	_, err := Read(c, func(v realm.View) (any, error) {
		v.FinishPeopleBuild(number, index)
		return nil, nil
	})
	return err
}

package operator

import (
	"fmt"
	"time"

	"parley/actors/realm"
	"parley/wire"
)

// userHelp opens a login of the operator as a user, and returns the link that begins it. With the argument end it ends
// all such logins of the user.
func userHelp(o *Operator, args map[string]string) (any, error) {
	id, u, err := o.user(args)
	if err != nil {
		return nil, err
	}
	if args["end"] == "true" {
		n, err := o.endHelp(id, u)
		return map[string]any{"email": args["email"], "ended": n}, err
	}
	length, err := time.ParseDuration(args["for"])
	if err != nil {
		return nil, fmt.Errorf("--for must be a time such as 30m, not %q", args["for"])
	}
	opened, err := realm.Execute(o.Orgs, id, realm.Operator, realm.OpenHelpSession{User: u,
		Seconds: int64(length / time.Second), Reason: args["reason"]})
	if err != nil {
		return nil, err
	}
	return map[string]any{"email": args["email"], "session": opened.ID,
		"ends": showTime(time.Now().Add(length).Unix()),
		"link": o.Site(args["realm"]).URL + wire.HelpPath + opened.Secret,
		"next": "open the link once, in a private window; the user has a message about it"}, nil
}

// endHelp ends the logins of operators as a user, and returns how many there were.
func (o *Operator) endHelp(id realm.ID, u realm.UserID) (n int, err error) {
	list, err := o.Orgs.View(id, realm.Operator, func(v realm.View) (any, error) {
		var out []int64
		for _, s := range v.BrowserSessions(u) {
			if s.IsHelp() {
				out = append(out, s.ID)
			}
		}
		return out, nil
	})
	if err != nil {
		return 0, err
	}
	for _, session := range list.([]int64) {
		_, err := realm.Execute(o.Orgs, id, realm.Operator, realm.EndBrowserSessions{User: u, ID: session})
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

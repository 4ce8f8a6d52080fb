package operator

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/actors/realm"
)

// Timing of retention restore.
const (
	// restoreWait is how long the command waits until everything is restored. The client has a timeout of a minute. The
	// server continues in any case, also after a restart.
	restoreWait = 50 * time.Second
	restorePoll = 50 * time.Millisecond
)

// view calls read with a view of the organization that the arguments name.
func (o *Operator) view(args map[string]string, read func(realm.View) (any, error)) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	return o.Orgs.View(id, realm.System, read)
}

// retentionList lists the archives of deleted messages, oldest first.
func retentionList(o *Operator, args map[string]string) (any, error) {
	return o.view(args, func(v realm.View) (any, error) {
		list := []any{}
		for _, a := range v.Archives() {
			row := map[string]any{"archive": a.Name, "messages": a.Messages, "in": placeName(v, a.Channel),
				"by": "the retention policy"}
			switch {
			case a.By != 0:
				row["by"] = v.Find(a.By).Email
			case a.Reason == realm.DeletedByUser:
				row["by"] = "the server"
			}
			if a.Until != 0 {
				row["until"] = time.Unix(a.Until, 0).UTC().Format(time.DateTime)
			}
			if a.Restoring {
				row["restoring"] = true
			}
			list = append(list, row)
		}
		return map[string]any{"archives": list}, nil
	})
}

// placeName returns the name of a channel, or the words for direct messages for 0.
func placeName(v realm.View, c realm.ChannelID) string {
	if c == 0 {
		return "direct messages"
	}
	return "#" + v.FindChannel(c).Name
}

// retentionRestore restores an archive, or one message, and waits until it is done.
func retentionRestore(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	cmd := realm.RestoreArchive{Archive: args["archive"]}
	if m := args["message"]; m != "" {
		n, err := strconv.ParseInt(m, 10, 64)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("--message must be the id of a message, not %q", m)
		}
		cmd.Message = realm.MessageID(n)
	}
	if (cmd.Archive == "") == (cmd.Message == 0) {
		return nil, errors.New("give --archive or --message; parley retention list shows the archives")
	}
	n, err := realm.Execute(o.Orgs, id, realm.Operator, cmd)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(restoreWait); ; time.Sleep(restorePoll) {
		left := 0
		_, err := o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
			for _, a := range v.Archives() {
				if a.Name == cmd.Archive && a.Restoring {
					left = a.Messages
				}
			}
			return nil, nil
		})
		if err != nil || left == 0 {
			return map[string]any{"messages": n}, err
		}
		if time.Now().After(end) {
			return map[string]any{"messages": n, "still to be restored": left}, nil
		}
	}
}

// holdAdd puts a legal hold on a user or a channel.
func holdAdd(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	cmd := realm.AddHold{Reason: args["reason"]}
	_, err = o.Orgs.View(id, realm.System, func(v realm.View) (any, error) {
		if name := args["channel"]; name != "" {
			c := v.FindChannelByName(name)
			if c == nil {
				return nil, fmt.Errorf("no channel %q", name)
			}
			cmd.Channel = c.ID
		}
		if email := args["email"]; email != "" {
			u := v.FindByEmail(email)
			if u == nil {
				return nil, fmt.Errorf("no user %q", email)
			}
			cmd.User = u.ID
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	if (cmd.User == 0) == (cmd.Channel == 0) {
		return nil, errors.New("give --email or --channel")
	}
	hold, err := realm.Execute(o.Orgs, id, realm.Operator, cmd)
	return map[string]any{"hold": hold}, err
}

// holdList lists the legal holds.
func holdList(o *Operator, args map[string]string) (any, error) {
	return o.view(args, func(v realm.View) (any, error) {
		list := []any{}
		for _, h := range v.Holds() {
			row := map[string]any{"hold": h.ID, "reason": h.Reason,
				"since": time.Unix(h.At, 0).UTC().Format(time.DateTime)}
			if h.User != 0 {
				row["on"] = v.Find(h.User).Email
			} else {
				row["on"] = placeName(v, h.Channel)
			}
			list = append(list, row)
		}
		return map[string]any{"holds": list}, nil
	})
}

// holdRemove ends a legal hold.
func holdRemove(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseInt(args["hold"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("--hold must be the number of a legal hold, not %q", args["hold"])
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.RemoveHold{ID: n})
	return map[string]any{"hold": n}, err
}

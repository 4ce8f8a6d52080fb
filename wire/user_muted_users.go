package wire

import "parley/actors/realm"

var muteEndpoints = []Endpoint{
	CommandFromForm("POST", "/users/me/muted_users/{muted_user_id}", func(f mutedUserForm) realm.MuteUser {
		return realm.MuteUser{User: f.User}
	}, emptyAnswer),
	CommandFromForm("DELETE", "/users/me/muted_users/{muted_user_id}", func(f mutedUserForm) realm.MuteUser {
		return realm.MuteUser{User: f.User, Unmute: true}
	}, emptyAnswer),
}

var muteEvents = []EventKind{
	Event(func(e *realm.MutedUsersChanged, to *Recipient) any {
		return obj{"type": "muted_users", "muted_users": mutedObjects(e.List)}
	}),
}

type mutedUserForm struct {
	User realm.UserID `path:"muted_user_id"`
}

func mutedObjects(list []realm.MutedUser) []any {
	out := []any{}
	for _, m := range list {
		out = append(out, obj{"id": m.User, "timestamp": m.Since})
	}
	return out
}

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
	Event(func(e *realm.MutedUsersChanged, to *Recipient) *mutedUsersEvent {
		return &mutedUsersEvent{Users: newMutedUsers(e.List)}
	}),
}

type mutedUserForm struct {
	User realm.UserID `path:"muted_user_id"`
}

type mutedUsersEvent struct {
	_     struct{}        `const:"type=muted_users"`
	Users []mutedUserJSON `json:"muted_users"`
}

type mutedUserJSON struct {
	User  realm.UserID `json:"id"`
	Since int64        `json:"timestamp"`
}

func newMutedUsers(list []realm.MutedUser) []mutedUserJSON {
	out := make([]mutedUserJSON, len(list))
	for i, m := range list {
		out[i] = mutedUserJSON{m.User, m.Since}
	}
	return out
}

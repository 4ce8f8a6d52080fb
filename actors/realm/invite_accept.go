package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// InviteInfo is what somebody with an invitation's link may know before joining.
type InviteInfo struct {
	Org     string
	Inviter string
	Email   string // of an invitation by mail
	Multi   bool
}

// Why a link does not let anybody in.
func errJoinLink(msg string) *Refusal { return Missing(msg) }

// FindInvite is what a link stands for; one that no longer works says why.
func (v View) FindInvite(hash [32]byte) (InviteInfo, error) {
	i, err := v.acceptableInvite(hash)
	if err != nil {
		return InviteInfo{}, err
	}
	j := InviteInfo{Org: v.Org().Name, Email: i.Email, Multi: i.Multi}
	if u := v.Find(i.By); u != nil {
		j.Inviter = u.Name
	}
	return j, nil
}

func (v View) acceptableInvite(hash [32]byte) (*Invite, error) {
	ref, ok := v.small.inviteByToken[hash]
	if !ok {
		return nil, errJoinLink("This invitation link is not valid.")
	}
	i := v.invitesOf(ref.multi).must(ref.id)
	switch {
	case i.State == InviteUsed:
		return nil, errJoinLink("This invitation has already been used.")
	case i.State == InviteRevoked:
		return nil, errJoinLink("This invitation has been revoked.")
	case !i.canBeAccepted(v.Now):
		return nil, errJoinLink("This invitation has expired.")
	case v.Org().Deactivated:
		return nil, errJoinLink("This organization has been deactivated.")
	}
	return i, nil
}

// AcceptInvite makes the account somebody was invited to. The server asks for it, on behalf of whoever has the link.
type AcceptInvite struct {
	Hash           [32]byte // of the link's token
	Email          string   // of who came through a link for many; else the invited address counts
	Name, Password string   // Password: Argon2id in PHC form
}

func (c AcceptInvite) Decide(t *Turn) (UserID, error) {
	if !t.System {
		return 0, errPermission()
	}
	i, err := t.acceptableInvite(c.Hash)
	if err != nil {
		return 0, err
	}
	email := i.Email
	if i.Multi {
		email = strings.TrimSpace(c.Email)
	}
	if !ValidEmail(email) {
		return 0, BadRequest("Enter a valid email address.")
	}
	if fault := t.addressProblem(email); fault != "" {
		return 0, BadRequest("%s", fault)
	}
	if err := t.checkName(c.Name, 0); err != nil {
		return 0, err
	}
	invite := *i
	id, err := CreateUser{Email: email, Name: c.Name, Password: c.Password, Role: invite.Role, Channels: slices.Clone(invite.Channels), NoDefaults: !invite.Defaults}.Decide(t)
	if err != nil {
		return 0, err
	}
	f := &InviteAccepted{Multi: invite.Multi, ID: invite.ID}
	for _, other := range t.small.invites.keys() {
		if o := t.small.invites.find(other); FoldEmail(o.Email) == FoldEmail(email) && o.State == InviteActive && (invite.Multi || o.ID != invite.ID) {
			f.Superseded = append(f.Superseded, other)
		}
	}
	t.Record(f)
	for _, g := range invite.Groups {
		if group := t.groups.find(g); group != nil && !group.Deactivated {
			t.Record(&MembersChanged{Group: g, Joined: true, Users: []UserID{id}})
		}
	}
	t.sendWelcomeMessages(id, &invite)
	return id, nil
}

// sendWelcomeMessages has the system bots say what a new account brings about: a welcome, news for the inviter, and the announcement.
func (t *Turn) sendWelcomeMessages(id UserID, i *Invite) {
	welcome := t.OrgText("welcome_message_custom_text")
	if i != nil && i.Welcome != nil {
		welcome = *i.Welcome
	}
	first := t.SendBotMessage(BotMessage{Bot: WelcomeBot, People: []UserID{id}, Text: "Welcome to " + t.Org().Name + "! Your messages are organized by channel and topic: pick a channel and read on, or start a topic of your own.\n\n" + welcomeHint, Kind: welcomeHintKind})
	t.Record(&FlagsChanged{User: id, Flag: FlagStarred, Add: true, IDs: ids.SetOf(first)})
	if strings.TrimSpace(welcome) != "" {
		t.SendBotMessage(BotMessage{Bot: WelcomeBot, People: []UserID{id}, Text: welcome})
	}
	if i != nil && i.Notify {
		if by := t.Find(i.By); by != nil && by.Active {
			t.NotifyUsers(t.SilentMention(id)+" accepted your invitation to join "+t.Org().Name+".", by.ID)
		}
	}
	if c := t.channels.find(ChannelID(t.OrgInt("signup_announcements_stream_id"))); c != nil && !c.Archived {
		t.NotifyChannel(c.ID, "signups", t.SilentMention(id)+" joined this organization.")
	}
}

// InviteAccepted says somebody joined by an invitation. Further ones to the same address have had their time.
type InviteAccepted struct {
	Multi      bool
	ID         int64
	Superseded []int64
}

func (f *InviteAccepted) apply(r *Realm) {
	i := r.invitesOf(f.Multi).change(f.ID)
	i.Uses++
	if !f.Multi {
		i.State = InviteUsed
	}
	for _, id := range f.Superseded {
		r.small.invites.change(id).State = InviteRevoked
	}
}

func (f *InviteAccepted) tell(r *Realm) []Notice {
	var by []UserID
	if !f.Multi {
		by = append(by, r.small.invites.must(f.ID).By)
	}
	for _, id := range f.Superseded {
		by = append(by, r.small.invites.must(id).By)
	}
	if len(by) == 0 {
		return nil
	}
	return r.inviteNotices(by...)
}

package realm

import (
	"slices"
	"strings"

	"parley/actors/realm/ids"
)

// InviteInfo is the part of an invitation that the holder of its link may see before joining.
type InviteInfo struct {
	Org     string
	Inviter string
	Email   string // of an invitation by email
	Multi   bool
}

// errJoinLink refuses a link that cannot be used.
func errJoinLink(msg string) *Refusal { return Missing(msg) }

// FindInvite returns the invitation of a link, by the hash of the link's token. The refusal says why a link cannot be
// used.
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

// acceptableInvite returns the invitation of a link if it can be accepted now, or the refusal that says why not.
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
	// The inviter may have lost the role since.
	if by := v.Find(i.By); by != nil && v.checkInvitedRole(by, i.Role) != nil {
		return nil, errJoinLink("This invitation has been revoked.")
	}
	return i, nil
}

// AcceptInvite creates the account of an invited user. Only the server may ask for it, on behalf of the holder of the
// link.
type AcceptInvite struct {
	Hash           [32]byte // of the link's token
	Email          string   // of the new user, for reusable links; otherwise the invited address counts
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
		return 0, ErrInvalidEmail()
	}
	if fault := t.addressProblem(email); fault != "" {
		return 0, BadRequest("%s", fault)
	}
	if err := t.checkName(c.Name, 0); err != nil {
		return 0, err
	}
	invite := *i
	id, err := CreateUser{Email: email, Name: c.Name, Password: c.Password, Role: invite.Role,
		Channels: slices.Clone(invite.Channels), NoDefaults: !invite.Defaults}.Decide(t)
	if err != nil {
		return 0, err
	}
	f := &InviteAccepted{Multi: invite.Multi, ID: invite.ID}
	for _, other := range t.small.invites.keys() {
		o := t.small.invites.find(other)
		used := !invite.Multi && o.ID == invite.ID
		if FoldEmail(o.Email) == FoldEmail(email) && o.State == InviteActive && !used {
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

// sendWelcomeMessages sends the bots' messages for a new account: a welcome to the user, a notice to the inviter, and
// the announcement in the signup channel. i is nil for accounts without an invitation.
func (t *Turn) sendWelcomeMessages(id UserID, i *Invite) {
	t.sendWelcomeEmail(id)
	welcome := t.OrgText("welcome_message_custom_text")
	if i != nil && i.Welcome != nil {
		welcome = *i.Welcome
	}
	hint := "Welcome to " + t.Org().Name + "! Your messages are organized by channel and topic: " +
		"pick a channel and read on, or start a topic of your own.\n\n" + welcomeHint
	first := t.SendBotMessage(BotMessage{Bot: WelcomeBot, People: []UserID{id}, Text: hint, Kind: welcomeHintKind})
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

// InviteAccepted says that a user joined by an invitation. Other open invitations to the same address are revoked.
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

func (f *InviteAccepted) notices(r *Realm) []Notice {
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

package wire

import (
	"parley/actors/realm"
	"parley/wire/form"
)

var inviteEndpoints = []Endpoint{
	Custom("GET", "/invites", getInvites).atOwner(),
	Custom("POST", "/invites", inviteByMail),
	Custom("POST", "/invites/multiuse", makeInviteLink),
	CommandFromForm("DELETE", "/invites/multiuse/{invite_id}", func(f inviteIDForm) realm.RevokeInvite {
		return realm.RevokeInvite{ID: f.ID, Multi: true}
	}, emptyAnswer),
	CommandFromForm("DELETE", "/invites/{invite_id}", func(f inviteIDForm) realm.RevokeInvite {
		return realm.RevokeInvite{ID: f.ID}
	}, emptyAnswer),
	Custom("POST", "/invites/{invite_id}/resend", resendInvite),
}

var inviteEvents = []EventKind{
	Event(func(e *realm.InvitesChanged, to *Recipient) *invitesChangedEvent { return &invitesChangedEvent{} }),
}

type invitesChangedEvent struct {
	_ struct{} `const:"type=invites_changed"`
}

type invitesAnswer struct {
	Invites listOf[inviteJSON] `json:"invites"`
}

type inviteLinkAnswer struct {
	Link string `json:"invite_link"`
}

// inviteJSON has an address if it was sent as an email, else a link.
type inviteJSON struct {
	ID      int64        `json:"id"`
	By      realm.UserID `json:"invited_by_user_id"`
	At      int64        `json:"invited"`
	Expires int64        `json:"expiry_date" zero:"null"`
	Role    realm.Role   `json:"invited_as"`
	Multi   bool         `json:"is_multiuse"`
	Notify  bool         `json:"notify_referrer_on_join"`
	Email   *string      `json:"email,omitzero"`
	Link    *string      `json:"link_url,omitzero"`
}

type inviteIDForm struct {
	ID int64 `path:"invite_id"`
}

// inviteOptions is the parameters that email invitations and invitation links share.
type inviteOptions struct {
	Minutes  form.Null[int64] `form:"invite_expires_in_minutes"`
	Role     int64            `form:"invite_as,default=400,in=100|200|300|400|600"`
	Groups   []realm.GroupID  `form:"group_ids,maxitems=1000"`
	Defaults bool             `form:"include_realm_default_subscriptions"`
	Welcome  *string          `form:"welcome_message_custom_text,raw,maxlen=8000"`
}

func (f inviteOptions) invitation(channels []realm.ChannelID) realm.InviteOptions {
	i := realm.InviteOptions{Role: realm.Role(f.Role), Channels: channels, Groups: f.Groups, Defaults: f.Defaults,
		Notify: true, Welcome: f.Welcome}
	minutes := int64(realm.InviteValidity)
	switch {
	case !f.Minutes.Set:
		i.Minutes = &minutes
	case !f.Minutes.IsNull:
		i.Minutes = &f.Minutes.Value
	}
	return i
}

type inviteForm struct {
	Emails   string            `form:"invitee_emails,required"`
	Channels []realm.ChannelID `form:"stream_ids,required,maxitems=10000"`
	inviteOptions
	Notify bool `form:"notify_referrer_on_join,default=true"`
}

// confirmInvite asks owners again before they invite owners.
func (c *Call) confirmInvite(f inviteOptions) error {
	if realm.Role(f.Role) != realm.Owner {
		return nil
	}
	return c.confirmAct(realm.Owner)
}

func inviteByMail(c *Call, f inviteForm) (a noFields, _ error) {
	if err := c.confirmInvite(f.inviteOptions); err != nil {
		return a, err
	}
	cmd := realm.InviteByMail{InviteOptions: f.invitation(f.Channels), Emails: f.Emails, Daily: c.Tools.DailyInvites}
	cmd.Notify, cmd.Compose = f.Notify, c.inviteComposer()
	made, err := Execute(c, cmd)
	if err != nil {
		return a, err
	}
	if made.Failure != nil {
		return a, made.Failure
	}
	return a, nil
}

func resendInvite(c *Call, f inviteIDForm) (noFields, error) {
	_, err := Execute(c, realm.ResendInvite{ID: f.ID, Compose: c.inviteComposer()})
	return noFields{}, err
}

// inviteComposer returns the function that writes invitation emails. It returns nil if the server sends no email.
func (c *Call) inviteComposer() func(realm.InviteEmail) realm.Email {
	if c.Tools.Emails == nil {
		return nil
	}
	return c.Tools.Emails.Invitation
}

// joinURL returns the address of the page where the holder of a link joins.
func (c *Call) joinURL(token string) string { return c.Site.URL + JoinPath + token }

// JoinPath is the path of invitation links; the token follows it.
const JoinPath = "/join/"

type inviteLinkForm struct {
	Channels []realm.ChannelID `form:"stream_ids,maxitems=10000"`
	inviteOptions
}

func makeInviteLink(c *Call, f inviteLinkForm) (*inviteLinkAnswer, error) {
	if err := c.confirmInvite(f.inviteOptions); err != nil {
		return nil, err
	}
	token, err := Execute(c, realm.MakeInviteLink{InviteOptions: f.invitation(f.Channels)})
	if err != nil {
		return nil, err
	}
	return &inviteLinkAnswer{c.joinURL(token)}, nil
}

func getInvites(c *Call, _ noParameters) (*invitesAnswer, error) {
	list, err := Read(c, realm.View.ManagedInvites)
	if err != nil {
		return nil, err
	}
	out := newEncodedList(c)
	for _, i := range list {
		x := inviteJSON{ID: i.ID, By: i.By, At: i.At, Expires: i.Expires, Role: i.Role, Multi: i.Multi,
			Notify: i.Notify}
		if i.Multi {
			x.Link = ptr(c.joinURL(c.Tools.LinkToken(c.Realm, i.ID)))
		} else {
			x.Email = &i.Email
		}
		if err := out.add(x); err != nil {
			return nil, err
		}
	}
	return &invitesAnswer{listOf[inviteJSON]{out.elements()}}, nil
}

// FindInvite returns the invitation of a link, for the page that the link opens.
func FindInvite(c *Call, token string) (realm.InviteInfo, error) {
	return Read(c, func(v realm.View) (realm.InviteInfo, error) { return v.FindInvite(c.Tools.HashKey(token)) })
}

// JoinByInvite creates the account of a person who followed an invitation link and filled in the form.
func JoinByInvite(c *Call, token, email, name, password string) (realm.UserID, error) {
	if _, err := FindInvite(c, token); err != nil { // before hashing the password, which is expensive
		return 0, err
	}
	hash, err := newPasswordHash(c, password)
	if err != nil {
		return 0, err
	}
	return Execute(c.asServer(), realm.AcceptInvite{Hash: c.Tools.HashKey(token), Email: email, Name: name,
		Password: hash})
}

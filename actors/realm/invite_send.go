package realm

import (
	"slices"
	"strings"
)

// InviteState says whether an invitation can still be accepted. An expired invitation stays InviteActive.
type InviteState uint8

const (
	InviteActive InviteState = iota
	InviteUsed
	InviteRevoked
)

// Invite is the row of an invitation by email, or of a reusable link (Multi). The two kinds have separate ids.
type Invite struct {
	ID       int64
	Multi    bool
	By       UserID
	At       int64
	Expires  int64 // 0: never
	Role     Role
	Email    string // of an invitation by email
	Channels []ChannelID
	Groups   []GroupID
	Defaults bool
	Notify   bool
	Welcome  *string    // nil: the organization's welcome message
	Tokens   [][32]byte // hashes of the tokens of its links, oldest first
	State    InviteState
	Uses     int
	Reminded bool // the email before its end was sent
}

// Limits of invitations. Lengths and validity come from the protocol.
const (
	InviteValidity        = 14400 // minutes, if the request has none
	maxInviteValidity     = 100 * 365 * 24 * 60
	MaxWelcomeMessage     = 8000               // code points
	maxInvitees           = 1000               // addresses of one request: each gets an email
	maxActiveInviteLinks  = 1000               // in one organization
	maxActiveEmailInvites = 20000              // in one organization
	maxInviteTokens       = 8                  // valid links of one invitation: one for each time it was sent
	inviteRetention       = 30 * secondsPerDay // seconds; while it is stored, its link says why it fails
	minInviterAge         = 3 * secondsPerDay  // seconds; required if everyone may join without an invitation
)

// inviteRef identifies an invitation: the two kinds have separate ids.
type inviteRef struct {
	multi bool
	id    int64
}

// invitesOf returns the table of reusable links or of invitations by email.
func (r *Realm) invitesOf(multi bool) *table[int64, Invite] {
	if multi {
		return &r.small.inviteLinks
	}
	return &r.small.invites
}

// indexInvite makes an invitation findable by the tokens of its links.
func (r *Realm) indexInvite(i *Invite) {
	for _, h := range i.Tokens {
		r.small.inviteByToken[h] = inviteRef{i.Multi, i.ID}
	}
}

// canBeAccepted reports whether an invitation can be accepted at a time.
func (i *Invite) canBeAccepted(now int64) bool {
	return i.State == InviteActive && (i.Expires == 0 || i.Expires > now)
}

// InviteOptions is the part of a request that both kinds of invitations have.
type InviteOptions struct {
	Minutes  *int64 // of validity; nil: does not expire
	Role     Role
	Channels []ChannelID
	Groups   []GroupID
	Defaults bool
	Notify   bool
	Welcome  *string
}

// checkInviter runs the checks that come before all checks of the request's content. setting is the permission the
// caller needs.
func (c *InviteOptions) checkInviter(t *Turn, setting string) (*User, error) {
	me := t.Me()
	switch {
	case me == nil:
		return nil, errNotMember()
	case me.IsBot():
		return nil, errBotsNotAllowed()
	case me.IsGuest() || !t.HasPermission(me, setting):
		return nil, errPermission()
	}
	return me, t.checkInvitedRole(me, c.Role)
}

// checkInvitedRole refuses to grant a role above the caller's own role.
func (v View) checkInvitedRole(me *User, role Role) error {
	switch {
	case role == Owner && me.Role != Owner:
		return errNotOwner()
	case role < me.Role && role <= Moderator:
		return BadRequest("Must be an organization administrator")
	}
	return nil
}

// newInvite checks channels, groups and validity, in this order, and returns the row without the fields of one kind
// only.
func (c *InviteOptions) newInvite(t *Turn, me *User) (Invite, error) {
	i := Invite{By: me.ID, At: t.Now, Role: c.Role, Channels: sortUnique(slices.Clone(c.Channels)),
		Groups: sortUnique(slices.Clone(c.Groups)), Defaults: c.Defaults, Notify: c.Notify}
	for _, id := range c.Channels {
		if ch, err := t.ReadableChannel(id); err != nil || ch.Archived {
			return i, BadRequest("Invalid channel ID %d. No invites were sent.", id)
		}
	}
	for _, id := range c.Channels {
		if !slices.Contains(t.Org().DefaultChannels, id) && !t.mayAddSubscribers(me, t.channels.must(id)) {
			return i, BadRequest("You do not have permission to subscribe other users to channels.")
		}
	}
	for _, id := range c.Groups {
		g := t.groups.find(id)
		switch {
		case g == nil:
			return i, BadRequest("Invalid user group")
		case g.System ||
			!t.mayManageGroup(me, g) && !t.allowed(me, t.GroupSettingOf(g, "can_add_members_group"), false):
			return i, errPermission()
		case g.Deactivated:
			return i, BadRequest("User group is deactivated.")
		}
	}
	if c.Minutes != nil {
		if *c.Minutes < 1 || *c.Minutes > maxInviteValidity {
			return i, BadRequest("Invalid invite_expires_in_minutes")
		}
		i.Expires = t.Now + *c.Minutes*60
	}
	if c.Welcome != nil && me.IsAdmin() {
		if runeCount(*c.Welcome) > MaxWelcomeMessage {
			return i, BadRequest("welcome_message_custom_text is too long (limit: %d characters)", MaxWelcomeMessage)
		}
		i.Welcome = c.Welcome
	}
	return i, nil
}

// InviteByMail asks to invite people by email address.
type InviteByMail struct {
	InviteOptions
	Emails string // separated by commas and newlines, each with or without a name
	Daily  int    // invitations the organization may send within 24 hours; 0: no limit

	Compose func(InviteEmail) Email // nil: no email is sent
}

// InviteEmail is an invitation to be sent. The token is not stored anywhere: it is derived from the server's secret.
type InviteEmail struct {
	Invite  Invite
	Token   string
	Inviter string
	Letterhead
	Link int64 // number from which the secret derives the token
}

// InvitesMade answers InviteByMail. If Failure is set, the client gets it although the other invitations were made.
type InvitesMade struct {
	Emails  []InviteEmail
	Failure *Refusal
}

// inviteProblem is an address that is not invited, and the reason.
type inviteProblem struct {
	email, reason string
	deactivated   bool
}

// errInvitation is the refusal of InviteByMail: sent says that some addresses were invited, limit that the daily
// limit was reached.
func errInvitation(msg string, sent, limit bool, faults ...inviteProblem) *Refusal {
	list := []any{}
	for _, f := range faults {
		list = append(list, []any{f.email, f.reason, f.deactivated})
	}
	return Refuse(Invalid, "INVITATION_FAILED", msg).With("errors", list).With("sent_invitations", sent).
		With("daily_limit_reached", limit).With("license_limit_reached", false)
}

func (c InviteByMail) Decide(t *Turn) (InvitesMade, error) {
	me, err := c.checkInviter(t, "can_invite_users_group")
	if err != nil {
		return InvitesMade{}, err
	}
	emails := parseInvitees(c.Emails)
	if len(emails) == 0 {
		return InvitesMade{}, BadRequest("You must specify at least one email address.")
	}
	template, err := c.newInvite(t, me)
	if err != nil {
		return InvitesMade{}, err
	}
	if err := c.withinLimits(t, me, len(emails)); err != nil {
		return InvitesMade{}, err
	}
	good, skipped, err := t.classifyInvitees(emails)
	if err != nil {
		return InvitesMade{}, err
	}
	var a InvitesMade
	f := &InvitesSent{Forgotten: t.expiredInvites(false)}
	for n, email := range good {
		i := template
		i.ID = t.nextID("invite") + int64(n)
		link := emailLinkID(i.ID, 0, t.Now)
		token := t.env.InviteLinkToken(link)
		i.Email, i.Tokens = email, [][32]byte{t.Hash(token)}
		f.Invites = append(f.Invites, i)
		a.Emails = append(a.Emails, InviteEmail{i, token, me.Name, t.LetterheadFor(nil), link})
	}
	t.Record(f)
	if c.Compose != nil {
		var post []Email
		for _, l := range a.Emails {
			post = append(post, c.Compose(l))
		}
		t.SendEmails(post...)
	}
	if len(skipped) > 0 {
		a.Failure = errInvitation("Some of those addresses already use this service, so they were not invited. "+
			"Everyone else was.", true, false, skipped...)
	}
	return a, nil
}

// parseInvitees splits a text of addresses, separated by commas or newlines. It returns each address once, in their
// order.
func parseInvitees(text string) (out []string) {
	seen := map[string]bool{}
	for _, e := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == '\n' || c == '\r' }) {
		e = strings.TrimSpace(e)
		if open := strings.LastIndexByte(e, '<'); open >= 0 && strings.HasSuffix(e, ">") {
			e = strings.TrimSpace(e[open+1 : len(e)-1])
		}
		if e != "" && !seen[FoldEmail(e)] {
			seen[FoldEmail(e)] = true
			out = append(out, e)
		}
	}
	return out
}

// withinLimits refuses requests that exceed a limit, and inviters whose account is too new.
func (c InviteByMail) withinLimits(t *Turn, me *User, count int) error {
	today, active := 0, 0
	for _, i := range t.small.invites.all() {
		if i.At > t.Now-secondsPerDay {
			today++
		}
		if i.canBeAccepted(t.Now) {
			active++
		}
	}
	switch {
	case count > maxInvitees:
		return BadRequest("Too many addresses (limit: %d)", maxInvitees)
	case c.Daily > 0 && today+count > c.Daily:
		return errInvitation("The number of invitations that may be sent in one day is limited. "+
			"The limit has been reached, so no invitations were sent.", false, true)
	case active+count > maxActiveEmailInvites:
		return BadRequest("Too many invitations are waiting (limit: %d)", maxActiveEmailInvites)
	case !t.OrgBool("invite_required") && !me.IsAdmin() && me.Joined > t.Now-minInviterAge:
		return errInvitation("Your account is too new to send invites for this organization. "+
			"Ask an organization admin, or a more experienced user.", false, false)
	}
	return nil
}

// classifyInvitees splits addresses into those to invite and those that have an account. One invalid address refuses
// the whole request.
func (t *Turn) classifyInvitees(emails []string) (good []string, skipped []inviteProblem, err error) {
	var wrong []inviteProblem
	for _, e := range emails {
		if !ValidEmail(e) {
			wrong = append(wrong, inviteProblem{e, "Invalid address.", false})
		} else if fault := t.addressProblem(e); fault != "" {
			wrong = append(wrong, inviteProblem{e, fault, false})
		} else if u := t.FindByEmail(e); u == nil {
			good = append(good, e)
		} else if u.System {
			skipped = append(skipped, inviteProblem{e, "Reserved for system bots.", false})
		} else if u.Active {
			skipped = append(skipped, inviteProblem{e, "Already has an account.", false})
		} else {
			skipped = append(skipped, inviteProblem{e, "Account has been deactivated.", true})
		}
	}
	switch {
	case len(wrong) > 0:
		err = errInvitation("Some emails did not validate, so we didn't send any invitations.", false, false,
			append(wrong, skipped...)...)
	case len(good) == 0:
		err = errInvitation("We weren't able to invite anyone.", false, false, skipped...)
	}
	return good, skipped, err
}

// expiredInvites returns the ids of invitations that were closed longer than inviteRetention ago.
func (r *Realm) expiredInvites(multi bool) (out []int64) {
	now, t := r.index.clock, r.invitesOf(multi)
	for _, id := range t.keys() {
		if i := t.find(id); !i.canBeAccepted(now) && max(i.At, i.Expires) < now-inviteRetention {
			out = append(out, id)
		}
	}
	return out
}

// InvitesSent says that people were invited by email. It also removes expired invitations.
type InvitesSent struct {
	Invites   []Invite
	Forgotten []int64
}

func (f *InvitesSent) apply(r *Realm) {
	r.removeInvites(false, f.Forgotten)
	for _, i := range f.Invites {
		r.addInvite(i)
	}
}

// addInvite stores an invitation when its fact is applied.
func (r *Realm) addInvite(i Invite) {
	noun := "invite"
	if i.Multi {
		noun = "invite link"
	}
	r.reserveID(noun, i.ID)
	r.invitesOf(i.Multi).put(i.ID, &i)
	r.indexInvite(&i)
}

// removeInvites removes invitations and their tokens.
func (r *Realm) removeInvites(multi bool, ids []int64) {
	for _, id := range ids {
		for _, h := range r.invitesOf(multi).must(id).Tokens {
			delete(r.small.inviteByToken, h)
		}
		r.invitesOf(multi).remove(id)
	}
}

func (f *InvitesSent) notices(r *Realm) []Notice { return r.inviteNotices(f.Invites[0].By) }

// MakeInviteLink asks for a reusable link to join with. It answers the token.
type MakeInviteLink struct{ InviteOptions }

func (c MakeInviteLink) Decide(t *Turn) (string, error) {
	me, err := c.checkInviter(t, "create_multiuse_invite_group")
	if err != nil {
		return "", err
	}
	i, err := c.newInvite(t, me)
	if err != nil {
		return "", err
	}
	active := 0
	for _, o := range t.small.inviteLinks.all() {
		if o.canBeAccepted(t.Now) {
			active++
		}
	}
	if active >= maxActiveInviteLinks {
		return "", BadRequest("Too many invitation links (limit: %d)", maxActiveInviteLinks)
	}
	i.ID, i.Multi = t.nextID("invite link"), true
	token := t.env.InviteLinkToken(i.ID)
	i.Tokens = [][32]byte{t.Hash(token)}
	t.Record(&InviteLinkMade{i, t.expiredInvites(true)})
	return token, nil
}

// InviteLinkMade says that a reusable link exists. It also removes expired links.
type InviteLinkMade struct {
	Invite    Invite
	Forgotten []int64
}

func (f *InviteLinkMade) apply(r *Realm) {
	r.removeInvites(true, f.Forgotten)
	r.addInvite(f.Invite)
}

func (f *InviteLinkMade) notices(r *Realm) []Notice { return r.inviteNotices(f.Invite.By) }

// InvitesChanged is the event invites_changed: clients of users that may manage an invitation should fetch the list
// again.
type InvitesChanged struct{}

func (*InvitesChanged) EventType() string { return "invites_changed" }

// inviteNotices sends InvitesChanged to administrators and to the inviters of changed invitations.
func (r *Realm) inviteNotices(by ...UserID) []Notice {
	to := r.matchingAudience(func(u *User) bool { return u.IsAdmin() || slices.Contains(by, u.ID) })
	return []Notice{{To: to, Event: &InvitesChanged{}}}
}

// inviteManager returns the caller, who must be a member; nil for the server, which manages every invitation.
func (v View) inviteManager() (*User, error) {
	if v.System {
		return nil, nil
	}
	return v.MemberOnly()
}

// ManagedInvites returns the open invitations that the caller may manage: those by email first, then links, each by
// id. Links to a role that the caller must not grant are left out.
func (v View) ManagedInvites() ([]Invite, error) {
	me, err := v.inviteManager()
	if err != nil {
		return nil, err
	}
	var out []Invite
	for _, multi := range []bool{false, true} {
		t := v.invitesOf(multi)
		for _, id := range t.keys() {
			i := t.find(id)
			if !i.canBeAccepted(v.Now) || me != nil && i.By != me.ID && !me.IsAdmin() {
				continue
			}
			if multi && me != nil && v.checkInvitedRole(me, i.Role) != nil {
				continue // the address of the link would give the caller an account of that role
			}
			out = append(out, *i)
		}
	}
	return out, nil
}

// managedInvite returns an invitation that the caller may revoke or send again.
func (v View) managedInvite(multi bool, id int64) (*Invite, error) {
	me, err := v.inviteManager()
	if err != nil {
		return nil, err
	}
	i := v.invitesOf(multi).find(id)
	if i == nil || !multi && i.State != InviteActive {
		return nil, BadRequest("No such invitation")
	}
	if me != nil && i.By != me.ID {
		if i.Role == Owner && me.Role != Owner {
			return nil, errNotOwner()
		}
		if !me.IsAdmin() {
			return nil, errNotAdmin()
		}
	}
	if i.State == InviteRevoked {
		return nil, BadRequest("Invitation has already been revoked")
	}
	return i, nil
}

// RevokeInvite asks to close an invitation. Its links stop working.
type RevokeInvite struct {
	Multi bool
	ID    int64
}

func (c RevokeInvite) Decide(t *Turn) (Done, error) {
	i, err := t.managedInvite(c.Multi, c.ID)
	if err != nil {
		return Done{}, err
	}
	t.Record(&InvitesRevoked{Multi: c.Multi, IDs: []int64{i.ID}})
	return Done{}, nil
}

// revokeInvitesOf revokes the open invitations of a user that is being deactivated.
func (t *Turn) revokeInvitesOf(u UserID) {
	for _, multi := range []bool{false, true} {
		f := &InvitesRevoked{Multi: multi}
		for _, id := range t.invitesOf(multi).keys() {
			if i := t.invitesOf(multi).find(id); i.By == u && i.canBeAccepted(t.Now) {
				f.IDs = append(f.IDs, id)
			}
		}
		if len(f.IDs) > 0 {
			t.Record(f)
		}
	}
}

// InvitesRevoked says that invitations were revoked.
type InvitesRevoked struct {
	Multi bool
	IDs   []int64
}

func (f *InvitesRevoked) apply(r *Realm) {
	for _, id := range f.IDs {
		r.invitesOf(f.Multi).change(id).State = InviteRevoked
	}
}

func (f *InvitesRevoked) notices(r *Realm) []Notice {
	var by []UserID
	for _, id := range f.IDs {
		by = append(by, r.invitesOf(f.Multi).must(id).By)
	}
	return r.inviteNotices(by...)
}

// ResendInvite asks to send an invitation by email again. The email has a new link; older links still work.
type ResendInvite struct {
	ID      int64
	Compose func(InviteEmail) Email // nil: no email is sent
}

func (c ResendInvite) Decide(t *Turn) (InviteEmail, error) {
	i, err := t.managedInvite(false, c.ID)
	if err != nil {
		return InviteEmail{}, err
	}
	if !i.canBeAccepted(t.Now) {
		return InviteEmail{}, BadRequest("No such invitation")
	}
	link := emailLinkID(i.ID, len(i.Tokens), t.Now)
	token := t.env.InviteLinkToken(link)
	by := ""
	if u := t.Find(i.By); u != nil {
		by = u.Name
	}
	// A second request within one second gets the same link.
	if hash := t.Hash(token); !slices.Contains(i.Tokens, hash) {
		t.Record(&InviteResent{i.ID, hash})
	}
	l := InviteEmail{*i, token, by, t.LetterheadFor(nil), link}
	if c.Compose != nil {
		t.SendEmails(c.Compose(l))
	}
	return l, nil
}

// emailLinkID returns the number from which the server's secret derives the token of a link sent by email. These
// numbers are negative; those of reusable links are positive. So no token has to be stored until its email is sent.
func emailLinkID(invite int64, sent int, now int64) int64 {
	return -(invite<<37 | int64(sent)<<33 | now)
}

// InviteResent says that an invitation has a further link. Above maxInviteTokens the oldest stops working.
type InviteResent struct {
	ID   int64
	Hash [32]byte
}

func (f *InviteResent) apply(r *Realm) {
	i := r.small.invites.change(f.ID)
	i.Tokens = append(slices.Clone(i.Tokens), f.Hash)
	if n := len(i.Tokens) - maxInviteTokens; n > 0 {
		for _, h := range i.Tokens[:n] {
			delete(r.small.inviteByToken, h)
		}
		i.Tokens = i.Tokens[n:]
	}
	r.indexInvite(i)
}

func (f *InviteResent) notices(r *Realm) []Notice {
	return r.inviteNotices(r.small.invites.must(f.ID).By)
}

package mail

import (
	"context"
	"strings"
	"time"

	"parley/actors/realm"
	"parley/wire"
	"parley/wire/dispatch"
)

// MaxComposing is how many digests, welcome emails and reminders are composed at a time. A digest of a user with very
// many unread messages takes some milliseconds of the realm actor.
const MaxComposing = 1

// maxDigestExcerpt is how much of a message a digest shows, in code points.
const maxDigestExcerpt = 300

// Notices is the dispatch.Handler that composes digests, welcome emails and reminders of invitations. The emails are
// outbox jobs of their own.
type Notices struct {
	Server wire.Server
	Now    func() time.Time
}

// Handle composes the email of a job from the state at that moment, and finishes the job in the turn that adds the
// email. There is no email if the reason for it is gone.
func (h *Notices) Handle(_ context.Context, a *dispatch.Attempt) dispatch.Outcome {
	var email *realm.Email
	var err error
	switch a.Job.Kind {
	case realm.OutboxDigest:
		email, err = h.digest(a)
	case realm.OutboxWelcome:
		email, err = h.welcome(a)
	case realm.OutboxReminder:
		email, err = h.reminder(a)
	}
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	if email == nil {
		return dispatch.Outcome{}
	}
	cmd := realm.SendMissedEmails{IDs: []int64{a.Job.ID}, Emails: []realm.Email{*email}}
	_, err = h.Server.Turn(a.Realm, system, func(t *realm.Turn) (any, error) { return cmd.Decide(t) })
	if err != nil {
		return dispatch.Outcome{RetryAfter: recheckPause}
	}
	return dispatch.Outcome{Finished: true}
}

// welcome tells the user of a new account where it is.
func (h *Notices) welcome(a *dispatch.Attempt) (email *realm.Email, err error) {
	_, err = h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
		u := v.Find(a.Job.User)
		if u == nil || !u.Active || u.Email == "" {
			return nil, nil
		}
		h := v.LetterheadFor(u)
		t := textsIn(h.Language)
		email = &realm.Email{To: u.Email, Subject: t.text("Welcome to %s", h.Org), Paragraphs: []string{
			t.text("Hello %s,", u.Name),
			t.text("You have an account in %s now. It is here:", h.Org),
			a.Site.URL,
			t.text("Log in with this address: %s", u.Email),
			t.text("Phones and other programs ask for the address of the server, which is the one above."),
		}}
		return nil, nil
	})
	return email, err
}

// reminder reminds a person of an invitation that ends soon.
func (h *Notices) reminder(a *dispatch.Attempt) (email *realm.Email, err error) {
	_, err = h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
		i, ok := v.ReminderOf(&a.Job)
		if !ok {
			return nil, nil
		}
		t := textsIn(i.Language)
		email = &realm.Email{To: i.Invite.Email, Link: i.Link,
			Subject: t.text("Reminder: %s has invited you to join %s", i.Inviter, i.Org),
			Paragraphs: []string{
				t.text("%s has invited you to join %s.", i.Inviter, i.Org),
				t.text("To make your account, follow this link:"),
				realm.LinkPlaceholder,
				t.text("The invitation expires on %s (UTC).", stamp(i.Invite.Expires)),
				t.text("There are no more reminders. If you did not expect this, you may ignore it."),
			}}
		return nil, nil
	})
	return email, err
}

// digest has the unread messages of the last week; nil: nothing, or the user was online lately.
func (h *Notices) digest(a *dispatch.Attempt) (*realm.Email, error) {
	me := realm.Caller{User: a.Job.User}
	if h.Server.ActiveSince(a.Realm, h.Now().Unix()-realm.DigestAbsence)(me.User) {
		return nil, nil
	}
	found, err := h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
		if u := v.Find(me.User); u == nil || !u.Active || !v.PlaceOpen(realm.PlaceMessageEmails) {
			return nil, nil
		}
		return v.ViewAs(me, v.Now).Unread(), nil
	})
	if err != nil || found == nil {
		return nil, err
	}
	unread := found.(realm.UnreadMessages).Sorted() // outside the view: it takes longer than the search
	var d realm.DigestEmail
	read := func(f func(v realm.View, u *realm.User)) error {
		_, err := h.Server.View(a.Realm, system, func(v realm.View) (any, error) {
			if u := v.Find(me.User); u != nil && u.Active {
				f(v, u)
			}
			return nil, nil
		})
		return err
	}
	if err := read(func(v realm.View, u *realm.User) { d = v.DigestOf(u, unread, h.Now().Unix()) }); err != nil {
		return nil, err
	}
	if d.Direct == 0 && len(d.Topics) == 0 {
		return nil, nil
	}
	var refs []realm.BodyRef
	for _, t := range d.Topics {
		for _, m := range t.Messages {
			refs = append(refs, m.Ref)
		}
	}
	text := wire.PrefetchTexts(h.Server, a.Realm, refs)
	var email *realm.Email
	// The second look leaves out messages that were deleted or closed to the user since the first.
	err = read(func(v realm.View, u *realm.User) {
		if d = v.DigestOf(u, unread, h.Now().Unix()); d.Direct > 0 || len(d.Topics) > 0 {
			email = composeDigest(v, u, d, a.Site, text)
		}
	})
	return email, err
}

// composeDigest returns the email of a digest. text returns false for messages that were not prefetched or erased.
func composeDigest(
	v realm.View, u *realm.User, d realm.DigestEmail, s wire.Site, text func(realm.BodyRef) (realm.Body, bool),
) *realm.Email {
	h := v.LetterheadFor(u)
	t := textsIn(h.Language)
	email := &realm.Email{To: u.Email, Subject: t.text("Your week in %s", h.Org),
		Unsubscribe: &realm.Unsubscription{User: u.ID, Topic: realm.DigestEmails}}
	add := func(p ...string) { email.Paragraphs = append(email.Paragraphs, p...) }
	add(t.text("Hello %s,", u.Name), t.text("In the last week there were messages that you have not read."))
	if d.Direct > 0 {
		add(t.text("Direct messages: %d", d.Direct))
	}
	if !v.OrgBool("message_content_allowed_in_email_notifications") ||
		!u.BoolSetting("message_content_in_email_notifications") {
		add(t.text("Topics with new messages: %d", len(d.Topics)+d.More), t.text(hiddenContentNotice), s.URL)
		return email
	}
	for _, x := range d.Topics {
		topic := x.Topic
		if topic == "" {
			topic = realm.EmptyTopicName
		}
		add(t.text("#%s > %s (new messages: %d, senders: %d)", x.ChannelName, topic, x.Count, x.Senders))
		for _, m := range x.Messages {
			if body, ok := text(m.Ref); ok {
				line := wire.MessageExcerpt(body, maxDigestExcerpt)
				add(wire.VisibleSenderOf(v, u.ID, m, s).Name + ": " + strings.Join(strings.Fields(line), " "))
			}
		}
		if len(x.Messages) > 0 {
			add(s.URL + messagePath(x.Messages[0]))
		}
	}
	if d.More > 0 {
		add(t.text("More topics: %d", d.More), s.URL)
	}
	return email
}

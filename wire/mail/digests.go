package mail

import (
	"context"
	"fmt"
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
		org := v.Org().Name
		email = &realm.Email{To: u.Email, Subject: "Welcome to " + org, Paragraphs: []string{
			"Hello " + u.Name + ",",
			"You have an account in " + org + " now. It is here:",
			a.Site.URL,
			"Log in with this address: " + u.Email,
			"Phones and other programs ask for the address of the server, which is the one above.",
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
		email = &realm.Email{To: i.Invite.Email, Link: i.Link,
			Subject: "Reminder: " + i.Inviter + " has invited you to join " + i.Org,
			Paragraphs: []string{
				i.Inviter + " has invited you to join " + i.Org + ". To make your account, follow this link:",
				realm.LinkPlaceholder,
				"The invitation expires at " + time.Unix(i.Invite.Expires, 0).UTC().Format(linkTime) + " (UTC). " +
					"There are no more reminders. If you did not expect this, you may ignore it.",
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
		if u := v.Find(me.User); u == nil || !u.Active {
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
	email := &realm.Email{To: u.Email, Subject: "Your week in " + v.Org().Name,
		Unsubscribe: &realm.Unsubscription{User: u.ID, Topic: realm.DigestEmails}}
	add := func(p ...string) { email.Paragraphs = append(email.Paragraphs, p...) }
	add("Hello "+u.Name+",", "In the last week there were messages that you have not read.")
	if d.Direct > 0 {
		add("Direct messages: " + fmt.Sprint(d.Direct))
	}
	if !v.OrgBool("message_content_allowed_in_email_notifications") ||
		!u.BoolSetting("message_content_in_email_notifications") {
		add(fmt.Sprintf("Topics with new messages: %d", len(d.Topics)+d.More), hiddenContentNotice, s.URL)
		return email
	}
	for _, t := range d.Topics {
		topic := t.Topic
		if topic == "" {
			topic = realm.EmptyTopicName
		}
		add(fmt.Sprintf("#%s > %s (new messages: %d, senders: %d)", t.ChannelName, topic, t.Count, t.Senders))
		for _, m := range t.Messages {
			if body, ok := text(m.Ref); ok {
				line := wire.MessageExcerpt(body, maxDigestExcerpt)
				add(wire.VisibleSenderOf(v, u.ID, m, s).Name + ": " + strings.Join(strings.Fields(line), " "))
			}
		}
		if len(t.Messages) > 0 {
			add(s.URL + messagePath(t.Messages[0]))
		}
	}
	if d.More > 0 {
		add(fmt.Sprintf("And %d more topics: ", d.More) + s.URL)
	}
	return email
}

package realm

// grace is how much longer than its limit an edit may take: the client's clock and the way here are not the user's
// fault (protocol).
const grace = 20

// mayEditContent decides whether a user may change a message's text now.
func (t *Turn) mayEditContent(me *User, i MessageInfo, grace int64) error {
	if !t.OrgBool("allow_message_editing") {
		return Bad("Your organization has turned off message editing")
	}
	if i.Sender.ID != me.ID {
		return Bad("You don't have permission to edit this message")
	}
	if limit, ok := t.OrgSetting("message_content_edit_limit_seconds").(int64); ok && t.Now-i.Time > limit+grace {
		return Bad("The time limit for editing this message has passed")
	}
	return nil
}

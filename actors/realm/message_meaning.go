package realm

// MeaningSetting is the setting of the organization with which owners agree that the texts of all messages are sent to
// a service that makes vectors of them, so that users can search by meaning. It is not AssistantSetting: that one sends
// a text only when a user asks for it. Older programs do not know the setting; see assistLevel.
const MeaningSetting = "meaning_search_enabled"

// MaySearchMeaning refuses a caller without an account, and callers of organizations whose owners have not agreed.
func (v View) MaySearchMeaning() error {
	if v.Me() == nil {
		return errNotLoggedIn()
	}
	if !v.OrgBool(MeaningSetting) {
		return BadRequest("Your organization does not allow search by meaning.")
	}
	return nil
}

// TextsBefore returns references to the current texts of the messages with ids below before, newest first. It looks at
// most ids of them, and returns the id at which the next call goes on; 1: there are no more.
func (v View) TextsBefore(before MessageID, ids int) (out []BodyRef, next MessageID) {
	x := messageLookup{Realm: v.Realm}
	id := min(before, v.LastMessageID()+1)
	next = max(1, id-MessageID(ids))
	for id--; id >= next; id-- {
		m := x.message(id)
		if m == nil {
			continue
		}
		ref := BodyRef{Message: id}
		if e := v.extra(id, m); e != nil {
			ref.Version = e.Version
		}
		out = append(out, ref)
	}
	return out, next
}

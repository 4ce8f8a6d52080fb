package realm

// assistLevel is the rule level from which on owners can agree to summaries, translations and search by meaning: older
// programs do not know the settings, and would let every administrator change them.
const assistLevel uint16 = 5

// AssistantSetting is the setting of the organization with which owners agree that texts of messages are sent to
// services that summarize and translate them.
const AssistantSetting = "assistant_enabled"

// MaySummarize refuses a caller that is not allowed to have topics summarized.
func (v View) MaySummarize() error {
	if err := v.MayTranslate(); err != nil {
		return err
	}
	if !v.HasPermission(v.Me(), "can_summarize_topics_group") {
		return errPermission()
	}
	return nil
}

// MayTranslate refuses a caller without an account, and callers of organizations that send no texts to other services.
func (v View) MayTranslate() error {
	if v.Me() == nil {
		return errNotLoggedIn()
	}
	if !v.OrgBool(AssistantSetting) {
		return BadRequest("Your organization does not allow summaries and translations.")
	}
	return nil
}

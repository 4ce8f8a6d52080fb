package wire

import (
	"testing"

	"parley/actors/realm"
	"parley/wire/form"
)

// TestUnlimitedSettingValues checks that limits and retention accept the word "unlimited", but not the stored number.
func TestUnlimitedSettingValues(t *testing.T) {
	rows := newSettingsTableForm(realm.OrgSettings, nil)
	for name, want := range map[string]any{"message_content_edit_limit_seconds": nil,
		"message_retention_days": int64(-1)} {
		v := &form.Values{}
		v.Add(form.Body, name, `"unlimited"`)
		got, err := rows.decode(v)
		if err != nil || len(got) != 1 || got[0].Name != name || got[0].Value != want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	v := &form.Values{}
	v.Add(form.Body, "message_retention_days", "-1") // the stored number for unlimited, but not a valid parameter
	if got, err := rows.decode(v); err == nil || err.Error() != "Bad value for 'message_retention_days': -1" {
		t.Errorf("-1 days: %v, %v", got, err)
	}
}

package wire

import "parley/actors/realm"

// The audit log is an extension of the protocol: owners read the changes of their organization with their
// authors, and set for how long they are kept.
var auditEndpoints = []Endpoint{
	Get("/audit_log", auditLog).extension(auditReason),
	CommandFromForm("PATCH", "/audit_log", func(f auditPolicyForm) realm.SetAuditDays {
		return realm.SetAuditDays{Days: f.Days}
	}, emptyAnswer).extension(auditReason),
}

// auditReason is why these endpoints exist.
const auditReason = "the audit log, which Zulip's API does not have"

// auditForm selects entries. before and after are ids of entries; with after the oldest entries come first.
type auditForm struct {
	Before  int64           `form:"before,min=0,default=0"`
	After   int64           `form:"after,min=0,default=0"`
	Kind    string          `form:"kind"`
	By      realm.UserID    `form:"acting_user_id,default=0"`
	User    realm.UserID    `form:"user_id,default=0"`
	Channel realm.ChannelID `form:"channel_id,default=0"`
	Limit   int             `form:"limit,min=1,max=1000,default=100"`
}

type auditPolicyForm struct {
	Days int64 `form:"retention_days,required"`
}

type auditAnswer struct {
	Entries []auditEntry `json:"entries"`
	More    bool         `json:"more"`
	Days    int64        `json:"retention_days"`
}

// auditEntry is one entry. Fields that are not about the entry are null.
type auditEntry struct {
	ID      int64           `json:"id"`
	At      int64           `json:"timestamp"`
	Kind    string          `json:"kind"`
	By      realm.UserID    `json:"acting_user_id" zero:"null"`
	Via     string          `json:"via"`
	Client  string          `json:"client"`
	Address string          `json:"address"`
	User    realm.UserID    `json:"user_id" zero:"null"`
	Channel realm.ChannelID `json:"channel_id" zero:"null"`
	Group   realm.GroupID   `json:"group_id" zero:"null"`
	Name    string          `json:"name"`
	Old     string          `json:"old"`
	New     string          `json:"new"`
	Count   int             `json:"count" zero:"null"`
}

func auditLog(_ *Call, v realm.View, f auditForm) (*auditAnswer, error) {
	list, more, err := v.AuditLog(realm.AuditFilter{Before: f.Before, After: f.After, Kind: f.Kind, By: f.By,
		User: f.User, Channel: f.Channel, Limit: f.Limit})
	return &auditAnswer{each(list, newAuditEntry), more, v.AuditDays()}, err
}

func newAuditEntry(e realm.NumberedEntry) auditEntry {
	return auditEntry{e.ID, e.At, e.Kind, e.By, e.Via, e.Client, e.Address, e.User, e.Channel, e.Group, e.Name, e.Old,
		e.New, e.Count}
}

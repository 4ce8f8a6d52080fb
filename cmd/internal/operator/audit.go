package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/actors/realm"
)

// auditList returns entries of the audit log after a number, the oldest first, with the email addresses of the users
// and the names of the channels of today.
func auditList(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	f := realm.AuditFilter{Kind: args["kind"], Limit: realm.MaxAuditAnswer}
	if text := args["after"]; text != "" {
		if f.After, err = strconv.ParseInt(text, 10, 64); err != nil || f.After < 0 {
			return nil, fmt.Errorf("--after must be the number of an entry, not %q", text)
		}
	}
	if f.After == 0 {
		f.After = -1 // the oldest first
	}
	return o.Orgs.View(id, realm.Operator, func(v realm.View) (any, error) {
		entries, more, err := v.AuditLog(f)
		list := []any{}
		for _, e := range entries {
			list = append(list, auditRow(v, e))
		}
		return map[string]any{"entries": list, "more": more, "retention_days": v.AuditDays()}, err
	})
}

// auditRow returns an entry for people and programs. Fields that do not apply are "".
func auditRow(v realm.View, e realm.NumberedEntry) map[string]any {
	email := func(u realm.UserID) string {
		if x := v.Find(u); x != nil {
			return x.Email
		}
		return ""
	}
	row := map[string]any{"id": e.ID, "time": time.Unix(e.At, 0).UTC().Format(time.RFC3339), "kind": e.Kind,
		"by": email(e.By), "by_id": optional(int64(e.By)), "via": e.Via, "client": e.Client, "address": e.Address,
		"user": email(e.User), "user_id": optional(int64(e.User)), "channel": "",
		"channel_id": optional(int64(e.Channel)), "group_id": optional(int64(e.Group)), "name": e.Name, "old": e.Old,
		"new": e.New, "count": optional(int64(e.Count))}
	if c := v.FindChannel(e.Channel); c != nil {
		row["channel"] = c.Name
	}
	return row
}

// optional returns "" for 0.
func optional(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// auditKeep sets for how many days the audit log is kept.
func auditKeep(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	days, err := strconv.ParseInt(args["days"], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("--days must be a number of days, not %q", args["days"])
	}
	_, err = realm.Execute(o.Orgs, id, realm.Operator, realm.SetAuditDays{Days: days})
	return map[string]any{"retention_days": days}, err
}

// auditExport adds an entry about a compliance export that begins now, and returns the criteria of its request.
func auditExport(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	request, err := strconv.ParseInt(cmp.Or(args["request"], "0"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("--request must be the number of a request, not %q", args["request"])
	}
	c, err := realm.Execute(o.Orgs, id, realm.Operator, realm.NoteComplianceExport{Criteria: args["criteria"],
		Request: request, Force: args["force"] == "true"})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	return map[string]any{"criteria": string(text)}, err
}

// complianceAsk asks the owners to approve a compliance export.
func complianceAsk(o *Operator, args map[string]string) (any, error) {
	id, err := o.realm(args)
	if err != nil {
		return nil, err
	}
	var c realm.ComplianceCriteria
	if err := json.Unmarshal([]byte(args["criteria"]), &c); err != nil {
		return nil, fmt.Errorf("criteria of the export: %w", err)
	}
	var persons, channels []string
	if err := errors.Join(json.Unmarshal([]byte(args["persons"]), &persons),
		json.Unmarshal([]byte(args["channels"]), &channels)); err != nil {
		return nil, fmt.Errorf("criteria of the export: %w", err)
	}
	if _, err := o.view(args, func(v realm.View) (any, error) {
		c.Persons, c.Channels, err = v.ComplianceIDs(persons, channels)
		return nil, err
	}); err != nil {
		return nil, err
	}
	q, err := realm.Execute(o.Orgs, id, realm.Operator, realm.AskComplianceExport{Criteria: c})
	return map[string]any{"request": q.ID}, err
}

package wire

import (
	"fmt"
	"io"
	"slices"

	"parley/actors/realm"
	"parley/actors/realm/ids"
)

var exportEndpoints = []Endpoint{
	Get("/export/realm", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		list, err := v.Exports()
		return Answer{"exports": exportObjects(list, c.Site)}, err
	}).Returns("{exports: [Export]}"),
	Custom("POST", "/export/realm", startExport).Returns("{id: int}"),
	Custom("DELETE", "/export/realm/{export_id}", deleteExport),
	Get("/export/realm/consents", func(c *Call, v realm.View, _ noParameters) (Answer, error) {
		people, err := v.Consents()
		out := []any{}
		for _, u := range people {
			out = append(out, obj{"user_id": u.ID, "consented": u.Consented(),
				"email_address_visibility": u.IntSetting("email_address_visibility")})
		}
		return Answer{"export_consents": out}, err
	}).Returns("{export_consents: [{user_id: int, consented: bool, email_address_visibility: int}]}"),
}

var exportEvents = []EventKind{
	EventOneOf(func(e *realm.ExportListEvent, to *Recipient) any {
		return obj{"type": "realm_export", "exports": exportObjects(e.Exports, to.Site)}
	}),
	EventOneOf(func(e *realm.ExportConsentEvent, _ *Recipient) any {
		return obj{"type": "realm_export_consent", "user_id": e.User, "consented": e.Consented}
	}),
}

func exportObjects(list []realm.Export, s Site) []any {
	out := []any{}
	for _, e := range list {
		o := obj{"id": e.ID, "acting_user_id": e.By, "export_time": e.Started, "export_type": e.Kind,
			"pending":           e.Pending(),
			"deleted_timestamp": nil, "failed_timestamp": nil, "export_url": nil}
		switch {
		case e.Deleted != 0:
			o["deleted_timestamp"] = e.Deleted
		case e.Failed != 0:
			o["failed_timestamp"] = e.Failed
		case e.Ended != 0:
			o["export_url"] = s.URL + "/user_avatars/exports/" + e.Name + ".jsonl.gz"
		}
		out = append(out, o)
	}
	return out
}

type startExportForm struct {
	Kind string `form:"export_type,default=public,in=public|full_with_consent|full_without_consent"`
}

func startExport(c *Call, f startExportForm) (Answer, error) {
	command := realm.StartExport{Kind: f.Kind}
	if c.Tools.CheckSpace != nil {
		command.FileRefusal = c.Tools.CheckSpace(0)
	}
	e, err := Execute(c, command)
	if err != nil {
		return nil, err
	}
	c.Tools.StartExport(c.Realm, e)
	return Answer{"id": e.ID}, nil
}

type exportForm struct {
	ID int64 `path:"export_id"`
}

func deleteExport(c *Call, f exportForm) (Answer, error) {
	e, err := Execute(c, realm.DeleteExport{ID: f.ID})
	if err != nil {
		return nil, err
	}
	return Answer{}, c.Tools.Files.RemoveExport(e.Name + ".jsonl.gz")
}

// The amount of data that an export reads per view. The realm is blocked for about a millisecond.
const (
	exportMessagesPerView = 500 // messages, found by id
	exportUsersPerView    = 100
	exportGroupsPerView   = 10 // groups or channels, with all their members
)

// WriteExport writes an organization's data as lines of JSON. Each line has a kind. The small tables come first, then
// the messages in order, each as it is when it is read. Messages newer than the start of the export are left out. Each
// step checks that the user of the export still has the right to it, because an export can take hours.
func WriteExport(server Server, id realm.ID, s Site, x realm.Export, to io.Writer) error {
	c, kind := &Call{Server: server, Realm: id, Site: s, Caller: realm.System}, x.Kind
	var places []func(realm.View) ids.Set
	newest := realm.MessageID(0)
	parts, err := readExport(c, x, func(v realm.View) ([]func(realm.View) []obj, error) {
		places, newest = v.ExportSources(kind), v.LastMessageID()
		return exportParts(v, s, kind), nil
	})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, part := range parts {
		rows, err := readExport(c, x, func(v realm.View) ([]obj, error) { return part(v), nil })
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		for _, row := range rows {
			if _, err := to.Write(encodeLine(row)); err != nil {
				return fmt.Errorf("export: %w", err)
			}
		}
	}
	var idSet ids.Set
	for _, place := range places {
		part, err := readExport(c, x, func(v realm.View) (ids.Set, error) { return place(v), nil })
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		idSet.Union(part)
	}
	all := ids.IDs[realm.MessageID](idSet.Between(0, int64(newest)))
	for len(all) > 0 {
		n := min(len(all), exportMessagesPerView)
		part, err := readExport(
			c,
			x,
			func(v realm.View) ([]realm.MessageInfo, error) { return v.MessagesAt(all[:n]), nil },
		)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		for i := range part {
			body, ok, err := server.Text(id, part[i].Ref)
			if err != nil {
				return fmt.Errorf("export: message %d: %w", part[i].ID, err)
			}
			if !ok {
				continue // deleted after its id was read
			}
			o := renderedMessage{newMessage(&part[i], body, Client{Caps: realm.CapEmptyTopicName}, s, false), body.HTML}
			if _, err := to.Write(encodeLine(obj{"kind": "message", "message": o})); err != nil {
				return fmt.Errorf("export: %w", err)
			}
		}
		all = all[n:]
	}
	return nil
}

// readExport is Read for a step of an export.
func readExport[A any](c *Call, x realm.Export, read func(realm.View) (A, error)) (A, error) {
	return Read(c, func(v realm.View) (a A, err error) {
		if err := v.MayContinueExport(x); err != nil {
			return a, err
		}
		return read(v)
	})
}

// exportParts returns everything besides messages, one function per view: the organization, users, groups, and
// channels with their subscribers.
func exportParts(v realm.View, s Site, kind string) []func(realm.View) []obj {
	parts := []func(realm.View) []obj{func(v realm.View) []obj { return exportOrganization(v, kind) }}
	var people []realm.UserID
	v.EachUser(func(u *realm.User) { people = append(people, u.ID) })
	parts = append(parts, exportInChunks(people, exportUsersPerView, func(v realm.View, id realm.UserID) obj {
		u := v.Find(id)
		seen := newUserJSON(v, u, s, false, true)
		x := exportedUser{accountFields: seen.accountFields, botDetails: seen.botDetails, Avatar: seen.Avatar,
			Deleted: seen.Deleted, Timezone: seen.Timezone, Active: seen.Active}
		if kind == realm.CompleteExport || kind == realm.ConsentExport && u.Consented() {
			x.DeliveryEmail = &u.Email
		}
		return obj{"kind": "user", "user": x}
	})...)
	var groups []realm.GroupID
	v.EachGroup(func(g *realm.Group) { groups = append(groups, g.ID) })
	parts = append(parts, exportInChunks(groups, exportGroupsPerView, func(v realm.View, id realm.GroupID) obj {
		return obj{"kind": "user_group", "user_group": newGroup(v.GroupInfo(v.FindGroup(id)))}
	})...)
	var channels []realm.ChannelID
	v.EachChannel(func(c *realm.Channel) {
		if !c.Private || kind != realm.PublicExport {
			channels = append(channels, c.ID)
		}
	})
	parts = append(parts, exportInChunks(channels, exportGroupsPerView, func(v realm.View, id realm.ChannelID) obj {
		c := v.FindChannel(id)
		if c.Private && kind == realm.PublicExport {
			return nil // became private meanwhile
		}
		return obj{"kind": "channel", "channel": newChannel(v.ChannelInfo(c)),
			"subscribers": nonNil(v.Subscribers(id))}
	})...)
	return append(parts, exportSmallTables)
}

// exportedUser is an account in an export, without the address of users that have not consented.
type exportedUser struct {
	accountFields
	botDetails
	DeliveryEmail *string `json:"delivery_email,omitzero"`
	Avatar        *string `json:"avatar_url"`
	Deleted       bool    `json:"is_deleted,omitzero"`
	Timezone      string  `json:"timezone"`
	Active        bool    `json:"is_active"`
}

// exportInChunks returns functions that make the rows of at most atOnce items each. A nil row is left out.
func exportInChunks[T any](all []T, atOnce int, row func(realm.View, T) obj) (parts []func(realm.View) []obj) {
	for some := range slices.Chunk(all, atOnce) {
		parts = append(parts, func(v realm.View) (rows []obj) {
			for _, x := range some {
				if r := row(v, x); r != nil {
					rows = append(rows, r)
				}
			}
			return rows
		})
	}
	return parts
}

func exportOrganization(v realm.View, kind string) []obj {
	o := v.Org()
	settings := obj{}
	for _, x := range realm.OrgSettings {
		settings[x.Name] = v.OrgSetting(x.Name)
	}
	for _, x := range realm.OrgGroupSettings {
		settings[x.Name] = groupValueJSON{v.OrgGroup(x.Name)}
	}
	return []obj{{"kind": "organization", "export_type": kind,
		"organization": obj{"id": v.ID(), "uuid": o.UUID, "name": o.Name, "string_id": o.StringID,
			"description": o.Description, "date_created": o.Created, "settings": settings}}}
}

// exportSmallTables returns the rows of profile fields, domains, linkifiers and playgrounds.
func exportSmallTables(v realm.View) (rows []obj) {
	for _, e := range v.ProfileFields() {
		rows = append(rows, obj{"kind": "profile_field",
			"profile_field": newProfileFields([]realm.ProfileField{e})[0]})
	}
	for _, d := range each(v.Domains(), newDomain) {
		rows = append(rows, obj{"kind": "domain", "domain": d})
	}
	for _, l := range each(v.Linkifiers(), newLinkifier) {
		rows = append(rows, obj{"kind": "linkifier", "linkifier": l})
	}
	for _, p := range each(v.Playgrounds(), newPlayground) {
		rows = append(rows, obj{"kind": "playground", "playground": p})
	}
	return rows
}

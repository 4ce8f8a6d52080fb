package wire

import (
	"fmt"
	"io"
	"slices"

	"parley/actors/realm"
	"parley/actors/realm/ids"
)

var exportEndpoints = []Endpoint{
	Get("/export/realm", func(c *Call, v realm.View, _ noParameters) (*exportsAnswer, error) {
		list, err := v.Exports()
		return &exportsAnswer{newExports(list, c.Site)}, err
	}),
	Custom("POST", "/export/realm", startExport),
	Custom("DELETE", "/export/realm/{export_id}", deleteExport),
	Get("/export/realm/consents", func(c *Call, v realm.View, _ noParameters) (*consentsAnswer, error) {
		people, err := v.Consents()
		return &consentsAnswer{each(people, func(u *realm.User) userConsent {
			return userConsent{u.ID, u.Consented(), u.IntSetting("email_address_visibility")}
		})}, err
	}),
}

var exportEvents = []EventKind{
	Event(func(e *realm.ExportListEvent, to *Recipient) *exportsEvent {
		return &exportsEvent{Exports: newExports(e.Exports, to.Site)}
	}),
	Event(func(e *realm.ExportConsentEvent, _ *Recipient) *consentEvent {
		return &consentEvent{User: e.User, Consented: e.Consented}
	}),
}

type exportsAnswer struct {
	Exports []exportJSON `json:"exports"`
}

type consentsAnswer struct {
	Consents []userConsent `json:"export_consents"`
}

type userConsent struct {
	User            realm.UserID `json:"user_id"`
	Consented       bool         `json:"consented"`
	EmailVisibility int64        `json:"email_address_visibility"`
}

type exportsEvent struct {
	_       struct{}     `const:"type=realm_export"`
	Exports []exportJSON `json:"exports"`
}

type consentEvent struct {
	_         struct{}     `const:"type=realm_export_consent"`
	User      realm.UserID `json:"user_id"`
	Consented bool         `json:"consented"`
}

// exportJSON has the time at which the export was deleted or failed, or else the URL of the complete file.
type exportJSON struct {
	ID      int64        `json:"id"`
	By      realm.UserID `json:"acting_user_id"`
	Started int64        `json:"export_time"`
	Kind    string       `json:"export_type" enum:"public|full_with_consent|full_without_consent"`
	Pending bool         `json:"pending"`
	Deleted int64        `json:"deleted_timestamp" zero:"null"`
	Failed  int64        `json:"failed_timestamp" zero:"null"`
	URL     string       `json:"export_url" zero:"null"`
}

func newExports(list []realm.Export, s Site) []exportJSON {
	return each(list, func(e realm.Export) exportJSON {
		out := exportJSON{ID: e.ID, By: e.By, Started: e.Started, Kind: e.Kind, Pending: e.Pending()}
		switch {
		case e.Deleted != 0:
			out.Deleted = e.Deleted
		case e.Failed != 0:
			out.Failed = e.Failed
		case e.Ended != 0:
			out.URL = s.URL + "/user_avatars/exports/" + realm.ExportFile(e.Name)
		}
		return out
	})
}

type startExportForm struct {
	Kind string `form:"export_type,default=public,in=public|full_with_consent|full_without_consent"`
}

func startExport(c *Call, f startExportForm) (*idAnswer, error) {
	if err := c.confirmAct(realm.Administrator); err != nil {
		return nil, err
	}
	command := realm.StartExport{Kind: f.Kind}
	if c.Tools.CheckSpace != nil {
		command.FileRefusal = c.Tools.CheckSpace(0)
	}
	e, err := Execute(c, command)
	if err != nil {
		return nil, err
	}
	c.Tools.StartExport(c.Realm, e)
	return newIDAnswer(e.ID), nil
}

type exportForm struct {
	ID int64 `path:"export_id"`
}

func deleteExport(c *Call, f exportForm) (a noFields, _ error) {
	e, err := Execute(c, realm.DeleteExport{ID: f.ID})
	if err != nil {
		return a, err
	}
	return a, c.Tools.Files.RemoveExport(realm.ExportFile(e.Name))
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
	parts, err := readExport(c, x, func(v realm.View) ([]func(realm.View) []any, error) {
		places, newest = v.ExportSources(kind), v.LastMessageID()
		return exportParts(v, s, kind), nil
	})
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, part := range parts {
		rows, err := readExport(c, x, func(v realm.View) ([]any, error) { return part(v), nil })
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
			if _, err := to.Write(encodeLine(exportedMessage{Message: o})); err != nil {
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
func exportParts(v realm.View, s Site, kind string) []func(realm.View) []any {
	parts := []func(realm.View) []any{func(v realm.View) []any { return exportOrganization(v, kind) }}
	var people []realm.UserID
	v.EachUser(func(u *realm.User) { people = append(people, u.ID) })
	parts = append(parts, exportInChunks(people, exportUsersPerView, func(v realm.View, id realm.UserID) any {
		u := v.Find(id)
		seen := newUserJSON(v, u, s, false, true)
		x := exportedUser{accountFields: seen.accountFields, botDetails: seen.botDetails, Avatar: seen.Avatar,
			Deleted: seen.Deleted, Timezone: seen.Timezone, Active: seen.Active}
		if kind == realm.CompleteExport || kind == realm.ConsentExport && u.Consented() {
			x.DeliveryEmail = &u.Email
		}
		return exportedUserRow{User: x}
	})...)
	var groups []realm.GroupID
	v.EachGroup(func(g *realm.Group) { groups = append(groups, g.ID) })
	parts = append(parts, exportInChunks(groups, exportGroupsPerView, func(v realm.View, id realm.GroupID) any {
		return exportedGroup{Group: newGroup(v.GroupInfo(v.FindGroup(id)))}
	})...)
	var channels []realm.ChannelID
	v.EachChannel(func(c *realm.Channel) {
		if !c.Private || kind != realm.PublicExport {
			channels = append(channels, c.ID)
		}
	})
	parts = append(parts, exportInChunks(channels, exportGroupsPerView, func(v realm.View, id realm.ChannelID) any {
		c := v.FindChannel(id)
		if c.Private && kind == realm.PublicExport {
			return nil // became private meanwhile
		}
		return exportedChannel{Channel: newChannel(v.ChannelInfo(c)), Subscribers: v.Subscribers(id)}
	})...)
	return append(parts, exportSmallTables)
}

// The rows of an export.
type (
	exportedOrganization struct {
		_            struct{}         `const:"kind=organization"`
		Export       string           `json:"export_type"`
		Organization organizationData `json:"organization"`
	}
	exportedUserRow struct {
		_    struct{}     `const:"kind=user"`
		User exportedUser `json:"user"`
	}
	exportedGroup struct {
		_     struct{}  `const:"kind=user_group"`
		Group groupJSON `json:"user_group"`
	}
	exportedChannel struct {
		_           struct{}       `const:"kind=channel"`
		Channel     any            `json:"channel"`
		Subscribers []realm.UserID `json:"subscribers"`
	}
	exportedProfileField struct {
		_     struct{}         `const:"kind=profile_field"`
		Field profileFieldJSON `json:"profile_field"`
	}
	exportedDomain struct {
		_      struct{}   `const:"kind=domain"`
		Domain domainJSON `json:"domain"`
	}
	exportedLinkifier struct {
		_         struct{}      `const:"kind=linkifier"`
		Linkifier linkifierJSON `json:"linkifier"`
	}
	exportedPlayground struct {
		_          struct{}       `const:"kind=playground"`
		Playground playgroundJSON `json:"playground"`
	}
	exportedMessage struct {
		_       struct{}        `const:"kind=message"`
		Message renderedMessage `json:"message"`
	}
)

// organizationData is the organization itself, with all its settings by name.
type organizationData struct {
	ID          realm.ID       `json:"id"`
	UUID        string         `json:"uuid"`
	Name        string         `json:"name"`
	StringID    string         `json:"string_id"`
	Description string         `json:"description"`
	Created     int64          `json:"date_created"`
	Settings    map[string]any `json:"settings"`
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
func exportInChunks[T any](all []T, atOnce int, row func(realm.View, T) any) (parts []func(realm.View) []any) {
	for some := range slices.Chunk(all, atOnce) {
		parts = append(parts, func(v realm.View) (rows []any) {
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

func exportOrganization(v realm.View, kind string) []any {
	o := v.Org()
	settings := map[string]any{}
	for _, x := range realm.OrgSettings {
		settings[x.Name] = v.OrgSetting(x.Name)
	}
	for _, x := range realm.OrgGroupSettings {
		settings[x.Name] = groupValueJSON{v.OrgGroup(x.Name)}
	}
	return []any{exportedOrganization{Export: kind, Organization: organizationData{v.ID(), o.UUID, o.Name,
		o.StringID, o.Description, o.Created, settings}}}
}

// exportSmallTables returns the rows of profile fields, domains, linkifiers and playgrounds.
func exportSmallTables(v realm.View) (rows []any) {
	for _, f := range newProfileFields(v.ProfileFields()) {
		rows = append(rows, exportedProfileField{Field: f})
	}
	for _, d := range v.Domains() {
		rows = append(rows, exportedDomain{Domain: newDomain(d)})
	}
	for _, l := range v.Linkifiers() {
		rows = append(rows, exportedLinkifier{Linkifier: newLinkifier(l)})
	}
	for _, p := range v.Playgrounds() {
		rows = append(rows, exportedPlayground{Playground: newPlayground(p)})
	}
	return rows
}

package scim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elimity-com/scim"
	scimerrors "github.com/elimity-com/scim/errors"
	"github.com/elimity-com/scim/optional"
	"github.com/elimity-com/scim/schema"

	"parley/actors/realm"
	"parley/wire"
)

// chunk is the number of accounts or groups that one view of the realm returns, so that no view is long.
const chunk = 500

// roles are the roles by the values of the attribute roles.
var roles = map[string]realm.Role{"owner": realm.Owner, "administrator": realm.Administrator,
	"moderator": realm.Moderator, "member": realm.Member, "guest": realm.Guest}

func roleName(r realm.Role) string {
	for name, role := range roles {
		if role == r {
			return name
		}
	}
	return ""
}

func text(name, description string) schema.SimpleParams {
	return schema.SimpleStringParams(schema.StringParams{Name: name, Description: optional.NewString(description)})
}

// userSchema has the attributes of the standard that accounts have.
var userSchema = schema.Schema{
	ID: "urn:ietf:params:scim:schemas:core:2.0:User", Name: optional.NewString("User"),
	Description: optional.NewString("Account"),
	Attributes: []schema.CoreAttribute{
		schema.SimpleCoreAttribute(schema.SimpleStringParams(schema.StringParams{Name: "userName", Required: true,
			Description: optional.NewString("Name of the person at the login provider"),
			Uniqueness:  schema.AttributeUniquenessServer()})),
		schema.ComplexCoreAttribute(schema.ComplexParams{Name: "name",
			Description: optional.NewString("Parts of the name"), SubAttributes: []schema.SimpleParams{
				text("formatted", "Full name"), text("familyName", "Family name"), text("givenName", "Given name")}}),
		schema.SimpleCoreAttribute(schema.SimpleStringParams(schema.StringParams{Name: "displayName", Required: true,
			Description: optional.NewString("Name that users see; from the other names if it is missing")})),
		schema.ComplexCoreAttribute(schema.ComplexParams{Name: "emails", MultiValued: true, Required: true,
			Description: optional.NewString("The email address; of several, the primary one, or the first one; from " +
				"the user name if it is missing"),
			SubAttributes: []schema.SimpleParams{
				schema.SimpleStringParams(schema.StringParams{Name: "value", Required: true,
					Description: optional.NewString("Email address")}),
				schema.SimpleStringParams(schema.StringParams{Name: "type", CanonicalValues: []string{"work"},
					Description: optional.NewString("Always work")}),
				schema.SimpleBooleanParams(schema.BooleanParams{Name: "primary",
					Description: optional.NewString("Always true")})}}),
		schema.SimpleCoreAttribute(schema.SimpleBooleanParams(schema.BooleanParams{Name: "active",
			Description: optional.NewString("Whether the account can be used")})),
		schema.ComplexCoreAttribute(schema.ComplexParams{Name: "roles", MultiValued: true,
			Description: optional.NewString("The role, one at most; members have none"),
			SubAttributes: []schema.SimpleParams{
				schema.SimpleStringParams(schema.StringParams{Name: "value",
					CanonicalValues: []string{"administrator", "moderator", "guest"},
					Description:     optional.NewString("Name of the role; owners are only read")})}}),
		schema.ComplexCoreAttribute(schema.ComplexParams{Name: "groups", MultiValued: true,
			Mutability:  schema.AttributeMutabilityReadOnly(),
			Description: optional.NewString("User groups of which the account is a member"),
			SubAttributes: []schema.SimpleParams{
				schema.SimpleStringParams(schema.StringParams{Name: "value",
					Mutability:  schema.AttributeMutabilityReadOnly(),
					Description: optional.NewString("Id of the group")}),
				schema.SimpleStringParams(schema.StringParams{Name: "display",
					Mutability:  schema.AttributeMutabilityReadOnly(),
					Description: optional.NewString("Name of the group")}),
			}}),
	},
}

// users is the handler of accounts.
type users struct{ *request }

// userID returns the number of an account; 0 for a text that is none.
func userID(id string) realm.UserID {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n <= 0 || strconv.FormatInt(n, 10) != id {
		return 0
	}
	return realm.UserID(n)
}

// resource returns an account as its client sees it.
func (u users) resource(x realm.ScimAccount, in []realm.ScimUserGroup) scim.Resource {
	joined := time.Unix(x.Joined, 0).UTC()
	a := scim.ResourceAttributes{"userName": x.UserName, "displayName": x.Name, "active": x.Active,
		"emails": []any{map[string]any{"value": x.Email, "type": "work", "primary": true}}}
	if x.Role != realm.Member {
		a["roles"] = []any{map[string]any{"value": roleName(x.Role)}}
	}
	name := map[string]any{}
	for part, value := range map[string]string{"formatted": x.Formatted, "givenName": x.Given, "familyName": x.Family} {
		if value != "" {
			name[part] = value
		}
	}
	if len(name) > 0 {
		a["name"] = name
	}
	if len(in) > 0 {
		list := []any{}
		for _, g := range in {
			list = append(list, map[string]any{"value": g.ID.String(), "display": g.Name})
		}
		a["groups"] = list
	}
	return scim.Resource{ID: x.ID.String(), ExternalID: external(x.ExternalID), Attributes: a,
		Meta: scim.Meta{Created: &joined, LastModified: &joined}}
}

// read returns an account with its groups.
func (u users) read(id realm.UserID) (scim.Resource, error) {
	return wire.Read(u.call, func(v realm.View) (r scim.Resource, err error) {
		x, err := v.ScimAccount(id)
		if err != nil {
			return r, err
		}
		return u.resource(x, v.ScimGroupsOf(id)[id]), nil
	})
}

func (u users) Get(_ *http.Request, id string) (scim.Resource, error) {
	r, err := u.read(userID(id))
	return u.only(r, "userName"), u.refused(err, id)
}

func (u users) GetAll(_ *http.Request, p scim.ListRequestParams) (scim.Page, error) {
	found := pageOf(p)
	for after := realm.UserID(0); ; {
		list, err := wire.Read(u.call, func(v realm.View) ([]realm.ScimAccount, error) {
			return v.ScimAccounts(after, chunk), nil
		})
		if err != nil {
			return scim.Page{}, u.refused(err, "")
		}
		for _, x := range list {
			found.add(u.resource(x, nil))
			after = x.ID
		}
		if len(list) < chunk {
			break
		}
	}
	out := found.page
	if u.wants("groups") && len(out.Resources) > 0 {
		var ids []realm.UserID
		for _, r := range out.Resources {
			ids = append(ids, userID(r.ID))
		}
		in, err := wire.Read(u.call, func(v realm.View) (map[realm.UserID][]realm.ScimUserGroup, error) {
			return v.ScimGroupsOf(ids...), nil
		})
		if err != nil {
			return scim.Page{}, u.refused(err, "")
		}
		for i, r := range out.Resources {
			for _, g := range in[ids[i]] {
				list, _ := r.Attributes["groups"].([]any)
				r.Attributes["groups"] = append(list, map[string]any{"value": g.ID.String(), "display": g.Name})
			}
		}
	}
	for i, r := range out.Resources {
		out.Resources[i] = u.only(r, "userName")
	}
	return out, nil
}

func (u users) Create(_ *http.Request, a scim.ResourceAttributes) (scim.Resource, error) {
	cmd, err := u.command(a)
	if err != nil {
		return scim.Resource{}, err
	}
	return u.save(cmd)
}

func (u users) Replace(_ *http.Request, id string, a scim.ResourceAttributes) (scim.Resource, error) {
	cmd, err := u.command(a)
	if err != nil {
		return scim.Resource{}, err
	}
	empty := ""
	for _, field := range []**string{&cmd.ExternalID, &cmd.Formatted, &cmd.Given, &cmd.Family} {
		if *field == nil {
			*field = &empty
		}
	}
	return u.saveAs(id, cmd)
}

func (u users) Delete(_ *http.Request, id string) error {
	if err := u.mayChange(realm.ScimUsers); err != nil {
		return err
	}
	_, err := wire.Execute(u.call, realm.RemoveScimUser{User: userID(id)})
	return u.refused(err, id)
}

// Patch changes the attributes that the operations name. Other attributes stay, also if another client changes them at
// the same time.
func (u users) Patch(_ *http.Request, id string, operations []scim.PatchOperation) (scim.Resource, error) {
	if len(operations) > maxOperations {
		return scim.Resource{}, invalid("A request can have 1000 operations.")
	}
	before, err := u.read(userID(id))
	if err != nil {
		return scim.Resource{}, u.refused(err, id)
	}
	after, touched, err := patched(before, operations, userSchema)
	if err != nil {
		return scim.Resource{}, err
	}
	if touched["name"] && !touched["displayName"] && before.Attributes["displayName"] == fullName(before.Attributes) {
		if name := fullName(after); name != "" { // the name that users see was made of the parts
			after["displayName"], touched["displayName"] = name, true
		}
	}
	if touched["roles"] && after["roles"] == nil {
		after["roles"] = []any{map[string]any{"value": "member"}}
	}
	cmd, err := u.command(chosen(after, touched))
	if err != nil {
		return scim.Resource{}, err
	}
	empty := ""
	for name, fields := range map[string][]**string{"externalId": {&cmd.ExternalID},
		"name": {&cmd.Formatted, &cmd.Given, &cmd.Family}} {
		for _, field := range fields {
			if touched[name] && *field == nil {
				*field = &empty
			}
		}
	}
	if touched["userName"] && cmd.UserName == nil || touched["displayName"] && cmd.Name == nil ||
		touched["emails"] && cmd.Email == nil {
		return scim.Resource{}, scimerrors.ScimErrorMutability // required attributes are not removed
	}
	return u.saveAs(id, cmd)
}

// saveAs changes the account with an id.
func (u users) saveAs(id string, cmd realm.SaveScimUser) (scim.Resource, error) {
	if cmd.User = userID(id); cmd.User == 0 {
		return scim.Resource{}, scimerrors.ScimErrorResourceNotFound(id)
	}
	return u.save(cmd)
}

func (u users) save(cmd realm.SaveScimUser) (scim.Resource, error) {
	if err := u.mayChange(realm.ScimUsers); err != nil {
		return scim.Resource{}, err
	}
	id, err := wire.Execute(u.call, cmd)
	if err != nil {
		return scim.Resource{}, u.refused(err, strconv.Itoa(int(cmd.User)))
	}
	r, err := u.read(id)
	return r, u.refused(err, id.String())
}

// command returns the command for attributes. Attributes that are missing do not change.
func (u users) command(a scim.ResourceAttributes) (cmd realm.SaveScimUser, err error) {
	set := func(field **string, value any) {
		if s, ok := value.(string); ok {
			*field = &s
		}
	}
	set(&cmd.UserName, a["userName"])
	set(&cmd.ExternalID, a["externalId"])
	if parts, ok := a["name"].(map[string]any); ok {
		set(&cmd.Formatted, parts["formatted"])
		set(&cmd.Given, parts["givenName"])
		set(&cmd.Family, parts["familyName"])
	}
	set(&cmd.Name, a["displayName"])
	if active, ok := a["active"].(bool); ok {
		cmd.Active = &active
	}
	for _, name := range []string{"emails", "roles"} { // the library also lets an object pass
		if _, isList := a[name].([]any); a[name] != nil && !isList {
			return cmd, invalid("The attribute " + name + " must be a list.")
		}
	}
	if list, ok := a["emails"].([]any); ok && len(list) > 0 {
		address := ""
		for _, x := range list {
			m, _ := x.(map[string]any)
			value, _ := m["value"].(string)
			if primary, _ := m["primary"].(bool); address == "" || primary && value != "" {
				address = value
			}
		}
		if address == "" {
			return cmd, invalid("An email address is empty.")
		}
		cmd.Email = &address
	}
	list, _ := a["roles"].([]any)
	if len(list) > 1 {
		return cmd, invalid("An account has one role.")
	}
	for _, x := range list {
		m, _ := x.(map[string]any)
		name, _ := m["value"].(string)
		role, ok := roles[strings.ToLower(name)]
		if !ok {
			return cmd, invalid("The roles are administrator, moderator, member and guest.")
		}
		cmd.Role = role
	}
	return cmd, nil
}

// fullName returns the name that the parts of the attribute name make, or "".
func fullName(a map[string]any) string {
	parts, _ := a["name"].(map[string]any)
	if s, _ := parts["formatted"].(string); strings.TrimSpace(s) != "" {
		return s
	}
	first, _ := parts["givenName"].(string)
	last, _ := parts["familyName"].(string)
	return strings.TrimSpace(first + " " + last)
}

// completed returns the body of a request for an account with the required attributes that follow from others: many
// clients leave them out. A body that is no object is returned as it is.
func completed(body []byte) []byte {
	var raw map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&raw) != nil || raw == nil {
		return body
	}
	names := map[string]string{} // of attributes in the body, whose case is free
	for name := range raw {
		names[strings.ToLower(name)] = name
	}
	value := func(name string) any { return raw[names[strings.ToLower(name)]] }
	userName, _ := value("userName").(string)
	isEmpty := func(x any) bool {
		list, isList := x.([]any)
		s, isText := x.(string)
		return x == nil || isList && len(list) == 0 || isText && strings.TrimSpace(s) == ""
	}
	set := func(name string, x any) {
		delete(raw, names[strings.ToLower(name)])
		raw[name] = x
	}
	if isEmpty(value("emails")) && strings.Contains(userName, "@") {
		set("emails", []any{map[string]any{"value": userName, "primary": true}})
	}
	if isEmpty(value("displayName")) {
		name := fullName(map[string]any{"name": value("name")})
		if name == "" {
			name, _, _ = strings.Cut(userName, "@")
		}
		set("displayName", name)
	}
	b, err := json.Marshal(raw)
	if err != nil {
		return body
	}
	return b
}

// reference returns the address of a resource.
func (q *request) reference(kind, id string) string {
	return q.base + "/" + kind + "/" + url.PathEscape(id)
}

// sortedIDs returns ids without duplicates.
func sortedIDs(list []realm.UserID) []realm.UserID {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

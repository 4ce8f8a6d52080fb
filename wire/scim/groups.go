package scim

import (
	"net/http"
	"strconv"
	"time"

	"github.com/elimity-com/scim"
	scimerrors "github.com/elimity-com/scim/errors"
	"github.com/elimity-com/scim/optional"
	"github.com/elimity-com/scim/schema"

	"parley/actors/realm"
	"parley/wire"
)

// groupSchema has the attributes of the standard that user groups have.
var groupSchema = schema.Schema{
	ID: "urn:ietf:params:scim:schemas:core:2.0:Group", Name: optional.NewString("Group"),
	Description: optional.NewString("User group"),
	Attributes: []schema.CoreAttribute{
		schema.SimpleCoreAttribute(schema.SimpleStringParams(schema.StringParams{Name: "displayName", Required: true,
			Description: optional.NewString("Name of the group"), Uniqueness: schema.AttributeUniquenessServer()})),
		schema.ComplexCoreAttribute(schema.ComplexParams{Name: "members", MultiValued: true,
			Description: optional.NewString("Accounts that are members; bots and subgroups are not shown"),
			SubAttributes: []schema.SimpleParams{
				schema.SimpleStringParams(schema.StringParams{Name: "value", CaseExact: true,
					Mutability:  schema.AttributeMutabilityImmutable(),
					Description: optional.NewString("Id of the account")}),
				schema.SimpleReferenceParams(schema.ReferenceParams{Name: "$ref",
					Mutability:     schema.AttributeMutabilityImmutable(),
					ReferenceTypes: []schema.AttributeReferenceType{"User"},
					Description:    optional.NewString("Address of the account")}),
				schema.SimpleStringParams(schema.StringParams{Name: "type", CanonicalValues: []string{"User"},
					Mutability:  schema.AttributeMutabilityImmutable(),
					Description: optional.NewString("Always User")}),
			}}),
	},
}

// groups is the handler of user groups.
type groups struct{ *request }

// groupID returns the number of a group; 0 for a text that is none.
func groupID(id string) realm.GroupID { return realm.GroupID(userID(id)) }

// resource returns a user group as its client sees it.
func (g groups) resource(x realm.ScimUserGroup) scim.Resource {
	created := time.Unix(x.Created, 0).UTC()
	a := scim.ResourceAttributes{"displayName": x.Name}
	if len(x.Members) > 0 {
		list := make([]any, 0, len(x.Members))
		for _, u := range x.Members {
			list = append(list, map[string]any{"value": u.String(), "type": "User",
				"$ref": g.reference("Users", u.String())})
		}
		a["members"] = list
	}
	return scim.Resource{ID: x.ID.String(), ExternalID: external(x.ExternalID), Attributes: a,
		Meta: scim.Meta{Created: &created, LastModified: &created}}
}

func (g groups) read(id realm.GroupID) (scim.Resource, error) {
	x, err := wire.Read(g.call, func(v realm.View) (realm.ScimUserGroup, error) { return v.ScimUserGroup(id) })
	if err != nil {
		return scim.Resource{}, err
	}
	return g.resource(x), nil
}

func (g groups) Get(_ *http.Request, id string) (scim.Resource, error) {
	r, err := g.read(groupID(id))
	return g.only(r, "displayName"), g.refused(err, id)
}

func (g groups) GetAll(_ *http.Request, p scim.ListRequestParams) (scim.Page, error) {
	found := pageOf(p)
	for after := realm.GroupID(0); ; {
		list, err := wire.Read(g.call, func(v realm.View) ([]realm.ScimUserGroup, error) {
			return v.ScimUserGroups(after, chunk), nil
		})
		if err != nil {
			return scim.Page{}, g.refused(err, "")
		}
		for _, x := range list {
			found.add(g.resource(x))
			after = x.ID
		}
		if len(list) < chunk {
			break
		}
	}
	out := found.page
	for i, r := range out.Resources {
		out.Resources[i] = g.only(r, "displayName")
	}
	return out, nil
}

func (g groups) Create(_ *http.Request, a scim.ResourceAttributes) (scim.Resource, error) {
	cmd, err := g.command(a)
	if err != nil {
		return scim.Resource{}, err
	}
	return g.save(cmd)
}

func (g groups) Replace(_ *http.Request, id string, a scim.ResourceAttributes) (scim.Resource, error) {
	cmd, err := g.command(a)
	if err != nil {
		return scim.Resource{}, err
	}
	cmd.HasMembers = true
	if empty := ""; cmd.ExternalID == nil {
		cmd.ExternalID = &empty
	}
	return g.saveAs(id, cmd)
}

func (g groups) Delete(_ *http.Request, id string) error {
	if err := g.mayChange(realm.ScimGroups); err != nil {
		return err
	}
	_, err := wire.Execute(g.call, realm.RemoveScimGroup{Group: groupID(id)})
	return g.refused(err, id)
}

// Patch changes a group. Members are added and removed one by one, so that two clients at the same time lose none.
func (g groups) Patch(_ *http.Request, id string, operations []scim.PatchOperation) (scim.Resource, error) {
	if len(operations) > maxOperations {
		return scim.Resource{}, invalid("A request can have 1000 operations.")
	}
	before, err := g.read(groupID(id))
	if err != nil {
		return scim.Resource{}, g.refused(err, id)
	}
	after, touched, err := patched(before, operations, groupSchema)
	if err != nil {
		return scim.Resource{}, err
	}
	cmd, err := g.command(chosen(after, touched))
	if err != nil {
		return scim.Resource{}, err
	}
	if touched["displayName"] && cmd.Name == nil {
		return scim.Resource{}, scimerrors.ScimErrorMutability
	}
	if empty := ""; touched["externalId"] && cmd.ExternalID == nil {
		cmd.ExternalID = &empty
	}
	if touched["members"] {
		had, err := members(before.Attributes)
		if err != nil {
			return scim.Resource{}, err
		}
		cmd.HasMembers = false
		cmd.Add, cmd.Remove, cmd.Members = missing(cmd.Members, had), missing(had, cmd.Members), nil
	}
	return g.saveAs(id, cmd)
}

// missing returns the ids of a that b has not.
func missing(a, b []realm.UserID) (out []realm.UserID) {
	has := map[realm.UserID]bool{}
	for _, id := range b {
		has[id] = true
	}
	for _, id := range a {
		if !has[id] {
			out = append(out, id)
		}
	}
	return out
}

func (g groups) saveAs(id string, cmd realm.SaveScimGroup) (scim.Resource, error) {
	if cmd.Group = groupID(id); cmd.Group == 0 {
		return scim.Resource{}, scimerrors.ScimErrorResourceNotFound(id)
	}
	return g.save(cmd)
}

func (g groups) save(cmd realm.SaveScimGroup) (scim.Resource, error) {
	if err := g.mayChange(realm.ScimGroups); err != nil {
		return scim.Resource{}, err
	}
	id, err := wire.Execute(g.call, cmd)
	if err != nil {
		return scim.Resource{}, g.refused(err, strconv.Itoa(int(cmd.Group)))
	}
	r, err := g.read(id)
	return r, g.refused(err, id.String())
}

// command returns the command for attributes. Attributes that are missing do not change.
func (g groups) command(a scim.ResourceAttributes) (cmd realm.SaveScimGroup, err error) {
	if name, ok := a["displayName"].(string); ok {
		cmd.Name = &name
	}
	if id, ok := a["externalId"].(string); ok {
		cmd.ExternalID = &id
	}
	cmd.Members, err = members(a)
	cmd.HasMembers = cmd.Members != nil
	return cmd, err
}

// members returns the accounts of the attribute members.
func members(a scim.ResourceAttributes) (out []realm.UserID, err error) {
	list, isList := a["members"].([]any)
	if a["members"] != nil && !isList { // the library also lets an object pass
		return nil, invalid("The attribute members must be a list.")
	}
	for _, x := range list {
		m, _ := x.(map[string]any)
		value, _ := m["value"].(string)
		kind, _ := m["type"].(string)
		id := userID(value)
		if id == 0 || kind != "" && kind != "User" {
			return nil, invalid("The member " + strconv.Quote(value) + " is no account.")
		}
		out = append(out, id)
	}
	return sortedIDs(out), nil
}

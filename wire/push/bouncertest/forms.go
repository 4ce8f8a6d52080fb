package bouncertest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
)

// form is a decoded form. Integers and structured values in it are JSON texts.
type form struct{ url.Values }

func parseForm(body []byte) form {
	v, _ := url.ParseQuery(string(body))
	return form{v}
}

// unknown returns the parameters that an endpoint does not have. The bouncer ignores them.
func (f form) unknown(fields []string) []string {
	var out []string
	for k := range f.Values {
		if !slices.Contains(fields, k) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func (f form) require(names ...string) error {
	for _, n := range names {
		if !f.Has(n) {
			return errMissing(n)
		}
	}
	return nil
}

// json decodes a parameter that carries JSON; ok is false if it is missing.
func (f form) json(name string, into any) (ok bool, err error) {
	if !f.Has(name) {
		return false, nil
	}
	if json.Unmarshal([]byte(f.Get(name)), into) != nil {
		return false, bad("%s is not valid JSON", name)
	}
	return true, nil
}

// owner is the user that a request is about, and their organization.
type owner struct {
	id   *int64
	uuid string
	// realmUUID is "" if the request names no organization. realm is nil if the bouncer does not know it.
	realmUUID string
	realm     *remoteRealm
}

// formOwner reads the owner of devices from a form.
func (c *call) formOwner() (o owner, err error) {
	var id int64
	if ok, err := c.form.json("user_id", &id); err != nil {
		return o, err
	} else if ok {
		o.id = &id
	}
	o.uuid, o.realmUUID = c.form.Get("user_uuid"), c.form.Get("realm_uuid")
	return o, nil
}

// resolve finds the organization. It asserts that a request with an organization has the user's UUID.
func (c *call) resolve(o *owner) error {
	if o.realmUUID == "" {
		return nil
	}
	if o.uuid == "" {
		return errInternal
	}
	o.realm = c.b.realms[o.realmUUID]
	if o.realm != nil && o.realm.server != c.server {
		o.realm = nil
		return errMismatch
	}
	return nil
}

var errMismatch = &refusal{status: 403, code: "REMOTE_REALM_SERVER_MISMATCH_ERROR",
	msg: "Your organization is registered to a different Zulip server. " +
		"Please contact Zulip support for assistance in resolving this issue."}

// object is a JSON object. Its methods check a member; at is the path of the object in error texts.
type object struct {
	at     string
	fields map[string]any
}

func (o object) path(name string) string { return fmt.Sprintf("%s[%q]", o.at, name) }

// only refuses members that are not named.
func (o object) only(names ...string) error {
	var keys []string
	for k := range o.fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if !slices.Contains(names, k) {
			return bad("Argument %q at %s is unexpected", k, o.path(k))
		}
	}
	return nil
}

func (o object) require(names ...string) error {
	for _, n := range names {
		if _, ok := o.fields[n]; !ok {
			return bad("%s field is missing: Field required", o.path(n))
		}
	}
	return nil
}

// integer returns a member that is an integer, or nil if it is missing.
func (o object) integer(name string) (*int64, error) {
	v, ok := o.fields[name]
	if !ok || v == nil {
		return nil, nil
	}
	f, ok := v.(float64)
	if !ok || f != float64(int64(f)) {
		return nil, bad("%s is not an integer", o.path(name))
	}
	n := int64(f)
	return &n, nil
}

func (o object) text(name string) (string, error) {
	v, ok := o.fields[name]
	if !ok || v == nil {
		return "", nil
	}
	s, ok := v.(string)
	if !ok {
		return "", bad("%s is not a string", o.path(name))
	}
	return s, nil
}

func (o object) texts(name string) ([]string, error) {
	list, _ := o.fields[name].([]any)
	var out []string
	for _, x := range list {
		s, ok := x.(string)
		if !ok {
			return nil, bad("%s is not a string", o.path(name))
		}
		out = append(out, s)
	}
	return out, nil
}

func (o object) object(name string) (map[string]any, error) {
	v, ok := o.fields[name]
	if !ok || v == nil {
		return nil, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, bad("%s is not a dict", o.path(name))
	}
	return m, nil
}

// jsonBody returns the JSON object in the body of a request.
func (c *call) jsonBody() (object, error) {
	o := object{at: "request"}
	if json.Unmarshal(c.body, &o.fields) != nil || o.fields == nil {
		return o, bad("Malformed JSON")
	}
	return o, nil
}

// jsonOwner reads the owner of devices from a JSON body.
func (c *call) jsonOwner(o object) (u owner, err error) {
	if u.id, err = o.integer("user_id"); err != nil {
		return u, err
	}
	if u.uuid, err = o.text("user_uuid"); err != nil {
		return u, err
	}
	u.realmUUID, err = o.text("realm_uuid")
	return u, err
}

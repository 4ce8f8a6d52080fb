package realm

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// FieldType is the type of a custom profile field. The numbers come from the protocol.
type FieldType int

const (
	ShortText       FieldType = 1
	LongText        FieldType = 2
	SelectField     FieldType = 3
	DateField       FieldType = 4
	URLField        FieldType = 5
	UserField       FieldType = 6
	ExternalAccount FieldType = 7
	Pronouns        FieldType = 8
)

// ProfileField is the row of one custom profile field.
type ProfileField struct {
	ID       int64
	Type     FieldType
	Name     string
	Hint     string
	Data     string // JSON: choices, or the kind of an external account
	Order    int
	Summary  bool // shown in the profile summary
	Required bool
	Editable bool // users may change their own value
	Matching bool // used to find users
}

// Limits of fields. Lengths in code points come from the protocol. The number is limited because registrations
// contain all fields.
const (
	maxFieldName     = 40
	maxFieldHint     = 80
	maxProfileFields = 100
	maxSummaryFields = 2
	maxShortText     = 50
	maxLongText      = 500
	maxFieldData     = 20000 // bytes
	maxPeopleValues  = 1000
)

// ProfileFields returns all fields in their order.
func (r *Realm) ProfileFields() []ProfileField {
	out := []ProfileField{}
	for _, id := range r.small.profileFields.keys() {
		out = append(out, *r.small.profileFields.find(id))
	}
	slices.SortStableFunc(out, func(a, b ProfileField) int { return cmp.Compare(a.Order, b.Order) })
	return out
}

// SaveProfileField asks to create or change a field. Fields that are nil do not change.
type SaveProfileField struct {
	New                                   bool
	ID                                    int64     // of the field to change
	Type                                  FieldType // of the new field
	Name, Hint, Data                      *string
	Summary, Required, Editable, Matching *bool
}

func (c SaveProfileField) Decide(t *Turn) (int64, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return 0, err
	}
	f := ProfileField{ID: t.nextID("field"), Type: c.Type, Editable: true, Order: t.small.profileFields.size() + 1}
	if !c.New {
		old := t.small.profileFields.find(c.ID)
		if old == nil {
			return 0, BadRequest("Field id %d not found.", c.ID)
		}
		f = *old
	} else if t.small.profileFields.size() >= maxProfileFields {
		return 0, BadRequest("Too many custom profile fields (limit: %d)", maxProfileFields)
	}
	before := f
	if err := c.applyTo(t, &f); err != nil {
		return 0, err
	}
	if err := t.checkRegistrationSize(len(f.Name) + len(f.Hint) + len(f.Data) -
		len(before.Name) - len(before.Hint) - len(before.Data)); err != nil {
		return 0, err
	}
	if c.New || f != before {
		t.Record(&ProfileFieldChanged{f, before.choicesNotIn(&f)})
	}
	return f.ID, nil
}

// externalAccounts are the kinds of external accounts that every client knows, with the fixed names of their fields
// (protocol).
var externalAccounts = map[string]string{"github": "GitHub username", "twitter": "Twitter username"}

// standardName returns the fixed name of a field for a known kind of external account, or "".
func (f *ProfileField) standardName() string {
	if f.Type != ExternalAccount {
		return ""
	}
	var d struct{ Subtype string }
	_ = json.Unmarshal([]byte(f.Data), &d) // invalid data names no known kind
	return externalAccounts[d.Subtype]
}

// changesStandard reports whether a change would touch the fixed values of a field for a known kind.
func (c SaveProfileField) changesStandard(f *ProfileField) bool {
	changed := *f
	changed.Data = valueOr(c.Data, f.Data)
	renamed := c.Name != nil && strings.TrimSpace(*c.Name) != f.Name
	return renamed || c.Hint != nil && *c.Hint != f.Hint || changed.standardName() != f.standardName()
}

// applyTo applies the request to a field, or refuses it. The order of the checks is the protocol's.
func (c SaveProfileField) applyTo(t *Turn, f *ProfileField) error {
	if f.Type < ShortText || f.Type > Pronouns {
		return BadRequest("Invalid field type.")
	}
	if f.Type != SelectField && f.Type != ExternalAccount {
		c.Data = nil // other types have no data
	}
	if !c.New && f.standardName() != "" && c.changesStandard(f) {
		return BadRequest("Default custom field cannot be updated.")
	}
	if c.Name != nil {
		f.Name = strings.TrimSpace(*c.Name)
	}
	if c.Data != nil {
		f.Data = *c.Data
	}
	if name := f.standardName(); c.New && name != "" {
		f.Name, c.Hint = name, nil
	}
	if f.Name == "" {
		return BadRequest("Label cannot be blank.")
	}
	if runeCount(f.Name) > maxFieldName {
		return BadRequest("name is too long (limit: %d characters)", maxFieldName)
	}
	for _, o := range t.ProfileFields() {
		if o.ID != f.ID && fold(o.Name) == fold(f.Name) {
			return BadRequest("A field with that label already exists.")
		}
	}
	if c.Hint != nil {
		f.Hint = *c.Hint
	}
	if runeCount(f.Hint) > maxFieldHint {
		return BadRequest("hint is too long (limit: %d characters)", maxFieldHint)
	}
	if c.New || c.Data != nil { // fields older than a rule can still be renamed
		if err := f.checkData(); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		to   *bool
		from *bool
	}{{&f.Summary, c.Summary}, {&f.Required, c.Required}, {&f.Editable, c.Editable}, {&f.Matching, c.Matching}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	if f.Summary {
		if f.Type == UserField {
			return BadRequest("Field type not supported for display in profile summary.")
		}
		others := 0
		for _, o := range t.ProfileFields() {
			if o.ID != f.ID && o.Summary {
				others++
			}
		}
		if others >= maxSummaryFields {
			return BadRequest("Only 2 custom profile fields can be displayed in the profile summary.")
		}
	}
	return nil
}

// checkData refuses choices and external accounts with invalid data.
func (f *ProfileField) checkData() error {
	if len(f.Data) > maxFieldData {
		return BadRequest("field_data is too long (limit: %d characters)", maxFieldData)
	}
	switch f.Type {
	case SelectField:
		return checkChoices(f.Data)
	case ExternalAccount:
		return checkAccount(f.Data)
	}
	return nil
}

func errFieldData() *Refusal { return BadRequest("field_data is not a dict") }

// checkChoices checks the data of a SelectField.
func checkChoices(data string) error {
	var choices map[string]map[string]any
	if data != "" && json.Unmarshal([]byte(data), &choices) != nil {
		return errFieldData()
	}
	if len(choices) == 0 {
		return BadRequest("Field must have at least one choice.")
	}
	texts := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(choices)) {
		if strings.TrimSpace(key) == "" {
			return BadRequest("'value' cannot be blank.")
		}
		// Clients sort by the order.
		if err := checkFieldData(choices[key], []string{"text", "order"}); err != nil {
			return err
		}
		texts[choices[key]["text"].(string)] = true
	}
	if len(texts) < len(choices) {
		return BadRequest("Field must not have duplicate choices.")
	}
	return nil
}

// checkAccount checks the data of an ExternalAccount.
func checkAccount(data string) error {
	var d map[string]any
	if data != "" && json.Unmarshal([]byte(data), &d) != nil {
		return errFieldData()
	}
	if err := checkFieldData(d, []string{"subtype"}, "url_pattern"); err != nil {
		return err
	}
	pattern, given := d["url_pattern"].(string)
	switch kind := d["subtype"]; {
	case given && strings.Count(pattern, "%(username)s") != 1:
		return BadRequest("URL pattern must contain '%(username)s'.")
	case given && !IsWebURL(strings.ReplaceAll(pattern, "%(username)s", "username"), false):
		return BadRequest(`field_data["url_pattern"] is not a URL`)
	case kind == "custom" && !given:
		return BadRequest("Custom external account must define URL pattern")
	case kind != "custom" && externalAccounts[kind.(string)] == "":
		return BadRequest("Invalid external account type")
	}
	return nil
}

// checkFieldData requires texts under the required keys, allows them under the optional keys, and refuses all other
// keys.
func checkFieldData(d map[string]any, required []string, optional ...string) error {
	known := slices.Concat(required, optional)
	for _, key := range known {
		v, has := d[key]
		text, ok := v.(string)
		switch {
		case !has && slices.Contains(optional, key):
		case !has:
			return BadRequest("%s key is missing from field_data", key)
		case !ok:
			return BadRequest(`field_data["%s"] is not a string`, key)
		case strings.TrimSpace(text) == "":
			return BadRequest(`field_data["%s"] cannot be blank.`, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d)) {
		if !slices.Contains(known, key) {
			return BadRequest("Unexpected arguments: %s", key)
		}
	}
	return nil
}

// choices returns the choices of a field by key, nil if its type has none.
func (f *ProfileField) choices() map[string]any {
	var m map[string]any
	if f.Type == SelectField {
		_ = json.Unmarshal([]byte(f.Data), &m) // the data was checked when it was set
	}
	return m
}

// choicesNotIn returns the keys of choices that the changed field no longer has.
func (f *ProfileField) choicesNotIn(next *ProfileField) (gone []string) {
	now := next.choices()
	for _, key := range slices.Sorted(maps.Keys(f.choices())) {
		if _, is := now[key]; !is {
			gone = append(gone, key)
		}
	}
	return gone
}

// RemoveProfileField asks to remove a field and all users' values of it.
type RemoveProfileField struct{ ID int64 }

func (c RemoveProfileField) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	if t.small.profileFields.find(c.ID) == nil {
		return Done{}, BadRequest("Field id %d not found.", c.ID)
	}
	t.Record(&ProfileFieldRemoved{c.ID})
	return Done{}, nil
}

// OrderProfileFields asks for another order of the fields. IDs contains each field once.
type OrderProfileFields struct{ IDs []int64 }

func (c OrderProfileFields) Decide(t *Turn) (Done, error) {
	if _, err := t.RequireAdmin(); err != nil {
		return Done{}, err
	}
	ids := slices.Clone(c.IDs)
	slices.Sort(ids)
	if !slices.Equal(ids, t.small.profileFields.keys()) {
		return Done{}, BadRequest("Invalid order mapping.")
	}
	t.Record(&ProfileFieldsOrdered{c.IDs})
	return Done{}, nil
}

// ProfileFieldChanged says that a field was added or changed. Values that chose a removed choice are removed.
type ProfileFieldChanged struct {
	Field ProfileField
	Gone  []string // keys of removed choices
}

func (f *ProfileFieldChanged) apply(r *Realm) {
	x := f.Field
	r.reserveID("field", x.ID)
	r.small.profileFields.put(x.ID, &x)
	if len(f.Gone) > 0 {
		r.removeValues(x.ID, func(v string) bool { return slices.Contains(f.Gone, v) })
	}
}

// removeValues removes those values of a field for which isRemoved returns true, of all users.
func (r *Realm) removeValues(field int64, isRemoved func(string) bool) {
	for _, id := range r.users.keys() {
		if v, has := r.users.must(id).Profile[field]; has && isRemoved(v) {
			u := r.users.change(id)
			delete(u.Profile, field)
			delete(u.ProfileHTML, field)
		}
	}
}

func (f *ProfileFieldChanged) notices(r *Realm) []Notice { return r.fieldNotices() }

// ProfileFieldRemoved says that a field was removed, with all users' values of it.
type ProfileFieldRemoved struct{ ID int64 }

func (f *ProfileFieldRemoved) apply(r *Realm) {
	r.small.profileFields.remove(f.ID)
	r.removeValues(f.ID, func(string) bool { return true })
}
func (f *ProfileFieldRemoved) notices(r *Realm) []Notice { return r.fieldNotices() }

// ProfileFieldsOrdered says in which order the fields are listed.
type ProfileFieldsOrdered struct{ IDs []int64 }

func (f *ProfileFieldsOrdered) apply(r *Realm) {
	for i, id := range f.IDs {
		r.small.profileFields.change(id).Order = i + 1
	}
}
func (f *ProfileFieldsOrdered) notices(r *Realm) []Notice { return r.fieldNotices() }

// ProfileFieldsUpdated is the event custom_profile_fields with the whole list.
type ProfileFieldsUpdated struct{ Fields []ProfileField }

func (*ProfileFieldsUpdated) EventType() string { return "custom_profile_fields" }

// fieldNotices sends the whole list to all users.
func (r *Realm) fieldNotices() []Notice {
	return []Notice{{To: r.everyoneAudience(), Event: &ProfileFieldsUpdated{r.ProfileFields()}}}
}

// ChangeProfile asks to set or remove the caller's own custom profile values.
type ChangeProfile struct{ Values []ProfileValue }

func (c ChangeProfile) Decide(t *Turn) (Done, error) {
	me, err := t.RequireHuman()
	if err != nil {
		return Done{}, err
	}
	facts, err := t.profileChanges(me, c.Values, me.IsAdmin())
	if err != nil {
		return Done{}, err
	}
	for _, f := range facts {
		t.Record(f)
	}
	return Done{}, nil
}

// profileValue returns a value in its stored form and its rendering; "" removes the value.
func (t *Turn) profileValue(v ProfileValue, byAdmin bool) (text, html string, err error) {
	f := t.small.profileFields.find(v.Field)
	if f == nil {
		return "", "", BadRequest("Field id %d not found.", v.Field)
	}
	if !f.Editable && !byAdmin {
		return "", "", BadRequest("You are not allowed to change this field. Contact an administrator to update it.")
	}
	if f.Type == UserField && (v.Value == nil || *v.Value != "") {
		if len(v.Users) == 0 && v.Value == nil {
			return "", "", nil
		}
		return t.peopleValue(f, v)
	}
	if v.Users != nil {
		return "", "", BadRequest("%s is not a string", f.Name)
	}
	if v.Value == nil || *v.Value == "" {
		return "", "", nil
	}
	text = *v.Value
	if err := f.checkValue(text); err != nil {
		return "", "", err
	}
	if f.Type == ShortText || f.Type == LongText {
		html = t.Describe(text)
	}
	return text, html, nil
}

// checkValue refuses a text that is no valid value of the field.
func (f *ProfileField) checkValue(text string) error {
	limit := maxShortText
	if f.Type == LongText {
		limit = maxLongText
	}
	switch f.Type {
	case ShortText, LongText, Pronouns, ExternalAccount:
		if runeCount(text) > limit {
			return BadRequest("%s is too long (limit: %d characters)", f.Name, limit)
		}
	case SelectField:
		if _, ok := f.choices()[text]; !ok {
			return BadRequest("'%s' is not a valid choice for '%s'.", text, f.Name)
		}
	case DateField:
		if !validDate(text) {
			return BadRequest("%s is not a date", f.Name)
		}
	case URLField:
		if !IsWebURL(text, false) {
			return BadRequest("%s is not a URL", f.Name)
		}
	}
	return nil
}

// peopleValue returns the stored form of a list of users: the JSON of their ids.
func (t *Turn) peopleValue(f *ProfileField, v ProfileValue) (string, string, error) {
	if v.Value != nil { // also accepted: the list as JSON text, its stored form
		if err := json.Unmarshal([]byte(*v.Value), &v.Users); err != nil {
			return "", "", BadRequest("%s is not a list", f.Name)
		}
	}
	if len(v.Users) > maxPeopleValues {
		return "", "", BadRequest("%s is too long (limit: %d items)", f.Name, maxPeopleValues)
	}
	var unknown []string
	for _, id := range v.Users {
		if u := t.Find(id); u == nil || u.System || !t.MaySeeUser(u) {
			unknown = append(unknown, strconv.FormatInt(int64(id), 10))
		}
	}
	if len(unknown) > 0 {
		return "", "", BadRequest("Invalid user IDs: %s", strings.Join(unknown, ", "))
	}
	for _, id := range v.Users {
		switch u := t.Find(id); {
		case !u.Active:
			return "", "", BadRequest("User with ID %d is deactivated", id)
		case u.IsBot():
			return "", "", BadRequest("User with ID %d is a bot", id)
		}
	}
	if len(v.Users) == 0 {
		return "", "", nil
	}
	data, err := json.Marshal(v.Users)
	if err != nil {
		panic("BUG: encode ids: " + err.Error())
	}
	return string(data), "", nil
}

// validDate reports whether a text is an existing day in the form YYYY-MM-DD.
func validDate(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' || !isDigits(s[:4]) || !isDigits(s[5:7]) || !isDigits(s[8:]) {
		return false
	}
	year, _ := strconv.Atoi(s[:4])
	month, _ := strconv.Atoi(s[5:7])
	day, _ := strconv.Atoi(s[8:])
	if year < 1 || month < 1 || month > 12 || day < 1 {
		return false
	}
	days := []int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && (year%4 == 0 && year%100 != 0 || year%400 == 0) {
		days = 29
	}
	return day <= days
}

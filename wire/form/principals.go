package form

// Principals are the users on whose behalf a request is made: a JSON list of user IDs or of email addresses. The
// type of the first element decides.
type Principals struct {
	UserRefs
	Set bool
}

// DecodeValue accepts a list of user IDs, or a list of email addresses.
func (p *Principals) DecodeValue(v Value) (err *Error) {
	list, err := v.List()
	if err != nil {
		return err
	}
	p.Set = true
	if len(list) > 0 && list[0].kind == KindString {
		p.Emails, err = v.Texts()
		return err
	}
	p.IDs = make([]int64, len(list))
	for i := range list {
		if p.IDs[i], err = list[i].ID(); err != nil {
			return err.Index(i)
		}
	}
	return nil
}

// ParamSchema returns the JSON schema for the API description.
func (p *Principals) ParamSchema() map[string]any {
	return oneOf(
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		map[string]any{"type": "array", "items": map[string]any{"type": "integer"}},
	)
}

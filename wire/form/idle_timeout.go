package form

// IdleTimeout is the time after which an idle event queue expires: seconds, or "mobile" for the server's value
// for phones.
type IdleTimeout struct {
	Seconds int64
	Mobile  bool
	Set     bool
}

// DecodeParam accepts the keyword with and without JSON quotes, because clients do both.
func (t *IdleTimeout) DecodeParam(raw, _ string) (err *Error) {
	t.Set = true
	v, ok := JSON(raw)
	switch {
	case raw == "mobile", ok && v.kind == KindString && v.text == "mobile":
		t.Mobile = true
		return nil
	case !ok:
		return notJSON()
	}
	if t.Seconds, err = v.ID(); err == nil && t.Seconds < 0 {
		return tooSmall()
	}
	return err
}

// ParamSchema returns the JSON schema for the API description.
func (t *IdleTimeout) ParamSchema() map[string]any {
	return oneOf(
		map[string]any{"type": "integer", "minimum": 0},
		map[string]any{"type": "string", "enum": []string{"mobile"}},
	)
}

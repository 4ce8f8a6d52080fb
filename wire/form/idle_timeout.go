package form

// IdleTimeout is how long an event queue may be idle: seconds, or what the server thinks right for a phone.
type IdleTimeout struct {
	Seconds int64
	Mobile  bool
	Set     bool
}

// DecodeParam takes the word with and without JSON's quotes, for there are clients of either habit.
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

func (t *IdleTimeout) ParamSchema() map[string]any {
	return oneOf(
		map[string]any{"type": "integer", "minimum": 0},
		map[string]any{"type": "string", "enum": []string{"mobile"}},
	)
}

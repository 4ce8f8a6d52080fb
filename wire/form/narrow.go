package form

import (
	"slices"
	"strings"
)

// MaxNarrowTerms bounds the terms of a narrow, because each term is evaluated for every candidate message. People
// combine only a few.
const MaxNarrowTerms = 100

// Narrow is a filter of messages: a list of [operator, operand] pairs or {operator, operand, negated} objects.
// Decoding checks only its shape. Unknown operators are refused when the narrow is evaluated.
type Narrow []Term

// Term is one condition of a narrow.
type Term struct {
	Operator string // as sent
	Operand  Operand
	Negated  bool
}

// Operand is a text, an ID or a list of IDs.
type Operand struct {
	Kind OperandKind
	Text string // with IDs: the text as sent, if an ID was out of range
	ID   int64
	IDs  []int64
}

// OperandKind selects the field of Operand that is used.
type OperandKind uint8

const (
	OperandText OperandKind = iota
	OperandID
	OperandIDs
)

var operatorAliases = map[string]string{"stream": "channel", "streams": "channels", "pm-with": "dm"}

// Canonical returns the operator under its current name, with dashes.
func (t Term) Canonical() string {
	name := strings.ReplaceAll(t.Operator, "_", "-")
	if now, old := operatorAliases[name]; old {
		return now
	}
	return name
}

// idOperators are the operators whose operand may be an ID. The operand of dm may be a list of IDs.
var idOperators = []string{"channel", "id", "sender", "group-pm-with", "dm-including", "with", "mentions"}

// DecodeValue accepts at most MaxNarrowTerms terms.
func (n *Narrow) DecodeValue(v Value) *Error {
	list, err := v.List()
	if err != nil {
		return err
	}
	if len(list) > MaxNarrowTerms {
		return Invalid("more than " + itoa(MaxNarrowTerms) + " terms")
	}
	// The shape of all elements is checked before any operand (protocol).
	terms, operands := make(Narrow, len(list)), make([]Value, len(list))
	for i := range list {
		if operands[i], err = terms[i].split(list[i]); err != nil {
			return err.Index(i)
		}
	}
	for i := range terms {
		if err := terms[i].decode(operands[i], list[i]); err != nil {
			return err
		}
	}
	*n = terms
	return nil
}

// split checks the shape of an element and returns its operand.
func (t *Term) split(v Value) (operand Value, err *Error) {
	switch v.kind {
	case KindList:
		if len(v.list) != 2 || v.list[0].kind != KindString || v.list[1].kind != KindString {
			return operand, Invalid("element is not a string pair")
		}
		t.Operator = v.list[0].text
		return v.list[1], nil
	case KindObject:
		operand, _ = v.Get("operand")
		operator, _ := v.Get("operator")
		switch {
		case operand.IsNull():
			return operand, Invalid("operand is missing")
		case operator.IsNull():
			return operand, Invalid("operator is missing")
		}
		return operand, nil
	}
	return operand, Invalid("dict or list required")
}

// decode reads operator, operand and negation of an element. Its errors do not contain the position (protocol).
func (t *Term) decode(operand, v Value) (err *Error) {
	if operator, ok := v.Get("operator"); ok {
		if t.Operator, err = operator.Text(); err != nil {
			return err.Named("operator")
		}
	}
	if err := t.Operand.decode(t.Canonical(), operand); err != nil {
		return err.Named("operand")
	}
	if negated, ok := v.Get("negated"); ok {
		if t.Negated, err = negated.Bool(); err != nil {
			return err.Named("negated")
		}
	}
	return nil
}

func (o *Operand) decode(operator string, v Value) *Error {
	takesID, takesIDs := slices.Contains(idOperators, operator), operator == "dm"
	switch {
	case v.kind == KindString:
		if operator == "search" && strings.TrimSpace(v.text) == "" {
			return At("", " cannot be blank.")
		}
		o.Text = v.text
		return nil
	case v.kind == KindInt && takesID:
		o.Kind = OperandID
		o.ID, _ = v.ID()
		o.Text = v.outOfRange()
		return nil
	case v.kind == KindList && takesIDs && !slices.ContainsFunc(v.list, Value.isNotInt):
		o.Kind, o.IDs = OperandIDs, make([]int64, len(v.list))
		texts, beyond := make([]string, len(v.list)), false
		for i, x := range v.list {
			o.IDs[i], _ = x.ID()
			texts[i], beyond = x.text, beyond || x.outOfRange() != ""
		}
		if beyond {
			o.Text = "[" + strings.Join(texts, ", ") + "]"
		}
		return nil
	case takesID:
		return isNot("a string or integer")
	case takesIDs:
		return isNot("a string or an integer list")
	}
	return isNot("a string")
}

func (v Value) isNotInt() bool { return v.kind != KindInt }

// ParamSchema returns the JSON schema for the API description.
func (n *Narrow) ParamSchema() map[string]any {
	text := map[string]any{"type": "string"}
	operand := oneOf(text, map[string]any{"type": "integer"},
		map[string]any{"type": "array", "items": map[string]any{"type": "integer"}})
	return map[string]any{"type": "array", "items": oneOf(
		map[string]any{"type": "object", "required": []string{"operator", "operand"}, "properties": map[string]any{
			"operator": text, "operand": operand, "negated": map[string]any{"type": "boolean"}}},
		map[string]any{"type": "array", "items": text, "minItems": 2, "maxItems": 2},
	)}
}

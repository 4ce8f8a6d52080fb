package server

import (
	"regexp"
	"slices"
	"testing"
)

// A request that is refused because of its form asks nothing about permissions. Its cell fails, unless formRefusals has
// a row for it.

// formRefusals are refusals of a form that express a rule about the caller. An unnecessary row fails the test.
var formRefusals = []struct{ endpoint, text, rule string }{
	{"POST /external/{integration}", "Missing 'api_key' argument", "the key of a service is a parameter, so a caller " +
		"without a key lacks that parameter"},
}

// formCodes are the codes of errors that only the decoding of parameters returns.
var formCodes = []string{"REQUEST_VARIABLE_MISSING", "REQUEST_VARIABLE_INVALID", "REQUEST_CONFUSING_VAR"}

// formTexts matches the errors about forms that have the code of all bad requests.
var formTexts = regexp.MustCompile(`: Value error, | is not (valid JSON|an? [^']+)$| is too (small|large|short\.)$|` +
	` is too long \(limit: | cannot be blank$| has invalid format$| field is missing: Field required$|` +
	` is unexpected$|` +
	`^Unsupported parameter combination: |^Invalid value for |^Invalid (op|type|flag|[a-z]+_[a-z_]+)(\[.*\])?$`)

// refusesForm reports whether the form of the request was refused.
func (a matrixRequest) refusesForm() bool {
	return slices.Contains(formCodes, a.code) || a.code == "BAD_REQUEST" && formTexts.MatchString(a.refusal)
}

// excusedForm returns the row of formRefusals for a request, or -1.
func (a matrixRequest) excusedForm() int {
	e := endpointOf(a.method, a.path)
	return slices.IndexFunc(formRefusals, func(x struct{ endpoint, text, rule string }) bool {
		return x.endpoint == e && x.text == a.refusal
	})
}

// checkForms fails for every unnecessary row of formRefusals.
func (l *coverage) checkForms(t *testing.T) {
	for i, x := range formRefusals {
		if !l.forms[i] {
			t.Errorf("%s does not answer %q: remove its row from formRefusals", x.endpoint, x.text)
		}
	}
}

// The errors of package form are recognized, and the errors about permissions and objects are not.
func TestMatrixKnowsFormRefusals(t *testing.T) {
	for _, x := range []struct {
		code, text string
		form       bool
	}{
		{"REQUEST_VARIABLE_MISSING", "Missing 'label' argument", true},
		{"REQUEST_VARIABLE_INVALID", "Bad value for 'x': 1", true},
		{"REQUEST_CONFUSING_VAR", "Can't decide between 'a' and 'b' arguments", true},
		{"BAD_REQUEST", "x is not valid JSON", true},
		{"BAD_REQUEST", "to[0] is not an integer", true},
		{"BAD_REQUEST", "name is too long (limit: 60 characters)", true},
		{"BAD_REQUEST", "name cannot be blank", true},
		{"BAD_REQUEST", "Invalid op: Value error, Not in the list of possible values", true},
		{"BAD_REQUEST", "Invalid report_type", true},
		{"BAD_REQUEST", `x["a"] field is missing: Field required`, true},
		{"BAD_REQUEST", `Argument "a" at x["a"] is unexpected`, true},
		{"BAD_REQUEST", "Unsupported parameter combination: a, b", true},
		{"BAD_REQUEST", `Invalid value for "op". Specify one of "add" or "remove".`, true},
		{"BAD_REQUEST", "Invalid attachment", false},
		{"BAD_REQUEST", "Invalid channel ID", false},
		{"BAD_REQUEST", "BigBlueButton is not configured.", false},
		{"UNAUTHORIZED", "Account is not associated with this subdomain", false},
		{"UNAUTHORIZED_PRINCIPAL", "Must be an organization administrator", false},
	} {
		if got := (matrixRequest{code: x.code, refusal: x.text}).refusesForm(); got != x.form {
			t.Errorf("%s %q: a refusal of the form: %v, want %v", x.code, x.text, got, x.form)
		}
	}
}

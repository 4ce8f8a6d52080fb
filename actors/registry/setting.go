package registry

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Setting describes one setting of an operator. Its name is the flag (--name) and the key of the TOML file; the
// environment variable is Env. Flags, the help text and the reference page are made from it.
type Setting struct {
	Name    string
	Default string // as an operator writes it; empty is the zero value
	Group   string // heading in the help text and on the reference page
	Meaning string
	Value   any // pointer to the field: *string, *bool, *int or *time.Duration
}

// The groups of settings.
const (
	General = "General"
	Network = "Network"
	TLS     = "TLS"
	Limits  = "Limits"
	Access  = "Access"
	Mail    = "Mail"
	Push    = "Push notifications"
	Cluster = "Several machines"
	Log     = "Log"
)

// SettingGroups returns the groups in the order in which help and documentation show them.
func SettingGroups() []string {
	return []string{General, Network, TLS, Limits, Access, Mail, Push, Cluster, Log}
}

// Type is the type of a setting's value. It decides how text is parsed and what documentation calls the value.
type Type string

// The types of settings.
const (
	Text     Type = "text"
	Number   Type = "number" // a whole number, not negative
	Switch   Type = "switch" // true or false
	Duration Type = "time"   // such as 30s or 2m, not negative
)

// Type returns the type of the value.
func (x *Setting) Type() Type {
	switch x.Value.(type) {
	case *string:
		return Text
	case *bool:
		return Switch
	case *int:
		return Number
	case *time.Duration:
		return Duration
	default:
		panic(fmt.Sprintf("BUG: setting %s has a field of type %T", x.Name, x.Value))
	}
}

// EnvironmentPrefix begins the name of every environment variable that sets a setting.
const EnvironmentPrefix = "PARLEY_"

// Env returns the name of the environment variable: the prefix and the name in capitals, with _ for -.
func (x *Setting) Env() string {
	return EnvironmentPrefix + strings.ToUpper(strings.ReplaceAll(x.Name, "-", "_"))
}

// Text returns the value as an operator writes it.
func (x *Setting) Text() string {
	switch v := x.Value.(type) {
	case *string:
		return *v
	case *bool:
		return strconv.FormatBool(*v)
	case *int:
		return strconv.Itoa(*v)
	case *time.Duration:
		return v.String()
	default:
		panic(fmt.Sprintf("BUG: setting %s has a field of type %T", x.Name, x.Value))
	}
}

// Set parses text and stores the value. It does not check the range; CheckNegative does that for all sources of values.
func (x *Setting) Set(text string) error {
	switch v := x.Value.(type) {
	case *string:
		*v = text
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		*v = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		*v = n
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 30s", text)
		}
		*v = d
	default:
		panic(fmt.Sprintf("BUG: setting %s has a field of type %T", x.Name, x.Value))
	}
	return nil
}

// CheckNegative returns an error if the value is a negative number or duration.
func (x *Setting) CheckNegative() error {
	switch v := x.Value.(type) {
	case *int:
		if *v < 0 {
			return fmt.Errorf("%s must not be negative: %d", x.Name, *v)
		}
	case *time.Duration:
		if *v < 0 {
			return fmt.Errorf("%s must not be negative: %s", x.Name, FormatDuration(*v))
		}
	}
	return nil
}

// SetDefaults stores the default of each setting.
func SetDefaults(table []Setting) {
	for i := range table {
		if x := &table[i]; x.Default != "" {
			if err := x.Set(x.Default); err != nil {
				panic(fmt.Sprintf("BUG: default of setting %s: %v", x.Name, err))
			}
		}
	}
}

// FormatDuration writes a duration as an operator would: 2m, not 2m0s.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

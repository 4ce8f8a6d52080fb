package wire

import (
	"time"
	_ "time/tzdata" // the binary must know the time zones also where the system does not
)

// validTimezone reports whether a name is an IANA time zone; "" is none.
func validTimezone(name string) bool {
	if name == "" {
		return true
	}
	if name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

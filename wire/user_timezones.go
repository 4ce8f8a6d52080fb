package wire

import (
	"time"
	_ "time/tzdata" // for systems without a time zone database
)

// validTimezone reports whether a name is an IANA time zone. "" means none and is valid.
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

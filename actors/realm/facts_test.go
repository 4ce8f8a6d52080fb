package realm

import "testing"

// A program that does not know a change of format refuses the data by its version, so each change has a number, which
// no type can have.
func TestFormatNumbers(t *testing.T) {
	for _, n := range formatNumbers {
		if _, err := NewByNumber(n); err == nil {
			t.Errorf("number %d is a change of format and a type", n)
		}
		if n > NewestNumber() {
			t.Errorf("the newest number is %d, less than that of format %d", NewestNumber(), n)
		}
	}
}

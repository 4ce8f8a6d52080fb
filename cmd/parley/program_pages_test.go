package main

import "testing"

// The program takes less memory after its pages are released, and continues.
func TestReleaseProgramPages(t *testing.T) {
	before := mappedPages()
	if before == 0 {
		t.Skip("the kernel does not say how much is mapped from files")
	}
	if err := releaseProgramPages(); err != nil {
		t.Fatal(err)
	}
	if after := mappedPages(); after > before*3/4 {
		t.Errorf("%d bytes of files are mapped, %d before", after, before)
	}
}

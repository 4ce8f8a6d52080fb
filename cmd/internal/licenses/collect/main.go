// Command collect prints the notices of the third-party code in parley. `make licenses` writes them to the file
// that the program embeds.
package main

import (
	"fmt"
	"os"

	"parley/cmd/internal/licenses"
)

func main() {
	text, err := licenses.Collect(".", "./cmd/parley")
	if err != nil {
		fmt.Fprintln(os.Stderr, "collect: "+err.Error())
		os.Exit(1)
	}
	fmt.Print(text)
}

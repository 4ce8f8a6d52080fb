// Check compares recordings of answers and events with the protocol's description. It prints the differences, the
// missing endpoints, and the deviations that were not needed. It exits with status 1 if there is a difference.
//
//	check RECORDING...
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"parley/wire/contract"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: check RECORDING...")
		os.Exit(2)
	}
	os.Exit(run(os.Args[1:]))
}

func run(files []string) int {
	c, err := contract.Load()
	if errors.Is(err, contract.ErrNoDescription) {
		fmt.Println("skipped:", err)
		return 0
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var report contract.Report
	for _, name := range files {
		if err := checkFile(c, name, &report); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Printf("%d answers, %d events checked\n", report.Answers, report.Events)
	if len(report.Missing) > 0 {
		fmt.Printf("%d endpoints were missing:\n", len(report.Missing))
		for _, name := range slices.Sorted(maps.Keys(report.Missing)) {
			fmt.Println("  " + name)
		}
	}
	for _, d := range c.Unused() {
		fmt.Printf("deviation not needed: %s %s (%s): %s\n", d.Where, d.Path, d.What, d.Reason)
	}
	differ := report.Distinct()
	for _, line := range differ {
		fmt.Println("FAIL " + line)
	}
	fmt.Printf("%d differences\n", len(differ))
	if len(differ) > 0 || report.Answers == 0 {
		return 1
	}
	return 0
}

func checkFile(c *contract.Contract, name string, to *contract.Report) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.CheckRecording(f, to); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

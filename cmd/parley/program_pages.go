package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxIdlePages is how much of the program file an idle server has mapped before it releases the pages, in bytes. The
// background work of an idle server needs about 15 MB, because the kernel maps the neighbours of each page, too.
const maxIdlePages = 20 << 20

// mappedPages returns the bytes of files that are mapped and resident; 0: unknown.
func mappedPages() int {
	text, err := os.ReadFile("/proc/self/statm")
	var size, resident, shared int // pages
	if err == nil {
		_, err = fmt.Sscan(string(text), &size, &resident, &shared)
	}
	if err != nil {
		return 0
	}
	return shared * os.Getpagesize()
}

// releaseProgramPages unmaps the pages of the program file that were read until now. Most of them are code and tables
// of the start or of rare requests; those in use are mapped again at their next access, from the kernel's cache. Only
// mappings that cannot be written are released, so nothing is lost.
func releaseProgramPages() error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uintptr
		var mode, offset, device, inode string
		if _, err := fmt.Sscanf(line, "%x-%x %s %s %s %s", &from, &to, &mode, &offset, &device, &inode); err != nil {
			return fmt.Errorf("read /proc/self/maps: %q: %w", line, err)
		}
		if strings.Contains(mode, "w") || !strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+program) {
			continue
		}
		if !strings.Contains(mode, "x") {
			// The kernel mapped 2 MB of tables at a time. Without support for huge pages it fails, and does not matter.
			unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_NOHUGEPAGE)
		}
		if _, _, fault := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); fault != 0 {
			return fmt.Errorf("release pages of the program: %w", fault)
		}
	}
	return nil
}

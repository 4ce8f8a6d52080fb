package machine

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// MemoryLimit is how much memory the Go runtime should use at most, and where the number comes from. Near the limit the
// runtime collects garbage more often, so that the kernel does not end the process for garbage.
type MemoryLimit struct {
	Bytes  int64 // math.MaxInt64: no limit is known
	Source string
}

// memoryShare is the part of the machine's or container's memory that the limit is, if no setting says otherwise. The
// rest is for the kernel's buffers of sockets and files, and for memory that the runtime does not count.
const memoryShare = 0.9

// ChooseMemoryLimit returns the limit of the setting memory-limit in MiB, if it is not 0, else of GOMEMLIMIT, else
// memoryShare of the smallest limit of the process's control groups and the machine's memory.
func ChooseMemoryLimit(setting int) MemoryLimit {
	if setting > 0 {
		return MemoryLimit{int64(setting) << 20, "memory-limit"}
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return MemoryLimit{debug.SetMemoryLimit(-1), "GOMEMLIMIT"}
	}
	l := availableMemory(os.DirFS("/"))
	if l.Bytes < math.MaxInt64 {
		l.Bytes = int64(float64(l.Bytes) * memoryShare)
	}
	return l
}

// availableMemory returns the smallest limit of the control groups of this process and of their parents, or the
// machine's memory if it is smaller. root is the root of the file system.
func availableMemory(root fs.FS) MemoryLimit {
	least := MemoryLimit{math.MaxInt64, "unknown"}
	consider := func(bytes int64, source string) {
		if bytes > 0 && bytes < least.Bytes {
			least = MemoryLimit{bytes, source}
		}
	}
	consider(machineMemory(root), "/proc/meminfo")
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		// number:controllers:path; version 2 has no controllers
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, files := "sys/fs/cgroup", []string{"memory.max", "memory.high"}
		switch {
		case parts[1] == "":
		case containsWord(parts[1], "memory"):
			base, files = "sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}
		default:
			continue
		}
		// Without a namespace of its own, a container sees its path, but only its own group is mounted, at the root.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			for _, name := range files {
				file := path.Join(base, dir, name)
				consider(readBytes(root, file), "/"+file)
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// containsWord reports whether a comma-separated list contains a word.
func containsWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// readBytes returns the number in a file, or 0 if there is none, such as "max".
func readBytes(root fs.FS, file string) int64 {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// machineMemory returns the memory of the machine in bytes, 0 if it is unknown.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}

// Shares of the memory limit that answers and unacknowledged events get, and the most they get of it in MiB, if no
// setting says otherwise.
const (
	answerMemoryShare  = 8
	maxAnswerMemory    = 128
	unackedMemoryShare = 4
	maxUnackedMemory   = 1024
	// The rows of replicas take about twice as much memory as they have bytes, so replicas take half of the limit.
	replicaMemoryShare = 4
	maxReplicaMemory   = 1 << 20
	minSharedMemory    = 32 // of each: a server with less memory works badly, but it works
	// Organizations in memory take half of the limit. A small one with 20 users takes about awakeBytes.
	awakeMemoryShare = 2
	awakeBytes       = 256 << 10
	minAwake         = 100
	maxAwake         = 1 << 20
)

// memoryFor returns the value of a setting in bytes: that of the operator in MiB, or a share of the memory limit.
func (l MemoryLimit) memoryFor(given int, share int64, maxMiB int) int {
	if given > 0 {
		return given << 20
	}
	return max(minSharedMemory<<20, int(min(l.Bytes/share, int64(maxMiB)<<20)))
}

// Answers returns how many bytes answers can take in memory. given is the setting answer-memory in MiB, or 0.
func (l MemoryLimit) Answers(given int) int {
	return l.memoryFor(given, answerMemoryShare, maxAnswerMemory)
}

// Unacked returns how many bytes unacknowledged events can take in memory. given is the setting unacked-memory in MiB,
// or 0.
func (l MemoryLimit) Unacked(given int) int {
	return l.memoryFor(given, unackedMemoryShare, maxUnackedMemory)
}

// Awake returns how many organizations are in memory at once before those without requests leave it early. given is the
// setting awake-organizations, or 0.
func (l MemoryLimit) Awake(given int) int {
	if given > 0 {
		return given
	}
	return max(minAwake, int(min(l.Bytes/awakeMemoryShare/awakeBytes, maxAwake)))
}

// Replicas returns how many bytes of rows an edge loads. given is the setting replica-memory in MiB, or 0.
func (l MemoryLimit) Replicas(given int) int {
	return l.memoryFor(given, replicaMemoryShare, maxReplicaMemory)
}

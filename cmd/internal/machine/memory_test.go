package machine

import (
	"math"
	"testing"
	"testing/fstest"
)

// The memory limit is the smallest of the machine's memory and of the limits of all control groups that the process is
// in, of both versions.
func TestMemoryLimit(t *testing.T) {
	const machine = "proc/meminfo"
	for name, x := range map[string]struct {
		files  map[string]string
		want   int64
		source string
	}{
		"nothing is known": {nil, math.MaxInt64, "unknown"},
		"machine": {map[string]string{
			machine:                    "MemTotal:       2048 kB\nMemFree: 1 kB\n",
			"proc/self/cgroup":         "0::/\n",
			"sys/fs/cgroup/memory.max": "max\n",
		}, 2 << 20, "/proc/meminfo"},
		"service of version 2, limited by its slice": {map[string]string{
			machine:                                 "MemTotal: 8388608 kB\n",
			"proc/self/cgroup":                      "0::/system.slice/parley.service\n",
			"sys/fs/cgroup/memory.max":              "max\n",
			"sys/fs/cgroup/system.slice/memory.max": "5000000\n",
			"sys/fs/cgroup/system.slice/parley.service/memory.max":  "max\n",
			"sys/fs/cgroup/system.slice/parley.service/memory.high": "7000000\n",
		}, 5_000_000, "/sys/fs/cgroup/system.slice/memory.max"},
		"memory.high": {map[string]string{
			"proc/self/cgroup":           "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "9000000\n", "sys/fs/cgroup/a/memory.high": "8000000\n",
		}, 8_000_000, "/sys/fs/cgroup/a/memory.high"},
		"container of version 1, which sees the path of the host": {map[string]string{
			machine:            "MemTotal: 8388608 kB\n",
			"proc/self/cgroup": "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "6000000\n",
		}, 6_000_000, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		"version 1 without a limit": {map[string]string{
			machine:            "MemTotal: 1024 kB\n",
			"proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 1 << 20, "/proc/meminfo"},
	} {
		root := fstest.MapFS{}
		for file, text := range x.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := availableMemory(root); got.Bytes != x.want || got.Source != x.source {
			t.Errorf("%s: %v, want %d from %s", name, got, x.want, x.source)
		}
	}
}

// Answers and unacknowledged events get a share of a small memory, and the usual amount of a large one. A setting wins.
func TestMemoryShares(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	for _, x := range []struct {
		limit, answers, unacked  int // settings in MiB, 0: not given
		wantAnswers, wantUnacked int // MiB
	}{
		{limit: 512, wantAnswers: 64, wantUnacked: 128},
		{limit: 64, wantAnswers: 32, wantUnacked: 32},
		{limit: 1 << 20, wantAnswers: 128, wantUnacked: 1024},
		{limit: 512, answers: 500, unacked: 7, wantAnswers: 500, wantUnacked: 7},
	} {
		l := ChooseMemoryLimit(x.limit)
		if a, u := l.Answers(x.answers)>>20, l.Unacked(x.unacked)>>20; a != x.wantAnswers || u != x.wantUnacked {
			t.Errorf("%+v: %d MiB for answers, %d for events", x, a, u)
		}
		if l.Bytes != int64(x.limit)<<20 || l.Source != "memory-limit" {
			t.Errorf("%+v: %v", x, l)
		}
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	if l := ChooseMemoryLimit(0); l.Source != "GOMEMLIMIT" {
		t.Errorf("with GOMEMLIMIT the limit is from %s", l.Source)
	}
}

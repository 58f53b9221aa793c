package measure

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of CPU time in /proc, on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// Use is what a process used.
type Use struct {
	CPU      time.Duration // with the children that it waited for
	Children time.Duration // CPU of those alone
	RSS      int64         // bytes, now
	Peak     int64         // bytes, ever
}

var errProc = errors.New("unknown text in /proc")

// Used reads what a process used so far.
func Used(pid int) (Use, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Use{}, err
	}
	own, children, err := cpuOf(string(stat))
	if err != nil {
		return Use{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Use{}, err
	}
	u := Use{CPU: own + children, Children: children}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		to := map[string]*int64{"VmRSS": &u.RSS, "VmHWM": &u.Peak}[key]
		if to == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Use{}, fmt.Errorf("%w: %s", errProc, line)
		}
		*to = kib << 10
	}
	return u, nil
}

// cpuOf is the CPU time in the text of /proc/PID/stat, user and system: of the process
// and of the children that it waited for.
func cpuOf(stat string) (own, children time.Duration, err error) {
	// The second field is the name, in parentheses, and may hold anything.
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const first, last = 11, 14
	if len(f) <= last {
		return 0, 0, fmt.Errorf("%w: %q", errProc, stat)
	}
	var sum [2]time.Duration
	for i, word := range f[first : last+1] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("%w: %q", errProc, stat)
		}
		sum[i/2] += time.Duration(n) * tick
	}
	return sum[0], sum[1], nil
}

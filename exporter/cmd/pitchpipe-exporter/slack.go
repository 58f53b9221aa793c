package main

import (
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// timerSlack is how late the kernel may wake a thread of this program, so that it wakes it
// less often. Samples are a second apart and may be as late.
const timerSlack = time.Millisecond

// unhurried lets the kernel wake this program's threads later than the 50 µs of others.
// One of them, the Go runtime's own, looks after the rest at least that often while they
// work, which takes a sixth of all that sampling takes. Without CAP_SYS_NICE it cannot be
// changed from inside, and the service's TimerSlackNSec= does it; threads that come later
// are as those from which they come.
func unhurried() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	slack := []byte(strconv.FormatInt(timerSlack.Nanoseconds(), 10))
	for _, t := range tasks {
		// A thread is found under its number as a process is. Where that is refused, it is
		// woken as often as any other.
		_ = os.WriteFile(filepath.Join("/proc", t.Name(), "timerslack_ns"), slack, 0)
	}
}

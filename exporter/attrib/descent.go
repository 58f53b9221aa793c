package attrib

import (
	"math"

	"pitchpipe/exporter/hostfs"
)

// descent is what /proc/<pid>/stat says of where a process comes from.
type descent struct {
	parent int
	start  uint64 // ticks after boot, 0 = unknown
	image  image
}

// image distinguishes the program that a process runs from the one after its next exec, by where
// the kernel put its code, its stack and its environment, which is elsewhere each time.
// Without the right to trace the process it is unknown.
type image struct {
	code, stack, environ uint64
}

func (i image) known() bool { return i.stack != 0 && i.environ != 0 }

// descent reads a process's parent, start time and image.
func (e *procs) descent(pid int) (d descent, ok bool) {
	data, err := hostfs.ReadInto(e.buf, e.root.Pid(pid, "stat"))
	if err != nil {
		return descent{}, false
	}
	e.buf = data
	return parseDescent(data)
}

func parseDescent(data []byte) (d descent, ok bool) {
	const parent, start, code, stack, environ = 4, 22, 26, 28, 50 // as proc(5) numbers them
	f, last := hostfs.ParseProcStat(data)
	if last < parent || f[parent] > math.MaxInt32 {
		return descent{}, false
	}
	return descent{int(f[parent]), f[start], image{f[code], f[stack], f[environ]}}, true
}

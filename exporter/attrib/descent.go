package attrib

import (
	"bytes"
	"math"

	"pitchpipe/exporter/hostfs"
)

// descent is what /proc/<pid>/stat says of where a process comes from.
type descent struct {
	parent int
	start  uint64 // ticks after boot, 0 = not told
	image  image
}

// image tells the program that a process runs from the one after its next exec, by where
// the kernel put its code, its stack and its environment, which is elsewhere each time.
// Who may not trace the process is told none of it.
type image struct {
	code, stack, environ uint64
}

func (i image) told() bool { return i.stack != 0 && i.environ != 0 }

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
	// The name may hold anything, so that counting begins after its end.
	rest := data[bytes.LastIndexByte(data, ')')+1:]
	// proc(5) numbers the fields from 1; the state after the name is the third.
	const first, parent, start, code, stack, environ = 3, 4, 22, 26, 28, 50
	for field := first; field <= environ; field++ {
		rest = bytes.TrimLeft(rest, " \n")
		text := rest
		if i := bytes.IndexByte(rest, ' '); i >= 0 {
			text, rest = rest[:i], rest[i:]
		} else {
			rest = nil
		}
		var into *uint64
		switch field {
		case parent:
			n, err := hostfs.Uint(bytes.TrimSpace(text))
			if err != nil || n > math.MaxInt32 {
				return descent{}, false
			}
			d.parent, ok = int(n), true
		case start:
			into = &d.start
		case code:
			into = &d.image.code
		case stack:
			into = &d.image.stack
		case environ:
			into = &d.image.environ
		}
		if into != nil {
			*into, _ = hostfs.Uint(bytes.TrimSpace(text)) // 0 = not told
		}
	}
	return d, ok
}

package attrib

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// stir reports whether a process may have come or gone, for the price of one small file: each
// that comes takes another number, and each that goes takes its threads along. The zero
// value says nothing.
type processCount struct {
	threads int    // on the machine
	newest  uint64 // number that was given away last
}

// since reads it as it is now; the zero value where the machine's own /proc/loadavg does
// not tell. Whether it does is asked where there was none before, or wholly.
func (was processCount) since(root hostfs.Root, buf []byte, wholly bool) processCount {
	if (was == processCount{} || wholly) && !kernelLoadavg(root) {
		return processCount{}
	}
	data, err := hostfs.ReadInto(buf, root.Proc("loadavg"))
	if err != nil {
		return processCount{}
	}
	return parseLoadavg(data)
}

// parseLoadavg reads "0.74 1.19 2.18 2/345 12345".
func parseLoadavg(data []byte) processCount {
	const parts, tasks, newest = 5, 3, 4
	f := bytes.Fields(data)
	if len(f) != parts {
		return processCount{}
	}
	_, all, ok := bytes.Cut(f[tasks], []byte{'/'})
	threads, err1 := hostfs.Uint(all)
	number, err2 := hostfs.Uint(f[newest])
	if !ok || err1 != nil || err2 != nil || threads == 0 || threads > 1<<30 || number == 0 {
		return processCount{}
	}
	return processCount{int(threads), number}
}

// kernelLoadavg reports whether the file is the kernel's, and not one that stands for it in a
// container or a copy, and is about the processes that this /proc lists: the number that it
// names is one of the reader's own namespace.
func kernelLoadavg(root hostfs.Root) bool {
	var fs unix.Statfs_t
	if unix.Statfs(root.Proc("loadavg"), &fs) != nil || fs.Type != unix.PROC_SUPER_MAGIC {
		return false
	}
	data, err := hostfs.Read(root.Pid(root.Self(), "status"))
	if err != nil {
		return false
	}
	numbers, ok := hostfs.Value(data, "NSpid:") // a kernel before namespaces has none
	return ok && len(strings.Fields(numbers)) == 1
}

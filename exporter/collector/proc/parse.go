package proc

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/hostfs"
)

// What processes count, and the column of each.
const (
	minorFaults = iota
	majorFaults
	userTicks
	systemTicks
	readChars
	writeChars
	readBytes
	writeBytes
	voluntary // context switches
	involuntary
	kinds
)

func columns() [kinds]string {
	return [kinds]string{
		api.ColMinorFaults, api.ColMajorFaults, api.ColUserSeconds, api.ColSystemSeconds, api.ColReadChars, api.ColWriteChars,
		api.ColReadBytes, api.ColWriteBytes, api.ColVoluntary, api.ColInvoluntary,
	}
}

// counts is what processes counted, by kind.
type counts [kinds]uint64

func (c counts) plus(o counts) counts {
	for k, v := range o {
		c[k] += v
	}
	return c
}

func (c counts) ticks() uint64 { return c[userTicks] + c[systemTicks] }

// stat is the part of /proc/<pid>/stat that is used.
type stat struct {
	parent     int
	own        counts
	children   counts // of those that it waited for, with theirs
	threads    uint64
	startTicks uint64 // after boot: distinguishes two processes of one id
	rssPages   uint64
}

// parseStat reads /proc/<pid>/stat.
func parseStat(data []byte) (stat, error) {
	f, last := hostfs.ParseProcStat(data)
	if last < 24 {
		return stat{}, fmt.Errorf("%w: process stat %.60q has %d fields", hostfs.ErrFormat, data, last)
	}
	return stat{
		parent:   int(min(f[4], math.MaxInt32)),
		own:      counts{minorFaults: f[10], majorFaults: f[12], userTicks: f[14], systemTicks: f[15]},
		children: counts{minorFaults: f[11], majorFaults: f[13], userTicks: f[16], systemTicks: f[17]},
		threads:  f[20], startTicks: f[22], rssPages: f[24],
	}, nil
}

// parseSwitches reads the context switches off /proc/<pid>/task/<tid>/status, where
// they are the last two lines.
func parseSwitches(data []byte) (c counts, err error) {
	// This is read for every thread of every job that runs each second, so nothing is copied.
	for i, name := range [...]string{"\nvoluntary_ctxt_switches:", "\nnonvoluntary_ctxt_switches:"} {
		kind := voluntary + i
		at := bytes.LastIndex(data, []byte(name))
		if at < 0 {
			return c, fmt.Errorf("%w: no %.30q in a status file", hostfs.ErrFormat, name)
		}
		text, _, _ := bytes.Cut(data[at+len(name):], []byte{'\n'})
		if c[kind], err = hostfs.Uint(bytes.TrimSpace(text)); err != nil {
			return c, fmt.Errorf("%s: %w", name[1:], err)
		}
	}
	return c, nil
}

// kibibytes reads a size off /proc/<pid>/status, in bytes; 0 where it is not there.
func kibibytes(data []byte, name string) uint64 {
	_, rest, _ := bytes.Cut(data, []byte(name))
	text, _, _ := bytes.Cut(rest, []byte(" kB"))
	v, _ := hostfs.Uint(bytes.TrimSpace(text))
	return v << 10
}

// fatal reads off /proc/<pid>/status which signals end a process, bit n-1 for signal n: those that it neither
// catches, ignores nor blocks. It is 0 of one that has ended, and of a scheduler's daemon among the job's
// processes, which gets no signal of the job. SIGKILL is in any other.
func fatal(data []byte) uint64 {
	const (
		common   = 1<<31 - 1 // the others are for real-time programs
		harmless = 1<<(unix.SIGCHLD-1) | 1<<(unix.SIGCONT-1) | 1<<(unix.SIGURG-1) | 1<<(unix.SIGWINCH-1)
	)
	for _, other := range []string{"Name:\tslurmstepd\n", "Name:\tnomad\n", "\nState:\tZ"} {
		if bytes.Contains(data[:min(len(data), 100)], []byte(other)) {
			return 0
		}
	}
	handled := uint64(harmless)
	for _, name := range []string{"\nSigBlk:\t", "\nSigIgn:\t", "\nSigCgt:\t"} {
		_, rest, _ := bytes.Cut(data, []byte(name))
		mask, err := strconv.ParseUint(string(rest[:min(len(rest), 16)]), 16, 64)
		if err != nil {
			return 0
		}
		handled |= mask
	}
	return common &^ handled
}

// Allowed reads how many CPUs a process may run on off /proc/<pid>/status, 0 if
// it does not say.
func Allowed(data []byte) int {
	cpus, err := hostfs.CPUList(hostfs.Value(data, "Cpus_allowed_list"))
	if err != nil {
		return 0
	}
	return len(cpus)
}

// parseIO reads /proc/<pid>/io, which includes what waited-for children left.
func parseIO(data []byte) (c counts, err error) {
	var ok bool
	if c[readChars], ok = hostfs.Count(data, "rchar"); !ok {
		return c, fmt.Errorf("%w: process io %.60q", hostfs.ErrFormat, data)
	}
	c[writeChars], _ = hostfs.Count(data, "wchar") // what is missing is 0
	c[readBytes], _ = hostfs.Count(data, "read_bytes")
	c[writeBytes], _ = hostfs.Count(data, "write_bytes")
	return c, nil
}

package proc

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"pitchpipe/exporter/hostfs"
)

// Stat is the part of /proc/<pid>/stat that is used.
type Stat struct {
	Parent     int
	Own        Use
	Children   Use // of those that it waited for, with theirs
	Threads    uint64
	StartTicks uint64 // after boot: distinguishes two processes of one id
	RSSPages   uint64
}

// Use is what processes took of the machine.
type Use struct {
	MinorFaults, MajorFaults, UserTicks, SystemTicks uint64
}

func (u Use) plus(v Use) Use {
	return Use{u.MinorFaults + v.MinorFaults, u.MajorFaults + v.MajorFaults, u.UserTicks + v.UserTicks, u.SystemTicks + v.SystemTicks}
}

func (u Use) ticks() uint64 { return u.UserTicks + u.SystemTicks }

// ParseStat reads /proc/<pid>/stat.
func ParseStat(data []byte) (Stat, error) {
	f, last := hostfs.ParseProcStat(data)
	if bytes.IndexByte(data, ')') < 0 || last < 24 {
		return Stat{}, fmt.Errorf("%w: process stat %.60q has %d fields", hostfs.ErrFormat, data, last)
	}
	return Stat{
		Parent:   int(min(f[4], math.MaxInt32)),
		Own:      Use{MinorFaults: f[10], MajorFaults: f[12], UserTicks: f[14], SystemTicks: f[15]},
		Children: Use{MinorFaults: f[11], MajorFaults: f[13], UserTicks: f[16], SystemTicks: f[17]},
		Threads:  f[20], StartTicks: f[22], RSSPages: f[24],
	}, nil
}

// Turns is what /proc/<pid>/task/<tid>/schedstat says of a thread: while it is the same
// the thread did not run, and whatever else it counts stands still. The zero value is
// that of a kernel that does not count.
type Turns struct {
	Ran    uint64 // ns
	Waited uint64 // ns, for a CPU
	Times  uint64 // that it got one
}

// ParseTurns reads such a file.
func ParseTurns(data []byte) (Turns, error) {
	var t Turns
	f := bytes.Fields(data)
	if len(f) < 3 {
		return t, fmt.Errorf("%w: schedstat %.60q", hostfs.ErrFormat, data)
	}
	var errs [3]error
	t.Ran, errs[0] = hostfs.Uint(f[0])
	t.Waited, errs[1] = hostfs.Uint(f[1])
	t.Times, errs[2] = hostfs.Uint(f[2])
	if err := errors.Join(errs[:]...); err != nil {
		return Turns{}, fmt.Errorf("schedstat %.60q: %w", data, err)
	}
	return t, nil
}

// Switches is what a thread's status file counts.
type Switches struct {
	Voluntary   uint64
	Involuntary uint64
}

// ParseSwitches reads the context switches off /proc/<pid>/task/<tid>/status, where
// they are the last two lines.
func ParseSwitches(data []byte) (Switches, error) {
	// This is read for every thread of every job each second, so nothing is copied.
	count := func(name string) (uint64, error) {
		i := bytes.LastIndex(data, []byte(name))
		if i < 0 {
			return 0, fmt.Errorf("%w: no %.30q in a status file", hostfs.ErrFormat, name)
		}
		text, _, _ := bytes.Cut(data[i+len(name):], []byte{'\n'})
		v, err := hostfs.Uint(bytes.TrimSpace(text))
		if err != nil {
			return 0, fmt.Errorf("%w: %s is %.30q", hostfs.ErrFormat, name, text)
		}
		return v, nil
	}
	voluntary, err := count("\nvoluntary_ctxt_switches:")
	if err != nil {
		return Switches{}, err
	}
	involuntary, err := count("\nnonvoluntary_ctxt_switches:")
	return Switches{voluntary, involuntary}, err
}

// Allowed reads how many CPUs a process may run on off /proc/<pid>/status, 0 where
// it does not say.
func Allowed(data []byte) int {
	text, _ := hostfs.Value(data, "Cpus_allowed_list:")
	cpus, err := hostfs.CPUList(text)
	if err != nil {
		return 0
	}
	return len(cpus)
}

// IO is what /proc/<pid>/io counts, with what waited-for children left.
type IO struct {
	ReadChars, WriteChars, ReadBytes, WriteBytes uint64
}

// ParseIO reads /proc/<pid>/io.
func ParseIO(data []byte) (IO, error) {
	read, ok := hostfs.Count(data, "rchar")
	if !ok {
		return IO{}, fmt.Errorf("%w: process io %.60q", hostfs.ErrFormat, data)
	}
	io := IO{ReadChars: read} // what is missing is 0
	io.WriteChars, _ = hostfs.Count(data, "wchar")
	io.ReadBytes, _ = hostfs.Count(data, "read_bytes")
	io.WriteBytes, _ = hostfs.Count(data, "write_bytes")
	return io, nil
}

func (a IO) plus(b IO) IO {
	return IO{a.ReadChars + b.ReadChars, a.WriteChars + b.WriteChars, a.ReadBytes + b.ReadBytes, a.WriteBytes + b.WriteBytes}
}

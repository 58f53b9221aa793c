package proc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"pitchpipe/exporter/hostfs"
)

// Stat is the part of /proc/<pid>/stat that is used.
type Stat struct {
	Parent     int
	Own        Use
	Children   Use // of those that it waited for, with theirs
	Threads    uint64
	StartTicks uint64 // after boot: tells apart two processes of one id
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

// ParseStat reads /proc/<pid>/stat. The name in it may hold spaces and brackets,
// so fields are counted from the last bracket.
func ParseStat(data []byte) (Stat, error) {
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return Stat{}, fmt.Errorf("%w: process stat %.60q", hostfs.ErrFormat, data)
	}
	f := strings.Fields(string(data[i+1:]))
	const first = 3 // proc(5) numbers the fields from 1; the state after the bracket is the third
	if len(f) < 24-first+1 {
		return Stat{}, fmt.Errorf("%w: process stat has %d fields", hostfs.ErrFormat, len(f))
	}
	var s Stat
	var err error
	count := func(field int) uint64 {
		v, e := strconv.ParseUint(f[field-first], 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("%w: field %d of process stat is %.30q", hostfs.ErrFormat, field, f[field-first])
		}
		return v
	}
	s.Parent = int(count(4))
	s.Own = Use{count(10), count(12), count(14), count(15)}
	s.Children = Use{count(11), count(13), count(16), count(17)}
	s.Threads, s.StartTicks, s.RSSPages = count(20), count(22), count(24)
	if err != nil {
		return Stat{}, err
	}
	return s, nil
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
		i := bytes.LastIndex(data, []byte("\n"+name+":"))
		if i < 0 {
			return 0, fmt.Errorf("%w: no %s in a status file", hostfs.ErrFormat, name)
		}
		text, _, _ := bytes.Cut(data[i+len(name)+2:], []byte{'\n'})
		v, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %s is %.30q", hostfs.ErrFormat, name, text)
		}
		return v, nil
	}
	voluntary, err := count("voluntary_ctxt_switches")
	if err != nil {
		return Switches{}, err
	}
	involuntary, err := count("nonvoluntary_ctxt_switches")
	return Switches{voluntary, involuntary}, err
}

// Allowed reads how many CPUs a process may run on off /proc/<pid>/status, 0 where
// it does not say.
func Allowed(data []byte) int {
	for line := range hostfs.Lines(data) {
		if text, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			cpus, err := hostfs.CPUList(text)
			if err != nil {
				return 0
			}
			return len(cpus)
		}
	}
	return 0
}

// IO is what /proc/<pid>/io counts, with what waited-for children left.
type IO struct {
	ReadChars, WriteChars, ReadBytes, WriteBytes uint64
}

// ParseIO reads /proc/<pid>/io.
func ParseIO(data []byte) (IO, error) {
	k := hostfs.Keyed(data)
	if _, ok := k["rchar"]; !ok {
		return IO{}, fmt.Errorf("%w: process io %.60q", hostfs.ErrFormat, data)
	}
	return IO{k["rchar"], k["wchar"], k["read_bytes"], k["write_bytes"]}, nil
}

func (a IO) plus(b IO) IO {
	return IO{a.ReadChars + b.ReadChars, a.WriteChars + b.WriteChars, a.ReadBytes + b.ReadBytes, a.WriteBytes + b.WriteBytes}
}

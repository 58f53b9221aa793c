package proc

import (
	"bytes"
	"fmt"
	"math"
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
	var s Stat
	var parent uint64
	// proc(5) numbers the fields from 1; the state after the bracket is the third.
	const first, last = 3, 24
	field := first
	for rest := data[i+1:]; field <= last; field++ {
		var text []byte
		if text, rest = word(rest); len(text) == 0 {
			return Stat{}, fmt.Errorf("%w: process stat has %d fields", hostfs.ErrFormat, field-first)
		}
		into := s.field(field)
		if field == 4 {
			into = &parent
		}
		if into == nil {
			continue
		}
		v, err := hostfs.Uint(text)
		if err != nil {
			return Stat{}, fmt.Errorf("%w: field %d of process stat is %.30q", hostfs.ErrFormat, field, text)
		}
		*into = v
	}
	s.Parent = int(min(parent, math.MaxInt32))
	return s, nil
}

// field is where a field of proc(5) goes, nil = nowhere.
func (s *Stat) field(n int) *uint64 {
	switch n {
	case 10:
		return &s.Own.MinorFaults
	case 11:
		return &s.Children.MinorFaults
	case 12:
		return &s.Own.MajorFaults
	case 13:
		return &s.Children.MajorFaults
	case 14:
		return &s.Own.UserTicks
	case 15:
		return &s.Own.SystemTicks
	case 16:
		return &s.Children.UserTicks
	case 17:
		return &s.Children.SystemTicks
	case 20:
		return &s.Threads
	case 22:
		return &s.StartTicks
	case 24:
		return &s.RSSPages
	}
	return nil
}

// word cuts the first word off; it is empty where there is none.
func word(text []byte) (first, rest []byte) {
	text = bytes.TrimLeft(text, " \t\n")
	if i := bytes.IndexAny(text, " \t\n"); i >= 0 {
		return text[:i], text[i:]
	}
	return text, nil
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
	rest := data
	for _, into := range []*uint64{&t.Ran, &t.Waited, &t.Times} {
		var text []byte
		text, rest = word(rest)
		v, err := hostfs.Uint(text)
		if err != nil {
			return Turns{}, fmt.Errorf("%w: schedstat %.60q", hostfs.ErrFormat, data)
		}
		*into = v
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

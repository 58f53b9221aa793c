package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// ErrFormat means that a file does not look as the kernel writes it.
var ErrFormat = errors.New("unexpected format")

// Lines walks the lines of a file, without their ends.
func Lines(data []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range bytes.Lines(data) {
			if !yield(string(bytes.TrimRight(line, "\r\n"))) {
				return
			}
		}
	}
}

// Value returns what follows a key and its colon in a file such as /proc/<pid>/status or
// /proc/cpuinfo; empty where no line has anything there.
func Value(data []byte, key string) string {
	for line := range Lines(data) {
		name, value, _ := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); value != "" && strings.TrimSpace(name) == key {
			return value
		}
	}
	return ""
}

// Env reads variables off /proc/<pid>/environ.
func Env(data []byte, names ...string) map[string]string {
	out := map[string]string{}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if name, value, ok := bytes.Cut(entry, []byte{'='}); ok && slices.Contains(names, string(name)) {
			out[string(name)] = string(value)
		}
	}
	return out
}

// ProcStat are the fields of /proc/<pid>/stat by their numbers in proc(5), which count
// from 1. What is not a count (the name, the state and what is negative) is 0.
type ProcStat [53]uint64

// ParseProcStat returns the fields, and the number of the last one that is there.
func ParseProcStat(data []byte) (f ProcStat, last int) {
	// The name may hold anything, so that counting begins after its end, with the state.
	last = 2
	for text := range bytes.FieldsSeq(data[bytes.LastIndexByte(data, ')')+1:]) {
		n := last + 1
		if n == len(f) {
			break
		}
		if n > 3 && text[0] != '-' {
			v, err := Uint(text)
			if err != nil {
				break
			}
			f[n] = v
		}
		last = n
	}
	return f, last
}

// Count finds one count in a flat keyed file such as cpu.stat, memory.stat and /proc/<pid>/io:
// a name, with or without a colon, and a count on each line. It allocates nothing.
func Count(data []byte, name string) (uint64, bool) {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) <= len(name) || string(line[:len(name)]) != name {
			continue
		}
		rest, _ := bytes.CutPrefix(line[len(name):], []byte{':'})
		if len(rest) < 2 || rest[0] != ' ' {
			continue
		}
		if v, err := Uint(bytes.TrimSpace(rest)); err == nil {
			return v, true
		}
	}
	return 0, false
}

// Uint reads decimal bytes. It allocates nothing but its error: strconv does not keep what it
// reads.
func Uint(text []byte) (uint64, error) {
	v, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q is not a count", ErrFormat, text)
	}
	return v, nil
}

// Number reads a file that holds one count. "max" is ErrFormat, as is everything else that is
// not a count.
func Number(data []byte) (uint64, error) {
	return Uint(bytes.TrimSpace(data))
}

// PressureTotal reads the microseconds that some tasks waited from a pressure
// file (cpu.pressure, memory.pressure, io.pressure).
func PressureTotal(data []byte) (uint64, error) {
	for line := range bytes.Lines(data) {
		_, total, ok := bytes.Cut(line, []byte(" total="))
		if !ok || !bytes.HasPrefix(line, []byte("some ")) {
			continue
		}
		return Number(total)
	}
	return 0, fmt.Errorf("%w: no line of some tasks in %.60q", ErrFormat, data)
}

// maxCPU bounds CPU numbers; Linux is built for at most 8192.
const maxCPU = 1 << 14

// CPUList reads "0-3,8,10-11" into ascending numbers. An empty list is empty, not
// an error: a cpuset that was not yet written is empty, too.
func CPUList(text string) ([]int, error) {
	var out []int
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, err1 := strconv.ParseUint(from, 10, 31)
		last, err2 := strconv.ParseUint(to, 10, 31)
		if err1 != nil || err2 != nil || last < first || last >= maxCPU {
			return nil, fmt.Errorf("%w: CPU list %.60q", ErrFormat, text)
		}
		for cpu := first; cpu <= last; cpu++ {
			out = append(out, int(cpu))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// OnlineCPUs reads /sys/devices/system/cpu/online.
func (r Root) OnlineCPUs() ([]int, error) {
	data, err := Read(r.Sys("devices", "system", "cpu", "online"))
	if err != nil {
		return nil, fmt.Errorf("online CPUs: %w", err)
	}
	cpus, err := CPUList(string(data))
	if err != nil || len(cpus) == 0 {
		return nil, fmt.Errorf("online CPUs: %w: %.40q", ErrFormat, data)
	}
	return cpus, nil
}

// Package is the number of the socket that a CPU is in; 0 if the kernel does not say,
// as of a CPU that is offline.
func (r Root) Package(cpu int) int { return r.topology(cpu, "physical_package_id") }

// Die is the number of the die within its socket that a CPU is in; 0 if the kernel does
// not say, as before 5.3.
func (r Root) Die(cpu int) int { return r.topology(cpu, "die_id") }

func (r Root) topology(cpu int, name string) int {
	data, _ := Read(r.Sys("devices", "system", "cpu", "cpu"+strconv.Itoa(cpu), "topology", name))
	n, _ := Number(data) // some machines say -1
	return int(n)
}

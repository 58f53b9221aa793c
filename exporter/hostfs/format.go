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

// Keyed reads flat keyed files such as cpu.stat and memory.stat: a name and a
// count on each line. Lines of another form are left out.
func Keyed(data []byte) map[string]uint64 {
	out := make(map[string]uint64, 64)
	for line := range bytes.Lines(data) {
		name, rest, ok := bytes.Cut(bytes.TrimSpace(line), []byte{' '})
		if !ok {
			continue
		}
		if v, err := strconv.ParseUint(string(bytes.TrimSpace(rest)), 10, 64); err == nil {
			out[strings.TrimSuffix(string(name), ":")] = v
		}
	}
	return out
}

// Number reads a file that holds one count. "max" is ErrFormat, as is everything
// else that is no count.
func Number(data []byte) (uint64, error) {
	v, err := strconv.ParseUint(string(bytes.TrimSpace(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q is not a count", ErrFormat, data)
	}
	return v, nil
}

// PressureTotal reads the microseconds that some tasks waited from a pressure
// file (cpu.pressure, memory.pressure, io.pressure).
func PressureTotal(data []byte) (uint64, error) {
	for line := range Lines(data) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "some" {
			continue
		}
		for _, f := range fields[1:] {
			if text, ok := strings.CutPrefix(f, "total="); ok {
				v, err := strconv.ParseUint(text, 10, 64)
				if err != nil {
					return 0, fmt.Errorf("%w: pressure total %.40q", ErrFormat, text)
				}
				return v, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: no line of some tasks in %.60q", ErrFormat, data)
}

// maxCPU bounds CPU numbers; Linux is built for at most 8192.
const maxCPU = 1 << 14

// CPUList reads "0-3,8,10-11" into ascending numbers. An empty list is empty, not
// an error: a cpuset that was not yet written is.
func CPUList(text string) ([]int, error) {
	var out []int
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%w: CPU list %.60q", ErrFormat, text)
		}
		last := first
		if ranged {
			if last, err = strconv.ParseUint(to, 10, 31); err != nil {
				return nil, fmt.Errorf("%w: CPU list %.60q", ErrFormat, text)
			}
		}
		if last < first || last >= maxCPU {
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

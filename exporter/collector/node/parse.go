package node

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"pitchpipe/exporter/hostfs"
)

// ParseCPU reads the first line of /proc/stat, and counts those of cores that follow.
func ParseCPU(data []byte) (CPU, error) {
	line, _, _ := bytes.Cut(data, []byte{'\n'})
	name, cpu, err := parseCPU(string(line))
	if err == nil && name != "cpu" {
		err = fmt.Errorf("%w: %.60q is not the cpu line of /proc/stat", hostfs.ErrFormat, line)
	}
	if err == nil {
		cpu.Cores = count(data)
	}
	return cpu, err
}

// count is how many lines are about one CPU each.
func count(stat []byte) int {
	n := 0
	for line := range hostfs.Lines(stat) {
		rest, ok := strings.CutPrefix(line, "cpu")
		if !ok {
			break // they stand first
		}
		if rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			n++
		}
	}
	return n
}

// ParseBusy reads the lines of /proc/stat that are about one CPU each: its number and its
// busy seconds.
func ParseBusy(data []byte) (map[int]float64, error) {
	out := map[int]float64{}
	for line := range hostfs.Lines(data) {
		if !strings.HasPrefix(line, "cpu") {
			break // they stand first
		}
		if strings.HasPrefix(line, "cpu ") {
			continue
		}
		name, cpu, err := parseCPU(line)
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(name[len("cpu"):], 10, 16)
		if err != nil {
			return nil, fmt.Errorf("%w: CPU %.20q in /proc/stat", hostfs.ErrFormat, name)
		}
		out[int(n)] = cpu.Busy
	}
	return out, nil
}

func parseCPU(line string) (name string, cpu CPU, err error) {
	fields := strings.Fields(line)
	if len(fields) < 8 || !strings.HasPrefix(fields[0], "cpu") {
		return "", CPU{}, fmt.Errorf("%w: %.60q is not a cpu line of /proc/stat", hostfs.ErrFormat, line)
	}
	var t [9]float64 // user nice system idle iowait irq softirq steal
	for i, text := range fields[1:min(len(fields), 9)] {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return "", CPU{}, fmt.Errorf("%w: %.60q in /proc/stat", hostfs.ErrFormat, text)
		}
		t[i] = float64(v) / ticksPerSecond
	}
	return fields[0], CPU{
		Busy:  t[0] + t[1] + t[2] + t[5] + t[6],
		Idle:  t[3] + t[4],
		Steal: t[7],
	}, nil
}

// Cores counts the cores that /proc/stat lists, which are those that are online.
func Cores(stat []byte) (int, error) {
	n := count(stat)
	if n == 0 {
		return 0, fmt.Errorf("%w: no cores in /proc/stat", hostfs.ErrFormat)
	}
	return n, nil
}

// Model reads the CPU's name off /proc/cpuinfo, which spells it differently from
// one architecture to the next.
func Model(cpuinfo []byte) string {
	names := map[string]string{}
	for line := range hostfs.Lines(cpuinfo) {
		key, value, ok := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if ok && value != "" && names[key] == "" {
			names[key] = value
		}
	}
	for _, key := range []string{"model name", "cpu model", "Processor", "cpu"} {
		if names[key] != "" {
			return names[key]
		}
	}
	if names["CPU part"] != "" { // ARM gives numbers only
		return "arm " + names["CPU implementer"] + " " + names["CPU part"]
	}
	return "unknown"
}

// MemTotal reads the machine's memory in bytes off /proc/meminfo, 0 = unknown.
func MemTotal(meminfo []byte) int64 {
	for line := range hostfs.Lines(meminfo) {
		text, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 52)
		if err != nil || kib < 0 {
			return 0
		}
		return kib << 10
	}
	return 0
}

// NormaliseModel makes one name of the spellings of one CPU: lower case, without
// trade marks, clock rates and filler words, words joined by dashes.
func NormaliseModel(model string) string {
	model, _, _ = strings.Cut(strings.ToLower(model), "@")
	for _, mark := range []string{"(r)", "(tm)", "®", "™"} {
		model = strings.ReplaceAll(model, mark, " ")
	}
	words := strings.FieldsFunc(model, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	kept := words[:0]
	for _, w := range words {
		switch w {
		case "cpu", "processor", "with", "core", "cores":
			continue
		}
		kept = append(kept, w)
	}
	if len(kept) == 0 {
		return "unknown"
	}
	return strings.Join(kept, "-")
}

package parse

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrFormat is wrapped by every error of this package.
var ErrFormat = errors.New("unknown output of Slurm")

func badValue(field, value string) error {
	return fmt.Errorf("%w: %s is %q", ErrFormat, field, value)
}

// Instant reads a time. Unknown, N/A and NONE are the zero time.
func Instant(field, s string) (time.Time, error) {
	switch s {
	case "Unknown", "N/A", "NONE", "None", "(null)", "":
		return time.Time{}, nil
	}
	t, err := time.Parse("2006-01-02T15:04:05", s)
	if err != nil {
		return time.Time{}, badValue(field, s)
	}
	return t, nil
}

// Limit reads a time limit: [D-]HH:MM:SS, MM:SS, or UNLIMITED, which is 0.
func Limit(field, s string) (time.Duration, error) {
	switch s {
	case "UNLIMITED", "INFINITE", "Partition_Limit", "NOT_SET", "INVALID", "":
		return 0, nil
	}
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	parts := strings.Split(clock, ":")
	if len(parts) < 2 || len(parts) > 3 || hasDays && len(parts) != 3 {
		return 0, badValue(field, s)
	}
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	var sum time.Duration
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, err := strconv.ParseUint(append([]string{days}, parts...)[i], 10, 16)
		if err != nil {
			return 0, badValue(field, s)
		}
		sum += time.Duration(n) * unit
	}
	return sum, nil
}

// Memory reads an amount in MiB, or with K, M, G or T behind it, as bytes.
func Memory(field, s string) (int64, error) {
	number, shift := s, 20
	if i := strings.IndexAny(s, "KMGT"); i >= 0 && i == len(s)-1 {
		number, shift = s[:i], 10*(strings.IndexByte("KMGT", s[i])+1)
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || f < 0 || f > math.MaxInt64/2/float64(int64(1)<<shift) || number != strings.TrimLeft(number, "+-xXiInN") {
		return 0, badValue(field, s)
	}
	return int64(f * float64(int64(1)<<shift)), nil
}

// ReqMem reads what sacct says of the memory that a job asked for, in all. Before 21.08
// an n or a c behind it says that it is that of each node or CPU.
func ReqMem(field, s string, cpus, nodes int) (int64, error) {
	each := 1
	switch {
	case strings.HasSuffix(s, "n"):
		each = max(nodes, 1)
	case strings.HasSuffix(s, "c"):
		each = max(cpus, 1)
	}
	bytes, err := Memory(field, strings.TrimRight(s, "nc"))
	if err != nil || len(s)-len(strings.TrimRight(s, "nc")) > 1 || bytes > math.MaxInt64/int64(each) {
		return 0, badValue(field, s)
	}
	return bytes * int64(each), nil
}

// Status is how a job's script ended.
type Status struct {
	Exit   int
	Signal int
}

// Code is the exit status as a shell says it: 128 and the signal where there was
// one.
func (s Status) Code() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Exit
}

// ExitStatus reads STATUS:SIGNAL.
func ExitStatus(field, s string) (Status, error) {
	a, b, ok := strings.Cut(s, ":")
	exit, err := strconv.ParseUint(a, 10, 16)
	signal, err2 := strconv.ParseUint(b, 10, 16)
	if !ok || err != nil || err2 != nil {
		return Status{}, badValue(field, s)
	}
	return Status{Exit: int(exit), Signal: int(signal)}, nil
}

func count(field, s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0, badValue(field, s)
	}
	return int(n), nil
}

func flag(field, s string) (bool, error) {
	if s != "0" && s != "1" {
		return false, badValue(field, s)
	}
	return s == "1", nil
}

// low reads N or the lower end of N-M.
func low(field, s string) (int, error) {
	a, _, _ := strings.Cut(s, "-")
	return count(field, a)
}

// state takes a state's word, without what sacct adds behind it.
func state(field, s string) (string, error) {
	word, rest, _ := strings.Cut(s, " ")
	if word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || rest != "" && !strings.HasPrefix(rest, "by ") {
		return "", badValue(field, s)
	}
	return word, nil
}

// none empties what Slurm writes for nothing.
func none(s string) string {
	if s == "(null)" || s == "N/A" || s == "None" {
		return ""
	}
	return s
}

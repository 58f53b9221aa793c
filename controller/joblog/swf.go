package joblog

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/report/sacct"
)

// mostLine is the longest line that is read, in bytes.
const mostLine = 1 << 20

// swf reads the Standard Workload Format.
func (l *Log) swf(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostLine)
	header := map[string]float64{}
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if comment, is := strings.CutPrefix(text, ";"); is {
			name, value, _ := strings.Cut(comment, ":")
			first, _, _ := strings.Cut(strings.TrimSpace(value), " ")
			if v, err := strconv.ParseFloat(first, 64); err == nil && v > 0 && v <= mostSeconds {
				header[strings.TrimSpace(name)] = v
			}
			continue
		}
		if text != "" {
			l.add(swfLine(n, strings.Fields(text)))
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	l.Origin = header["UnixStartTime"]
	procs := cmp.Or(header["MaxProcs"], header["MaxNodes"]) // some logs count nodes alone
	if c := (Cluster{Nodes: int(min(header["MaxNodes"], mostUnits)), Cores: int(min(procs, mostUnits))}); c != (Cluster{}) {
		l.Clusters = []Cluster{c}
	}
	return nil
}

// swfLine reads the 18 fields of a job, which are numbered as the standard does: 1 job, 2 submission, 3 wait, 4 run time,
// 5 processors, 6 processor seconds and 7 KiB of each, 8 processors, 9 time and 10 memory asked for, 11 status, 12 user,
// 13 group, 14 executable, 15 queue, 16 partition; -1 is unknown. Further fields are the log's own, 36 two lines in one.
func swfLine(n int, fields []string) (Job, string) {
	const count, part, last = 18, 2, 4
	j := Job{Line: n}
	if len(fields) < count || len(fields) >= 2*count {
		return j, fmt.Sprintf("it has %d fields: want %d", len(fields), count)
	}
	var f [count + 1]float64
	for i, text := range fields[:count] {
		if why := set("field "+strconv.Itoa(i+1), &f[i+1], text); why != "" {
			return j, why
		}
	}
	known := func(i int) float64 { return max(f[i], 0) }
	word := func(i int) string {
		if f[i] < 0 {
			return ""
		}
		return fields[i-1]
	}
	cpus := cmp.Or(known(5), known(8))
	switch {
	case f[11] >= part && f[11] <= last:
		return j, "it is a part of a job that has its own line"
	case f[4] < 0:
		return j, "its run time is unknown"
	case f[2] < 0:
		return j, "its submission is unknown"
	case cpus > mostUnits || known(7) > 1e12 || known(10) > 1e12:
		return j, "its processors or its memory are beyond any machine"
	}
	j = Job{
		Line: n, ID: word(1), User: word(12), Account: word(13), Name: word(14), Group: cmp.Or(word(15), word(16)),
		State:  map[float64]string{0: "FAILED", 1: "COMPLETED", 5: "CANCELLED"}[f[11]],
		Submit: f[2], Duration: f[4], Limit: known(9), CPUs: int(cpus),
		Memory: int64(known(10) * 1024 * cpus), MemoryUsed: int64(known(7) * 1024 * cpus), CPUSeconds: known(6) * cpus,
	}
	if f[3] >= 0 {
		j.Start = j.Submit + f[3]
	}
	return j, ""
}

// sacct reads what sacct -P printed; moments count from 1970, read as UTC.
func (l *Log) sacct(in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	h, err := sacct.Scan(string(text))
	if err != nil {
		return fmt.Errorf("%w", err)
	}
	for _, fault := range h.Faults {
		l.Broken = append(l.Broken, Broken(fault))
	}
	for _, s := range h.Jobs {
		j := Job{
			Line: s.Line, ID: s.ID, User: s.User, Group: s.Partition, Account: s.Account, Name: s.Name, State: s.State,
			Nodes: s.Nodes, CPUs: s.CPUs, GPUs: s.GPUs, Memory: int64(s.Asked), MemoryUsed: int64(s.Peak),
		}
		why := ""
		switch {
		case !s.Ended():
			why = "it has not ended"
		case s.Elapsed == nil:
			why = "its Elapsed is unknown"
		case s.Submit.IsZero():
			why = "its Submit is unknown: ask sacct for the field"
		default:
			j.Submit, j.Duration = float64(s.Submit.Unix()), s.Elapsed.Seconds()
		}
		if !s.Start.IsZero() {
			j.Start = float64(s.Start.Unix())
		}
		j.Limit, j.CPUSeconds = seconds(s.Limit), seconds(s.CPU)
		l.add(j, why)
	}
	return nil
}

func seconds(d *time.Duration) float64 {
	if d == nil {
		return 0
	}
	return d.Seconds()
}

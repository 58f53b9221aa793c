package cgroup

import (
	"fmt"
	"strconv"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// The kernel's USER_HZ, which is 100 on every architecture that is in use.
const ticksPerSecond = 100

func unifiedCPU(data []byte, out collector.Values) error {
	if _, ok := hostfs.Count(data, "usage_usec"); !ok {
		return fmt.Errorf("cpu: %w: no usage_usec in %.60q", hostfs.ErrFormat, data)
	}
	put(out, api.ColCPUSeconds, data, "usage_usec", 1e6)
	put(out, api.ColUserSeconds, data, "user_usec", 1e6)
	put(out, api.ColSystemSeconds, data, "system_usec", 1e6)
	return nil
}

func (r *reader) legacyCPU(dir string, out collector.Values) error {
	usage, err := r.number(dir, "cpuacct.usage")
	if err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	out[api.ColCPUSeconds] = usage / 1e9
	user, err1 := r.number(dir, "cpuacct.usage_user")
	system, err2 := r.number(dir, "cpuacct.usage_sys")
	if err1 == nil && err2 == nil {
		out[api.ColUserSeconds], out[api.ColSystemSeconds] = user/1e9, system/1e9
		return nil
	}
	data, err := r.read(dir, "cpuacct.stat")
	if err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	put(out, api.ColUserSeconds, data, "user", ticksPerSecond)
	put(out, api.ColSystemSeconds, data, "system", ticksPerSecond)
	return nil
}

// deviceIO sums what all devices read and wrote: lines of io.stat such as
// "8:0 rbytes=1 wbytes=2 rios=3", or of blkio such as "8:0 Read 1".
func deviceIO(data []byte, out collector.Values) {
	sums := map[string]float64{}
	for line := range hostfs.Lines(data) {
		fields := strings.Fields(line)
		if len(fields) == 3 && !strings.Contains(line, "=") {
			fields = []string{fields[1] + "=" + fields[2]}
		}
		for _, field := range fields {
			name, text, ok := strings.Cut(field, "=")
			if v, err := strconv.ParseUint(text, 10, 64); ok && err == nil {
				sums[name] += float64(v)
			}
		}
	}
	out[api.ColReadBytes], out[api.ColWriteBytes] = sums["rbytes"]+sums["Read"], sums["wbytes"]+sums["Write"]
}

func put(out collector.Values, column string, data []byte, name string, unit float64) {
	if v, ok := hostfs.Count(data, name); ok {
		out[column] = float64(v) / unit
	}
}

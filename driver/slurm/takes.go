package slurm

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
)

// takes refuses a size with which none of a job's partitions would start it. Fewer cores
// with the same memory may be more memory for each than MaxMemPerCPU, which Slurm says
// only when the job has been stopped for it.
func (d *Driver) takes(ctx context.Context, j parse.Job, after journal.Size) error {
	out, err := d.ask(ctx, "scontrol", "-o", "show", "partition")
	if err != nil {
		return fmt.Errorf("limits of the partitions: %w", err)
	}
	partitions, err := parse.PartitionRecords(out)
	if err != nil {
		return fmt.Errorf("limits of the partitions: %w: %w", driver.ErrTransient, err)
	}
	if out, err = d.ask(ctx, "scontrol", "show", "config"); err != nil {
		return fmt.Errorf("limits of the cluster: %w", err)
	}
	conf := parse.Config(out)
	number := func(key string) int64 {
		n, err := strconv.ParseInt(conf[key], 10, 62)
		if err != nil {
			return 0 // UNLIMITED
		}
		return n
	}
	size := func(s journal.Size) limits.Size {
		return limits.Size{Cores: s.Cores, MiB: total(s) >> 20, Minutes: int64(s.TimeLimit / time.Minute)}
	}
	most := limits.Most{NodeMiB: number("MaxMemPerNode"), CPUMiB: number("MaxMemPerCPU")}
	if err := limits.Takes(partitions, most, strings.Split(j.Partition, ","), size(sizeOf(j)), size(after)); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrDenied, err)
	}
	return nil
}

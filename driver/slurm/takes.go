package slurm

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// rules are those of the partitions and of the cluster.
func (d *Driver) rules(ctx context.Context) ([]parse.Partition, parse.Conf, error) {
	out, err := d.ask(ctx, "scontrol", "-o", "show", "partition")
	if err != nil {
		return nil, nil, fmt.Errorf("of the partitions: %w", err)
	}
	partitions, err := parse.PartitionRecords(out)
	if err != nil {
		return nil, nil, fmt.Errorf("of the partitions: %w: %w", driver.ErrTransient, err)
	}
	conf, err := slurmctl.Config(ctx, d.cfg.Commands)
	return partitions, conf, err
}

// Billing implements driver.Biller: TRESBillingWeights, and the CPUs where there are none.
// Of several partitions the first counts.
func (d *Driver) Billing(ctx context.Context, partition string) (driver.Billing, error) {
	partitions, conf, err := d.rules(ctx)
	if err != nil {
		return driver.Billing{}, fmt.Errorf("billing: %w", err)
	}
	name, _, _ := strings.Cut(partition, ",")
	i := slices.IndexFunc(partitions, func(p parse.Partition) bool { return p.Name == name })
	if i < 0 {
		return driver.Billing{}, fmt.Errorf("billing: partition %q: %w", name, driver.ErrNotFound)
	}
	p := partitions[i]
	w, err := parse.Billing(p.Weights)
	if err != nil {
		return driver.Billing{}, fmt.Errorf("billing: partition %q: %w: %w", name, driver.ErrUnsupported, err)
	}
	dearest := slices.Contains(strings.Split(conf["PriorityFlags"], ","), "MAX_TRES")
	return driver.Billing{Core: w.CPU, GiB: w.GiB, GPU: w.GPU, Dearest: dearest, Whole: p.Exclusive}, nil
}

// takes refuses a size with which none of a job's partitions would start it. Fewer cores
// with the same memory may be more memory for each than MaxMemPerCPU, which Slurm says
// only when the job has been stopped for it.
func (d *Driver) takes(ctx context.Context, j parse.Job, after Size) error {
	partitions, conf, err := d.rules(ctx)
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	number := func(key string) int64 {
		n, err := strconv.ParseInt(conf[key], 10, 62)
		if err != nil {
			return 0 // UNLIMITED
		}
		return n
	}
	size := func(s Size) limits.Size {
		return limits.Size{Cores: s.Cores, MiB: total(s) >> 20, Minutes: int64(s.TimeLimit / time.Minute)}
	}
	most := limits.Most{NodeMiB: number("MaxMemPerNode"), CPUMiB: number("MaxMemPerCPU")}
	if err := limits.Takes(partitions, most, strings.Split(j.Partition, ","), size(sizeOf(j)), size(after)); err != nil {
		return fmt.Errorf("%w: %w", driver.ErrDenied, err)
	}
	return nil
}

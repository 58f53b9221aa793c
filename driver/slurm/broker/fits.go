package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// withinLimits refuses a size that would not pass the limits of the job's association and
// QOS, given what others use of them now. A smaller size is asked too: Slurm frees a job
// whose size an Operator set from these limits, and would start it where they are used up.
// Only one that ran a moment ago, and so had its room, may be made smaller where the limits
// cannot be read.
func (e *effect) withinLimits(ctx context.Context, u slurmctl.Update, after Size) error {
	if after == e.job.size || e.returned(after) {
		return nil
	}
	back := after
	if e.record.Less(after) {
		back = e.record.Back(after)
	}
	why := e.s.fits(ctx, e.job, u, after, back)
	_, exceeded := errors.AsType[*limits.Exceeded](why)
	switch {
	case why == nil:
		return nil
	case exceeded || errors.Is(why, errWhole):
		return fmt.Errorf("%w: %w", driver.ErrDenied, why)
	case back == after && smaller(after, e.job.size) && (e.record.Ours(e.job.Restarts) || !parse.Waiting(e.job.State)):
		e.s.cfg.Logger.Warn("a job is made smaller although its limits are not known", "job", e.job.name, "error", why)
		return nil
	case errors.Is(why, limits.ErrUnknown):
		return fmt.Errorf("%w: %w", driver.ErrDenied, why)
	}
	return fmt.Errorf("its limits cannot be read: %w: %w", driver.ErrTransient, why)
}

func smaller(a, b Size) bool {
	return a.Cores <= b.Cores && a.Total() <= b.Total() && !longer(a.TimeLimit, b.TimeLimit)
}

// fits asks slurmctld what a partition gives one job, and where it enforces limits what is in
// use of them. It adds what waits with a size of ours: Slurm starts those jobs whatever is
// used up by then. Back is what the job would have after a kill for less memory than its
// owner asked for, else as after. It gets that whatever is used up, so that no limit may
// count memory then.
func (s *Server) fits(ctx context.Context, j sighting, u slurmctl.Update, after, back Size) error {
	partitions, conf, err := slurmctl.Rules(ctx, s.cfg.Runner)
	if err != nil {
		return err
	}
	names := strings.Split(j.Partition, ",")
	for _, size := range []Size{after, back} { // one with which no partition of the job would start it is refused
		if err := limits.Takes(partitions, conf, names, j.size.Counted(), size.Counted()); err != nil {
			return err
		}
	}
	if enforced, err := limited(conf); !enforced {
		return err
	}
	unit, err := slurmctl.Unit(ctx, s.cfg.Runner, conf, partitions, j.Partition)
	if err != nil {
		return err
	}
	// A job that leaves or starts between these looks is seen in one of them at least.
	before, err := s.beside(ctx, j.name, unit)
	if err != nil {
		return err
	}
	have, err := command.Read(ctx, s.cfg.Runner, parse.Associations, "scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos")
	if err != nil {
		return err
	}
	later, err := s.beside(ctx, j.name, unit)
	if err != nil {
		return err
	}
	maps.Copy(before, later)
	size := after.Counted()
	// A job gets its least number of CPUs of a node whatever else it asks for; an update
	// of its cores sets that too.
	if u.Cores == nil {
		size.Cores = max(size.Cores, j.Least)
	}
	size.Cores = rounded(size.Cores, unit)
	size.MiB = after.Memory.Of(size.Cores) >> 20
	size.Whole = j.Whole || strings.HasSuffix(conf["SelectType"], "/linear") || j.FewThreads && unit > 1
	who := limits.Job{
		UID: j.uid, Account: j.Account, QOS: j.QOS, Partitions: names,
		Beside: slices.Collect(maps.Values(before)), Safe: conf.Has("AccountingStorageEnforce", "safe", "all"),
	}
	if !parse.Waiting(j.State) {
		who.Has = limits.Size{Cores: j.CPUs, MiB: j.size.Memory.Of(j.CPUs) >> 20, Minutes: left(j.Job, time.Now())}
	}
	err = limits.Check(have, partitions, who, size)
	if err == nil && back != after {
		size.MiB = math.MaxInt64
		if err = limits.Check(have, partitions, who, size); err != nil {
			err = fmt.Errorf("after a kill for memory, its owner's memory might exceed a limit: %w", err)
		}
	}
	if errors.Is(err, limits.ErrUnknown) && (size.Whole || slices.ContainsFunc(partitions, func(p parse.Partition) bool {
		return p.Exclusive && slices.Contains(names, p.Name)
	})) {
		return fmt.Errorf("%w: %w", errWhole, err)
	}
	return err
}

// errWhole says that fewer cores of a job would give nothing back, and that what it counts
// for is unknown.
var errWhole = errors.New("it gets more than the cores that it asks for, such as a whole node")

// left is how many more whole minutes a running job may run; 0 = not known.
func left(j parse.Job, now time.Time) int64 {
	if j.TimeLimit == 0 || j.Started.IsZero() {
		return 0
	}
	return int64(max(0, j.TimeLimit-now.Sub(j.Started)) / time.Minute)
}

// limited reports whether slurmctld looks at limits at all.
func limited(conf parse.Conf) (bool, error) {
	if _, ok := conf["AccountingStorageEnforce"]; !ok {
		return false, errors.New("the configuration does not say what is enforced")
	}
	return conf.Has("AccountingStorageEnforce", "limits", "safe", "all"), nil
}

// rounded is a number of CPUs as they are given.
func rounded(cpus, unit int) int { return (cpus + unit - 1) / unit * unit }

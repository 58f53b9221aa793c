package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/act"
	"pitchpipe/driver/slurm/broker/ledger"
	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
)

// room refuses a size that would not pass the limits of the job's association and QOS
// beside what others use of them now. A smaller size is asked too: Slurm frees a job
// whose size an Operator set from these limits, and would start it where they are used
// up. Only one that ran a moment ago, and so had its room, may be made smaller where the
// limits cannot be read.
func (e *effect) room(ctx context.Context, u act.Update, after ledger.Size) error {
	if after == e.job.size {
		return nil
	}
	why := e.s.fits(ctx, e.job, u, after)
	var exceeded *limits.Exceeded
	switch {
	case why == nil:
		return nil
	case errors.As(why, &exceeded):
		return fmt.Errorf("%w: %w", driver.ErrDenied, why)
	case smaller(after, e.job.size) && (e.record.Ours(e.job.Restarts) || !parse.Waiting(e.job.State)):
		e.s.cfg.Logger.Warn("a job is made smaller although its limits are not known", "job", e.job.name, "error", why)
		return nil
	case errors.Is(why, limits.ErrUnknown):
		return fmt.Errorf("%w: %w", driver.ErrDenied, why)
	}
	return fmt.Errorf("its limits cannot be read: %w: %w", driver.ErrTransient, why)
}

func smaller(a, b ledger.Size) bool {
	return a.Cores <= b.Cores && a.Memory.Of(a.Cores) <= b.Memory.Of(b.Cores) && !longer(a.TimeLimit, b.TimeLimit)
}

// fits asks slurmctld what it enforces and what is in use, to which it adds what waits
// with a size of ours: Slurm starts those jobs whatever is used up by then.
func (s *Server) fits(ctx context.Context, j sighting, u act.Update, after ledger.Size) error {
	enforced, err := s.enforced(ctx)
	if err != nil || !enforced {
		return err
	}
	// A job that leaves or starts between these looks is seen in one of them at least.
	before, err := s.beside(ctx, j.name)
	if err != nil {
		return err
	}
	have, partitions, err := s.used(ctx)
	if err != nil {
		return err
	}
	later, err := s.beside(ctx, j.name)
	if err != nil {
		return err
	}
	maps.Copy(before, later)
	size := limits.Size{Cores: after.Cores, MiB: after.Memory.Of(after.Cores) >> 20, Minutes: int64(after.TimeLimit / time.Minute)}
	// A job gets its least number of CPUs of a node whatever else it asks for; an update
	// of its cores sets that too.
	if u.Cores == nil {
		size.Cores = max(size.Cores, j.least)
	}
	who := limits.Job{
		UID: j.uid, Account: j.Account, QOS: j.QOS, Partitions: strings.Split(j.Partition, ","),
		Beside: slices.Collect(maps.Values(before)),
	}
	if !parse.Waiting(j.State) {
		who.Has = limits.Size{Cores: j.CPUs, MiB: j.size.Memory.Of(j.CPUs) >> 20}
	}
	return limits.Check(have, partitions, who, size)
}

// enforced tells whether slurmctld looks at limits at all.
func (s *Server) enforced(ctx context.Context) (bool, error) {
	printed, err := s.read(ctx, "scontrol", "show", "config")
	if err != nil {
		return false, err
	}
	enforced, ok := parse.Config(printed)["AccountingStorageEnforce"]
	if !ok {
		return false, errors.New("the configuration does not say what is enforced")
	}
	return slices.ContainsFunc(strings.Split(enforced, ","), func(word string) bool { return word == "limits" || word == "safe" || word == "all" }), nil
}

// used is what slurmctld counts against, and the partitions.
func (s *Server) used(ctx context.Context) (parse.Assignments, []parse.Partition, error) {
	printed, err := s.read(ctx, "scontrol", "-o", "show", "partition")
	if err != nil {
		return parse.Assignments{}, nil, err
	}
	partitions, err := parse.PartitionRecords(printed)
	if err != nil {
		return parse.Assignments{}, nil, err
	}
	if printed, err = s.read(ctx, "scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos"); err != nil {
		return parse.Assignments{}, nil, err
	}
	have, err := parse.Associations(printed)
	return have, partitions, err
}

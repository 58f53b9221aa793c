package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
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
	return a.Cores <= b.Cores && a.Memory.Of(a.Cores) <= b.Memory.Of(b.Cores) && !longer(a.TimeLimit, b.TimeLimit)
}

// fits asks slurmctld what a partition gives one job, and where it enforces limits what is in
// use of them. It adds what waits with a size of ours: Slurm starts those jobs whatever is
// used up by then. Back is what the job would have after a kill for less memory than its
// owner asked for, else as after. It gets that whatever is used up, so that no limit may
// count memory then.
func (s *Server) fits(ctx context.Context, j sighting, u slurmctl.Update, after, back Size) error {
	conf, err := s.config(ctx)
	if err != nil {
		return err
	}
	partitions, err := command.Read(ctx, s.cfg.Runner, parse.PartitionRecords, "scontrol", "-o", "show", "partition")
	if err != nil {
		return err
	}
	names := strings.Split(j.Partition, ",")
	for _, size := range []Size{after, back} { // one with which no partition of the job would start it is refused
		if err := limits.Takes(partitions, conf, names, j.size.counted(), size.counted()); err != nil {
			return err
		}
	}
	if !limited(conf) {
		return nil
	}
	unit, err := s.unit(ctx, conf, partitions, j.Partition)
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
	size := after.counted()
	// A job gets its least number of CPUs of a node whatever else it asks for; an update
	// of its cores sets that too.
	if u.Cores == nil {
		size.Cores = max(size.Cores, j.least)
	}
	size.Cores = rounded(size.Cores, unit)
	size.MiB = after.Memory.Of(size.Cores) >> 20
	size.Whole = j.whole || strings.HasSuffix(conf["SelectType"], "/linear") || j.apart && unit > 1
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

// counted is what a size comes to in limits.
func (s Size) counted() limits.Size {
	return limits.Size{Cores: s.Cores, MiB: s.Memory.Of(s.Cores) >> 20, Minutes: int64(s.TimeLimit / time.Minute)}
}

// config is what `scontrol show config` says.
func (s *Server) config(ctx context.Context) (parse.Conf, error) {
	conf, err := slurmctl.Config(ctx, s.cfg.Runner)
	if _, ok := conf["AccountingStorageEnforce"]; err == nil && !ok {
		err = errors.New("the configuration does not say what is enforced")
	}
	return conf, err
}

// limited reports whether slurmctld looks at limits at all.
func limited(conf parse.Conf) bool {
	return conf.Has("AccountingStorageEnforce", "limits", "safe", "all")
}

// nodesFormat is what sinfo is asked for: cores of a socket and threads of a core.
const nodesFormat = "%Y|%Z"

// unit is the number of CPUs that a job of these partitions gets at a time: the threads of a
// core, of the nodes of the cluster that have most, or of a socket, unless single CPUs are given.
func (s *Server) unit(ctx context.Context, conf parse.Conf, partitions []parse.Partition, names string) (int, error) {
	how := []string{conf["SelectTypeParameters"]}
	for _, p := range partitions {
		if p.Select != "" && slices.Contains(strings.Split(names, ","), p.Name) {
			how = append(how, p.Select)
		}
	}
	gives := func(what string) bool {
		return slices.ContainsFunc(how, func(s string) bool { return strings.Contains(strings.ToUpper(s), what) })
	}
	if gives("CR_CPU") && len(how) == 1 {
		return 1, nil
	}
	printed, err := command.Ask(ctx, s.cfg.Runner, "sinfo", "-h", "-a", "-e", "-o", nodesFormat)
	nodes, bad := parse.Rows("sinfo", printed, 2)
	if err = cmp.Or(err, bad); err != nil {
		return 0, err
	}
	most := 1
	for _, node := range nodes {
		c, err := strconv.Atoi(strings.TrimSuffix(node[0], "+"))
		t, err2 := strconv.Atoi(strings.TrimSuffix(node[1], "+"))
		if err := errors.Join(err, err2); err != nil || c < 1 || t < 1 {
			return 0, fmt.Errorf("%w: sinfo prints %.40q", parse.ErrFormat, strings.Join(node, "|"))
		}
		if gives("CR_SOCKET") {
			t *= c
		}
		most = max(most, t)
	}
	return most, nil
}

// rounded is a number of CPUs as they are given.
func rounded(cpus, unit int) int { return (cpus + unit - 1) / unit * unit }

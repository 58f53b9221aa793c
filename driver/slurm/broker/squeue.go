package broker

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
)

// columns is what squeue is asked for. None holds a text that a user wrote.
const columns = "JobID ArrayJobID ArrayTaskID UserID State NumCPUs MinMemory TimeLimit RestartCnt HetJobID Partition Account QOS OverSubscribe SCT Nice TimeLeft"

// row is a job that squeue -r prints, or a task of an array: what it says in each column.
type row struct {
	name   string // its name in queries: its number, or ARRAY_TASK
	uid    uint32
	is     map[string]string
	folder string
}

// squeue asks for jobs. With their folder, last, each line ends in a text that a user wrote.
func (s *Server) squeue(ctx context.Context, folder bool, args ...string) ([]row, error) {
	names := strings.Fields(columns)
	format := strings.Join(names, ":|,") + ":|"
	if folder {
		format += ",WorkDir:"
	}
	printed, err := command.Ask(ctx, s.cfg.Runner, "squeue", append(append([]string{"-h", "-a", "-r", "-t", "all"}, args...), "-O", format)...)
	if err != nil {
		return nil, err
	}
	var out []row
	for line := range strings.Lines(string(printed)) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), "|", len(names)+1)
		r := row{is: map[string]string{}}
		for i, value := range f[:len(f)-1] {
			r.is[names[i]] = value
		}
		r.folder = f[len(f)-1]
		r.name = r.called()
		uid, err := strconv.ParseUint(r.is["UserID"], 10, 32)
		if err != nil || r.name == "" || len(f) != len(names)+1 || !folder && r.folder != "" {
			return nil, fmt.Errorf("squeue prints %.200q: %w", line, parse.ErrFormat)
		}
		r.uid = uint32(uid)
		out = append(out, r)
	}
	return out, nil
}

// called is the name of a job; empty where squeue prints none. A task has its number among
// Slurm's jobs only since it began or was changed, and that of its array before, which all
// its tasks have: so it has this name for good.
func (r row) called() string {
	number := r.is["JobID"]
	name := number
	if task := parse.Given(r.is["ArrayTaskID"]); task != "" {
		name = r.is["ArrayJobID"] + "_" + task
	}
	if !parse.Digits(number) || !parse.Named(name) {
		return ""
	}
	return name
}

func (r row) amounts() (memory int64, limit time.Duration, err error) {
	if memory, err = parse.Memory("MinMemory", r.is["MinMemory"]); err == nil {
		limit, err = parse.Limit("TimeLimit", r.is["TimeLimit"])
	}
	return memory, limit, err
}

// beside are the other jobs, by name, whose size was set here and that wait: that freed
// each from its limits, for good, and it is not yet among what is in use. One that is just
// ending counts too, since it may have been put back. Of an array each task counts for
// itself. What they ask for is rounded up to units.
func (s *Server) beside(ctx context.Context, but string, unit int) (map[string]limits.Job, error) {
	rows, err := s.squeue(ctx, false)
	if err != nil {
		return nil, err
	}
	out := map[string]limits.Job{}
	for _, r := range rows {
		if r.name == but || !parse.Waiting(r.is["State"]) && r.is["State"] != "COMPLETING" {
			continue
		}
		set, ok, err := s.ledger.LastSet(r.name, r.uid)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if out[r.name], err = r.freed(set, unit); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// freed is a waiting job with the size that it may start with: the one that was set last
// here, or where it is more the one that squeue shows. An outcome may be unknown, and
// an owner may have changed his job since.
func (r row) freed(set Size, unit int) (limits.Job, error) {
	most := r.is["NumCPUs"] // or a range
	if _, high, ok := strings.Cut(most, "-"); ok {
		most = high
	}
	cpus, err := strconv.Atoi(most)
	if err != nil {
		return limits.Job{}, fmt.Errorf("%w: the CPUs %.20q", parse.ErrFormat, r.is["NumCPUs"])
	}
	memory, limit, err := r.amounts()
	if err != nil {
		return limits.Job{}, err
	}
	cores := rounded(max(cpus, set.Cores), unit)
	if set.Memory.PerCPU {
		memory *= int64(cores)
	}
	if longer(set.TimeLimit, limit) {
		limit = set.TimeLimit
	}
	return limits.Job{
		UID: r.uid, Account: parse.Given(r.is["Account"]), QOS: parse.Given(r.is["QOS"]), Partitions: strings.Split(r.is["Partition"], ","),
		Has: limits.Size{
			Cores: cores, MiB: max(memory, set.Memory.Of(cores)) >> 20, Minutes: int64(limit / time.Minute),
			Whole: r.is["OverSubscribe"] == "NO" || unit > 1 && parse.FewThreads(r.is["SCT"]),
		},
	}, nil
}

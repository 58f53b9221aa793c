package broker

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
)

// besideFormat holds no text that a user wrote.
const besideFormat = "JobID:|,State:|,UserID:|,Account:|,QOS:|,Partition:|,NumCPUs:|,MinMemory:|,TimeLimit:|"

// beside are the other jobs, by number, whose size was set here and that wait: each was
// freed from its limits by that, for good, and is not among what is in use yet. One that
// is just ending counts too, since it may have been put back.
func (s *Server) beside(ctx context.Context, but string) (map[string]limits.Waiting, error) {
	printed, err := s.read(ctx, "squeue", "-h", "-a", "-t", "all", "-O", besideFormat)
	if err != nil {
		return nil, err
	}
	out := map[string]limits.Waiting{}
	for line := range strings.Lines(string(printed)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "|")
		if len(f) != strings.Count(besideFormat, "|")+1 || f[0] == "" || strings.Trim(f[0], "0123456789") != "" {
			return nil, fmt.Errorf("squeue prints %.200q: %w", line, parse.ErrFormat)
		}
		if f[0] == but || !parse.Waiting(f[1]) && f[1] != "COMPLETING" {
			continue
		}
		w, ok, err := s.freed(f)
		if err != nil {
			return nil, err
		}
		if ok {
			out[f[0]] = w
		}
	}
	return out, nil
}

// freed is a waiting job with the size that it may start with: the one that was set last
// here, or where it is more the one that squeue shows. An outcome may not be known, and
// an owner may have changed his job since.
func (s *Server) freed(f []string) (w limits.Waiting, ok bool, err error) {
	uid, err := strconv.ParseUint(f[2], 10, 32)
	if err != nil {
		return w, false, fmt.Errorf("%w: the user %.20q", parse.ErrFormat, f[2])
	}
	set, ok, err := s.ledger.LastSet(f[0], uint32(uid))
	if err != nil || !ok {
		return w, false, err
	}
	most := f[6] // or a range
	if _, high, ok := strings.Cut(most, "-"); ok {
		most = high
	}
	cpus, err := strconv.Atoi(most)
	if err != nil {
		return w, false, fmt.Errorf("%w: the CPUs %.20q", parse.ErrFormat, f[6])
	}
	memory, err := parse.Memory("MinMemory", f[7])
	if err != nil {
		return w, false, err
	}
	limit, err := parse.Limit("TimeLimit", f[8])
	if err != nil {
		return w, false, err
	}
	cores := max(cpus, set.Cores)
	if set.Memory.PerCPU {
		memory *= int64(cores)
	}
	if longer(set.TimeLimit, limit) {
		limit = set.TimeLimit
	}
	return limits.Waiting{
		UID: uint32(uid), Account: named(f[3]), QOS: named(f[4]), Partitions: strings.Split(f[5], ","),
		Size: limits.Size{Cores: cores, MiB: max(memory, set.Memory.Of(cores)) >> 20, Minutes: int64(limit / time.Minute)},
	}, true, nil
}

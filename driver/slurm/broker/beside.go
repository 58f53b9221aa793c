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
const besideFormat = idsFormat + "State:|,UserID:|,Account:|,QOS:|,Partition:|,NumCPUs:|,MinMemory:|,TimeLimit:|,OverSubscribe:|,SCT:|"

// beside are the other jobs, by name, whose size was set here and that wait: each was
// freed from its limits by that, for good, and is not among what is in use yet. One that
// is just ending counts too, since it may have been put back. Of an array each task counts
// for itself. What they ask for is rounded up to units.
func (s *Server) beside(ctx context.Context, but string, unit int) (map[string]limits.Waiting, error) {
	printed, err := s.read(ctx, "squeue", "-h", "-a", "-r", "-t", "all", "-O", besideFormat)
	if err != nil {
		return nil, err
	}
	out := map[string]limits.Waiting{}
	for line := range strings.Lines(string(printed)) {
		line = strings.TrimRight(line, "\n")
		name, err := nameOf(line)
		if err != nil {
			return nil, err
		}
		f := strings.Split(line, "|")
		if len(f) != strings.Count(besideFormat, "|")+1 {
			return nil, fmt.Errorf("squeue prints %.200q: %w", line, parse.ErrFormat)
		}
		f = f[strings.Count(idsFormat, "|"):]
		if name == but || !parse.Waiting(f[0]) && f[0] != "COMPLETING" {
			continue
		}
		w, ok, err := s.freed(name, f, unit)
		if err != nil {
			return nil, err
		}
		if ok {
			out[name] = w
		}
	}
	return out, nil
}

// freed is a waiting job with the size that it may start with: the one that was set last
// here, or where it is more the one that squeue shows. An outcome may not be known, and
// an owner may have changed his job since.
func (s *Server) freed(name string, f []string, unit int) (w limits.Waiting, ok bool, err error) {
	uid, err := strconv.ParseUint(f[1], 10, 32)
	if err != nil {
		return w, false, fmt.Errorf("%w: the user %.20q", parse.ErrFormat, f[1])
	}
	set, ok, err := s.ledger.LastSet(name, uint32(uid))
	if err != nil || !ok {
		return w, false, err
	}
	most := f[5] // or a range
	if _, high, ok := strings.Cut(most, "-"); ok {
		most = high
	}
	cpus, err := strconv.Atoi(most)
	if err != nil {
		return w, false, fmt.Errorf("%w: the CPUs %.20q", parse.ErrFormat, f[5])
	}
	memory, err := parse.Memory("MinMemory", f[6])
	if err != nil {
		return w, false, err
	}
	limit, err := parse.Limit("TimeLimit", f[7])
	if err != nil {
		return w, false, err
	}
	cores := rounded(max(cpus, set.Cores), unit)
	if set.Memory.PerCPU {
		memory *= int64(cores)
	}
	if longer(set.TimeLimit, limit) {
		limit = set.TimeLimit
	}
	return limits.Waiting{
		UID: uint32(uid), Account: given(f[2]), QOS: given(f[3]), Partitions: strings.Split(f[4], ","),
		Size: limits.Size{Cores: cores, MiB: max(memory, set.Memory.Of(cores)) >> 20, Minutes: int64(limit / time.Minute), Whole: wholeNode(f[8]) || unit > 1 && fewThreads(f[9])},
	}, true, nil
}

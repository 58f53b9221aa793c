package limits_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
)

func TestMinutesThatRunningJobsMayStillUse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(w world)
		want   string // of the error; empty = it passes
	}{
		{
			"those of the job itself are given back", func(w world) {
				w.user()["GrpTRESRunMins=cpu"] = parse.Bound{Limit: 300, Used: 130}
				w.job.Has = limits.Size{Cores: 2, MiB: 100, Minutes: 40}
			}, "",
		},
		{
			"those of others are not", func(w world) {
				w.user()["GrpTRESRunMins=cpu"] = parse.Bound{Limit: 300, Used: 160}
				w.job.Has = limits.Size{Cores: 2, MiB: 100, Minutes: 40}
			}, "GrpTRESRunMins=cpu 300, of which other jobs use 80, and the job would add 240",
		},
		{
			"of a job whose rest is not known none are", func(w world) {
				w.user()["GrpTRESRunMins=cpu"] = parse.Bound{Limit: 300, Used: 80}
				w.job.Has = limits.Size{Cores: 2, MiB: 100}
			}, "of which other jobs use 80",
		},
		{
			"minutes that are spent are the job's for good", func(w world) {
				w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 300, Used: 80}
				w.job.Has = limits.Size{Cores: 2, MiB: 100, Minutes: 40}
			}, "GrpTRESMins=cpu 300, of which other jobs use 80",
		},
		{
			"they count as spent where the cluster is safe", func(w world) {
				w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 400, Used: 60}
				w.user()["GrpTRESRunMins=cpu"] = none(110)
				w.job.Safe = true
			}, "GrpTRESMins=cpu 400, of which other jobs use 170, and the job would add 240",
		},
		{
			"without those of the job itself", func(w world) {
				w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 400, Used: 60}
				w.user()["GrpTRESRunMins=cpu"] = none(110)
				w.job.Safe, w.job.Has = true, limits.Size{Cores: 2, MiB: 100, Minutes: 40}
			}, "",
		},
		{
			"and elsewhere they do not", func(w world) {
				w.user()["GrpTRESMins=cpu"] = parse.Bound{Limit: 400, Used: 60}
				w.user()["GrpTRESRunMins=cpu"] = none(110)
			}, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			have, parts := cluster()
			job, size := alice(), limits.Size{Cores: 4, MiB: 200, Minutes: 60}
			c.change(world{&have, parts, &job, &size})
			err := limits.Check(have, parts, job, size)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestWhatAJobOfWholeNodesGetsIsNotKnown(t *testing.T) {
	t.Parallel()
	limit := func(w world) { w.user()["GrpTRES=cpu"] = parse.Bound{Limit: 100} }
	for _, c := range []struct {
		name   string
		change func(w world)
		want   error
	}{
		{"where there is a limit of CPUs", func(w world) { limit(w); w.size.Whole = true }, limits.ErrUnknown},
		{"where there is none", func(w world) { w.size.Whole = true }, nil},
		{"in a partition that gives whole nodes", func(w world) { limit(w); w.parts[0].Exclusive = true }, limits.ErrUnknown},
		{"in another partition", func(w world) { limit(w); w.parts[1].Exclusive = true }, nil},
		{
			"of another that waits", func(w world) {
				limit(w)
				theirs := beside(7, "physics", "normal", 1)
				theirs.Has.Whole = true
				w.job.Beside = []limits.Job{theirs}
			}, limits.ErrUnknown,
		},
		{
			"of another that waits for whole nodes of a partition", func(w world) {
				limit(w)
				w.parts[1].Exclusive = true
				theirs := beside(7, "physics", "normal", 1)
				theirs.Partitions = []string{"other"}
				w.job.Beside = []limits.Job{theirs}
			}, limits.ErrUnknown,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			have, parts := cluster()
			job, size := alice(), limits.Size{Cores: 4, MiB: 200, Minutes: 60}
			c.change(world{&have, parts, &job, &size})
			if err := limits.Check(have, parts, job, size); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestWhatAPartitionTakes(t *testing.T) {
	t.Parallel()
	before := limits.Size{Cores: 4, MiB: 4000, Minutes: 60}
	for _, c := range []struct {
		name    string
		change  func(p *parse.Partition, other *parse.Partition)
		cluster parse.Conf
		before  limits.Size
		after   limits.Size
		want    string
	}{
		{"whatever it is asked for", func(*parse.Partition, *parse.Partition) {}, parse.Conf{}, before, limits.Size{Cores: 1, MiB: 1 << 40, Minutes: 1 << 40}, ""},
		{
			"no more memory for each CPU", func(p, _ *parse.Partition) { p.MaxMemPerCPU = 1500 << 20 },
			parse.Conf{},
			before,
			limits.Size{Cores: 2, MiB: 4000, Minutes: 60},
			"partition main has MaxMemPerCPU 1500, and the job would have 2000",
		},
		{
			"as the cluster has it", func(*parse.Partition, *parse.Partition) {},
			parse.Conf{"MaxMemPerCPU": "1500"},
			before,
			limits.Size{Cores: 2, MiB: 4000, Minutes: 60},
			"MaxMemPerCPU 1500",
		},
		{
			"as much as it says over the cluster", func(p, _ *parse.Partition) { p.MaxMemPerCPU = 2000 << 20 },
			parse.Conf{"MaxMemPerCPU": "1500"},
			before,
			limits.Size{Cores: 2, MiB: 4000, Minutes: 60},
			"",
		},
		{
			"no more memory of a node", func(p, _ *parse.Partition) { p.MaxMemPerNode = 5000 << 20 },
			parse.Conf{},
			before,
			limits.Size{Cores: 4, MiB: 5001, Minutes: 60},
			"MaxMemPerNode 5000, and the job would have 5001",
		},
		{
			"no longer time", func(p, _ *parse.Partition) { p.MaxTime = time.Hour },
			parse.Conf{},
			before,
			limits.Size{Cores: 4, MiB: 4000, Minutes: 61},
			"MaxTime 60, and the job would have 61",
		},
		{
			"what was too much before, too", func(p, _ *parse.Partition) { p.MaxTime = time.Minute },
			parse.Conf{},
			before,
			limits.Size{Cores: 4, MiB: 4000, Minutes: 59},
			"",
		},
		{
			"what the other one takes", func(p, other *parse.Partition) { p.MaxMemPerCPU, other.MaxMemPerCPU = 1500<<20, 2000<<20 },
			parse.Conf{},
			before,
			limits.Size{Cores: 2, MiB: 4000, Minutes: 60},
			"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, parts := cluster()
			names := []string{"main"}
			c.change(&parts[0], &parts[1])
			if parts[1].MaxMemPerCPU > 0 {
				names = append(names, "other")
			}
			err := limits.Takes(parts, c.cluster, names, c.before, c.after)
			var exceeded *limits.Exceeded
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &exceeded) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

package tuning_test

import (
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/tuning"
)

// prospective is a stanza whose every knob can act under a site that applies.
func prospective() (tuning.Policy, tuning.Site, tuning.Reach, tuning.Settings) {
	p := tuning.DefaultPolicy()
	p.Mode = tuning.Apply
	p.Knobs = []tuning.Knob{
		{Name: tuning.Cores, Values: numbers(1, 2, 4)},
		{Name: tuning.Threads, Env: "THREADS", Follows: tuning.Cores},
		{Name: tuning.Memory, Min: tuning.Number(1 << 28), Max: tuning.Number(1 << 32)},
		{Name: "workers", Env: "WORKERS", Min: tuning.Number(1), Max: tuning.Number(8), Default: tuning.Number(2), Quality: tuning.QualitySame},
		{Name: "lr", Arg: "--lr", Values: numbers(0.1, 0.2), Default: tuning.Number(0.1)},
		{Name: tuning.GPUs, Values: numbers(1, 2)},
	}
	p.Progress.Pattern = `epoch (?P<epoch>\d+)/(?P<total>\d+) acc (?P<quality>\S+)`
	p.Checkpoint = &tuning.Checkpoint{Exit: 85}
	p.Quality = &tuning.Quality{Direction: "max"}
	p.Budget.Returns = 6
	p.Sources = map[string]string{"budget returns": "job.sh:7"}
	s := tuning.DefaultSite()
	s.MaxMode = tuning.Apply
	s.Sources = map[string]string{"above_request": tuning.FromDefault, "max_mode": "site.yaml:2", "may_restart": "site.yaml:3"}
	own := tuning.Settings{tuning.Cores: tuning.Number(2), tuning.Threads: tuning.Number(2), tuning.Memory: tuning.Number(1 << 30), "workers": tuning.Number(2), "lr": tuning.Number(0.1)}
	return p, s, tuning.Reach{Scheduler: "local", Env: true, Args: true, Live: true, Memory: true}, own
}

func TestProspectsSayWhenEachKnobActsAndWhy(t *testing.T) {
	t.Parallel()
	const now, next, never = tuning.Now, tuning.NextStart, tuning.Never
	usual := map[string]tuning.When{tuning.Cores: now, tuning.Threads: now, tuning.Memory: next, "workers": now, "lr": next, tuning.GPUs: never}
	idle := map[string]tuning.When{tuning.Cores: never, tuning.Threads: never, tuning.Memory: never, "workers": never, "lr": never, tuning.GPUs: never}
	late := map[string]tuning.When{tuning.Cores: next, tuning.Threads: next, tuning.Memory: next, "workers": next, "lr": next, tuning.GPUs: never}
	with := func(of map[string]tuning.When, name string, w tuning.When) map[string]tuning.When {
		out := map[string]tuning.When{name: w}
		for k, v := range of {
			if _, ok := out[k]; !ok {
				out[k] = v
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		change   func(*tuning.Policy, *tuning.Site, *tuning.Reach, tuning.Settings)
		want     map[string]tuning.When
		knob     string // whose reason is
		because  string
		headline string
	}{
		"a site that applies": {
			func(*tuning.Policy, *tuning.Site, *tuning.Reach, tuning.Settings) {}, usual, tuning.Cores,
			"cores=4 is above your request of 2; the site's policy lacks above_request [above_request=false (default)]",
			"valid; act now, while the job runs: cores, threads, workers; act at the next start: memory, lr; never: gpus",
		},
		"whole runs are for the learning rate": {
			func(*tuning.Policy, *tuning.Site, *tuning.Reach, tuning.Settings) {}, usual, "lr",
			"at most 6 runs of its kind try values from their start [budget returns=6 (job.sh:7)]", "",
		},
		"a site that recommends": {
			func(_ *tuning.Policy, s *tuning.Site, _ *tuning.Reach, _ tuning.Settings) {
				s.MaxMode = tuning.Recommend
			}, idle, "", "",
			"valid, but nothing can be tuned: better values are named, not applied [max_mode=recommend (site.yaml:2)]",
		},
		"a stanza and a site that observe": {
			func(p *tuning.Policy, s *tuning.Site, _ *tuning.Reach, _ tuning.Settings) {
				p.Mode, s.MaxMode = tuning.Observe, tuning.Observe
			}, idle, "", "",
			"valid, but nothing can be tuned: the job is only observed [mode=observe (default), max_mode=observe (site.yaml:2)]",
		},
		"a dry run": {
			func(_ *tuning.Policy, s *tuning.Site, _ *tuning.Reach, _ tuning.Settings) { s.DryRun = true }, idle, "", "",
			"valid, but nothing can be tuned: the site records decisions and carries none out [dry_run=true]",
		},
		"a site that restarts nothing": {
			func(_ *tuning.Policy, s *tuning.Site, _ *tuning.Reach, _ tuning.Settings) { s.MayRestart = false }, late, tuning.Cores,
			"the site restarts no running job [may_restart=false (site.yaml:3)]", "",
		},
		"no checkpoint": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, _ tuning.Settings) { p.Checkpoint = nil }, late, "workers",
			"[checkpoint=none (default)]", "",
		},
		"no total of its epochs": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, _ tuning.Settings) {
				p.Progress.Pattern = `epoch (?P<epoch>\d+)`
			}, late, tuning.Cores, "[progress total=none (default)]", "",
		},
		"no restarts": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, _ tuning.Settings) { p.Budget.Restarts = 0 }, late, tuning.Cores,
			"no restart is allowed while it runs [budget restarts=0 (default)]", "",
		},
		"an owner who forbids requeues": {
			func(_ *tuning.Policy, _ *tuning.Site, r *tuning.Reach, _ tuning.Settings) { r.Stays = "--no-requeue" }, late, tuning.Cores, "--no-requeue", "",
		},
		"a time limit within the reserve": {
			func(_ *tuning.Policy, _ *tuning.Site, r *tuning.Reach, _ tuning.Settings) { r.Limit = 5 * time.Minute }, late, tuning.Cores,
			"its time limit is too near for a restart [limit_reserve=5m0s]", "",
		},
		"no quality guard": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, _ tuning.Settings) { p.Quality = nil }, with(usual, "lr", never), "lr",
			"[quality=none (default)]", "",
		},
		"a driver without an environment": {
			func(_ *tuning.Policy, _ *tuning.Site, r *tuning.Reach, _ tuning.Settings) {
				r.Env, r.Lacks = false, tuning.Rule{Name: "slurm.task_prolog", Value: "false", From: "default"}
			}, with(with(usual, "workers", never), tuning.Threads, never), "workers",
			"local cannot change the variable WORKERS of a job [slurm.task_prolog=false (default)]", "",
		},
		"a driver that cannot return memory": {
			func(_ *tuning.Policy, _ *tuning.Site, r *tuning.Reach, _ tuning.Settings) { r.Memory = false }, with(usual, tuning.Memory, never), tuning.Memory,
			"its memory is never lowered [driver=local]", "",
		},
		"an owner who asks for no memory": {
			func(_ *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, own tuning.Settings) {
				delete(own, tuning.Memory)
			}, with(usual, tuning.Memory, never), tuning.Memory,
			"the job asks for no memory", "",
		},
		"memory that starts above the request": {
			func(_ *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, own tuning.Settings) {
				own[tuning.Memory] = tuning.Number(1 << 28)
			},
			with(usual, tuning.Memory, never), tuning.Memory, "none of its values is below your request of 256MiB [knob memory=256MiB to 4GiB (default)]", "",
		},
		"knobs by name": {
			func(_ *tuning.Policy, s *tuning.Site, _ *tuning.Reach, _ tuning.Settings) { s.Knobs = []string{"lr"} },
			with(idle, "lr", next), tuning.Cores, "the site's policy does not name it [knobs=[lr]]", "",
		},
		"a ceiling": {
			func(_ *tuning.Policy, s *tuning.Site, _ *tuning.Reach, _ tuning.Settings) {
				s.Ceilings = tuning.Settings{tuning.Cores: tuning.Number(1), "workers": tuning.Number(4)}
				s.Sources["ceilings.workers"] = "site.yaml:9"
			}, usual, "workers", "workers=8 is above the site's ceiling of 4 [ceilings.workers=4 (site.yaml:9)]", "",
		},
		"threads that are not as many as cores": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, own tuning.Settings) {
				p.Knobs[0].Values = p.Knobs[0].Values[1:]
				own[tuning.Threads] = tuning.Number(1)
			}, with(usual, tuning.Cores, never), tuning.Threads, "it follows cores, so any change makes it equal", "",
		},
		"no run may try": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, _ tuning.Settings) {
				p.Budget.Returns, p.Checkpoint, p.Knobs = 0, nil, p.Knobs[:2]
			},
			map[string]tuning.When{tuning.Cores: next, tuning.Threads: next},
			tuning.Cores, "no run tries values from its start",
			"valid, but no new value is tried: only results of earlier runs are used; act at the next start: cores, threads",
		},
		"no knob": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, _ tuning.Settings) { p.Knobs = nil }, nil, "", "",
			"valid, but nothing can be tuned: the stanza names no knob",
		},
		"a search of all knobs": {
			func(p *tuning.Policy, _ *tuning.Site, _ *tuning.Reach, _ tuning.Settings) {
				p.Knobs, p.TrialOf = nil, new(tuning.DefaultSearch())
			}, nil, "", "",
			"valid; the search varies all knobs, so inside its trials nothing is tuned",
		},
		"a job that is only seen": {
			func(_ *tuning.Policy, _ *tuning.Site, r *tuning.Reach, _ tuning.Settings) {
				r.Observed = "several nodes"
			}, idle, "", "",
			"valid, but nothing can be tuned: several nodes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, s, r, own := prospective()
			c.change(&p, &s, &r, own)
			got := s.Prospects(p, r, own)
			if len(got.Knobs) != len(c.want) {
				t.Errorf("%d knobs, want %d", len(got.Knobs), len(c.want))
			}
			for _, k := range got.Knobs {
				if k.When != c.want[k.Knob] {
					t.Errorf("%s: %s, want %s (%s)", k.Knob, k.When, c.want[k.Knob], k.Because())
				}
				if k.Knob == c.knob && !strings.Contains(k.Because(), c.because) {
					t.Errorf("%s: %q, want %q", k.Knob, k.Because(), c.because)
				}
				if k.When != tuning.Now && k.Because() == "" && k.Otherwise == "" {
					t.Errorf("%s: %s, and nothing says why", k.Knob, k.When)
				}
			}
			if c.headline != "" && got.Headline != c.headline {
				t.Errorf("headline %q, want %q", got.Headline, c.headline)
			}
		})
	}
}

package advise_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// like is a forecast by n jobs that all ran for so many seconds.
func like(n int, seconds float64) advise.Forecast {
	return advise.Forecast{Samples: n, Median: seconds, Quantile: func(float64) float64 { return seconds }}
}

func job(change func(*advise.Job)) advise.Job {
	s := tuning.DefaultSite()
	s.Sources = map[string]string{"advice_quantile": "site.yaml:3"}
	j := advise.Job{Own: 8 * time.Hour, Forecast: like(30, 600), Site: s}
	j.ID, j.Owner, j.Partition, j.State, j.Resources = "7", "u", "p", driver.Pending, driver.Resources{Cores: 4, TimeLimit: j.Own}
	change(&j)
	return j
}

func TestWhatIsAdvised(t *testing.T) {
	t.Parallel()
	hour := time.Hour.Seconds()
	for _, tc := range []struct {
		name   string
		change func(*advise.Job)
		what   advise.What
		to     float64 // 0 = no advice
		held   bool
		why    string
	}{
		{"a limit far above the forecast is lowered to its quantile and the margin", func(*advise.Job) {}, advise.TimeLimit, 900, false, "0.95 of jobs like it end within 600 s (30 jobs seen), plus 5m0s margin"},
		{"a limit is in whole minutes, rounded up", func(j *advise.Job) { j.Forecast = like(30, 601) }, advise.TimeLimit, 960, false, ""},
		{"few jobs like it are no ground to act", func(j *advise.Job) { j.Forecast = like(19, 600) }, advise.TimeLimit, 8 * hour, true, "19 ended jobs are like it, and 20 are needed"},
		{"a limit is never raised above the owner's", func(j *advise.Job) { j.Forecast = like(30, 9*hour) }, advise.TimeLimit, 8 * hour, true, ""},
		{"a forecast without an upper end lowers nothing", func(j *advise.Job) { j.Forecast = like(30, math.Inf(1)) }, advise.TimeLimit, 8 * hour, true, ""},
		{"a forecast that knows nothing lowers nothing", func(j *advise.Job) { j.Forecast = like(30, math.NaN()) }, advise.TimeLimit, 8 * hour, true, ""},
		{"a job whose owner names no limit keeps none", func(j *advise.Job) { j.Resources.TimeLimit, j.Own = 0, 0 }, advise.TimeLimit, 0, false, ""},
		{"a job is advised once", func(j *advise.Job) { j.Resources.TimeLimit = time.Hour }, advise.TimeLimit, 0, false, ""},
		{"a site that wants none gets none", func(j *advise.Job) { j.Site.Advice = tuning.AdviceOff }, advise.TimeLimit, 0, false, ""},
		{"a running job gets its owner's limit where the site wants no advice any more", func(j *advise.Job) {
			j.State, j.Resources.TimeLimit, j.Ran, j.Site.Advice = driver.Running, 15*time.Minute, 13*time.Minute, tuning.AdviceOff
		}, advise.TimeLimit, 8 * hour, false, "outlives its forecast"},
		{"a running job keeps a limit that it does not meet yet", func(j *advise.Job) {
			j.State, j.Resources.TimeLimit, j.Ran = driver.Running, 15*time.Minute, 12*time.Minute
		}, advise.TimeLimit, 0, false, ""},
		{"a running job gets its owner's limit before it meets the lower one", func(j *advise.Job) {
			j.State, j.Resources.TimeLimit, j.Ran = driver.Running, 15*time.Minute, 13*time.Minute
		}, advise.TimeLimit, 8 * hour, false, "outlives its forecast"},
		{"a running job under its owner's limit meets that", func(j *advise.Job) {
			j.State, j.Ran = driver.Running, 8*time.Hour
		}, advise.TimeLimit, 0, false, ""},
		{"nice is the site's wish", func(*advise.Job) {}, advise.Nice, 0, false, ""},
		{"nice grows with the logarithm of the work", func(j *advise.Job) {
			j.Site.AdviceNice, j.Forecast = 100, like(30, 30*hour/4)
		}, advise.Nice, 50, false, "30 core-hours"},
		{"the work of a job with GPUs is that of its GPUs", func(j *advise.Job) {
			j.Site.AdviceNice, j.Forecast, j.Resources.GPUs = 100, like(30, 5000*hour), 2
		}, advise.Nice, 100, false, "1e+04 GPU-hours"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got advise.Item
			for _, i := range advise.For([]advise.Job{job(tc.change)}) {
				if i.What == tc.what {
					got = i
				}
			}
			if got.To != tc.to || (got.State == advise.Held) != tc.held || !strings.Contains(got.Why, tc.why) {
				t.Errorf("%+v, want to %v, held %v, because %q", got, tc.to, tc.held, tc.why)
			}
		})
	}
}

func TestAnAdviceNamesItsRuleAndWhereItWasSet(t *testing.T) {
	t.Parallel()
	got := advise.For([]advise.Job{job(func(*advise.Job) {})})
	if len(got) != 1 || got[0].Rule != "advice_quantile=0.95 (site.yaml:3)" {
		t.Errorf("%+v", got)
	}
}

func TestNoLimitIsBelowTheMarginOrAboveTheOwners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := job(func(*advise.Job) {})
		j.Own = time.Duration(rapid.IntRange(1, 10_000).Draw(t, "minutes")) * time.Minute
		j.Resources.TimeLimit = j.Own
		q := rapid.Float64Range(0, 1e6).Draw(t, "quantile")
		j.Forecast = like(rapid.IntRange(0, 50).Draw(t, "samples"), q)
		j.Site.AdviceMargin = time.Duration(rapid.IntRange(0, 3600).Draw(t, "margin")) * time.Second
		for _, i := range advise.For([]advise.Job{j}) {
			to := time.Duration(i.To) * time.Second
			if to > j.Own || i.State != advise.Held && (i.To < q+j.Site.AdviceMargin.Seconds() || to%time.Minute != 0 || to == j.Own) {
				t.Fatalf("%+v", i)
			}
		}
	})
}

func TestJobsOfOneOwnerThatLeaveTheirCoresIdleArePaired(t *testing.T) {
	t.Parallel()
	idle := func(id driver.JobID, owner string, cores int, busy float64) advise.Job {
		return job(func(j *advise.Job) {
			j.ID, j.Owner, j.Resources, j.Own = id, owner, driver.Resources{Cores: cores}, 0
			j.Forecast.Busy = busy
		})
	}
	var got []string
	for _, i := range advise.For([]advise.Job{
		idle("1", "a", 4, 0.4), idle("2", "b", 4, 0.4), idle("3", "a", 8, 0.2), idle("4", "a", 8, 0), idle("5", "b", 8, 0.9), idle("6", "b", 1, 0.1),
	}) {
		got = append(got, fmt.Sprint(i.What, " ", i.Job, " ", i.With, ": ", i.From, " to ", i.To, ", ", i.Why))
	}
	if want := "packing 1 3: 12 to 8, jobs like them keep 1.6 of 4 and 1.6 of 8 cores busy"; len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAJobPrefersTheNodesOnWhichSuchJobsEndSooner(t *testing.T) {
	t.Parallel()
	about := func(seconds float64, n int) (out []float64) {
		for k := range n {
			out = append(out, seconds*(1+0.02*float64(k%5)))
		}
		return out
	}
	for _, tc := range []struct {
		name   string
		runs   map[string][]float64
		change func(*advise.Job)
		want   string // empty: no advice
	}{
		{"one class is faster than the other", map[string][]float64{"new": about(60, 5), "old": about(100, 5)}, nil, "new, 62 instead of 104 s"},
		{"equal runs leave no doubt", map[string][]float64{"new": {60, 60, 60, 60, 60}, "old": {61, 61, 61, 61, 61}}, nil, "new, 60 instead of 61 s"},
		{"the fastest of several is faster than all others together", map[string][]float64{"new": about(60, 9), "old": about(100, 9), "older": about(120, 9)}, nil, "new, 62 instead of 113 s"},
		{"a difference below the noise is none", map[string][]float64{"new": about(99.5, 5), "old": about(100, 5)}, nil, ""},
		{"four runs are too few", map[string][]float64{"new": about(60, 4), "old": about(100, 9)}, nil, ""},
		{"four runs on others are too few", map[string][]float64{"new": about(60, 9), "old": about(100, 4)}, nil, ""},
		{"runs on nodes of one class have nothing to be compared with", map[string][]float64{"new": about(60, 20)}, nil, ""},
		{"what its owner prefers counts", map[string][]float64{"new": about(60, 5), "old": about(100, 5)}, func(j *advise.Job) { j.Prefers = "old" }, ""},
		{"a running job stays where it is", map[string][]float64{"new": about(60, 5), "old": about(100, 5)}, func(j *advise.Job) { j.State = driver.Running }, ""},
		{"a site that wants none gets none", map[string][]float64{"new": about(60, 5), "old": about(100, 5)}, func(j *advise.Job) { j.Site.Advice = tuning.AdviceOff }, ""},
		{"only the last runs count", map[string][]float64{"new": append(about(999, 9), about(60, 50)...), "old": about(100, 5)}, nil, "new, 62 instead of 104 s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			runs := advise.Runs{}
			for class, all := range tc.runs {
				for _, seconds := range all {
					runs.Add(class, seconds)
				}
			}
			got := ""
			for _, i := range advise.For([]advise.Job{job(func(j *advise.Job) {
				if j.Forecast.Runs = runs; tc.change != nil {
					tc.change(j)
				}
			})}) {
				if i.What == advise.Affinity {
					got = fmt.Sprintf("%s, %.0f instead of %.0f s", i.Class, i.To, i.From)
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

package worlds

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/tuning"
)

// TestCraftedRunsOfOthersCostAJobAtMostTheStopLoss: four jobs look like the fifth and teach
// their common class that fewer cores are nearly as fast. The fifth has sixteen threads,
// which fewer cores slow down many times over.
func TestCraftedRunsOfOthersCostAJobAtMostTheStopLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("plays ten jobs of 200 epochs: make check runs it")
	}
	t.Parallel()
	for _, objective := range []tuning.Objective{tuning.Cost, tuning.Energy} {
		w := world{seed: 1, kind: second, cores: 16}
		for i := range 5 {
			name, law := fmt.Sprintf("crafted-%d", i), "parallel=0.5"
			if i == 4 {
				name, law = "victim", "parallel=0.5 oversubscribe=2"
			}
			j := job{own: setting{16, baseBatch}, objective: objective, slowdown: tuning.DefaultMaxSlowdown, moves: true, saves: 5 * time.Second, starts: 5 * time.Second, epoch: 20 * time.Second}
			for c := 1; c < 16; c *= 2 {
				j.allowed = append(j.allowed, setting{c, baseBatch})
			}
			j.source = fmt.Sprintf("#!/bin/sh\n#SBATCH --job-name=%s\n#SBATCH --cpus-per-task=16\n#TUNE mode=apply objective=%s\n", name, objective) +
				"#TUNE knob cores values=1,2,4,8,16\n" +
				"#TUNE progress pattern='epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)'\n" +
				"#TUNE checkpoint signal=USR1 grace=1h exit=85\n" +
				fmt.Sprintf("#SIM epochs=200 seconds=%d %s profile=compute noise=0.01 paired=true start=5s checkpoint=5s memory=1GiB seed=%d\n", 20*(1+i/4), law, i) +
				"export OMP_NUM_THREADS=16\nexec ./train\n"
			w.runs = append(w.runs, j)
		}
		state := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			victim := len(w.runs) - 1
			r := w.row(victim, w.find(t, w.runs[victim]), w.play(t, state)[victim])
			t.Logf("%.3f of the untuned %s, began %s, ended %s: %s", r.Ratio, objective, r.Began, r.Ended, strings.Join(r.Why, "; "))
			if told := strings.Contains(strings.Join(r.Why, ";"), string(tuning.ReasonClassKnown)); r.Ratio > 1.05 || !told {
				t.Errorf("what others crafted (believed: %v) cost the job %.3f of its untuned %s", told, r.Ratio, objective)
			}
		})
	}
}

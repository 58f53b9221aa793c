package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
)

// elasticScript is a job of real work on as many cores as it has.
const elasticScript = `#!/bin/sh
#SBATCH --job-name=%[1]s
#SBATCH --cpus-per-task=%[2]d
#SBATCH --mem=64M
#TUNE mode=apply objective=time
#TUNE knob cores values=1,2
#TUNE knob threads env=THREADS follows=cores
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'
#TUNE checkpoint signal=USR1 grace=20s exit=85
export THREADS=${THREADS:-%[2]d}
exec %[3]s dense --scale 0.5 --epochs %[4]d --state %[1]s-$SLURM_JOB_ID.ckpt
`

var compareFlag = flag.Bool("compare", false, "run the jobs that share cores first come, first served too, and compare: minutes, on a quiet machine")

// Three elastic jobs ask for 2, 1 and 1 cores of a machine that hands out two: the first one is the
// longest. First come, first served, each keeps what it asked for; else they share.
func TestElasticJobsShareTheCores(t *testing.T) {
	if testing.Short() {
		t.Skip("runs real work for a minute: make check runs it")
	}
	if !*compareFlag {
		t.Parallel()
		shareCores(t, true)
		return
	}
	shared, served := shareCores(t, true), shareCores(t, false)
	t.Logf("mean of %.1f s shared, %.1f s first come, first served: %.0f %% sooner", shared, served, 100*(1-shared/served))
	if shared > 0.85*served {
		t.Error("want 15 % sooner at least")
	}
}

// shareCores runs the jobs and returns how many seconds after the first submission they end, on average.
func shareCores(t *testing.T, share bool) (mean float64) {
	t.Helper()
	s := newFlow(t)
	policy := "default: {max_mode: observe, control: 0}\n"
	if share {
		policy = "default: {max_mode: apply, control: 0, above_request: true, allocate: 2}\n"
	}
	if err := os.WriteFile(filepath.Join(s.dir, "site.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	s.argv = append(s.argv, "--local.cores", "2")
	s.open()
	jobs := []struct {
		name          string
		cores, epochs int
	}{{"long", 2, 160}, {"short", 1, 30}, {"brief", 1, 30}}
	began := time.Now()
	var ids []string
	for _, j := range jobs {
		file := s.write(j.name+".sbatch", fmt.Sprintf(elasticScript, j.name, j.cores, s.progs.path("workload"), j.epochs))
		ids = append(ids, strings.TrimSpace(s.ok("run", file, "--dir", t.TempDir())))
	}
	s.until(ids[1], "to run", func(j api.Job) bool { return j.Attempt > 0 || j.Ended })
	if s.job(ids[0]).Ended == share {
		t.Errorf("the second job begins while the first one lives: %v, want %v", !share, share)
	}
	for i, id := range ids {
		j := s.until(id, "to end", ended)
		s.whole(id, jobs[i].epochs)
		mean += j.EndedAt.Sub(began).Seconds() / float64(len(jobs))
		text := s.ok("explain", id)
		t.Logf("%s, shared %v: %.0f s\n%s", jobs[i].name, share, j.EndedAt.Sub(began).Seconds(), text)
		if i == 0 && strings.Contains(text, "divided among") != share {
			t.Errorf("explain with shared cores %v:\n%s", share, text)
		}
	}
	return mean
}

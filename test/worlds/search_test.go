package worlds

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// searchOf is the job file of a search of twelve whole trials. Each asks for 8 cores and makes use of about
// two.
const searchOf = `#!/bin/sh
#SBATCH --job-name=train
#SBATCH --cpus-per-task=8
#TUNE mode=apply objective=cost max_slowdown=none
#TUNE knob cores values=1,2,4,8
#TUNE knob threads env=OMP_NUM_THREADS follows=cores
#TUNE knob batch_size env=BATCH_SIZE values=32,64,128,256 default=32
#TUNE knob lr env=LR min=0.001 max=0.1 scale=log default=0.01
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)'
#TUNE quality direction=max
#TUNE checkpoint signal=USR1 grace=10m exit=85
#SIM epochs=40 seconds=120 parallel=0.5 start=10s checkpoint=5s noise=0.03 run_noise=0.02 batch=BATCH_SIZE base=32 exponent=0.3 spin=%g
`

// spent is what trials took.
type spent struct {
	seconds, coreSeconds    float64
	probes, restarts, known int // known: trials that began under what others had shown
	last                    []trials.Trial
}

func (s spent) String() string {
	return fmt.Sprintf("%6.0f s, %7.0f core-seconds, %2d probes among %2d restarts, %2d began tuned", s.seconds, s.coreSeconds, s.probes, s.restarts, s.known)
}

// inCluster starts a cluster with that many cores, and a controller that looks at it once per tick.
func inCluster(t *testing.T, cores int, tick time.Duration, run func(t *testing.T, cluster *sim.Cluster, ask asker)) {
	t.Helper()
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := sim.New(sim.Config{
			EnergySource: "rapl", Interval: tick, Nodes: []sim.NodeSpec{{Name: "node-1", Cores: cores, MemoryBytes: 64 << 30}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		ask, end := control(t, cluster, state, policy+"  control: 0\n", tick)
		defer end()
		run(t, cluster, ask)
	})
}

func search(t *testing.T, cores int, tick time.Duration, source string) (out spent) {
	t.Helper()
	inCluster(t, cores, tick, func(t *testing.T, cluster *sim.Cluster, ask asker) {
		var begun trials.State
		began := time.Now()
		ask(http.MethodPost, api.PathSearches, api.Submission{Filename: "job.sbatch", Source: []byte(source)}, &begun)
		for time.Since(began) < 100*time.Hour {
			time.Sleep(4 * tick)
			var x trials.State
			ask(http.MethodGet, "/v1/searches/"+begun.ID, nil, &x)
			if x.Over && x.Searcher().Busy() == 0 {
				out.seconds, out.last = x.Ended.Sub(x.Created).Seconds(), x.Trials
				for _, trial := range x.Trials {
					out.add(t, cluster, ask, trial.Jobs...)
				}
				return
			}
		}
		t.Error("the search does not end")
	})
	return out
}

// alone runs the same trials, each on its own cluster: none knows of the others.
func alone(t *testing.T, source string, of []trials.Trial) (out spent) {
	t.Helper()
	for _, trial := range of {
		inCluster(t, 16, 15*time.Second, func(t *testing.T, cluster *sim.Cluster, ask asker) {
			env := map[string]string{"BATCH_SIZE": trial.Settings["batch_size"].String(), "LR": trial.Settings["lr"].String()}
			var job api.Job
			began := time.Now()
			ask(http.MethodPost, api.PathJobs, api.Submission{Filename: "job.sbatch", Source: []byte(source), Env: env}, &job)
			for !job.Ended {
				time.Sleep(time.Minute)
				ask(http.MethodGet, "/v1/jobs/"+job.ID, nil, &job)
			}
			out.seconds = max(out.seconds, time.Since(began).Seconds())
			out.add(t, cluster, ask, driver.JobID(job.ID))
		})
	}
	return out
}

func (s *spent) add(t *testing.T, cluster *sim.Cluster, ask asker, jobs ...driver.JobID) {
	t.Helper()
	for _, id := range jobs {
		job, err := cluster.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var row api.Job
		ask(http.MethodGet, "/v1/jobs/"+string(id), nil, &row)
		s.probes += row.Probes
		s.restarts += len(job.Attempts) - 1
		for i, a := range job.Attempts {
			if i == 0 && a.Change.Cores > 0 {
				s.known++
			}
			s.coreSeconds += float64(cmp.Or(a.Change.Cores, 8)) * a.Ended.Sub(a.Started).Seconds()
		}
	}
}

// TestTrialsShareWhatTheyShow plays a search of twelve trials: as its user asked, pipelined, and each trial for
// itself.
func TestTrialsShareWhatTheyShow(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays 28 jobs: make check and make worlds run it")
	}
	for _, tc := range []struct {
		name string
		spin float64 // share of the waiting cores that look busy: where it is 0 the first profile says it all
	}{{"that wait idly", 0}, {"that wait actively", 1}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.spin == 0 && *worldsFlag == 0 {
				t.Skip("the harder one is enough; scripts/worlds plays both")
			}
			source := fmt.Sprintf(searchOf, tc.spin)
			run := func(m tuning.SystemMode) spent { return search(t, 16, 15*time.Second, source+searching(m)) }
			fixed, pipelined := run(tuning.Fixed), run(tuning.Pipelined)
			each := alone(t, source+"exec ./train\n", pipelined.last)
			t.Logf("\nfixed     %s\npipelined %s\nalone     %s", fixed, pipelined, each)
			if pipelined.seconds > 0.8*fixed.seconds || pipelined.coreSeconds > 0.4*fixed.coreSeconds {
				t.Errorf("pipelined takes %.2f of the seconds and %.2f of the core-seconds", pipelined.seconds/fixed.seconds, pipelined.coreSeconds/fixed.coreSeconds)
			}
			if 3*pipelined.probes > 2*each.probes || 3*pipelined.restarts > 2*each.restarts || pipelined.known < 3 {
				t.Error("the trials share too little of what they show")
			}
		})
	}
}

func searching(system tuning.SystemMode) string {
	return fmt.Sprintf("#TUNE search method=random trials=12 parallel=8 epochs=40 seed=3 system=%s\nexec ./train\n", system)
}

// drawn is a random search: which machine it has, and its job file but for the lines that begin it. Its methods train
// every trial to its end, so that how long it takes does not follow from which of them end early.
func drawn(seed uint64) (cores int, tick time.Duration, source string, line func(tuning.SystemMode) string) {
	rng := rand.New(rand.NewPCG(seed, 7))
	pick := func(from ...int) int { return from[rng.IntN(len(from))] }
	cores = pick(4, 8, 16, 32)
	own, epochs := min(pick(2, 4, 8, 16), cores), pick(9, 18, 27, 40)
	seconds := 4 * math.Exp(rng.Float64()*math.Log(60)) // of an epoch on one core
	values := []string{"1"}
	for c := 2; c <= own; c *= 2 {
		values = append(values, strconv.Itoa(c))
	}
	checkpoint := "#TUNE checkpoint signal=USR1 grace=10m exit=85\n"
	if rng.IntN(5) == 0 {
		checkpoint = ""
	}
	source = fmt.Sprintf("#!/bin/sh\n#SBATCH --job-name=train --cpus-per-task=%d\n#TUNE mode=apply\n#TUNE knob cores values=%s\n", own, strings.Join(values, ",")) +
		"#TUNE knob threads env=OMP_NUM_THREADS follows=cores\n#TUNE knob batch env=BATCH values=16,32,64,128,256\n#TUNE knob lr env=LR min=0.001 max=1 scale=log\n" +
		"#TUNE progress pattern='epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)'\n#TUNE quality direction=max\n" + checkpoint +
		fmt.Sprintf("#SIM epochs=%d seconds=%.3f parallel=%g noise=%.3f checkpoint=1s start=%ds batch=BATCH exponent=%g quality_per_doubling=-0.02 spin=%d paired=true\n",
			epochs, seconds, []float64{0, .3, .6, .8, .9, .95, .99}[rng.IntN(7)], .01+.04*rng.Float64(), pick(1, 2, 5, 15), []float64{0, .1, .3, .5}[rng.IntN(4)], pick(0, 0, 1))
	method, number, parallel := []string{"random", "gp"}[rng.IntN(2)], pick(6, 9, 12, 18, 27), pick(2, 4, 8)
	return cores, time.Duration(max(seconds/float64(own)/4, 1) * float64(time.Second)), source, func(m tuning.SystemMode) string {
		return fmt.Sprintf("#TUNE search method=%s trials=%d parallel=%d epochs=%d seed=%d system=%s\nexec ./train\n", method, number, parallel, epochs, seed, m)
	}
}

// TestSearches plays random searches, as their users asked and pipelined.
func TestSearches(t *testing.T) {
	t.Parallel()
	n, ratios := cmp.Or(*worldsFlag/4, 3), map[uint64]float64{}
	var mu sync.Mutex
	t.Run("all", func(t *testing.T) {
		for seed := range uint64(n) {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
				t.Parallel()
				cores, tick, source, line := drawn(*firstFlag + seed)
				fixed, pipelined := search(t, cores, tick, source+line(tuning.Fixed)), search(t, cores, tick, source+line(tuning.Pipelined))
				ratio := pipelined.seconds / fixed.seconds
				t.Logf("%.3f on %d cores\n%s%s\nfixed     %s\npipelined %s", ratio, cores, source, line(tuning.Pipelined), fixed, pipelined)
				mu.Lock()
				defer mu.Unlock()
				ratios[seed] = ratio
			})
		}
	})
	all := slices.Sorted(maps.Values(ratios))
	mean := math.Exp(tuning.Sum(all, math.Log) / float64(len(all)))
	fmt.Printf("\n%d searches, pipelined to fixed: %.3f of the seconds on average (<= 0.95), from %.3f to %.3f (<= 1.05)\n", len(all), mean, all[0], all[len(all)-1])
	if *worldsFlag > 0 && mean > 0.95 || all[len(all)-1] > 1.05 {
		t.Error("searches at the default policy take too long")
	}
}

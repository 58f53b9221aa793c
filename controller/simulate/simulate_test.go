package simulate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
)

func spec(t failer, name string) simulate.Spec {
	t.Helper()
	i := slices.IndexFunc(simulate.Specs(), func(s simulate.Spec) bool { return s.Name == name })
	if i < 0 {
		t.Fatal("no policy ", name)
	}
	return simulate.Specs()[i]
}

// failer is what fails: a test, or one of rapid's.
type failer interface {
	Context() context.Context
	Helper()
	Error(args ...any)
	Fatal(args ...any)
}

// log reads jobs such as "a 0 100 2": id, submission, duration and GPUs, and if it matters the limit, the forecast and
// the kind.
func log(text string) joblog.Log {
	models := joblog.Models{
		EBM: map[string]float64{}, Alone: map[string]joblog.Alone{"meek": {Memory: 1000}, "loud": {Sharing: 2, Memory: 1000, Busy: 0.8}, "fat": {Memory: 24000}},
		Pairs: map[[2]string]joblog.Pair{{"meek", "meek"}: {First: 0.5, Second: 0.8}}, Arrivals: []joblog.Arrivals{{At: 1e9, Jobs: 9}},
	}
	l := joblog.Log{Models: models}
	for i, row := range strings.Split(text, ",") {
		j := joblog.Job{Line: i + 1}
		forecast := 0.0
		_, _ = fmt.Sscan(row, &j.ID, &j.Submit, &j.Duration, &j.GPUs, &j.Limit, &forecast, &j.Kind) // those behind are often left out
		models.EBM[j.ID] = forecast
		l.Jobs = append(l.Jobs, j)
	}
	return l
}

func TestPoliciesDecideAsTheirRulesSay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, policy string
		nodes        int
		log, want    string // want: id start-end
	}{
		{"fifo waits for the first that does not fit", "fifo", 1, "a 0 100 5, b 1 50 5, c 2 10 1", "a 0-100, b 100-150, c 100-110"},
		{"fifo takes what came at once in the order of the log", "fifo", 1, "a 0 10 8, b 0 10 8, c 0 10 8", "a 0-10, b 10-20, c 20-30"},
		{"fifo: a job of no duration takes no time", "fifo", 1, "a 0 10 8, b 1 0 8, c 1 5 8", "a 0-10, b 10-10, c 10-15"},
		{"a job on one node goes to the fullest that has room", "fifo", 2, "a 0 100 4, b 0 50 8, c 1 100 4, d 60 10 8", "a 0-100, b 0-50, c 1-101, d 60-70"},
		{"a job of several nodes waits until they are empty", "fifo", 2, "a 0 100 1, b 1 10 16", "a 0-100, b 100-110"},
		{"the rest of a job of several nodes goes where most room is", "fifo", 3, "a 0 99 4, b 1 50 12, c 2 9 4, d 3 9 4, e 4 9 4", "a 0-99, b 1-51, c 2-11, d 3-12, e 11-20"},
		{"a job that reaches its limit is killed there", "fifo", 1, "a 0 100 8 60, b 1 10 8", "a 0-60 killed, b 60-70"},
		{"a job as long as its limit is not", "srtf", 1, "a 0 60 8 60", "a 0-61"},
		{"a limit is that of all turns of a job", "srtf", 1, "a 0 90 8 99, b 50 9 8 9, c 200 90 8 80", "a 0-141, b 50-60, c 200-280 killed"},
		{"sjf takes the shortest", "sjf", 1, "a 0 100 8, b 1 50 8, c 2 10 8", "a 0-100, b 110-160, c 100-110"},
		{"qssf takes the least forecast times GPUs", "qssf", 1, "a 0 100 8, b 1 50 8 0 10, c 2 10 1 0 79, d 3 10 1 0 -1", "a 0-100, b 110-160, c 100-110, d 160-170"},
		{"qssf forecasts by itself where the log brings no forecasts", "qssf", 1, "a 0 100 8, b 1 50 8, c 2 10 1", "a 0-100, b 110-160, c 100-110"},
		{"qssf takes the smallest of those that come to an empty queue", "qssf", 1, "a 0 100 8 0 1, b 0 50 1 0 999", "a 50-150, b 0-50"},
		{"srtf stops who has more left, at a cost of 40 s, and notices an end one second late", "srtf", 1, "a 0 100 8, b 10 20 8", "a 0-162, b 10-31"},
		{"srtf lets pass what fits beside, until the wider one has less left", "srtf", 1, "a 0 100 4, b 10 200 8, c 11 300 4", "a 0-101, b 101-302, c 11-553"},
		{"tiresias begins at full minutes", "tiresias", 1, "a 3 30 8, b 61 10 8", "a 60-91, b 120-131"},
		{"tiresias puts who had 18,000 GPU-seconds behind those that come", "tiresias", 1, "a 0 3000 8, b 600 100 8", "a 0-3161, b 2280-2381"},
		{"easy lets pass what ends before the head can start", "easy", 1, "a 0 100 5 100, b 1 50 8 50, c 2 90 3 90, d 3 10 3 100", "a 0-100, b 100-150, c 2-92, d 150-160"},
		{"easy lets pass what the head leaves free", "easy", 1, "a 0 100 5 100, b 1 50 6 50, c 2 300 2 300, d 3 300 1 300", "a 0-100, b 100-150, c 2-302, d 150-450"},
		{"easy lets pass nothing without a limit that the head needs", "easy", 1, "a 0 100 5 100, b 1 50 8 50, c 2 10 3", "a 0-100, b 100-150, c 150-160"},
		{"easy plans a job without a limit with the longest that was asked for", "easy", 1, "z 0 5 1 150, a 1 100 5, b 2 50 8 200, c 10 10 3 150, d 11 10 3 10", "z 0-5, a 1-101, b 101-151, c 151-161, d 11-21"},
		{"easy keeps room for the head where no job has a limit", "easy", 1, "a 0 100 4, b 1 50 6, c 2 500 2, d 3 500 2", "a 0-100, b 100-150, c 2-502, d 150-650"},
		{"on another node a job passes that the head does not need", "easy", 2, "a 0 50 6 100, b 0 200 4 300, c 1 10 8 10, d 2 250 4 250", "a 0-50, b 0-200, c 50-60, d 2-252"},
		{"lucid packs before it uses free GPUs, and a guest whose host ended stays slow", "lucid", 2, "a 0 1000 8 0 1 meek, b 300 1000 8 0 1 meek, c 600 300 8 0 1 meek", "a 0-1177, b 300-2301, c 600-901"},
		{"lucid: a host whose guest ended is as fast as before", "lucid", 1, "a 0 1000 8 0 1 meek, b 300 300 8 0 1 meek", "a 0-1122, b 300-901"},
		{"lucid leaves alone who suffers much, or needs the memory, or goes on for longer", "lucid", 1, "a 0 1000 8 0 1 loud, b 300 500 8 0 1 loud, c 310 500 8 0 2 fat, d 320 500 8 0 3 meek", "a 0-1001, b 1001-1502, c 1502-2003, d 2003-2504"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in, err := simulate.Prepare(log(c.log), simulate.Shape{Nodes: c.nodes, GPUsPerNode: 8})
			if err != nil {
				t.Fatal(err)
			}
			if text := ends(simulated(t, in, spec(t, c.policy))); text != c.want {
				t.Errorf("%s\nwant %s", text, c.want)
			}
		})
	}
}

// ends says when each job began and ended.
func ends(r simulate.Result) string {
	var out []string
	for _, j := range r.Jobs {
		one := fmt.Sprintf("%s %g-%g", j.ID, j.First, j.End)
		if j.Killed {
			one += " killed"
		}
		out = append(out, one)
	}
	return strings.Join(out, ", ")
}

// drawn is a log in which much happens at once.
func drawn(t *rapid.T) string {
	var rows []string
	for i := range rapid.IntRange(1, 60).Draw(t, "jobs") {
		limit := rapid.SampledFrom([]int{0, 50, 400, 2000}).Draw(t, "limit")
		rows = append(rows, fmt.Sprintf("%d %d %d %d %d %d %s", i, rapid.IntRange(0, 600).Draw(t, "submit"), rapid.IntRange(1, 2500).Draw(t, "duration"),
			rapid.SampledFrom([]int{1, 1, 2, 4, 8, 12, 16}).Draw(t, "gpus"), limit, rapid.IntRange(-50, 900).Draw(t, "forecast"), rapid.SampledFrom([]string{"meek", "loud", "fat"}).Draw(t, "kind")))
	}
	return strings.Join(rows, ",")
}

func TestWhateverComesUnitsAreGivenOnceAndWorkIsDone(t *testing.T) {
	t.Parallel()
	for _, s := range simulate.Specs() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				in, err := simulate.Prepare(log(drawn(t)), simulate.Shape{Nodes: rapid.IntRange(2, 4).Draw(t, "nodes"), GPUsPerNode: 8})
				if err != nil {
					t.Fatal(err)
				}
				r, err := simulate.Run(t.Context(), in, simulate.Watched(s, func(err error) { t.Error(err) }), nil)
				if err != nil {
					t.Fatal(err)
				}
				late := 0.0
				if s.Ticks {
					late = 1
				}
				for _, j := range r.Jobs {
					ran, work := simulate.Ran(j)
					killed := j.Limit > 0 && work > j.Limit
					for range j.Preempted {
						work += map[bool]float64{true: 40, false: 60}[j.Units <= 8]
					}
					switch own := s.Name == "lucid" || s.Name == "pitchpipe"; {
					case !(j.First >= j.Submit) || !(j.End >= j.First) || j.Wait < 0:
						t.Fatalf("%+v", j)
					case j.Killed != killed && !own:
						t.Fatalf("killed %t: %+v", j.Killed, j)
					case !own && j.JCT() != j.Wait+ran, !own && !j.Killed && ran != work+late, own && !j.Killed && ran < work/2:
						t.Fatalf("waited %g, ran %g of %g: %+v", j.Wait, ran, work, j)
					}
				}
				if used := float64(simulate.Rows(r)[0].Figure("utilisation")); !(used > 0 && used <= 1) && s.Name != "lucid" { // whose profiler has its own nodes here
					t.Fatal(used)
				}
			})
		})
	}
}

func TestManySubtractionsAtOnceAreThoseOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		left, rate := rapid.Float64Range(0, 3e5).Draw(t, "left"), rapid.SampledFrom([]float64{1, 0.5, 0.985, 1.498, 0.444, 0.75, 0.1 + 0.2}).Draw(t, "rate")
		if rapid.Bool().Draw(t, "whole") {
			left = math.Floor(left)
		}
		most := float64(rapid.IntRange(0, 400000).Draw(t, "most"))
		want, n := left, 0.0
		for ; n < most && want > 0; n++ {
			want -= rate
		}
		if got, k := simulate.Wear(left, rate, most); got != want || k != n {
			t.Fatalf("%v after %v, want %v after %v", got, k, want, n)
		}
	})
}

// lazy starts nothing.
type lazy struct{}

func (lazy) Arrive(*simulate.Job) {}
func (lazy) Ended(*simulate.Job)  {}
func (lazy) Decide() float64      { return math.Inf(1) }

func TestWhatCannotBeSimulatedIsSaid(t *testing.T) {
	t.Parallel()
	one := log("a 0 10 1")
	bare := joblog.Log{Jobs: one.Jobs}
	gpus := simulate.Shape{Nodes: 1, GPUsPerNode: 8}
	two := joblog.Log{Jobs: one.Jobs, Clusters: []joblog.Cluster{{Group: "x", Nodes: 1, GPUs: 8}, {Group: "y", Nodes: 1}}}
	for _, c := range []struct {
		name  string
		log   joblog.Log
		shape simulate.Shape
		says  string
	}{
		{"no nodes anywhere", bare, simulate.Shape{}, "want --nodes"},
		{"fewer than no nodes", bare, simulate.Shape{Nodes: -1, CoresPerNode: 4}, "-1 nodes of 4"},
		{"more nodes than memory holds", bare, simulate.Shape{Nodes: 1 << 30, CoresPerNode: 4}, "more than any cluster has"},
		{"cores beyond numbers", bare, simulate.Shape{Nodes: 2, CoresPerNode: math.MaxInt}, "more than any cluster has"},
		{"nodes although the log has partitions", two, gpus, "leave --nodes and"},
		{"a partition of nothing", two, simulate.Shape{}, `partition "y"`},
		{"nodes of unknown size", bare, simulate.Shape{Nodes: 9}, "want --nodes and --cores-per-node or"},
		{"nodes of unknown number", bare, simulate.Shape{CoresPerNode: 9}, "want --nodes and --cores-per-node or"},
		{"jobs without cores", bare, simulate.Shape{Nodes: 9, CoresPerNode: 1}, "line 1: it needs no cores"},
		{"jobs that are too large", log("a 0 10 9"), gpus, "line 1: it needs 9 GPUs of 8"},
	} {
		if _, err := simulate.Prepare(c.log, c.shape); !errors.Is(err, simulate.ErrInput) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
	for _, c := range []struct {
		name        string
		said        joblog.Cluster
		shape       simulate.Shape
		nodes, each int
	}{
		{"nodes are as the header says", joblog.Cluster{Nodes: 8, Cores: 64}, simulate.Shape{CoresPerNode: 4}, 8, 4},
		{"or as many as its cores need", joblog.Cluster{Cores: 64}, simulate.Shape{CoresPerNode: 4}, 16, 4},
		{"or as it says of nodes with GPUs", joblog.Cluster{Nodes: 8, Cores: 64}, simulate.Shape{GPUsPerNode: 2}, 8, 2},
		{"which share the cores of the header", joblog.Cluster{Cores: 64}, simulate.Shape{Nodes: 4}, 4, 16},
		{"of which the last node may have fewer", joblog.Cluster{Cores: 2}, simulate.Shape{CoresPerNode: 4}, 1, 4},
		{"unless somebody says more", joblog.Cluster{Nodes: 8, Cores: 64}, simulate.Shape{Nodes: 3, CoresPerNode: 2}, 3, 2},
		{"nodes have as many cores as the header says", joblog.Cluster{Nodes: 8, Cores: 64}, simulate.Shape{Nodes: 3}, 3, 8},
	} {
		in, err := simulate.Prepare(joblog.Log{Jobs: []joblog.Job{{ID: "a", CPUs: 1, GPUs: 1}}, Clusters: []joblog.Cluster{c.said}}, c.shape)
		if err != nil || in.Partitions[0].Nodes != c.nodes || in.Partitions[0].PerNode != c.each {
			t.Errorf("%s: %+v %v", c.name, in.Partitions, err)
		}
	}
	in, err := simulate.Prepare(bare, gpus)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.Run(t.Context(), in, spec(t, "lucid"), nil); !errors.Is(err, simulate.ErrInput) {
		t.Errorf("lucid without forecasts: %v", err)
	}
	idle := simulate.Spec{New: func(context.Context, simulate.Input) (func(*simulate.Pool) simulate.Policy, error) {
		return func(*simulate.Pool) simulate.Policy { return lazy{} }, nil
	}}
	if _, err := simulate.Run(t.Context(), in, idle, nil); !errors.Is(err, simulate.ErrStuck) {
		t.Errorf("a policy that starts nothing: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := simulate.Run(stopped, in, spec(t, "fifo"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

func TestOnlyAnOracleKnowsWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, s := range simulate.Specs() {
		under := s.New
		s.New = func(ctx context.Context, in simulate.Input) (func(*simulate.Pool) simulate.Policy, error) {
			each, err := under(ctx, in)
			return func(p *simulate.Pool) simulate.Policy {
				return nosy{each(p), func(j *simulate.Job) {
					if known := !math.IsNaN(p.Remaining(j)); known != s.Oracle || j.Duration != 0 || j.State != "" {
						t.Errorf("%s: known %t, duration %g", s.Name, known, j.Duration)
					}
				}}
			}, err
		}
		in, err := simulate.Prepare(log("a 0 10 1 0 5 meek"), simulate.Shape{Nodes: 1, GPUsPerNode: 8})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = simulate.Run(t.Context(), in, s, nil); err != nil {
			t.Fatal(err)
		}
	}
}

type nosy struct {
	simulate.Policy

	ask func(*simulate.Job)
}

func (n nosy) Arrive(j *simulate.Job) {
	n.ask(j)
	n.Policy.Arrive(j)
}

func TestTheTableOfJobsHasACellForEachColumn(t *testing.T) {
	t.Parallel()
	const head = "job_id,vc,gpu_num,submit_time,duration,start_time,end_time,queue,jct,ckpt_times,"
	for _, c := range []struct {
		policy    string
		nodes     int
		log, want string
	}{
		{
			"lucid", 2, "a 0 300 8 0 5 meek, b 11 300 8 0 5 meek, c 12 10 2 0 5 meek", "profiled,profqueue,toskip,exclusive,sharescore,priority\n" +
				"a,,8,0,300,0,374,0,374,0,1,0,0,1,0,40\nb,,8,11,300,11,612,0,601,0,1,0,0,1,0,40\nc,,2,12,10,200,210,188,198,0,1,188,1,1,,-1\n",
		},
		{"easy-forecast", 1, "a 0 300 8 400, b 0 10 8", "first_limit,extended\na,,8,0,300,0,300,0,300,0,400,0\nb,,8,0,10,300,310,300,310,0,,0\n"},
	} {
		in, err := simulate.Prepare(log(c.log), simulate.Shape{Nodes: c.nodes, GPUsPerNode: 8})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := simulate.WriteJobs(&b, simulated(t, in, spec(t, c.policy))); err != nil {
			t.Fatal(err)
		}
		if b.String() != head+c.want {
			t.Errorf("%s", b.String())
		}
	}
}

func TestWhatStopsAndSharedUnitsCostAJobIsNoRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy, log string
		want        float64
	}{
		{"fifo", "a 0 100 8, b 0 100 8", 1.5},
		{"fifo, a limit ends the run", "a 0 100 8 50, b 0 100 8", 1.25},
		{"srtf", "a 0 100 8, b 10 20 8", (1.62 + 1.05) / 2},
		{"lucid", "a 0 1000 8 0 1 meek, b 300 300 8 0 1 meek", (1.122 + 601.0/300) / 2},
	} {
		in, err := simulate.Prepare(log(c.log), simulate.Shape{Nodes: 1, GPUsPerNode: 8})
		if err != nil {
			t.Fatal(err)
		}
		policy, _, _ := strings.Cut(c.policy, ",")
		if got := float64(summed(t, in, spec(t, policy)).Figure("mean_bounded_slowdown")); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: a slowdown of %g, want %g", c.policy, got, c.want)
		}
	}
}

// threadSeconds is what this thread has used of its processor: others and the collector of garbage do not count.
func threadSeconds(t testing.TB) float64 {
	t.Helper()
	const thread = 1
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func TestTenTimesAsManyJobsTakeAboutTenTimesAsLong(t *testing.T) {
	if testing.Short() {
		t.Skip("plays thousands of jobs: make check runs it")
	}
	t.Parallel()
	of := func(n int) simulate.Input {
		l := log("")
		l.Jobs = nil
		for i := range n {
			j := joblog.Job{ID: strconv.Itoa(i), Submit: float64(i * 60), Duration: float64(10 + i*7919%1201), GPUs: 1 << (i * 31 % 4), Limit: 1300, Kind: "meek"}
			l.Jobs, l.Models.EBM[j.ID] = append(l.Jobs, j), float64(i*104729%1000)
		}
		in, err := simulate.Prepare(l, simulate.Shape{Nodes: 6, GPUsPerNode: 8})
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	short, long := of(1000), of(10000)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	took := func(in simulate.Input, s simulate.Spec) float64 {
		began := threadSeconds(t)
		if _, err := simulate.Run(t.Context(), in, s, nil); err != nil {
			t.Fatal(err)
		}
		return threadSeconds(t) - began
	}
	one, ten := 0.0, 0.0
	for _, s := range simulate.Specs() {
		a, b := max(took(short, s), took(short, s)), took(long, s)
		t.Logf("%s: %.4f s and %.4f s: %.1f times", s.Name, a, b, b/a)
		one, ten = one+a, ten+b
	}
	if most := 15.0; ten > most*one {
		t.Errorf("ten times as many jobs take %.1f times as long, want at most %g", ten/one, most)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	nomad "github.com/hashicorp/nomad/api"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/nomadagent"
)

// task computes in epochs, by itself and in a child that lives shortly, and says after
// each what it has used, as its own books have it. Where it has to stay it waits
// for a signal at its end.
const task = `$| = 1;
use strict;
my ($epochs, $stay) = @ARGV;
sub burn { my ($cpu) = @_; my $x = 0; while ((times)[0] + (times)[1] < $cpu) { $x += $_ for 1 .. 2000 } }
my $go = 0;
$SIG{USR1} = sub { $go = 1 };
my $memory = "x" x (64 << 20);
for my $epoch (1 .. $epochs) {
	my @now = times;
	burn($now[0] + $now[1] + 0.25);
	my $child = fork // die;
	if (!$child) { burn(0.15); exit 0 }
	waitpid $child, 0;
	open my $f, "<", "/proc/self/status" or die;
	my ($rss) = map { /^VmRSS:\s*(\d+)/ ? $1 : () } <$f>;
	my @t = times;
	printf "epoch %d/%d rss %d cpu %.2f\n", $epoch, $epochs, $rss * 1024, $t[0] + $t[1] + $t[2] + $t[3];
}
while ($stay && !$go) { select undef, undef, undef, 0.1 }
`

func taskSaid() progress.Config {
	return progress.Config{Pattern: regexp.MustCompile(`epoch (?P<epoch>\d+)/(?P<total>\d+) rss (?P<loss>\S+) cpu (?P<quality>\S+)`)}
}

// anAgent needs root, since the node's client does, and the perl that the task is in.
func anAgent(t *testing.T) (*nomadagent.Agent, *nomad.Client) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a client of Nomad needs root")
	}
	if _, err := os.Stat("/usr/bin/perl"); err != nil {
		t.Skip("the task needs perl: ", err)
	}
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	return a, a.Client(t)
}

// runTask registers a batch job of one task and returns its allocation when it runs.
func runTask(t *testing.T, c *nomad.Client, driver string, r *nomad.Resources, args ...string) *nomad.Allocation {
	t.Helper()
	id := fmt.Sprintf("exporter-%s-%d", driver, time.Now().UnixNano())
	job := nomad.NewBatchJob(id, id, "global", 50)
	job.Datacenters = []string{"*"}
	one, none, script := 1, 0, task
	path := "local/task.pl"
	job.TaskGroups = []*nomad.TaskGroup{{
		Name: &id, Count: &one, RestartPolicy: &nomad.RestartPolicy{Attempts: &none}, ReschedulePolicy: &nomad.ReschedulePolicy{Attempts: &none},
		Tasks: []*nomad.Task{{
			Name: "train", Driver: driver, Resources: r,
			Config:    map[string]any{"command": "/usr/bin/perl", "args": append([]string{path}, args...)},
			Templates: []*nomad.Template{{EmbeddedTmpl: &script, DestPath: &path}},
		}},
	}}
	if _, _, err := c.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		allocs, _, err := c.Jobs().Allocations(id, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, stub := range allocs {
			switch alloc, _, err := c.Allocations().Info(stub.ID, nil); {
			case err != nil:
				t.Fatal(err)
			case stub.ClientStatus == nomad.AllocClientStatusRunning, stub.ClientStatus == nomad.AllocClientStatusComplete:
				return alloc
			case stub.ClientStatus == nomad.AllocClientStatusFailed:
				t.Fatalf("the task failed: %+v", stub.TaskStates["train"])
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the task does not run")
		}
	}
}

// tell reads the task's output by the agent's API and reports on its behalf, as a
// controller does, until the task has ended and all is read.
func tell(ctx context.Context, c *nomad.Client, client *api.Client, alloc *nomad.Allocation) error {
	unit := "nomad/" + alloc.ID + ".train"
	body, in := io.Pipe()
	go func() { _ = in.CloseWithError(output(ctx, c, alloc, in)) }()
	return progress.Read(ctx, taskSaid(), body, func(ctx context.Context, r api.Report) error {
		return client.ReportFor(ctx, unit, 1, r)
	})
}

// output reads by the plain path: each call of AllocFS leaves a connection behind, and an
// agent allows a hundred.
func output(ctx context.Context, c *nomad.Client, alloc *nomad.Allocation, to io.Writer) error {
	for offset := int64(0); ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		now, _, err := c.Allocations().Info(alloc.ID, nil)
		if err != nil {
			return err
		}
		body, err := c.Raw().Response("/v1/client/fs/logs/"+alloc.ID, &nomad.QueryOptions{Params: map[string]string{
			"task": "train", "type": "stdout", "origin": "start", "plain": "true", "offset": strconv.FormatInt(offset, 10),
		}})
		if err == nil {
			var n int64
			n, err = io.Copy(to, body)
			offset += n
			_ = body.Close()
		}
		if now.ClientTerminalStatus() {
			return err
		}
	}
	return nil
}

func TestATaskOfNomadIsMeasuredAsItMeasuresItself(t *testing.T) {
	_, c := anAgent(t)
	client, _ := exporter(t, "--perf.leaf")
	cores, little, memory := 1, 100, 256
	for _, tc := range []struct {
		name   string
		driver string
		r      *nomad.Resources
		cores  float64 // that it is given; 0 = what others leave
	}{
		{"raw_exec on shared cores", "raw_exec", &nomad.Resources{CPU: &little, MemoryMB: &memory}, 0},
		{"raw_exec on a core of its own", "raw_exec", &nomad.Resources{Cores: &cores, MemoryMB: &memory}, 1},
		{"exec on a core of its own", "exec", &nomad.Resources{Cores: &cores, MemoryMB: &memory}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			alloc := runTask(t, c, tc.driver, tc.r, "4", "stay")
			ctx, cancel := context.WithCancel(t.Context())
			told := make(chan error, 1)
			go func() { told <- tell(ctx, c, client, alloc) }()
			defer func() {
				cancel()
				if err := <-told; err != nil && t.Failed() {
					t.Log(err)
				}
			}()
			unit := "nomad/" + alloc.ID + ".train"
			marks := wanted(t, client, unit, 4)
			if err := c.Allocations().Signal(alloc, nil, "train", "SIGUSR1"); err != nil {
				t.Fatal(err)
			}
			w := ended(t, client, unit, 1)
			if w.Job.Manager != "nomad" || w.Job.ID != alloc.ID+".train" || w.Job.Attempt != 1 {
				t.Errorf("job %+v", w.Job)
			}
			last := 0.0
			for _, m := range marks {
				own := *m.Mark.Quality
				if got := m.Values[api.ColCPUSeconds]; got < own-0.05 {
					t.Errorf("epoch %d: %v CPU seconds, the task itself had %v", m.Mark.Epoch, got, own)
				}
				last = own
			}
			end := final(w)
			// What Nomad's own program and the start of perl take is not in the task's books.
			if got := end[api.ColCPUSeconds]; math.Abs(got-last) > 0.15*last {
				t.Errorf("%v CPU seconds, the task itself had %v", got, last)
			}
			m := marks[len(marks)-1]
			if got, own := m.Values[api.ColRSS], *m.Mark.Loss; got < 0.9*own-4<<20 || got > 1.3*own+32<<20 {
				t.Errorf("%.1f MiB resident, the task itself had %.1f", got/(1<<20), own/(1<<20))
			}
			if got := m.Values[api.ColPeak]; got < 64<<20 || got > 256<<20 {
				t.Errorf("a peak of %.1f MiB", got/(1<<20))
			}
			if got, ok := m.Values[api.ColAllocatedCores]; tc.cores > 0 && got != tc.cores || tc.cores == 0 && ok && got > float64(online(t)) {
				t.Errorf("%v cores, want %v", got, tc.cores)
			}
			if clock, ok := end[api.ColTaskClock]; ok && clock < 0.8*last {
				t.Errorf("a task clock of %v s, the task itself had %v CPU seconds", clock, last)
			}
			t.Logf("the task %.2f CPU s, %.1f MiB; measured %.2f CPU s, %.2f s by perf, %.1f MiB, peak %.1f MiB, %v cores, %v J, of schema %s in %s",
				last, *m.Mark.Loss/(1<<20), end[api.ColCPUSeconds], end[api.ColTaskClock], m.Values[api.ColRSS]/(1<<20), m.Values[api.ColPeak]/(1<<20),
				m.Values[api.ColAllocatedCores], end[api.ColJoules], w.Schema, w.Job.Cgroup)
		})
	}
}

// wanted waits until so many epochs are marked and returns their samples.
func wanted(t *testing.T, client *api.Client, unit string, n int) []api.Sample {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		w, err := client.Window(t.Context(), unit, 1, 0)
		if err != nil && !errors.Is(err, api.ErrNotFound) {
			t.Fatal(err)
		}
		var marks []api.Sample
		for _, s := range w.Samples {
			if s.Mark != nil {
				marks = append(marks, s)
			}
		}
		if len(marks) == n {
			for i, m := range marks {
				if m.Mark.Epoch != i+1 || m.Mark.Total != n || m.Mark.Quality == nil || len(m.Values) == 0 {
					t.Fatalf("mark %d is %+v", i+1, m)
				}
			}
			return marks
		}
		if time.Now().After(deadline) || len(marks) > n {
			t.Fatalf("%d marks, want %d: %+v", len(marks), n, w.Job)
		}
	}
}

func final(w api.Window) map[string]float64 {
	for _, s := range slices.Backward(w.Samples) {
		if len(s.Values) > 0 {
			return s.Values
		}
	}
	return nil
}

func online(t *testing.T) int {
	t.Helper()
	cpus, err := hostfs.Root{}.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	return len(cpus)
}

// The lines of a task that ends at once with its last are read when it is gone.
func TestEveryEpochOfAShortTaskOfNomadCounts(t *testing.T) {
	_, c := anAgent(t)
	client, _ := exporter(t)
	memory, little := 256, 100
	alloc := runTask(t, c, "raw_exec", &nomad.Resources{CPU: &little, MemoryMB: &memory}, "3")
	if err := tell(t.Context(), c, client, alloc); err != nil {
		t.Fatal(err)
	}
	unit := "nomad/" + alloc.ID + ".train"
	w := ended(t, client, unit, 1)
	marks := wanted(t, client, unit, 3)
	t.Logf("the task had %.2f CPU s, %.2f were measured", *marks[2].Mark.Quality, final(w)[api.ColCPUSeconds])
	// Told once more from the beginning, as by a controller that was restarted.
	if err := tell(t.Context(), c, client, alloc); err != nil {
		t.Fatal(err)
	}
	wanted(t, client, unit, 3)
	left, err := filepath.Glob("/sys/fs/cgroup/*/nomad/" + alloc.ID + "*")
	if err != nil || len(left) > 0 && !strings.Contains(strings.Join(left, " "), alloc.ID) {
		t.Errorf("%v, %v", left, err)
	}
}

// Its client leaves the cgroups of a raw_exec task that it restarts in place (2.0.6 under
// v1), and goes on with its output: for the exporter too it is one attempt that goes on.
func TestATaskThatNomadRestartsInPlaceGoesOn(t *testing.T) {
	_, c := anAgent(t)
	client, _ := exporter(t)
	memory, little := 256, 100
	alloc := runTask(t, c, "raw_exec", &nomad.Resources{CPU: &little, MemoryMB: &memory}, "2", "stay")
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 1)
	go func() { told <- tell(ctx, c, client, alloc) }()
	defer func() {
		cancel()
		if err := <-told; err != nil && t.Failed() {
			t.Log(err)
		}
	}()
	unit := "nomad/" + alloc.ID + ".train"
	wanted(t, client, unit, 2)
	if err := c.Allocations().Restart(alloc, "train", nil); err != nil {
		t.Fatal(err)
	}
	var marks []api.Sample
	for deadline := time.Now().Add(3 * time.Minute); len(marks) < 4; time.Sleep(20 * time.Millisecond) {
		w, err := client.Window(t.Context(), unit, 1, 0)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d marks: %+v, %v", len(marks), w.Job, err)
		}
		marks = slices.DeleteFunc(w.Samples, func(s api.Sample) bool { return s.Mark == nil })
	}
	used := 0.0 // by the first start
	for i, m := range marks {
		if i == 2 {
			used = *marks[1].Mark.Quality
		}
		if m.Mark.Epoch != i%2+1 || m.Mark.Nth != i+1 {
			t.Errorf("mark %d is %+v", i+1, m.Mark)
		}
		if own, got := used+*m.Mark.Quality, m.Values[api.ColCPUSeconds]; got < own-0.1 {
			t.Errorf("mark %d: %v CPU seconds, the starts themselves had %v", i+1, got, own)
		}
	}
	if err := c.Allocations().Signal(alloc, nil, "train", "SIGUSR1"); err != nil {
		t.Fatal(err)
	}
	ended(t, client, unit, 1)
}

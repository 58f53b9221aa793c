package slurm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// crowd answers what an Outlook asks for, and leaves the rest to a fake.
type crowd struct {
	command.Runner
	places  string                     // sinfo's of the node
	waits   map[string]string          // who waits, by partition
	books   string                     // reservations
	expects func(args []string) string // what sbatch --test-only says; empty = it refuses
}

func (c *crowd) Run(ctx context.Context, call command.Call) (command.Output, error) {
	line := call.String()
	option := func(name string) string {
		i := slices.Index(call.Args, name)
		if i < 0 {
			return ""
		}
		return call.Args[i+1]
	}
	switch {
	case call.Name == "sinfo" && option("-n") == "n1":
		return command.Output{Stdout: []byte(c.places)}, nil
	case call.Name == "squeue" && option("-t") == "PENDING":
		out := ""
		for p := range strings.SplitSeq(option("-p"), ",") {
			out += c.waits[p]
		}
		return command.Output{Stdout: []byte(out)}, nil
	case strings.Contains(line, "show reservation"):
		return command.Output{Stdout: []byte(c.books)}, nil
	case strings.Contains(line, "show hostnames"):
		return command.Output{Stdout: []byte(call.Args[2] + "\n")}, nil
	case call.Name == "sbatch" && slices.Contains(call.Args, "--test-only"):
		says := ""
		if c.expects != nil {
			says = c.expects(call.Args)
		}
		if says == "" {
			return command.Output{}, fmt.Errorf("sbatch: %w", driver.ErrInvalid)
		}
		return command.Output{Stderr: []byte(says)}, nil
	}
	return c.Runner.Run(ctx, call)
}

// startsIn is what sbatch --test-only says about a job that would start after a time.
func startsIn(wait time.Duration) func([]string) string {
	return func([]string) string {
		at := time.Now().UTC().Add(wait).Format("2006-01-02T15:04:05")
		return "sbatch: Job 29 to start at " + at + " using 2 processors on nodes n1 in partition main\n"
	}
}

func TestWhatARestartWouldMeet(t *testing.T) {
	t.Parallel()
	const (
		place = "n1|main|up|mixed|0/16/0/16|1|16384|0|\n"
		ahead = "9|9|N/A|Resources|bob|proj|other|\n"
		hour  = time.Hour
	)
	book := func(name string, start, end time.Duration, flags string) string {
		stamp := func(d time.Duration) string { return time.Now().UTC().Add(d).Format("2006-01-02T15:04:05") }
		return fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=1 Nodes=n1 NodeCnt=1 Features=(null) PartitionName=(null) Flags=%s\n",
			name, stamp(start), stamp(end), flags)
	}
	for name, c := range map[string]struct {
		crowd  crowd
		job    func(*fakeJob)
		conf   string
		site   bool
		wait   time.Duration // negative: no one can tell
		why    string        // why no one can tell although there is a queue
		closed time.Duration // until it is, 0 = never
	}{
		"where no one waits its room is there": {crowd: crowd{places: place}},
		"where others wait Slurm says for how long": {
			crowd: crowd{places: place, waits: map[string]string{"main": ahead}, expects: startsIn(hour)}, wait: hour,
		},
		"who waits in another partition over its node is in the way": {
			crowd: crowd{places: place + "n1|long|up|mixed|0/16/0/16|1|16384|0|\n", waits: map[string]string{"long": ahead}, expects: startsIn(hour)}, wait: hour,
		},
		"who waits elsewhere is not": {crowd: crowd{places: place, waits: map[string]string{"long": ahead}}},
		"who waits for another job is not": {
			crowd: crowd{places: place, waits: map[string]string{"main": strings.Replace(ahead, "Resources", "Dependency", 1)}},
		},
		"where another of its QOS waits for a limit no one can tell": {
			crowd: crowd{places: place, waits: map[string]string{"main": "9|9|N/A|QOSGrpCpuLimit|bob|proj|normal|\n"}, expects: startsIn(0)},
			wait:  -1, why: "QOSGrpCpuLimit",
		},
		"where a stranger waits for a limit Slurm is asked": {
			crowd: crowd{places: place, waits: map[string]string{"main": "9|9|N/A|QOSGrpCpuLimit|bob|proj|other|\n"}, expects: startsIn(hour)}, wait: hour,
		},
		"where no one is shown who waits Slurm is asked": {
			crowd: crowd{places: place, expects: startsIn(hour)}, conf: "PrivateData = accounts,jobs\n", wait: hour,
		},
		"of a job that wants a feature no one can tell how long others are ahead": {
			crowd: crowd{places: place, waits: map[string]string{"main": ahead}, expects: startsIn(0)},
			job:   func(j *fakeJob) { j.more = "Features=gpu Licenses=(null)" }, wait: -1, why: "Features=gpu",
		},
		"where no one waits its feature is there, too": {crowd: crowd{places: place}, job: func(j *fakeJob) { j.more = "Features=gpu" }},
		"where Slurm does not answer there is a queue all the same": {
			crowd: crowd{places: place, waits: map[string]string{"main": ahead}}, wait: -1, why: "predicts no start",
		},
		"a site that may not name the account of a job asks without it": {
			crowd: crowd{places: place, waits: map[string]string{"main": ahead}, expects: func(args []string) string {
				if slices.Contains(args, "--qos=normal") {
					return ""
				}
				return startsIn(hour)(args)
			}}, site: true, wait: hour,
		},
		"a node that is being drained takes it no more": {
			crowd: crowd{places: "n1|main|up|draining|0/16/0/16|1|16384|0|\n", expects: startsIn(hour)}, wait: hour,
		},
		"a partition that is down starts it no more": {crowd: crowd{places: "n1|main|down|mixed|0/16/0/16|1|16384|0|\n"}, wait: -1, why: "starts no jobs"},
		"a reservation that comes within its limit leaves it no room": {
			crowd: crowd{places: place, books: book("maint", hour, 2*hour, "MAINT"), expects: startsIn(2 * hour)},
			job:   func(j *fakeJob) { j.limit = 90 }, wait: 2 * hour, closed: hour,
		},
		"one that comes later does": {
			crowd: crowd{places: place, books: book("maint", 2*hour, 3*hour, "MAINT")},
			job:   func(j *fakeJob) { j.limit = 90 }, closed: 2 * hour,
		},
		"its own reservation starts it as long as its whole limit fits": {
			crowd: crowd{places: place, books: book("own", -hour, 2*hour, "SPEC_NODES")},
			job:   func(j *fakeJob) { j.limit, j.more = 90, "Reservation=own" }, closed: 30 * time.Minute,
		},
		"and no longer": {
			crowd: crowd{places: place, books: book("own", -hour, hour, "SPEC_NODES")},
			job:   func(j *fakeJob) { j.limit, j.more = 90, "Reservation=other,own" }, closed: -30 * time.Minute,
		},
		"unless jobs may outlive it": {
			crowd: crowd{places: place, books: book("own", -hour, hour, "FLEX,SPEC_NODES")},
			job:   func(j *fakeJob) { j.limit, j.more = 90, "Reservation=own" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(cfg *slurm.Config) {
				c.crowd.Runner = cfg.Commands
				cfg.Commands, cfg.Everyone = &c.crowd, c.site
			})
			r.f.conf += c.conf
			r.f.jobs[1] = &fakeJob{id: 1, state: "PENDING", name: "a", script: spec().Source, cores: 1, mem: 100, submitted: time.Now().UTC()}
			r.f.run("1")
			if c.job != nil {
				r.f.with("1", c.job)
			}
			got, err := r.d.Outlook(t.Context(), "1")
			if err != nil {
				t.Fatal(err)
			}
			near := func(a, b time.Duration) bool { return (a - b).Abs() < 5*time.Minute } // however busy the machine
			if (got.Wait == nil) != (c.wait < 0) || got.Wait != nil && !near(*got.Wait, c.wait) {
				t.Errorf("it waits %v, want %v", got.Wait, c.wait)
			}
			if (got.Crowded == "") != (c.why == "") || !strings.Contains(got.Crowded, c.why) {
				t.Errorf("crowded: %q, want %q", got.Crowded, c.why)
			}
			if got.Closed.IsZero() != (c.closed == 0) || !got.Closed.IsZero() && !near(time.Until(got.Closed), c.closed) {
				t.Errorf("closed at %v by %q, want in %v", got.Closed, got.ClosedBy, c.closed)
			}
		})
	}
}

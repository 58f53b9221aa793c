package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"pitchpipe/test/nomadserver/cluster"
)

func node() cluster.Node {
	return cluster.Node{
		Cores: 2, MHzPerCore: 1000, MemoryMB: 1000, Drivers: []string{"raw_exec"},
		Reserved: func(string) map[string][]int { return nil },
	}
}

func job(version uint64, count int, cpu int) *api.Job {
	j := api.NewBatchJob("j", "j", "global", 50)
	t := api.NewTask("t", "raw_exec")
	t.Resources = &api.Resources{CPU: new(cpu), MemoryMB: new(10)}
	j.AddTaskGroup(api.NewTaskGroup("g", count).AddTask(t))
	j.Datacenters = []string{"*"}
	j.Canonicalize()
	j.Version, j.JobModifyIndex, j.CreateIndex = new(version), new(10+version), new(uint64(1))
	return j
}

func alloc(j *api.Job, n int, desired, client string) *api.Allocation {
	return &api.Allocation{
		ID: fmt.Sprintf("%d-%d-%s", *j.Version, n, client), Name: fmt.Sprintf("j.g[%d]", n), Job: j, JobID: "j", TaskGroup: "g",
		DesiredStatus: desired, ClientStatus: client,
		AllocatedResources: &api.AllocatedResources{Tasks: map[string]*api.AllocatedTaskResources{
			"t": {Cpu: api.AllocatedCpuResources{CpuShares: int64(*j.TaskGroups[0].Tasks[0].Resources.CPU)}, Memory: api.AllocatedMemoryResources{MemoryMB: 10}},
		}},
	}
}

func decide(j *api.Job, allocs ...*api.Allocation) *cluster.Plan {
	return cluster.Decide(cluster.Input{Job: j, Allocs: allocs, Node: node(), Now: time.Unix(1000, 0)})
}

func TestWhatBecomesOfAllocations(t *testing.T) {
	t.Parallel()
	v0, v1 := job(0, 1, 100), job(1, 1, 200)
	mild := job(1, 1, 100)
	for name, tc := range map[string]struct {
		plan *cluster.Plan
		want api.DesiredUpdates
	}{
		"a new job is placed":                                 {decide(v0), api.DesiredUpdates{Place: 1}},
		"what runs under the same version is left alone":      {decide(v0, alloc(v0, 0, "run", "running")), api.DesiredUpdates{Ignore: 1}},
		"what has finished under the same version is done":    {decide(v0, alloc(v0, 0, "run", "complete")), api.DesiredUpdates{Ignore: 1}},
		"what has finished under an older version runs again": {decide(mild, alloc(v0, 0, "run", "complete")), api.DesiredUpdates{Ignore: 1, Place: 1}},
		"what failed under an older version runs again":       {decide(mild, alloc(v0, 0, "run", "failed")), api.DesiredUpdates{Ignore: 1, Place: 1}},
		"what runs is replaced by a destructive change":       {decide(v1, alloc(v0, 0, "run", "running")), api.DesiredUpdates{DestructiveUpdate: 1}},
		"what runs is kept by a mild change":                  {decide(mild, alloc(v0, 0, "run", "running")), api.DesiredUpdates{InPlaceUpdate: 1}},
		"what is about to end holds no name":                  {decide(v0, alloc(v0, 0, "stop", "running")), api.DesiredUpdates{Ignore: 1, Place: 1}},
		"of two one is too many": {
			decide(v0, alloc(v0, 0, "run", "running"), alloc(v0, 1, "run", "running")), api.DesiredUpdates{Ignore: 1, Stop: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, *tc.plan.Desired["g"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAReplacementWithoutRoomLeavesItsPredecessorAlone(t *testing.T) {
	t.Parallel()
	v0 := job(0, 1, 100)
	p := decide(job(1, 1, 5000), alloc(v0, 0, "run", "running"))
	if len(p.Stop) != 0 || len(p.Place) != 0 || p.Queued["g"] != 1 {
		t.Errorf("%d stops, %d places, %d queued", len(p.Stop), len(p.Place), p.Queued["g"])
	}
	if m := p.Failed["g"]; m == nil || m.DimensionExhausted["cpu"] != 1 {
		t.Errorf("failed %+v", m)
	}
}

func TestAReplacementMayUseWhatItsPredecessorHeld(t *testing.T) {
	t.Parallel()
	v0 := job(0, 1, 1900)
	p := decide(job(1, 1, 2000), alloc(v0, 0, "run", "running"))
	if len(p.Stop) != 1 || len(p.Place) != 1 || p.Place[0].Previous == nil {
		t.Errorf("%+v", p)
	}
}

func TestAFailedAllocationIsReplacedWhenItsPolicySays(t *testing.T) {
	t.Parallel()
	j := job(0, 1, 100)
	j.TaskGroups[0].ReschedulePolicy = &api.ReschedulePolicy{
		Attempts: new(1), Interval: new(time.Hour), Delay: new(10 * time.Second), DelayFunction: new("constant"), MaxDelay: new(time.Duration(0)), Unlimited: new(false),
	}
	failed := alloc(j, 0, "run", "failed")
	failed.TaskStates = map[string]*api.TaskState{"t": {FinishedAt: time.Unix(995, 0)}}
	later := decide(j, failed)
	if len(later.Later) != 1 || !later.Later[0].At.Equal(time.Unix(1005, 0)) || len(later.Place) != 0 {
		t.Errorf("%+v", later)
	}
	failed.TaskStates["t"].FinishedAt = time.Unix(990, 0)
	if now := decide(j, failed); len(now.Place) != 1 || !now.Place[0].Rescheduled {
		t.Errorf("%+v", now)
	}
	failed.RescheduleTracker = &api.RescheduleTracker{Events: []*api.RescheduleEvent{{RescheduleTime: time.Unix(980, 0).UnixNano()}}}
	if over := decide(j, failed); len(over.Place)+len(over.Later) != 0 {
		t.Errorf("a second time: %+v", over)
	}
}

// TestAPlanNeverGivesAwayMoreThanThereIs draws states and looks at what would be on
// the node afterwards.
func TestAPlanNeverGivesAwayMoreThanThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cpu := rapid.IntRange(1, 1500)
		old := job(0, rapid.IntRange(0, 4).Draw(t, "count"), cpu.Draw(t, "cpu before"))
		var allocs []*api.Allocation
		used := 0
		for i := range *old.TaskGroups[0].Count {
			a := alloc(old, i, rapid.SampledFrom([]string{"run", "stop"}).Draw(t, "desired"),
				rapid.SampledFrom([]string{"pending", "running", "complete", "failed"}).Draw(t, "client"))
			size := *old.TaskGroups[0].Tasks[0].Resources.CPU
			if !a.ClientTerminalStatus() {
				if used+size > 2000 {
					continue
				}
				used += size
			}
			allocs = append(allocs, a)
		}
		next := job(1, rapid.IntRange(0, 4).Draw(t, "count after"), cpu.Draw(t, "cpu after"))
		p := decide(next, allocs...)
		gone := map[string]bool{}
		for _, s := range p.Stop {
			if s.Alloc.ServerTerminalStatus() {
				t.Fatalf("%s is stopped twice", s.Alloc.ID)
			}
			gone[s.Alloc.ID] = true
		}
		sum, names := 0, map[string]bool{}
		for _, a := range allocs {
			if !a.ClientTerminalStatus() && !gone[a.ID] {
				sum += int(a.AllocatedResources.Tasks["t"].Cpu.CpuShares)
			}
		}
		for _, place := range p.Place {
			sum += int(place.Resources.Tasks["t"].Cpu.CpuShares)
			if names[place.Name] {
				t.Fatalf("%s is placed twice", place.Name)
			}
			names[place.Name] = true
		}
		if sum > 2000 {
			t.Fatalf("%d MHz of 2000", sum)
		}
		if got := len(p.Place) + p.Queued["g"]; got > *next.TaskGroups[0].Count {
			t.Fatalf("%d wanted of %d", got, *next.TaskGroups[0].Count)
		}
	})
}

package facts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestRegistering(t *testing.T) {
	hold(t, nomadagent.Options{Cores: 2, MemoryMB: 1024}, []fact{
		{"a stale index is refused with status 500 and a text, and changes nothing", staleIndex, both},
		{"index 0 is refused where the job exists", zeroIndex, both},
		{"an index is refused where the job does not exist", indexOfNothing, both},
		{"the end of a job moves ModifyIndex and not JobModifyIndex", endMovesModifyIndex, both},
		{"the index that was read before the end is taken after it and the work is done again", completionRace, both},
		{"the same specification again is no new version and no new allocation", identical, both},
		{"any change of a finished batch job does its work again, even of its priority", priorityReruns, both},
		{"a stopped job that is registered again unchanged runs again", stoppedReruns, both},
		{"with a count of two a change does the finished index again too", finishedIndexReruns, both},
		{"a change of a running job replaces it when it has ended, and the replaced one ends as complete", replacement, both},
		{"a task that ignores its signal is killed and the replaced allocation still ends as complete", stubborn, both},
		{"priority, kill_timeout, scaling and restart policy change in place", inPlace, both},
		{"environment, config, meta, memory and cores are destructive", destructive, both},
		{"switching from cpu to cores is destructive and gives the task cores of its own", toCores, both},
		{"the type of a job never changes", typeChange, both},
		{"cpu and cores together are refused", cpuAndCores, both},
		{"memory_max is ignored with a warning while oversubscription is off", memoryMax, both},
		{"unknown fields of JSON are dropped without a word", unknownFields, both},
		{"a kill_signal adds a constraint to the job", impliedConstraint, both},
		{"PreserveResources keeps tuned resources and makes a version nevertheless", preserve, both},
	})
}

func staleIndex(t *testing.T, c cluster) {
	first := c.register(t, c.job(lasting))
	j := c.job(lasting)
	j.Priority = new(60)
	second := c.register(t, j)
	j.Priority = new(70)
	_, _, err := c.Jobs().EnforceRegister(j, first.JobModifyIndex, nil)
	refused(t, err, 500, fmt.Sprintf("Enforcing job modify index %d: job exists with conflicting job modify index: %d",
		first.JobModifyIndex, second.JobModifyIndex))
	if now := c.read(t); *now.Priority != 60 || *now.Version != 1 || *now.JobModifyIndex != second.JobModifyIndex {
		t.Errorf("priority %d, version %d, index %d", *now.Priority, *now.Version, *now.JobModifyIndex)
	}
}

func zeroIndex(t *testing.T, c cluster) {
	j := c.job(lasting)
	c.register(t, j)
	_, _, err := c.Jobs().EnforceRegister(j, 0, nil)
	refused(t, err, 500, "Enforcing job modify index 0: job already exists")
}

func indexOfNothing(t *testing.T, c cluster) {
	_, _, err := c.Jobs().EnforceRegister(c.job(lasting), 7, nil)
	refused(t, err, 500, "Enforcing job modify index 7: job does not exist")
}

func endMovesModifyIndex(t *testing.T, c cluster) {
	reg := c.register(t, c.job("sleep 0.2"))
	end := c.awaitStatus(t, "dead")
	if *end.JobModifyIndex != reg.JobModifyIndex || *end.ModifyIndex <= reg.JobModifyIndex {
		t.Errorf("JobModifyIndex %d and ModifyIndex %d after registration at %d", *end.JobModifyIndex, *end.ModifyIndex, reg.JobModifyIndex)
	}
}

func completionRace(t *testing.T, c cluster) {
	j := c.job("sleep 0.2")
	reg := c.register(t, j)
	c.awaitStatus(t, "dead")
	task(j).Env = map[string]string{"A": "1"}
	if _, _, err := c.Jobs().EnforceRegister(j, reg.JobModifyIndex, nil); err != nil {
		t.Fatal(err)
	}
	list := c.awaitAllocs(t, "complete", "complete")
	if list[0].DesiredStatus != "run" || list[0].NextAllocation != "" || list[1].JobVersion != 1 {
		t.Errorf("the first is desired=%s next=%q, the second of version %d", list[0].DesiredStatus, list[0].NextAllocation, list[1].JobVersion)
	}
}

func identical(t *testing.T, c cluster) {
	j := c.job("sleep 0.2")
	c.register(t, j)
	before := c.awaitStatus(t, "dead")
	again := c.register(t, j)
	c.awaitEval(t, again.EvalID)
	after := c.awaitStatus(t, "dead")
	if *after.Version != 0 || *after.JobModifyIndex != *before.JobModifyIndex || len(c.allocs(t)) != 1 {
		t.Errorf("version %d, %d allocations", *after.Version, len(c.allocs(t)))
	}
	if again.EvalID == "" {
		t.Error("no evaluation was made")
	}
}

func priorityReruns(t *testing.T, c cluster) {
	j := c.job("true")
	c.register(t, j)
	c.awaitAllocs(t, "complete")
	j.Priority = new(61)
	c.register(t, j)
	c.awaitAllocs(t, "complete", "complete")
}

func stoppedReruns(t *testing.T, c cluster) {
	j := c.job("true")
	c.register(t, j)
	c.awaitAllocs(t, "complete")
	done(t)(c.Jobs().Deregister(c.id, false, nil))
	if now := c.read(t); !*now.Stop || *now.Version != 1 {
		t.Errorf("stop %t, version %d", *now.Stop, *now.Version)
	}
	c.register(t, j)
	c.awaitAllocs(t, "complete", "complete")
	if now := c.read(t); *now.Stop || *now.Version != 2 {
		t.Errorf("stop %t, version %d", *now.Stop, *now.Version)
	}
}

func finishedIndexReruns(t *testing.T, c cluster) {
	j := c.job(`[ "$NOMAD_ALLOC_INDEX" = 0 ] || { ` + lasting + `; }`)
	j.TaskGroups[0].Count = new(2)
	c.register(t, j)
	await(t, "index 0 to finish and index 1 to run", func() error {
		for _, a := range c.allocs(t) {
			if strings.HasSuffix(a.Name, "[0]") && a.ClientStatus != "complete" || strings.HasSuffix(a.Name, "[1]") && a.ClientStatus != "running" {
				return fmt.Errorf("%s is %s", a.Name, a.ClientStatus)
			}
		}
		if n := len(c.allocs(t)); n != 2 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	task(j).Env = map[string]string{"A": "1"}
	c.register(t, j)
	await(t, "two more allocations", func() error {
		var names []string
		for _, a := range c.allocs(t) {
			if a.JobVersion == 1 {
				names = append(names, a.Name)
			}
		}
		slices.Sort(names)
		if got, want := strings.Join(names, " "), c.id+".g[0] "+c.id+".g[1]"; got != want {
			return fmt.Errorf("of version 1 are %q, want %q", got, want)
		}
		return nil
	})
}

func replacement(t *testing.T, c cluster) {
	j := c.job("trap 'sleep 1; exit 143' TERM INT; echo ready; while :; do sleep 0.1; done")
	first := c.runs(t, j)
	c.output(t, first.ID, "ready\n")
	task(j).Env = map[string]string{"A": "1"}
	c.register(t, j)
	await(t, "the successor to wait", func() error {
		list := c.allocs(t)
		if len(list) != 2 {
			return fmt.Errorf("there are %d", len(list))
		}
		if list[0].DesiredStatus != "stop" || list[0].ClientStatus != "running" || list[1].ClientStatus != "pending" {
			return fmt.Errorf("%s %s, %s", list[0].DesiredStatus, list[0].ClientStatus, list[1].ClientStatus)
		}
		return nil
	})
	list := c.awaitAllocs(t, "complete", "running")
	second := must[*api.Allocation](t)(c.Allocations().Info(list[1].ID, nil))
	old, _, err := c.Allocations().Info(first.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	state := old.TaskStates["t"]
	if second.PreviousAllocation != first.ID || old.NextAllocation != second.ID || old.DesiredStatus != "stop" || state.Failed {
		t.Errorf("previous %q, next %q, desired %q, failed %t", second.PreviousAllocation, old.NextAllocation, old.DesiredStatus, state.Failed)
	}
	if old.DesiredDescription != "alloc is being updated due to job update" {
		t.Errorf("it was stopped since %q", old.DesiredDescription)
	}
	if end := second.TaskStates["t"].StartedAt; end.Before(state.FinishedAt) {
		t.Errorf("the successor started at %v, before the end at %v", end, state.FinishedAt)
	}
	if code := exitCode(state); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
}

func exitCode(s *api.TaskState) int {
	for _, e := range slices.Backward(s.Events) {
		if e.Type == "Terminated" {
			return e.ExitCode
		}
	}
	return -1
}

func stubborn(t *testing.T, c cluster) {
	j := c.job("trap '' TERM INT; echo ready; while :; do sleep 0.1; done")
	task(j).KillTimeout = new(time.Second)
	c.register(t, j)
	c.output(t, c.awaitAllocs(t, "running")[0].ID, "ready\n")
	task(j).Env = map[string]string{"A": "1"}
	c.register(t, j)
	list := c.awaitAllocs(t, "complete", "running")
	if code := exitCode(list[0].TaskStates["t"]); code != 137 {
		t.Errorf("exit code %d, want 137", code)
	}
}

func inPlace(t *testing.T, c cluster) {
	j := c.job(lasting)
	first := c.runs(t, j)
	for name, change := range map[string]func(){
		"priority":     func() { j.Priority = new(77) },
		"kill_timeout": func() { task(j).KillTimeout = new(7 * time.Second) },
		"restart":      func() { task(j).RestartPolicy.Attempts = new(1) },
		"scaling": func() {
			j.TaskGroups[0].Scaling = &api.ScalingPolicy{
				Enabled: new(false), Min: new(int64(1)), Max: new(int64(1)), Policy: map[string]any{"tuning": []any{map[string]any{"mode": "apply"}}},
			}
		},
	} {
		change()
		reg := c.register(t, j)
		c.awaitEval(t, reg.EvalID)
		list := c.allocs(t)
		if len(list) != 1 || list[0].ID != first.ID || list[0].DesiredStatus != "run" {
			t.Fatalf("%s: there are %d allocations", name, len(list))
		}
		if v := *c.read(t).Version; list[0].JobVersion != v {
			t.Errorf("%s: the allocation is of version %d, the job of %d", name, list[0].JobVersion, v)
		}
	}
}

func destructive(t *testing.T, c cluster) {
	j := c.job(lasting)
	c.runs(t, j)
	for name, change := range map[string]func(*api.Job){
		"env":        func(j *api.Job) { task(j).Env = map[string]string{"A": "1"} },
		"config":     func(j *api.Job) { task(j).Config["args"] = []string{"-c", "true"} },
		"job meta":   func(j *api.Job) { j.Meta = map[string]string{"k": "v"} },
		"task meta":  func(j *api.Job) { task(j).Meta = map[string]string{"k": "v"} },
		"memory":     func(j *api.Job) { task(j).Resources.MemoryMB = new(40) },
		"memory_max": func(j *api.Job) { task(j).Resources.MemoryMaxMB = new(64) },
		"cpu":        func(j *api.Job) { task(j).Resources.CPU = new(60) },
		"cores":      func(j *api.Job) { task(j).Resources.CPU, task(j).Resources.Cores = nil, new(1) },
		"disk":       func(j *api.Job) { j.TaskGroups[0].EphemeralDisk = &api.EphemeralDisk{SizeMB: new(400)} },
		"user":       func(j *api.Job) { task(j).User = "nobody" },
	} {
		changed := c.job(lasting)
		change(changed)
		plan, _, err := c.Jobs().Plan(changed, true, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := plan.Annotations.DesiredTGUpdates["g"]; d.DestructiveUpdate != 1 {
			t.Errorf("%s: the plan is %+v, want a destructive update", name, *d)
		}
	}
}

func toCores(t *testing.T, c cluster) {
	j := c.job(`echo "$NOMAD_CPU_CORES"; ` + lasting)
	c.register(t, j)
	c.output(t, c.awaitAllocs(t, "running")[0].ID, "\n", " \n") // with cpu it has none
	task(j).Resources.CPU, task(j).Resources.Cores = nil, new(1)
	c.register(t, j)
	list := c.awaitAllocs(t, "complete", "running")
	if got := strings.TrimSpace(c.output(t, list[1].ID, "1\n", "0\n")); got != "0" && got != "1" {
		t.Errorf("NOMAD_CPU_CORES is %q, want one core", got)
	}
}

func typeChange(t *testing.T, c cluster) {
	j := c.job("true")
	c.register(t, j)
	j.Type = new("service")
	_, _, err := c.Jobs().Register(j, nil)
	refused(t, err, 500, `cannot update job from type "batch" to "service"`)
}

func cpuAndCores(t *testing.T, c cluster) {
	j := c.job("true")
	task(j).Resources.Cores = new(1)
	_, _, err := c.Jobs().Register(j, nil)
	refused(t, err, 500, "Task can only ask for 'cpu' or 'cores' resource, not both.")
	resp := must[*api.JobValidateResponse](t)(c.Jobs().Validate(j, nil))
	if !strings.Contains(resp.Error, "not both") || len(resp.ValidationErrors) != 1 {
		t.Errorf("validation says %q with %d errors", resp.Error, len(resp.ValidationErrors))
	}
}

func memoryMax(t *testing.T, c cluster) {
	j := c.job(lasting)
	task(j).Resources.MemoryMaxMB = new(64)
	reg := c.register(t, j)
	if !strings.Contains(reg.Warnings, "Memory oversubscription is not enabled") {
		t.Errorf("the warning is %q", reg.Warnings)
	}
	a := must[*api.Allocation](t)(c.Allocations().Info(c.awaitAllocs(t, "running")[0].ID, nil))
	if m := a.AllocatedResources.Tasks["t"].Memory; m.MemoryMB != 32 || m.MemoryMaxMB != 0 {
		t.Errorf("memory %d, at most %d", m.MemoryMB, m.MemoryMaxMB)
	}
}

func unknownFields(t *testing.T, c cluster) {
	body := fmt.Sprintf(`{"Job":{"ID":%q,"Type":"batch","Tuning":{"mode":"apply"},"TaskGroups":[{"Name":"g","Tasks":[
		{"Name":"t","Driver":"raw_exec","Tuning":1,"Config":{"command":"/bin/true"}}]}]}}`, c.id)
	var out api.JobRegisterResponse
	if _, err := c.Raw().Write("/v1/jobs", rawJSON(body), &out, nil); err != nil {
		t.Fatal(err)
	}
	text := bodyOf(t, c.get(t, "/v1/job/"+c.id))
	if strings.Contains(text, "Tuning") {
		t.Errorf("the job reads back with the unknown field: %s", text)
	}
}

func impliedConstraint(t *testing.T, c cluster) {
	j := c.job("true")
	task(j).KillSignal = "SIGUSR1"
	c.register(t, j)
	list := c.read(t).TaskGroups[0].Constraints
	if len(list) != 1 || list[0].LTarget != "${attr.os.signals}" || list[0].Operand != "set_contains" || list[0].RTarget != "SIGUSR1" {
		t.Errorf("the constraints are %+v", list)
	}
}

func preserve(t *testing.T, c cluster) {
	j := c.job(lasting)
	task(j).Resources.MemoryMB = new(77)
	first := c.runs(t, j)
	task(j).Resources.MemoryMB = new(32)
	reg := c.registerWith(t, j, &api.RegisterOptions{PreserveResources: true})
	c.awaitEval(t, reg.EvalID)
	now := c.read(t)
	if *task(now).Resources.MemoryMB != 77 || *now.Version != 1 {
		t.Errorf("memory %d, version %d", *task(now).Resources.MemoryMB, *now.Version)
	}
	if list := c.allocs(t); len(list) != 1 || list[0].ID != first.ID {
		t.Errorf("there are %d allocations", len(list))
	}
}
